//! Where a run stands: values on their way, what each node still waits for, loops and their iterations.
//!
//! The rules are those of TensorFlow's executor. A value travels along each edge into a slot of who reads it; a node is
//! ready when all that it waits for is there. What stands on the branch not taken is *dead*: it runs no kernel and makes what
//! it feeds dead, up to a `Merge`, which waits for one live input. Each loop that runs is a frame with iterations of its own,
//! each with its own slots.

use crate::plan::{DataEdge, FrameId, Kind, Plan, PlanNode, ROOT};
use crate::value::Value;
use std::collections::{BTreeMap, VecDeque};
use support::{Error, Result};

/// How many iterations and frames may be alive at once.
const MAX_ALIVE: usize = 1_000_000;

/// A node that is ready to run, in an iteration of a frame.
#[derive(Clone, Copy, Debug)]
pub(super) struct Task {
    pub(super) node: u32,
    frame: u32,
    iteration: u64,
    pub(super) is_dead: bool,
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
    counts: Vec<Count>,
    /// Tasks that are ready or running.
    tasks: usize,
    /// Frames that were entered from here and are not done.
    frames: usize,
}

/// A loop that runs.
#[derive(Debug)]
struct Frame {
    id: FrameId,
    /// The frame that it was entered from, and the iteration.
    parent: Option<(u32, u64)>,
    /// The number of the first iteration that is alive.
    first: u64,
    iterations: VecDeque<Iteration>,
    /// The nodes that are yet to enter it.
    enters: usize,
    /// What every iteration gets.
    invariants: Vec<(u32, Option<Value>)>,
    /// Values for an iteration that may not begin yet.
    waiting: Vec<(u32, Option<Value>)>,
    /// Exits of the last iteration that were dead.
    dead_exits: Vec<u32>,
}

impl Frame {
    /// The number of the last iteration that was begun.
    fn last(&self) -> u64 {
        self.first + self.iterations.len() as u64 - 1
    }

    fn iteration(&mut self, number: u64) -> Option<&mut Iteration> {
        self.iterations.get_mut(usize::try_from(number.checked_sub(self.first)?).ok()?)
    }
}

/// A run's state.
#[derive(Debug)]
pub(super) struct State {
    frames: Vec<Option<Frame>>,
    free: Vec<u32>,
    children: BTreeMap<(u32, u64, FrameId), u32>,
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
            frames: Vec::new(),
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
            first: 0,
            iterations: VecDeque::from([iteration(plan, ROOT)]),
            enters: 0,
            invariants: Vec::new(),
            waiting: Vec::new(),
            dead_exits: Vec::new(),
        }));
        for &node in &plan.roots {
            state.ready(plan, node, 0, 0, false);
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

    fn ready(&mut self, plan: &Plan, node: u32, frame: u32, iteration: u64, is_dead: bool) {
        let entry = &plan.nodes[node as usize];
        let is_dead = is_dead && !matches!(entry.kind, Kind::ControlTrigger);
        let task = Task { node, frame, iteration, is_dead };
        if let Some(alive) = self.iteration(frame, iteration) {
            alive.tasks += 1;
        }
        if !is_dead && entry.kind.is_expensive() {
            self.expensive.push_back(task)
        } else {
            self.cheap.push(task)
        }
    }

    fn frame(&mut self, frame: u32) -> Option<&mut Frame> {
        self.frames.get_mut(frame as usize)?.as_mut()
    }

    fn iteration(&mut self, frame: u32, iteration: u64) -> Option<&mut Iteration> {
        self.frame(frame)?.iteration(iteration)
    }

    /// Takes a task's inputs out of their slots; of a dead one they are dropped.
    pub(super) fn take_inputs(&mut self, node: &PlanNode, task: Task, inputs: &mut Vec<Value>) -> Result<()> {
        inputs.clear();
        let lost = || Error::internal("a node runs without its inputs");
        let iteration = self.iteration(task.frame, task.iteration).ok_or_else(lost)?;
        let start = node.slot as usize;
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
        let node = &plan.nodes[task.node as usize];
        let is_dead = task.is_dead;
        match &node.kind {
            Kind::Enter { is_constant } => self.enter(plan, task, *is_constant, outputs)?,
            Kind::Exit => {
                let (parent, last) = match self.frame(task.frame) {
                    Some(frame) => (frame.parent, frame.last()),
                    None => (None, 0),
                };
                let Some((frame, iteration)) = parent else {
                    return Err(Error::internal("an exit in no loop"));
                };
                if !is_dead {
                    self.activate(plan, task.node, frame, iteration, false, outputs);
                } else if task.iteration == last
                    && let Some(frame) = self.frame(task.frame)
                {
                    frame.dead_exits.push(task.node);
                }
            }
            Kind::NextIteration => {
                if !is_dead {
                    self.next_iteration(plan, task, outputs)?;
                }
            }
            _ => self.activate(plan, task.node, task.frame, task.iteration, is_dead, outputs),
        }
        if let Some(iteration) = self.iteration(task.frame, task.iteration) {
            iteration.tasks -= 1;
        }
        if task.frame != 0 {
            self.clean_up(plan, task.frame, task.iteration)?;
        }
        Ok(())
    }

    /// Hands the outputs of a node to who reads them in an iteration.
    fn activate(
        &mut self,
        plan: &Plan,
        node: u32,
        frame: u32,
        number: u64,
        is_dead: bool,
        outputs: &mut [Option<Value>],
    ) {
        let from = &plan.nodes[node as usize];
        let edges = &plan.data_edges[from.data_edges.start as usize..from.data_edges.end as usize];
        let is_enter = matches!(from.kind, Kind::Enter { .. });
        for (k, edge) in edges.iter().enumerate() {
            let is_last = edges.get(k + 1).is_none_or(|next| next.output != edge.output);
            let output = outputs.get_mut(edge.output as usize);
            let value = match (is_dead, is_last) {
                (true, _) => None,
                (false, true) => output.and_then(Option::take),
                (false, false) => output.and_then(|value| value.clone()),
            };
            let Some(iteration) = self.iteration(frame, number) else { return };
            if let Some(dead) = arrive(plan, iteration, *edge, value, is_enter, is_dead) {
                self.ready(plan, edge.node, frame, number, dead);
            }
        }
        for &user in &plan.control_edges[from.control_edges.start as usize..from.control_edges.end as usize] {
            let Some(iteration) = self.iteration(frame, number) else { return };
            if let Some(dead) = arrive_control(plan, iteration, user, is_dead) {
                self.ready(plan, user, frame, number, dead);
            }
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
        let node = &plan.nodes[task.node as usize];
        // Where an `Enter` leads to is where who reads it stands.
        let reader = plan.data_edges[node.data_edges.start as usize..node.data_edges.end as usize].first();
        let waits = &plan.control_edges[node.control_edges.start as usize..node.control_edges.end as usize];
        let Some(user) = reader.map(|edge| edge.node).or(waits.first().copied()) else { return Ok(()) };
        let id = plan.nodes[user as usize].frame;
        let id = match plan.nodes[user as usize].kind {
            _ if plan.frames[id].info.parent == node.frame => id,
            _ => return Err(Error::internal("an Enter leads to a frame that is not inside of its own")),
        };
        let key = (task.frame, task.iteration, id);
        let child = match self.children.get(&key) {
            Some(&child) => child,
            None => self.new_frame(plan, key)?,
        };
        if is_constant {
            let value = outputs.first_mut().and_then(Option::take).filter(|_| !task.is_dead);
            let Some(frame) = self.frame(child) else { return Ok(()) };
            frame.invariants.push((task.node, value.clone()));
            let (first, last) = (frame.first, frame.last());
            for number in first..=last {
                let is_dead = value.is_none();
                self.activate(plan, task.node, child, number, is_dead, &mut [value.clone()]);
            }
        } else {
            self.activate(plan, task.node, child, 0, task.is_dead, outputs);
        }
        if let Some(frame) = self.frame(child) {
            frame.enters = frame.enters.saturating_sub(1);
        }
        self.clean_up(plan, child, 0)
    }

    fn new_frame(&mut self, plan: &Plan, key: (u32, u64, FrameId)) -> Result<u32> {
        self.count_alive(plan, key.2)?;
        let frame = Frame {
            id: key.2,
            parent: Some((key.0, key.1)),
            first: 0,
            iterations: VecDeque::from([iteration(plan, key.2)]),
            enters: plan.frames[key.2].info.enters,
            invariants: Vec::new(),
            waiting: Vec::new(),
            dead_exits: Vec::new(),
        };
        if let Some(iteration) = self.iteration(key.0, key.1) {
            iteration.frames += 1;
        }
        let at = match self.free.pop() {
            Some(at) => {
                self.frames[at as usize] = Some(frame);
                at
            }
            None => {
                self.frames.push(Some(frame));
                (self.frames.len() - 1) as u32
            }
        };
        self.children.insert(key, at);
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
        let Some(frame) = self.frame(task.frame) else { return Ok(()) };
        let is_new = task.iteration == frame.last();
        let most = plan.frames[frame.id].info.parallel_iterations;
        if is_new && frame.iterations.len() as u64 >= most {
            let value = outputs.first_mut().and_then(Option::take);
            frame.waiting.push((task.node, value));
            return Ok(());
        }
        if is_new {
            self.begin_iteration(plan, task.frame)?;
        }
        self.activate(plan, task.node, task.frame, task.iteration + 1, false, outputs);
        Ok(())
    }

    /// Begins another iteration, with what waited for it and what every one gets.
    fn begin_iteration(&mut self, plan: &Plan, at: u32) -> Result<()> {
        let Some(id) = self.frame(at).map(|frame| frame.id) else { return Ok(()) };
        self.count_alive(plan, id)?;
        let Some(frame) = self.frame(at) else { return Ok(()) };
        frame.iterations.push_back(iteration(plan, id));
        frame.dead_exits.clear();
        let number = frame.last();
        let waiting = std::mem::take(&mut frame.waiting);
        let invariants = frame.invariants.clone();
        for (node, value) in waiting.into_iter().chain(invariants) {
            let is_dead = value.is_none();
            self.activate(plan, node, at, number, is_dead, &mut [value]);
        }
        Ok(())
    }

    /// Drops iterations that are done, and the frame with the last of them. What ends makes room in what is around it.
    fn clean_up(&mut self, plan: &Plan, mut at: u32, mut number: u64) -> Result<()> {
        loop {
            let Some(frame) = self.frame(at) else { return Ok(()) };
            if number != frame.first || at == 0 {
                return Ok(());
            }
            let is_done = |frame: &Frame| {
                let first = frame.iterations.front();
                (frame.first > 0 || frame.enters == 0)
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
                    frame.first += 1;
                }
            }
            let Some(frame) = self.frame(at) else { return Ok(()) };
            if !frame.iterations.is_empty() || frame.enters > 0 {
                return Ok(());
            }
            let Some(ended) = self.frames[at as usize].take() else { return Ok(()) };
            self.free.push(at);
            let Some((parent, iteration)) = ended.parent else { return Ok(()) };
            self.children.remove(&(parent, iteration, ended.id));
            for exit in ended.dead_exits {
                self.activate(plan, exit, parent, iteration, true, &mut []);
            }
            if let Some(around) = self.iteration(parent, iteration) {
                around.frames -= 1;
            }
            (at, number) = (parent, iteration);
        }
    }
}

/// The beginning of an iteration.
fn iteration(plan: &Plan, id: FrameId) -> Iteration {
    let frame = &plan.frames[id];
    Iteration {
        slots: vec![None; frame.slots],
        counts: frame.pending.iter().map(|&pending| Count { pending, dead: 0 }).collect(),
        tasks: 0,
        frames: 0,
    }
}

/// A value, or its absence, arrives at a slot: whether the node is ready now, and dead.
fn arrive(
    plan: &Plan,
    iteration: &mut Iteration,
    edge: DataEdge,
    value: Option<Value>,
    is_enter: bool,
    is_dead: bool,
) -> Option<bool> {
    let node = &plan.nodes[edge.node as usize];
    let count = &mut iteration.counts[node.local as usize];
    if !matches!(node.kind, Kind::Merge) {
        count.pending = count.pending.saturating_sub(1);
        if is_dead || value.is_none() {
            count.dead += 1;
        }
        let (is_ready, dead) = (count.pending == 0, count.dead > 0);
        iteration.slots[edge.slot as usize] = value;
        return is_ready.then_some(dead);
    }
    if value.is_some() {
        // The lowest bit is set until a value is there: the first one counts.
        let is_first = count.pending & 1 == 1;
        let is_ready = count.pending == 1;
        count.pending &= !1;
        if is_first {
            iteration.slots[edge.slot as usize] = value;
        }
        return is_ready.then_some(false);
    }
    count.dead += 1;
    // What enters a loop dead enters it alone: the next iteration will never come.
    let dead = count.dead as usize == node.node.inputs.len() || is_enter;
    (count.pending == 1 && dead).then_some(true)
}

/// A node that another waits for has run.
fn arrive_control(plan: &Plan, iteration: &mut Iteration, user: u32, is_dead: bool) -> Option<bool> {
    let node = &plan.nodes[user as usize];
    let count = &mut iteration.counts[node.local as usize];
    if matches!(node.kind, Kind::Merge) {
        count.pending = count.pending.saturating_sub(2);
        let dead = count.dead as usize == node.node.inputs.len();
        let is_ready = count.pending == 0 || (count.pending == 1 && dead);
        return is_ready.then_some(dead);
    }
    count.pending = count.pending.saturating_sub(1);
    count.dead += u32::from(is_dead);
    (count.pending == 0).then_some(count.dead > 0)
}
