//! From when to when each value is needed, on one time line for the whole module.

use crate::Leaf;
use crate::schedule::Schedule;
use crate::values::Values;
use hlo::{ComputationId, InstructionId, Module, Op};
use std::collections::BTreeMap;

/// A closed interval of positions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Interval {
    pub(crate) begin: usize,
    pub(crate) end: usize,
}

impl Interval {
    pub(crate) fn overlaps(&self, other: &Self) -> bool {
        self.begin <= other.end && other.begin <= self.end
    }

    pub(crate) fn extend(&mut self, position: usize) {
        self.begin = self.begin.min(position);
        self.end = self.end.max(position);
    }
}

/// Positions of instructions, and the intervals of the values they define.
#[derive(Debug, Default)]
pub(crate) struct Liveness {
    /// The position at which an instruction reads its operands and writes its result.
    pub(crate) positions: BTreeMap<(ComputationId, InstructionId), usize>,
    /// The last position of a computation: where its end copies run.
    pub(crate) ends: BTreeMap<ComputationId, usize>,
    pub(crate) intervals: BTreeMap<Leaf, Interval>,
    next: usize,
}

impl Liveness {
    pub(crate) fn new(module: &Module, values: &Values<'_>, schedule: &Schedule) -> Self {
        let mut liveness = Self::default();
        liveness.walk(module, values, schedule, module.entry());
        liveness
    }

    fn tick(&mut self) -> usize {
        self.next += 1;
        self.next - 1
    }

    fn touch(&mut self, leaf: Leaf, position: usize) {
        let start = Interval { begin: position, end: position };
        self.intervals.entry(leaf).or_insert(start).extend(position);
    }

    fn walk(&mut self, module: &Module, values: &Values<'_>, schedule: &Schedule, id: ComputationId) {
        for &instruction in &schedule.sequences[&id] {
            let op = module[id][instruction].op();
            let position = self.tick();
            self.positions.insert((id, instruction), position);
            if values.is_alias(id, instruction) {
                // Nothing is written or read here; an entry parameter or a constant has memory of its own.
                if matches!(op, Op::Parameter { .. } | Op::Constant { .. }) {
                    for leaf in values.leaves(id, instruction) {
                        let definition = values.definition(leaf);
                        self.touch(definition, position);
                    }
                }
                continue;
            }
            for read in values.reads(id, instruction) {
                self.touch(read, position);
            }
            for leaf in values.leaves(id, instruction) {
                self.touch(leaf, position);
            }
            let called = match op {
                Op::Conditional { branch_computations } => branch_computations.clone(),
                Op::While { condition, body } => vec![*condition, *body],
                _ => continue,
            };
            for callee in called {
                self.walk(module, values, schedule, callee);
            }
            // Results of control flow are written inside of it and must survive until it is left.
            let end = self.tick();
            for leaf in values.leaves(id, instruction) {
                self.touch(leaf, end);
            }
        }
        let end = self.tick();
        self.ends.insert(id, end);
        for (_, definition) in values.root_leaves(id) {
            self.touch(definition, end);
        }
    }
}
