//! State of a run: values in flight, the pending inputs of each node, loops, and their iterations.
//!
//! The rules are those of TensorFlow's executor. A value travels along each edge into a slot of its
//! consumer. A node is ready when all of its inputs have arrived. Nodes on the branch not taken are
//! *dead*: they run no kernel and make their consumers dead, up to a `Merge`, which waits for one
//! live input. Each running loop is a frame with its own iterations, each of which has its own
//! slots.

use crate::plan::{CounterId, DataEdge, FrameId, Kind, Plan, PlanNode, ROOT};
use crate::value::Value;
use std::collections::{BTreeMap, VecDeque};
use support::{Error, Id, IdVec, Result};
use tf::NodeId;

/// Maximum number of iterations and frames alive at once.
const MAX_ALIVE: usize = 1_000_000;

support::id_type!(
    /// Running loop, or the run itself, which is [`RUN`].
    ActiveFrameId,
    "a"
);

/// The run itself.
const RUN: ActiveFrameId = ActiveFrameId(0);

/// Number of an iteration in its frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct IterationNumber(u64);

impl IterationNumber {
    const FIRST: Self = Self(0);

    fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

/// Iteration of a running frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    frame: ActiveFrameId,
    iteration: IterationNumber,
}

/// Ready node in an iteration of a frame.
#[derive(Clone, Copy, Debug)]
pub(super) struct Task {
    pub(super) node: NodeId,
    place: Place,
    pub(super) is_dead: bool,
}

/// State of a node after an input has arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Arrival {
    /// The node waits for more inputs.
    Waiting,
    /// The node can run.
    Ready,
    /// The node is ready, and dead.
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

/// Value that leaves a node, or `None` if it is dead.
#[derive(Clone, Debug)]
struct Departure {
    node: NodeId,
    value: Option<Value>,
}

/// Pending and dead inputs of a node.
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
    /// Number of tasks that are ready or running.
    tasks: usize,
    /// Number of unfinished frames that were entered from here.
    frames: usize,
}

/// A running loop.
#[derive(Debug)]
struct Frame {
    id: FrameId,
    /// Iteration that the loop was entered from.
    parent: Option<Place>,
    /// Number of the first live iteration.
    first: IterationNumber,
    iterations: VecDeque<Iteration>,
    /// Number of `Enter` nodes that have not run yet.
    enters: usize,
    /// Values that every iteration receives.
    invariants: Vec<Departure>,
    /// Values for an iteration that may not begin yet.
    waiting: Vec<Departure>,
    /// Dead exits of the last iteration.
    dead_exits: Vec<NodeId>,
}

impl Frame {
    /// Number of the last iteration that has begun.
    fn last(&self) -> IterationNumber {
        IterationNumber(self.first.0 + self.iterations.len() as u64 - 1)
    }

    fn iteration(&mut self, number: IterationNumber) -> Option<&mut Iteration> {
        self.iterations.get_mut(usize::try_from(number.0.checked_sub(self.first.0)?).ok()?)
    }
}

/// State of a run.
#[derive(Debug)]
pub(super) struct State {
    frames: IdVec<ActiveFrameId, Option<Frame>>,
    free: Vec<ActiveFrameId>,
    /// Running loops, by the place that they were entered from.
    children: BTreeMap<(Place, FrameId), ActiveFrameId>,
    alive: usize,
    /// Ready tasks that are cheap to run.
    pub(super) cheap: Vec<Task>,
    /// Ready tasks that are worth another thread.
    pub(super) expensive: VecDeque<Task>,
    /// Number of running tasks.
    pub(super) running: usize,
    pub(super) error: Option<Error>,
    pub(super) results: Vec<Option<Value>>,
}

impl State {
    /// State of a run that begins.
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

    /// Next task, cheap ones first.
    pub(super) fn next(&mut self) -> Option<Task> {
        let task = self.cheap.pop().or_else(|| self.expensive.pop_front())?;
        self.running += 1;
        Some(task)
    }

    /// True if nothing is running and nothing is ready.
    pub(super) fn is_done(&self) -> bool {
        self.running == 0 && self.cheap.is_empty() && self.expensive.is_empty()
    }

    /// Aborts the run.
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

    /// Moves a task's inputs out of their slots, or drops them if the task is dead.
    pub(super) fn take_inputs(&mut self, node: &PlanNode, task: Task, inputs: &mut Vec<Value>) -> Result<()> {
        inputs.clear();
        let missing = || Error::internal("a node that runs has no inputs");
        let iteration = self.iteration(task.place).ok_or_else(missing)?;
        let start = node.slot.index();
        let slots = &mut iteration.slots[start..start + node.node.inputs.len()];
        if task.is_dead {
            slots.iter_mut().for_each(|slot| *slot = None);
            return Ok(());
        }
        if matches!(node.kind, Kind::Merge) {
            let at = slots.iter().position(Option::is_some).ok_or_else(missing)?;
            inputs.extend(slots[at].take());
            inputs.push(crate::value::Tensor::scalar(at as i32)?.into());
            return Ok(());
        }
        for slot in slots {
            inputs.push(slot.take().ok_or_else(missing)?);
        }
        Ok(())
    }

    /// Sends a task's outputs along their edges. `None` is a dead output.
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
                    return Err(Error::internal("an Exit outside of a loop"));
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

    /// Sends the outputs of a node to their consumers in an iteration.
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
            self.handle_arrival(plan, edge.node, place, arrival);
        }
        for &user in plan.control_edges(node) {
            let Some(iteration) = self.iteration(place) else { return };
            let arrival = arrive_control(plan, iteration, user, is_dead);
            self.handle_arrival(plan, user, place, arrival);
        }
    }

    fn handle_arrival(&mut self, plan: &Plan, node: NodeId, place: Place, arrival: Arrival) {
        match arrival {
            Arrival::Waiting => {}
            Arrival::Ready => self.ready(plan, node, place, false),
            Arrival::Dead => self.ready(plan, node, place, true),
        }
    }

    /// Enters a loop. The first `Enter` begins it.
    fn enter(
        &mut self,
        plan: &Plan,
        task: Task,
        is_constant: bool,
        outputs: &mut [Option<Value>],
    ) -> Result<()> {
        let node = &plan.nodes[task.node];
        // The target frame of an `Enter` is the frame of its consumer.
        let reader = plan.data_edges(task.node).first();
        let waits = plan.control_edges(task.node).first();
        let Some(user) = reader.map(|edge| edge.node).or(waits.copied()) else { return Ok(()) };
        let id = plan.nodes[user].frame;
        if plan.frames[id].info.parent != node.frame {
            return Err(Error::internal(
                "the target frame of an Enter is not nested in the Enter's own frame",
            ));
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
            "more than {MAX_ALIVE} loop iterations run at once, in frame '{}'; reduce its \
             parallel_iterations",
            plan.frames[id].info.name
        )))
    }

    fn next_iteration(&mut self, plan: &Plan, task: Task, outputs: &mut [Option<Value>]) -> Result<()> {
        let Place { frame: at, iteration } = task.place;
        let Some(frame) = self.frame(at) else { return Ok(()) };
        let is_new = iteration == frame.last();
        let limit = plan.frames[frame.id].info.parallel_iterations;
        if is_new && frame.iterations.len() as u64 >= limit {
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

    /// Begins another iteration with the values that waited for it and the invariants.
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

    /// Drops finished iterations, and the frame along with the last one. Finishing a frame can
    /// finish iterations of the enclosing frame.
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
                    // Begin the new iteration before dropping the oldest one, so that iteration
                    // numbers stay consistent.
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

/// Initial state of an iteration.
fn iteration(plan: &Plan, id: FrameId) -> Iteration {
    let frame = &plan.frames[id];
    Iteration {
        slots: vec![None; frame.slots],
        counts: frame.pending.values().map(|&pending| Count { pending, dead: 0 }).collect(),
        tasks: 0,
        frames: 0,
    }
}

/// Records the arrival of a value, or of its absence, at a slot.
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
        // The lowest bit is set until a value has arrived; only the first value counts.
        let is_first = count.pending & 1 == 1;
        let is_ready = count.pending == 1;
        count.pending &= !1;
        if is_first {
            iteration.slots[edge.slot.index()] = value;
        }
        return Arrival::new(is_ready, false);
    }
    count.dead += 1;
    // A dead `Enter` input alone decides: the other input, from the next iteration, will never
    // arrive.
    let dead = count.dead as usize == node.node.inputs.len() || is_enter;
    Arrival::new(count.pending == 1 && dead, true)
}

/// Records that a control input has run.
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
