//! Operands that a kernel's result may overwrite.

use crate::fusion::{Fusion, Position};
use hlo::{InstructionId, Op};
use shape::ArrayShape;
use std::collections::BTreeSet;

/// Reads of a kernel's body from its operands, while it computes one element after another.
#[derive(Debug, Default)]
pub(crate) struct Reads {
    /// Operands read only at the same index, in memory order, as the computed element.
    pub(crate) same: BTreeSet<usize>,
    /// Operands that are also read elsewhere.
    pub(crate) other: BTreeSet<usize>,
    /// Operands of which only the element that a slice update replaces is read.
    pub(crate) replaced: BTreeSet<usize>,
}

/// Follows the body upstream from an instruction whose elements are computed one after another.
/// `starts` are the start indices of the slice update for which the caller asks, if any.
pub(crate) fn reads(fusion: &Fusion<'_>, start: InstructionId, starts: &[InstructionId]) -> Reads {
    let mut reads = Reads::default();
    let mut seen = BTreeSet::new();
    let mut pending = vec![(start, true)];
    let shape = |id: InstructionId| fusion.body[id].shape().as_array();
    let Some(whole) = shape(start) else { return reads };
    while let Some((id, same)) = pending.pop() {
        let same = same && shape(id).is_some_and(|s| s.element_count() == whole.element_count());
        if !seen.insert((id, same)) {
            continue;
        }
        if let Position::Operand(number) = fusion.position(id) {
            let list = if same { &mut reads.same } else { &mut reads.other };
            list.insert(number);
            continue;
        }
        let (op, operands) = (fusion.body[id].op(), fusion.body[id].operands());
        if let Op::DynamicSlice { .. } = op
            && same
            && !starts.is_empty()
            && operands[1..] == *starts
            && shape(id).map(ArrayShape::sizes) == Some(whole.sizes())
            && let Position::Operand(number) = fusion.position(operands[0])
        {
            reads.replaced.insert(number);
            pending.extend(operands[1..].iter().map(|&o| (o, false)));
            continue;
        }
        let keeps = same && keeps_elements(fusion, id);
        pending.extend(operands.iter().map(|&operand| (operand, keeps)));
    }
    reads
}

/// True if the update of a slice reads elements that it replaces. None may then be computed twice.
pub(crate) fn reads_overwritten(fusion: &Fusion<'_>) -> bool {
    let operands = fusion.body[fusion.root].operands();
    fusion.row_slice().is_some() && !reads(fusion, operands[1], &operands[2..]).replaced.is_empty()
}

/// True if element `i` of the result, in memory order, needs only elements `i` of operands of the
/// same size.
fn keeps_elements(fusion: &Fusion<'_>, id: InstructionId) -> bool {
    let op = fusion.body[id].op();
    op.is_elementwise() || matches!(op, Op::Reshape {} | Op::Bitcast {} | Op::OptimizationBarrier {})
}

/// Operands that the result may overwrite element by element: they are read nowhere else, and their
/// elements have the same size in bytes.
pub(crate) fn overwritable(fusion: &Fusion<'_>) -> Vec<usize> {
    let Some(result) = fusion.shape().as_array() else { return Vec::new() };
    if let Op::DynamicUpdateSlice {} = fusion.root_op() {
        return updated(fusion).into_iter().collect();
    }
    let reads = reads(fusion, fusion.root, &[]);
    let ids = |numbers: &BTreeSet<usize>| -> BTreeSet<InstructionId> {
        numbers.iter().map(|&k| fusion.operand(k)).collect()
    };
    let (same, other) = (ids(&reads.same), ids(&reads.other));
    let fits = |k: &usize| {
        let id = fusion.operand(*k);
        let shape =
            fusion.caller[id].shape().as_array().filter(|_| same.contains(&id) && !other.contains(&id));
        shape.is_some_and(|s| {
            s.element_count() == result.element_count()
                && s.element_type.byte_size() == result.element_type.byte_size()
        })
    };
    (0..fusion.caller[fusion.instruction].operands().len()).filter(fits).collect()
}

/// The array that a slice update writes to, if only elements that the update replaces are read from
/// it, each before it is replaced.
pub(crate) fn updated(fusion: &Fusion<'_>) -> Option<usize> {
    let operands = fusion.body[fusion.root].operands();
    let Position::Operand(number) = fusion.position(operands[0]) else { return None };
    let of_update = reads(fusion, operands[1], &operands[2..]);
    let is_read = |reads: &Reads| reads.same.contains(&number) || reads.other.contains(&number);
    let in_starts = operands[2..].iter().any(|&start| is_read(&reads(fusion, start, &[])));
    (!is_read(&of_update) && !in_starts).then_some(number)
}
