//! Computes when each value is live, on one time line for the whole module.

use crate::values::{Values, called};
use crate::{Leaf, Schedule};
use hlo::{ComputationId, InstructionId, Module, Op};
use std::collections::BTreeMap;

/// A closed interval of ticks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Interval {
    pub(crate) begin: usize,
    pub(crate) end: usize,
}

impl Interval {
    pub(crate) fn overlaps(&self, other: &Self) -> bool {
        self.begin <= other.end && other.begin <= self.end
    }
}

/// The ticks of all events, in the order of the code. A kernel reads its operands and writes its
/// result in one tick. A control-flow instruction has one tick before and one after the
/// computations that it runs. A computation has a first tick and a last one, which is that of its
/// end copies.
#[derive(Debug, Default)]
pub(crate) struct Timeline {
    /// The tick of an instruction; for control flow, the tick before.
    pub(crate) positions: BTreeMap<(ComputationId, InstructionId), usize>,
    /// The tick after a control-flow instruction.
    pub(crate) after: BTreeMap<(ComputationId, InstructionId), usize>,
    /// The first tick of a computation.
    pub(crate) begins: BTreeMap<ComputationId, usize>,
    /// The last tick of a computation.
    pub(crate) ends: BTreeMap<ComputationId, usize>,
    /// Intervals in which each value is live, disjoint and in ascending order. Branches exclude one
    /// another, so a value that only some of them read is not live in the others. A loop's state is
    /// live from its start to its last reader in the body, at the end of the body, and after the
    /// loop.
    pub(crate) intervals: BTreeMap<Leaf, Vec<Interval>>,
    next: usize,
}

impl Timeline {
    pub(crate) fn new(module: &Module, values: &Values<'_>, schedule: &Schedule) -> Self {
        let mut timeline = Self::default();
        timeline.walk(module, schedule);
        let mut last = Last { values, timeline: &timeline, ticks: BTreeMap::new() };
        for &id in values.order() {
            for &instruction in &schedule.sequences[&id] {
                if values.is_alias(id, instruction) {
                    continue;
                }
                let position = timeline.positions[&(id, instruction)];
                values.reads(id, instruction).into_iter().for_each(|read| last.needed(read, id, position));
                for leaf in values.leaves(id, instruction) {
                    if !values.is_forwarded(&leaf) {
                        last.ticks.entry((leaf, id)).or_insert(position);
                    }
                }
            }
            for (_, definition) in values.root_leaves(id) {
                last.needed(definition, id, timeline.ends[&id]);
            }
        }
        let ticks = last.ticks;
        timeline.intervals = timeline.intervals_of(module, ticks);
        timeline
    }

    fn tick(&mut self) -> usize {
        self.next += 1;
        self.next - 1
    }

    /// Assigns the ticks. The stack is explicit because a module may nest deeply.
    fn walk(&mut self, module: &Module, schedule: &Schedule) {
        enum Step {
            Enter(ComputationId),
            At(ComputationId, usize),
            After(ComputationId, InstructionId),
        }
        let mut stack = vec![Step::Enter(module.entry())];
        while let Some(step) = stack.pop() {
            match step {
                Step::Enter(id) => {
                    let tick = self.tick();
                    self.begins.insert(id, tick);
                    stack.push(Step::At(id, 0));
                }
                Step::At(id, number) => {
                    let tick = self.tick();
                    let Some(&instruction) = schedule.sequences[&id].get(number) else {
                        self.ends.insert(id, tick);
                        continue;
                    };
                    self.positions.insert((id, instruction), tick);
                    stack.push(Step::At(id, number + 1));
                    let callees = called(module[id][instruction].op());
                    if !callees.is_empty() {
                        stack.push(Step::After(id, instruction));
                        stack.extend(callees.into_iter().rev().map(Step::Enter));
                    }
                }
                Step::After(id, instruction) => {
                    let tick = self.tick();
                    self.after.insert((id, instruction), tick);
                }
            }
        }
    }

    /// Converts the last ticks at which values are needed into intervals.
    fn intervals_of(
        &self,
        module: &Module,
        ticks: BTreeMap<(Leaf, ComputationId), usize>,
    ) -> BTreeMap<Leaf, Vec<Interval>> {
        let mut intervals: BTreeMap<Leaf, Vec<Interval>> = BTreeMap::new();
        for ((leaf, computation), end) in ticks {
            let known = intervals.contains_key(&leaf);
            let all = intervals.entry(leaf.clone()).or_default();
            let (home, instruction, _) = leaf;
            let begin = match module[home][instruction].op() {
                _ if computation != home => self.begins[&computation],
                Op::While { .. } | Op::Conditional { .. } => self.after[&(home, instruction)],
                Op::Parameter { .. } => self.begins[&home],
                _ => self.positions[&(home, instruction)],
            };
            all.push(Interval { begin, end: end.max(begin) });
            if !known {
                all.extend(self.of_control_flow(module, home, instruction));
            }
        }
        intervals.values_mut().for_each(join);
        intervals
    }

    /// Intervals in which a control-flow result is live even without readers: where it is written,
    /// and through conditions.
    fn of_control_flow(
        &self,
        module: &Module,
        home: ComputationId,
        instruction: InstructionId,
    ) -> Vec<Interval> {
        let point = |tick: usize| Interval { begin: tick, end: tick };
        match module[home][instruction].op() {
            Op::While { condition, body } => {
                let condition_interval =
                    Interval { begin: self.positions[&(home, instruction)], end: self.ends[condition] };
                let after = self.after[&(home, instruction)];
                vec![condition_interval, point(self.ends[body]), point(after)]
            }
            Op::Conditional { branch_computations } => {
                let mut ends: Vec<Interval> =
                    branch_computations.iter().map(|b| point(self.ends[b])).collect();
                ends.push(point(self.after[&(home, instruction)]));
                ends
            }
            _ => Vec::new(),
        }
    }
}

/// The last tick of each computation at which a value is needed there.
struct Last<'a, 'm> {
    values: &'a Values<'m>,
    timeline: &'a Timeline,
    ticks: BTreeMap<(Leaf, ComputationId), usize>,
}

impl Last<'_, '_> {
    /// Records that a value is needed at a tick of a computation. It is live there from the
    /// computation's first tick on, and in the callers up to the call.
    fn needed(&mut self, leaf: Leaf, mut computation: ComputationId, mut tick: usize) {
        let (home, instruction, _) = leaf;
        loop {
            let caller = self.values.caller(computation);
            let is_state = |c: crate::values::Caller| (c.computation, c.instruction) == (home, instruction);
            // A value that a loop reads from outside must be live in every iteration.
            let skip = computation != home && caller.is_some_and(|c| c.branch.is_none() && !is_state(c));
            if !skip {
                let last = self.ticks.entry((leaf.clone(), computation)).or_insert(tick);
                *last = (*last).max(tick);
            }
            match caller {
                Some(caller) if computation != home && !(caller.branch.is_none() && is_state(caller)) => {
                    let place = (caller.computation, caller.instruction);
                    computation = caller.computation;
                    tick = match caller.branch {
                        Some(_) => self.timeline.positions[&place],
                        None => self.timeline.after[&place],
                    };
                }
                _ => return,
            }
        }
    }
}

/// Sorts intervals and joins overlapping ones.
pub(crate) fn join(intervals: &mut Vec<Interval>) {
    intervals.sort_unstable();
    let mut joined: Vec<Interval> = Vec::with_capacity(intervals.len());
    for &interval in &*intervals {
        match joined.last_mut() {
            Some(last) if interval.begin <= last.end => last.end = last.end.max(interval.end),
            _ => joined.push(interval),
        }
    }
    *intervals = joined;
}
