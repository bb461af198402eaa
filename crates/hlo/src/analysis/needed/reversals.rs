//! Slices at the end of a reversed array: the first elements, in reverse.

use super::Analysis;
use super::extent::{Extent, Need};
use crate::{ComputationId, InstructionId, Op};

impl Analysis<'_> {
    /// Returns the array whose first elements a slice of its reverse reads, and how many it reads
    /// along each dimension. The elements of the reverse itself, which may be padded after its end,
    /// need not be computed to read them.
    pub(super) fn first_of_reverse(
        &self,
        at: ComputationId,
        slice: InstructionId,
        need: &[Need],
    ) -> Option<(InstructionId, Vec<Option<Extent>>)> {
        let computation = &self.module[at];
        let sizes = |id: InstructionId| computation[id].shape().as_array().map(|array| array.sizes());
        let (Op::DynamicSlice { dynamic_slice_sizes }, [Some(read)]) = (computation[slice].op(), need) else {
            return None;
        };
        let operands = computation[slice].operands();
        let (reverse, padding) = match computation[operands[0]].op() {
            Op::Pad { padding } => (computation[operands[0]].operands()[0], Some(padding)),
            _ => (operands[0], None),
        };
        let Op::Reverse { dimensions } = computation[reverse].op() else { return None };
        let array = computation[reverse].operands()[0];
        let (own, padded) = (sizes(array)?, sizes(operands[0])?);
        let mut extents = vec![None; own.len()];
        for (d, extent) in extents.iter_mut().enumerate() {
            let start = (at, operands[1 + d]);
            if padding.is_some_and(|p| {
                p.dimensions[d].edge_padding_low != 0 || p.dimensions[d].interior_padding != 0
            }) {
                return None;
            }
            if !dimensions.contains(&d) {
                *extent = read[d].filter(|_| self.masks.known(start) == Some(0));
                continue;
            }
            let (end, size) = self.masks.before(start)?;
            let (most, least) = (self.masks.most(size)?, self.masks.least(size)?);
            let is_inside = most <= end && end - least <= padded[d] - dynamic_slice_sizes[d];
            *extent = size.plus(own[d].checked_sub(end)?).filter(|_| is_inside);
        }
        Some((array, extents))
    }
}
