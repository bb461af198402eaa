//! State of a run: values on their way, what each node still waits for, loops and their iterations.
//!
//! The rules are those of TensorFlow's executor. A value travels along each edge into a slot of who reads it; a node is
//! ready when all that it waits for is there. What stands on the branch not taken is *dead*: it runs no kernel and makes what
//! it feeds dead, up to a `Merge`, which waits for one live input. Each loop that runs is a frame with iterations of its own,
//! each with its own slots.

use crate::plan::{CounterId, DataEdge, FrameId, Kind, Plan, PlanNode, ROOT};
use crate::value::Value;
use std::collections::{BTreeMap, VecDeque};
use support::{Error, Id, IdVec, Result};
use tf::NodeId;

/// How many iterations and frames may be alive at once.
const MAX_ALIVE: usize = 1_000_000;

support::id_type!(
    /// Loop that runs, or the run itself, which is [`RUN`].
    ActiveFrameId,
    "a"
);

/// The run itself.
const RUN: ActiveFrameId = ActiveFrameId(0);

/// Number of an iteration of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct IterationNumber(u64);

impl IterationNumber {
    const FIRST: Self = Self(0);

    fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

/// Iteration of a frame that runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    frame: ActiveFrameId,
    iteration: IterationNumber,
}

/// Node that is ready to run, in an iteration of a frame.
#[derive(Clone, Copy, Debug)]
pub(super) struct Task {
    pub(super) node: NodeId,
    place: Place,
    pub(super) is_dead: bool,
}

/// State of a node after a value has arrived at it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Arrival {
    /// It waits for more.
    Waiting,
    /// It can run.
    Ready,
    /// It can run, and is dead.
    Dead,
}

impl Arrival {
    fn new(is_ready: bool, is_dead: bool) -> Self {
        match (is_ready, is_dead) {
            (false, _) => Self::Waiting,
            (true, false) => Self::Ready,
            (true, true) => Self::Dead,
        }
    }
}

/// Value on its way out of a node, or its absence where it is dead.
#[derive(Clone, Debug)]
struct Departure {
    node: NodeId,
    value: Option<Value>,
}

/// What a node still waits for.
#[derive(Clone, Copy, Debug)]
struct Count {
    pending: u32,
    dead: u32,
}

/// An iteration of a frame.
#[derive(Debug)]
struct Iteration {
    slots: Vec<Option<Value>>,
    counts: IdVec<CounterId, Count>,
    /// Tasks that are ready or running.
    tasks: usize,
    /// Frames that were entered from here and are not done.
    frames: usize,
}

/// A loop that runs.
#[derive(Debug)]
struct Frame {
    id: FrameId,
    /// The iteration that it was entered from.
    parent: Option<Place>,
    /// The number of the first iteration that is alive.
    first: IterationNumber,
    iterations: VecDeque<Iteration>,
    /// The nodes that are yet to enter it.
    enters: usize,
    /// What every iteration gets.
    invariants: Vec<Departure>,
    /// Values for an iteration that may not begin yet.
    waiting: Vec<Departure>,
    /// Exits of the last iteration that were dead.
    dead_exits: Vec<NodeId>,
}

impl Frame {
    /// The number of the last iteration that was begun.
    fn last(&self) -> IterationNumber {
        IterationNumber(self.first.0 + self.iterations.len() as u64 - 1)
    }

    fn iteration(&mut self, number: IterationNumber) -> Option<&mut Iteration> {
        self.iterations.get_mut(usize::try_from(number.0.checked_sub(self.first.0)?).ok()?)
    }
}

/// A run's state.
#[derive(Debug)]
pub(super) struct State {
    frames: IdVec<ActiveFrameId, Option<Frame>>,
    free: Vec<ActiveFrameId>,
    /// The loops that run, by where they were entered from.
    children: BTreeMap<(Place, FrameId), ActiveFrameId>,
    alive: usize,
    /// Ready and quickly done.
    pub(super) cheap: Vec<Task>,
    /// Ready and worth another thread.
    pub(super) expensive: VecDeque<Task>,
    /// How many tasks run.
    pub(super) running: usize,
    pub(super) error: Option<Error>,
    pub(super) results: Vec<Option<Value>>,
}

impl State {
    /// A run that begins.
    pub(super) fn new(plan: &Plan) -> Self {
        let mut state = Self {
            frames: IdVec::new(),
            free: Vec::new(),
            children: BTreeMap::new(),
            alive: 1,
            cheap: Vec::new(),
            expensive: VecDeque::new(),
            running: 0,
            error: None,
            results: vec![None; plan.fetches],
        };
        state.frames.push(Some(Frame {
            id: ROOT,
            parent: None,
            first: IterationNumber::FIRST,
            iterations: VecDeque::from([iteration(plan, ROOT)]),
            enters: 0,
            invariants: Vec::new(),
            waiting: Vec::new(),
            dead_exits: Vec::new(),
        }));
        for &node in &plan.roots {
            state.ready(plan, node, Place { frame: RUN, iteration: IterationNumber::FIRST }, false);
        }
        state
    }

    /// The next task: what is quickly done first.
    pub(super) fn next(&mut self) -> Option<Task> {
        let task = self.cheap.pop().or_else(|| self.expensive.pop_front())?;
        self.running += 1;
        Some(task)
    }

    /// Whether nothing runs and nothing is ready.
    pub(super) fn is_done(&self) -> bool {
        self.running == 0 && self.cheap.is_empty() && self.expensive.is_empty()
    }

    /// Gives all up.
    pub(super) fn fail(&mut self, error: Error) {
        self.error.get_or_insert(error);
        self.cheap.clear();
        self.expensive.clear();
    }

    fn ready(&mut self, plan: &Plan, node: NodeId, place: Place, is_dead: bool) {
        let entry = &plan.nodes[node];
        let is_dead = is_dead && !matches!(entry.kind, Kind::ControlTrigger);
        let task = Task { node, place, is_dead };
        if let Some(alive) = self.iteration(place) {
            alive.tasks += 1;
        }
        if !is_dead && entry.kind.is_expensive() {
            self.expensive.push_back(task)
        } else {
            self.cheap.push(task)
        }
    }

    fn frame(&mut self, frame: ActiveFrameId) -> Option<&mut Frame> {
        self.frames[frame].as_mut()
    }

    fn iteration(&mut self, place: Place) -> Option<&mut Iteration> {
        self.frame(place.frame)?.iteration(place.iteration)
    }

    /// Takes a task's inputs out of their slots; of a dead one they are dropped.
    pub(super) fn take_inputs(&mut self, node: &PlanNode, task: Task, inputs: &mut Vec<Value>) -> Result<()> {
        inputs.clear();
        let lost = || Error::internal("a node runs without its inputs");
        let iteration = self.iteration(task.place).ok_or_else(lost)?;
        let start = node.slot.index();
        let slots = &mut iteration.slots[start..start + node.node.inputs.len()];
        if task.is_dead {
            slots.iter_mut().for_each(|slot| *slot = None);
            return Ok(());
        }
        if matches!(node.kind, Kind::Merge) {
            let at = slots.iter().position(Option::is_some).ok_or_else(lost)?;
            inputs.extend(slots[at].take());
            inputs.push(crate::value::Tensor::scalar(at as i32)?.into());
            return Ok(());
        }
        for slot in slots {
            inputs.push(slot.take().ok_or_else(lost)?);
        }
        Ok(())
    }

    /// Sends what a task made on its ways. `None` is what is dead.
    pub(super) fn deliver(&mut self, plan: &Plan, task: Task, outputs: &mut [Option<Value>]) -> Result<()> {
        let node = &plan.nodes[task.node];
        let is_dead = task.is_dead;
        match &node.kind {
            Kind::Enter { is_constant } => self.enter(plan, task, *is_constant, outputs)?,
            Kind::Exit => {
                let (parent, last) = match self.frame(task.place.frame) {
                    Some(frame) => (frame.parent, frame.last()),
                    None => (None, IterationNumber::FIRST),
                };
                let Some(parent) = parent else {
                    return Err(Error::internal("an exit in no loop"));
                };
                if !is_dead {
                    self.activate(plan, task.node, parent, false, outputs);
                } else if task.place.iteration == last
                    && let Some(frame) = self.frame(task.place.frame)
                {
                    frame.dead_exits.push(task.node);
                }
            }
            Kind::NextIteration => {
                if !is_dead {
                    self.next_iteration(plan, task, outputs)?;
                }
            }
            _ => self.activate(plan, task.node, task.place, is_dead, outputs),
        }
        if let Some(iteration) = self.iteration(task.place) {
            iteration.tasks -= 1;
        }
        if task.place.frame != RUN {
            self.clean_up(plan, task.place)?;
        }
        Ok(())
    }

    /// Hands the outputs of a node to who reads them in an iteration.
    fn activate(
        &mut self,
        plan: &Plan,
        node: NodeId,
        place: Place,
        is_dead: bool,
        outputs: &mut [Option<Value>],
    ) {
        let edges = plan.data_edges(node);
        let is_enter = matches!(plan.nodes[node].kind, Kind::Enter { .. });
        for (k, edge) in edges.iter().enumerate() {
            let is_last = edges.get(k + 1).is_none_or(|next| next.output != edge.output);
            let output = outputs.get_mut(edge.output as usize);
            let value = match (is_dead, is_last) {
                (true, _) => None,
                (false, true) => output.and_then(Option::take),
                (false, false) => output.and_then(|value| value.clone()),
            };
            let Some(iteration) = self.iteration(place) else { return };
            let arrival = arrive(plan, iteration, *edge, value, is_enter, is_dead);
            self.arrived(plan, edge.node, place, arrival);
        }
        for &user in plan.control_edges(node) {
            let Some(iteration) = self.iteration(place) else { return };
            let arrival = arrive_control(plan, iteration, user, is_dead);
            self.arrived(plan, user, place, arrival);
        }
    }

    fn arrived(&mut self, plan: &Plan, node: NodeId, place: Place, arrival: Arrival) {
        match arrival {
            Arrival::Waiting => {}
            Arrival::Ready => self.ready(plan, node, place, false),
            Arrival::Dead => self.ready(plan, node, place, true),
        }
    }

    /// Enters a loop, which begins with the first that enters it.
    fn enter(
        &mut self,
        plan: &Plan,
        task: Task,
        is_constant: bool,
        outputs: &mut [Option<Value>],
    ) -> Result<()> {
        let node = &plan.nodes[task.node];
        // Where an `Enter` leads to is where who reads it stands.
        let reader = plan.data_edges(task.node).first();
        let waits = plan.control_edges(task.node).first();
        let Some(user) = reader.map(|edge| edge.node).or(waits.copied()) else { return Ok(()) };
        let id = plan.nodes[user].frame;
        if plan.frames[id].info.parent != node.frame {
            return Err(Error::internal("an Enter leads to a frame that is not inside of its own"));
        }
        let child = match self.children.get(&(task.place, id)) {
            Some(&child) => child,
            None => self.new_frame(plan, task.place, id)?,
        };
        let begin = Place { frame: child, iteration: IterationNumber::FIRST };
        if is_constant {
            let value = outputs.first_mut().and_then(Option::take).filter(|_| !task.is_dead);
            let Some(frame) = self.frame(child) else { return Ok(()) };
            frame.invariants.push(Departure { node: task.node, value: value.clone() });
            let (first, last) = (frame.first, frame.last());
            for number in first.0..=last.0 {
                let place = Place { frame: child, iteration: IterationNumber(number) };
                self.activate(plan, task.node, place, value.is_none(), &mut [value.clone()]);
            }
        } else {
            self.activate(plan, task.node, begin, task.is_dead, outputs);
        }
        if let Some(frame) = self.frame(child) {
            frame.enters = frame.enters.saturating_sub(1);
        }
        self.clean_up(plan, begin)
    }

    fn new_frame(&mut self, plan: &Plan, parent: Place, id: FrameId) -> Result<ActiveFrameId> {
        self.count_alive(plan, id)?;
        let frame = Frame {
            id,
            parent: Some(parent),
            first: IterationNumber::FIRST,
            iterations: VecDeque::from([iteration(plan, id)]),
            enters: plan.frames[id].info.enters,
            invariants: Vec::new(),
            waiting: Vec::new(),
            dead_exits: Vec::new(),
        };
        if let Some(iteration) = self.iteration(parent) {
            iteration.frames += 1;
        }
        let at = match self.free.pop() {
            Some(at) => {
                self.frames[at] = Some(frame);
                at
            }
            None => self.frames.push(Some(frame)),
        };
        self.children.insert((parent, id), at);
        Ok(at)
    }

    fn count_alive(&mut self, plan: &Plan, id: FrameId) -> Result<()> {
        self.alive += 1;
        if self.alive <= MAX_ALIVE {
            return Ok(());
        }
        Err(Error::unsupported(format!(
            "more than {MAX_ALIVE} iterations of loops are under way at once, at frame '{}'; give its loop fewer \
             parallel_iterations",
            plan.frames[id].info.name
        )))
    }

    fn next_iteration(&mut self, plan: &Plan, task: Task, outputs: &mut [Option<Value>]) -> Result<()> {
        let Place { frame: at, iteration } = task.place;
        let Some(frame) = self.frame(at) else { return Ok(()) };
        let is_new = iteration == frame.last();
        let most = plan.frames[frame.id].info.parallel_iterations;
        if is_new && frame.iterations.len() as u64 >= most {
            let value = outputs.first_mut().and_then(Option::take);
            frame.waiting.push(Departure { node: task.node, value });
            return Ok(());
        }
        if is_new {
            self.begin_iteration(plan, at)?;
        }
        self.activate(plan, task.node, Place { frame: at, iteration: iteration.next() }, false, outputs);
        Ok(())
    }

    /// Begins another iteration, with what waited for it and what every one gets.
    fn begin_iteration(&mut self, plan: &Plan, at: ActiveFrameId) -> Result<()> {
        let Some(id) = self.frame(at).map(|frame| frame.id) else { return Ok(()) };
        self.count_alive(plan, id)?;
        let Some(frame) = self.frame(at) else { return Ok(()) };
        frame.iterations.push_back(iteration(plan, id));
        frame.dead_exits.clear();
        let place = Place { frame: at, iteration: frame.last() };
        let waiting = std::mem::take(&mut frame.waiting);
        let invariants = frame.invariants.clone();
        for Departure { node, value } in waiting.into_iter().chain(invariants) {
            self.activate(plan, node, place, value.is_none(), &mut [value]);
        }
        Ok(())
    }

    /// Drops iterations that are done, and the frame with the last of them. What ends makes room in what is around it.
    fn clean_up(&mut self, plan: &Plan, mut place: Place) -> Result<()> {
        loop {
            let at = place.frame;
            let Some(frame) = self.frame(at) else { return Ok(()) };
            if place.iteration != frame.first || at == RUN {
                return Ok(());
            }
            let is_done = |frame: &Frame| {
                let first = frame.iterations.front();
                (frame.first > IterationNumber::FIRST || frame.enters == 0)
                    && first.is_some_and(|iteration| iteration.tasks == 0 && iteration.frames == 0)
            };
            while self.frame(at).is_some_and(|frame| is_done(frame)) {
                self.alive -= 1;
                let Some(frame) = self.frame(at) else { break };
                let has_waiting = !frame.waiting.is_empty();
                if has_waiting {
                    // Before the oldest one goes, so that the numbers stay.
                    self.begin_iteration(plan, at)?;
                }
                if let Some(frame) = self.frame(at) {
                    frame.iterations.pop_front();
                    frame.first = frame.first.next();
                }
            }
            let Some(frame) = self.frame(at) else { return Ok(()) };
            if !frame.iterations.is_empty() || frame.enters > 0 {
                return Ok(());
            }
            let Some(ended) = self.frames[at].take() else { return Ok(()) };
            self.free.push(at);
            let Some(parent) = ended.parent else { return Ok(()) };
            self.children.remove(&(parent, ended.id));
            for exit in ended.dead_exits {
                self.activate(plan, exit, parent, true, &mut []);
            }
            if let Some(around) = self.iteration(parent) {
                around.frames -= 1;
            }
            place = parent;
        }
    }
}

/// The beginning of an iteration.
fn iteration(plan: &Plan, id: FrameId) -> Iteration {
    let frame = &plan.frames[id];
    Iteration {
        slots: vec![None; frame.slots],
        counts: frame.pending.values().map(|&pending| Count { pending, dead: 0 }).collect(),
        tasks: 0,
        frames: 0,
    }
}

/// A value, or its absence, arrives at a slot.
fn arrive(
    plan: &Plan,
    iteration: &mut Iteration,
    edge: DataEdge,
    value: Option<Value>,
    is_enter: bool,
    is_dead: bool,
) -> Arrival {
    let node = &plan.nodes[edge.node];
    let count = &mut iteration.counts[node.counter];
    if !matches!(node.kind, Kind::Merge) {
        count.pending = count.pending.saturating_sub(1);
        if is_dead || value.is_none() {
            count.dead += 1;
        }
        let arrival = Arrival::new(count.pending == 0, count.dead > 0);
        iteration.slots[edge.slot.index()] = value;
        return arrival;
    }
    if value.is_some() {
        // The lowest bit is set until a value is there: the first one counts.
        let is_first = count.pending & 1 == 1;
        let is_ready = count.pending == 1;
        count.pending &= !1;
        if is_first {
            iteration.slots[edge.slot.index()] = value;
        }
        return Arrival::new(is_ready, false);
    }
    count.dead += 1;
    // What enters a loop dead enters it alone: the next iteration will never come.
    let dead = count.dead as usize == node.node.inputs.len() || is_enter;
    Arrival::new(count.pending == 1 && dead, true)
}

/// A node that another waits for has run.
fn arrive_control(plan: &Plan, iteration: &mut Iteration, user: NodeId, is_dead: bool) -> Arrival {
    let node = &plan.nodes[user];
    let count = &mut iteration.counts[node.counter];
    if matches!(node.kind, Kind::Merge) {
        count.pending = count.pending.saturating_sub(2);
        let dead = count.dead as usize == node.node.inputs.len();
        let is_ready = count.pending == 0 || (count.pending == 1 && dead);
        return Arrival::new(is_ready, dead);
    }
    count.pending = count.pending.saturating_sub(1);
    count.dead += u32::from(is_dead);
    Arrival::new(count.pending == 0, count.dead > 0)
}
