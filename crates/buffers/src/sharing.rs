//! Decides which values share memory: values that are computed in their destination, and results
//! that overwrite an operand.

use crate::classes::{Classes, Rights, ValueNumber};
use crate::schedule::in_place_target;
use crate::timeline::{Interval, Timeline};
use crate::values::{Values, called};
use crate::{Allocation, Leaf, Slice};
use hlo::{ComputationId, InstructionId, Module, Op};
use plan::{ModulePlan, Strategy};
use shape::ShapeIndex;
use std::collections::BTreeMap;

/// Values, partitioned by the memory in which they live.
pub(crate) struct Sharing {
    /// Values that receive memory here: all except constants and read-only parameters.
    pub(crate) numbers: BTreeMap<Leaf, ValueNumber>,
    /// The destination of each leaf of the entry's root, in order.
    pub(crate) destinations: Vec<(ShapeIndex, ValueNumber)>,
    pub(crate) classes: Classes,
    /// Bytes of each value, by index; values of one class have equal sizes.
    sizes: Vec<u64>,
}

/// Candidate in-place pairs, most profitable first.
#[derive(Default)]
struct InPlacePairs {
    rights: Rights,
    /// Root values, each with its destination.
    roots: Vec<(ValueNumber, ValueNumber)>,
    /// Loop state, each with its initial value.
    starts: Vec<(ValueNumber, ValueNumber)>,
    /// Results of kernels, each with an operand that they may overwrite.
    kernels: Vec<(ValueNumber, ValueNumber)>,
}

impl InPlacePairs {
    fn add(
        &mut self,
        list: fn(&mut Self) -> &mut Vec<(ValueNumber, ValueNumber)>,
        tick: usize,
        writer: Option<&ValueNumber>,
        old: Option<&ValueNumber>,
    ) {
        if let (Some(&writer), Some(&old)) = (writer, old) {
            self.rights.insert((tick, writer, old));
            list(self).push((writer, old));
        }
    }
}

impl Sharing {
    pub(crate) fn new(
        module: &Module,
        plan: &ModulePlan,
        values: &Values<'_>,
        timeline: &Timeline,
        parameters: &BTreeMap<Leaf, Slice>,
    ) -> Self {
        let mut sharing = Self {
            numbers: BTreeMap::new(),
            destinations: Vec::new(),
            classes: Classes::default(),
            sizes: Vec::new(),
        };
        sharing.number(module, values, timeline, parameters);
        let pairs = sharing.pairs(module, plan, values, timeline);
        for &(writer, old) in pairs.roots.iter().chain(&pairs.starts).chain(&pairs.kernels) {
            sharing.classes.merge(writer, old, &pairs.rights);
        }
        sharing
    }

    /// Bytes of each value of a class.
    pub(crate) fn size(&self, class: usize) -> u64 {
        self.sizes[class]
    }

    fn add(&mut self, size: u64, intervals: &[Interval], fixed: Option<Slice>) -> ValueNumber {
        self.sizes.push(size);
        self.classes.add(intervals, fixed)
    }

    /// Numbers the values and the places of the entry's results.
    fn number(
        &mut self,
        module: &Module,
        values: &Values<'_>,
        timeline: &Timeline,
        parameters: &BTreeMap<Leaf, Slice>,
    ) {
        for (leaf, intervals) in &timeline.intervals {
            if !matches!(module[leaf.0][leaf.1].op(), Op::Constant { .. } | Op::Parameter { .. }) {
                let number = self.add(values.shape(leaf).byte_size(), intervals, None);
                self.numbers.insert(leaf.clone(), number);
            }
        }
        let entry = module.entry();
        let end = timeline.ends[&entry];
        for (index, _) in values.root_leaves(entry) {
            let place = [Interval { begin: end, end }];
            let number = match in_place_target(values, module, entry, &index) {
                Some(old) => {
                    let slice = parameters[&old];
                    let place = self.add(slice.size, &place, Some(slice));
                    let intervals = timeline.intervals.get(&old).map_or(&[][..], Vec::as_slice);
                    let number = self.add(slice.size, intervals, None);
                    self.classes.unite(place, number);
                    self.numbers.insert(old, number);
                    place
                }
                None => {
                    let size = values.shape(&(entry, module[entry].root(), index.clone())).byte_size();
                    let allocation = Allocation::Result(index.first().copied().unwrap_or(0));
                    self.add(size, &place, Some(Slice { allocation, offset: 0, size }))
                }
            };
            self.destinations.push((index, number));
        }
    }

    fn pairs(
        &self,
        module: &Module,
        plan: &ModulePlan,
        values: &Values<'_>,
        timeline: &Timeline,
    ) -> InPlacePairs {
        let mut pairs = InPlacePairs::default();
        let entry = module.entry();
        let definitions = values.root_leaves(entry).into_iter().map(|(_, definition)| definition);
        for ((_, place), definition) in self.destinations.iter().zip(definitions) {
            let old = self.numbers.get(&definition);
            pairs.add(|w| &mut w.roots, timeline.ends[&entry], Some(place), old);
        }
        for &computation in values.order() {
            for &instruction in plan.computations[&computation].instructions.keys() {
                match module[computation][instruction].op() {
                    Op::While { .. } | Op::Conditional { .. } => {
                        self.control_flow(module, values, timeline, computation, instruction, &mut pairs);
                    }
                    _ => self.kernel(values, timeline, computation, instruction, &mut pairs),
                }
            }
        }
        pairs
    }

    /// Branches and bodies write the result; a loop's state starts in the memory of its initial
    /// value.
    fn control_flow(
        &self,
        module: &Module,
        values: &Values<'_>,
        timeline: &Timeline,
        computation: ComputationId,
        instruction: InstructionId,
        pairs: &mut InPlacePairs,
    ) {
        let current = &module[computation][instruction];
        let callees = match current.op() {
            Op::While { body, .. } => vec![*body],
            op => called(op),
        };
        for callee in callees {
            for (index, definition) in values.root_leaves(callee) {
                let result = self.numbers.get(&(computation, instruction, index));
                let old = self.numbers.get(&definition);
                pairs.add(|w| &mut w.roots, timeline.ends[&callee], result, old);
            }
        }
        if let Op::While { .. } = current.op() {
            let tick = timeline.positions[&(computation, instruction)];
            for leaf in values.leaves(computation, current.operands()[0]) {
                let state = self.numbers.get(&(computation, instruction, leaf.2.clone()));
                let old = self.numbers.get(&values.definition(leaf));
                pairs.add(|w| &mut w.starts, tick, state, old);
            }
        }
    }

    /// Adds pairs for a kernel: operands that its plan names, unless another operand is the same
    /// value.
    fn kernel(
        &self,
        values: &Values<'_>,
        timeline: &Timeline,
        computation: ComputationId,
        instruction: InstructionId,
        pairs: &mut InPlacePairs,
    ) {
        let plan = values.plan(computation, instruction);
        if plan.strategy == Strategy::Alias {
            return;
        }
        let current = &values.computation(computation)[instruction];
        let is_array = current.shape().as_array().is_some();
        let whole = plan.may_overwrite.iter().filter(|_| is_array).map(|&k| (ShapeIndex::new(), k));
        let leaves = plan.leaves_may_overwrite.iter().map(|&(leaf, k)| (vec![leaf], k));
        let rights: Vec<(ShapeIndex, usize)> = whole.chain(leaves).collect();
        if rights.is_empty() {
            return;
        }
        let read: Vec<Vec<Leaf>> = (current.operands().iter())
            .map(|&operand| {
                let leaves = values.leaves(computation, operand).into_iter();
                leaves.map(|leaf| values.definition(leaf)).collect()
            })
            .collect();
        for (index, k) in &rights {
            let [old] = &read[*k][..] else { continue };
            let may = |other: usize| rights.contains(&(index.clone(), other));
            let only_there =
                read.iter().enumerate().all(|(other, leaves)| may(other) || !leaves.contains(old));
            let result = (computation, instruction, index.clone());
            if only_there && values.shape(old).byte_size() == values.shape(&result).byte_size() {
                let tick = timeline.positions[&(computation, instruction)];
                let old = self.numbers.get(old);
                pairs.add(|w| &mut w.kernels, tick, self.numbers.get(&result), old);
            }
        }
    }
}
