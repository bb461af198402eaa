//! Divides the body into walks along a row, and selects the values that one walk keeps for the
//! next.

use super::{Sweep, Walked};
use crate::collapse::{Follows, Visits};
use crate::fusion::{Fusion, Position};
use crate::tasks::is_transcendental;
use hlo::{InstructionId, Op};
use std::collections::{BTreeMap, BTreeSet};
use target::Target;

/// Keeping a value costs a store and a load; cheaper values are recomputed.
const WORTH_KEEPING: u64 = 4;

/// Rows in registers are straight-line code. This bounds its size, in operations.
const MAX_STRAIGHT_OPERATIONS: u64 = 512;

/// The body of a kernel that walks rows.
pub(super) struct Body<'a, 'm> {
    fusion: &'a Fusion<'m>,
    visits: &'a Visits,
    walked: &'a Walked,
    /// Instructions and operands whose elements differ along a row.
    along_row: BTreeSet<InstructionId>,
}

/// A value that later walks read back.
pub(super) struct Kept {
    pub(super) instruction: InstructionId,
    /// Index of the walk that computes it.
    pub(super) first: usize,
    /// Indices of the walks that read it back.
    pub(super) later: Vec<usize>,
}

impl<'a, 'm> Body<'a, 'm> {
    pub(super) fn new(fusion: &'a Fusion<'m>, visits: &'a Visits, walked: &'a Walked) -> Self {
        let varies = visits.iter().filter(|(_, follows)| walked.varies_along_row(follows));
        Self { fusion, visits, walked, along_row: varies.map(|(id, _)| *id).collect() }
    }

    /// The walks, each with the instructions that need only reductions of earlier walks.
    pub(super) fn sweeps(&self, results: &[InstructionId], row_results: &[usize]) -> Vec<Sweep> {
        // For each instruction, the number of walks that must be complete before it can be
        // computed.
        let mut after: BTreeMap<InstructionId, usize> = BTreeMap::new();
        let mut sweeps = Vec::new();
        for id in self.fusion.instructions() {
            let operands = self.fusion.body[id].operands();
            let walks = operands.iter().filter_map(|o| after.get(o)).copied().max().unwrap_or(0);
            if let Op::Reduce { .. } = self.fusion.body[id].op() {
                walk_mut(&mut sweeps, walks).reductions.push(id);
                after.insert(id, walks + 1);
            } else {
                after.insert(id, walks);
            }
        }
        for (k, result) in results.iter().enumerate().filter(|(k, _)| !row_results.contains(k)) {
            walk_mut(&mut sweeps, after.get(result).copied().unwrap_or(0)).results.push(k);
        }
        sweeps
    }

    /// Instructions that a walk evaluates at each element.
    fn targets(&self, sweep: &Sweep, results: &[InstructionId]) -> Vec<InstructionId> {
        let inputs = sweep.reductions.iter().map(|&id| self.fusion.body[id].operands()[0]);
        inputs.chain(sweep.results.iter().map(|&k| results[k])).collect()
    }

    /// Values that a later walk reads back because they are expensive to recompute.
    pub(super) fn kept(&self, sweeps: &[Sweep], results: &[InstructionId]) -> Vec<Kept> {
        let mut kept: Vec<Kept> = Vec::new();
        let mut first_walks: BTreeMap<InstructionId, usize> = BTreeMap::new();
        for (number, sweep) in sweeps.iter().enumerate() {
            let mut seen = BTreeSet::new();
            let mut pending = self.targets(sweep, results);
            while let Some(id) = pending.pop() {
                if !self.is_computed_along_row(id) || !seen.insert(id) {
                    continue;
                }
                if let Some(value) = kept.iter_mut().find(|k| k.instruction == id && k.first < number) {
                    value.later.push(number);
                    continue;
                }
                let first = first_walks.get(&id).copied().filter(|&first| first < number);
                if let Some(first) = first.filter(|_| self.is_keepable(id)) {
                    let stops: Vec<InstructionId> = kept.iter().map(|k| k.instruction).collect();
                    // The value itself is not one of the stops.
                    if self.cost(&[id], &stops) >= WORTH_KEEPING {
                        kept.push(Kept { instruction: id, first, later: vec![number] });
                        continue;
                    }
                }
                first_walks.entry(id).or_insert(number);
                pending.extend(self.fusion.body[id].operands());
            }
        }
        kept
    }

    /// True if the kernel computes the instruction once per element of a row.
    fn is_computed_along_row(&self, id: InstructionId) -> bool {
        self.fusion.position(id) == Position::Inside
            && self.along_row.contains(&id)
            && !matches!(self.fusion.body[id].op(), Op::Reduce { .. })
    }

    fn is_keepable(&self, id: InstructionId) -> bool {
        let shape = self.fusion.body[id].shape().as_array();
        shape.is_some_and(|s| s.sizes() == self.walked.sizes)
            && self.visits_of(id).all(|follows| self.is_identity(follows))
    }

    fn visits_of(&self, id: InstructionId) -> impl Iterator<Item = &'a Follows> {
        self.visits.range((id, Vec::new())..).take_while(move |(other, _)| *other == id).map(|(_, f)| f)
    }

    fn is_identity(&self, follows: &Follows) -> bool {
        follows.iter().copied().eq((0..self.walked.sizes.len()).map(Some))
    }

    /// Cost of computing one element from memory and from `stops`, in multiply-adds.
    fn cost(&self, targets: &[InstructionId], stops: &[InstructionId]) -> u64 {
        let mut cost = 0u64;
        let mut seen = BTreeSet::new();
        let mut pending = targets.to_vec();
        while let Some(id) = pending.pop() {
            if !self.along_row.contains(&id) || !seen.insert(id) {
                continue;
            }
            let is_stop = stops.contains(&id);
            if self.fusion.position(id) != Position::Inside || is_stop {
                cost += 1;
                continue;
            }
            let instruction = &self.fusion.body[id];
            cost = cost.saturating_add(crate::tasks::cost(instruction.op()));
            if !matches!(instruction.op(), Op::Reduce { .. }) {
                pending.extend(instruction.operands());
            }
        }
        cost
    }

    /// True if rows of this many vectors fit into registers together with all values that pass from
    /// walk to walk.
    pub(super) fn fits_registers(
        &self,
        sweeps: &[Sweep],
        results: &[InstructionId],
        kept: &[Kept],
        vectors: i64,
        target: &Target,
    ) -> bool {
        let mut walks: BTreeMap<InstructionId, usize> = BTreeMap::new();
        let mut operations = 0u64;
        for (number, sweep) in sweeps.iter().enumerate() {
            let targets = self.targets(sweep, results);
            let is_back = |k: &&Kept| k.later.contains(&number);
            let stops: Vec<InstructionId> = kept.iter().filter(is_back).map(|k| k.instruction).collect();
            operations = operations.saturating_add(self.cost(&targets, &stops));
            let operands = self.operands_along_row(&targets, &stops);
            operands.into_iter().for_each(|id| *walks.entry(id).or_insert(0) += 1);
        }
        let values = kept.len() + walks.values().filter(|&&walks| walks > 1).count();
        let registers = i64::from(target.vector_registers) / 2;
        let values = i64::try_from(values.max(1)).unwrap_or(i64::MAX);
        vectors.saturating_mul(values) <= registers
            && operations.saturating_mul(vectors.unsigned_abs()) <= MAX_STRAIGHT_OPERATIONS
    }

    /// Operands that differ along a row and are read to compute `targets` from `stops`.
    fn operands_along_row(
        &self,
        targets: &[InstructionId],
        stops: &[InstructionId],
    ) -> BTreeSet<InstructionId> {
        let mut seen = BTreeSet::new();
        let mut pending = targets.to_vec();
        while let Some(id) = pending.pop() {
            if !stops.contains(&id)
                && self.along_row.contains(&id)
                && seen.insert(id)
                && self.is_computed_along_row(id)
            {
                pending.extend(self.fusion.body[id].operands());
            }
        }
        seen.retain(|&id| self.fusion.position(id) != Position::Inside);
        seen
    }

    /// True if a walk computes more than additions and similarly cheap operations.
    pub(super) fn is_costly(&self, sweeps: &[Sweep], results: &[InstructionId], number: usize) -> bool {
        let loaded: Vec<InstructionId> =
            sweeps[number].loaded.iter().map(|value| value.instruction).collect();
        let mut seen = BTreeSet::new();
        let mut pending = self.targets(&sweeps[number], results);
        while let Some(id) = pending.pop() {
            if loaded.contains(&id) || !self.is_computed_along_row(id) || !seen.insert(id) {
                continue;
            }
            if is_transcendental(self.fusion.body[id].op()) {
                return true;
            }
            pending.extend(self.fusion.body[id].operands());
        }
        false
    }

    /// Operands that the only result may overwrite: only the element being written is read from
    /// them, and only while its row is walked.
    pub(super) fn overwritable(&self) -> Vec<usize> {
        let fusion = self.fusion;
        let Some(result) = fusion.shape().as_array().filter(|s| s.sizes() == self.walked.sizes) else {
            return Vec::new();
        };
        let mut other: BTreeSet<InstructionId> = BTreeSet::new();
        for (id, follows) in self.visits {
            if let Position::Operand(number) = fusion.position(*id)
                && !self.is_identity(follows)
                && !fusion.is_handed(number)
            {
                other.insert(fusion.operand(number));
            }
        }
        // Values seen through a reshape are not visited.
        for id in fusion.instructions() {
            if let Op::Reshape {} | Op::Bitcast {} | Op::GetTupleElement { .. } = fusion.body[id].op()
                && let Position::Operand(number) = fusion.position(fusion.body[id].operands()[0])
                && !fusion.is_handed(number)
            {
                other.insert(fusion.operand(number));
            }
        }
        let fits = |&number: &usize| {
            let id = fusion.operand(number);
            let shape = fusion.caller[id].shape().as_array().filter(|_| !other.contains(&id));
            shape.is_some_and(|s| {
                s.sizes() == self.walked.sizes
                    && s.element_type.byte_size() == result.element_type.byte_size()
            })
        };
        (0..fusion.caller[fusion.instruction].operands().len()).filter(fits).collect()
    }
}

/// The walk with this index. Missing walks are added.
fn walk_mut(sweeps: &mut Vec<Sweep>, number: usize) -> &mut Sweep {
    if sweeps.len() <= number {
        sweeps.resize(number + 1, Sweep::default());
    }
    &mut sweeps[number]
}
