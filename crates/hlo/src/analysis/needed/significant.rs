//! Elements that are walked along a dimension and change no result that is read.

use super::Analysis;
use super::extent::{Extent, Need, most};
use crate::{Computation, ComputationId, InstructionId, Op, ScatterDimensionNumbers};
use shape::Literal;
use std::collections::BTreeMap;

impl Analysis<'_> {
    /// Returns, for each dimension of the array that an instruction walks along, the number of
    /// first elements beyond which elements change nothing that is read. `None` if all may. Limits
    /// what is read of the operands if the instruction reads nothing beyond.
    pub(super) fn significant_elements(
        &self,
        at: ComputationId,
        id: InstructionId,
        need: &[Need],
        needs: &mut [Vec<Need>],
    ) -> Option<Vec<Option<Extent>>> {
        let instruction = &self.module[at][id];
        let operands = instruction.operands();
        let extents = match instruction.op() {
            Op::Reduce { dimensions, to_apply } => {
                let &[array, initial] = operands else { return None };
                let mut extents = self.masks.unlike((at, array), (at, initial), *to_apply);
                let others = (0..extents.len()).filter(|d| !dimensions.contains(d));
                others.for_each(|d| extents[d] = None);
                extents
            }
            Op::ReduceWindow { to_apply, .. } => {
                let &[array, initial] = operands else { return None };
                self.masks.unlike((at, array), (at, initial), *to_apply)
            }
            Op::Sort { dimension, to_apply, .. } => {
                let extent = self.sorted(at, id, *dimension, &self.module[*to_apply])?;
                let is_enough =
                    |leaf: &Need| leaf.as_ref().is_none_or(|read| is_within(read[*dimension], extent));
                if !need.iter().all(is_enough) {
                    return None;
                }
                for leaf in needs.iter_mut().flatten().flatten() {
                    leaf[*dimension] = Some(extent);
                }
                let rank = self.rank(at, operands[0])?;
                (0..rank).map(|d| (d == *dimension).then_some(extent)).collect()
            }
            Op::TopK { k, largest } => {
                let last = self.rank(at, operands[0])?.checked_sub(1)?;
                let never = |literal: &Literal| is_last_of_all(literal, *largest);
                let extent = self.masks.unlike_constant((at, operands[0]), &never)[last]?;
                // If there are fewer than `k`, elements beyond the size may be among the results.
                let is_enough = |leaf: &Need| leaf.as_ref().is_none_or(|read| is_within(read[last], extent));
                let extent = if need.iter().all(is_enough) { extent } else { extent.plus(*k)? };
                if let Some(Some(read)) = needs[0].first_mut() {
                    read[last] = Some(extent);
                }
                (0..=last).map(|d| (d == last).then_some(extent)).collect()
            }
            Op::Scatter { scatter_dimension_numbers: numbers, .. } if operands.len() == 3 => {
                self.scattered(at, operands, numbers, needs)?
            }
            _ => return None,
        };
        extents.iter().any(Option::is_some).then_some(extents)
    }

    fn rank(&self, at: ComputationId, id: InstructionId) -> Option<usize> {
        self.module[at][id].shape().as_array().map(|array| array.rank())
    }

    /// Returns how many elements a sort along a dimension has to order: an operand is a mask, and
    /// what it hides belongs after everything else.
    fn sorted(
        &self,
        at: ComputationId,
        id: InstructionId,
        dimension: usize,
        comparator: &Computation,
    ) -> Option<Extent> {
        let operands = self.module[at][id].operands();
        (0..operands.len()).rev().find_map(|k| {
            let shown = self.masks.of_predicate(at, operands[k], true);
            let extent = shown.get(dimension).copied().flatten()?;
            hides_last(comparator, k).then_some(extent)
        })
    }

    /// Returns how many updates of a scatter may be in range, along each of their dimensions.
    fn scattered(
        &self,
        at: ComputationId,
        operands: &[InstructionId],
        numbers: &ScatterDimensionNumbers,
        needs: &mut [Vec<Need>],
    ) -> Option<Vec<Option<Extent>>> {
        let array = self.module[at][operands[0]].shape().as_array()?;
        let widest = array.sizes().into_iter().max()?;
        let is_outside = |literal: &Literal| {
            literal.is_splat()
                && literal.array_shape().element_count() > 0
                && literal.scalar_at(0).as_i64().is_some_and(|index| index < 0 || index >= widest)
        };
        let of_indices = self.masks.unlike_constant((at, operands[1]), &is_outside);
        let rank = self.rank(at, operands[2])?;
        let mut rows = (0..of_indices.len()).filter(|&d| d != numbers.index_vector_dim);
        let mut extents = vec![None; rank];
        for d in (0..rank).filter(|d| !numbers.update_window_dims.contains(d)) {
            let of_index = rows.next()?;
            extents[d] = of_indices[of_index];
            for (operand, dimension) in [(1, of_index), (2, d)] {
                if let (Some(Some(read)), Some(_)) = (needs[operand].first_mut(), extents[d]) {
                    read[dimension] = extents[d];
                }
            }
        }
        Some(extents)
    }
}

/// True if what is read is at most an extent.
fn is_within(read: Option<Extent>, extent: Extent) -> bool {
    most(read, Some(extent)) == Some(extent)
}

/// True if no element comes after a constant in the order of `topk`.
fn is_last_of_all(literal: &Literal, largest: bool) -> bool {
    let ty = literal.array_shape().element_type;
    let bytes = literal.bytes();
    let size = ty.byte_size();
    if !literal.is_splat() || bytes.len() < size || size > 8 {
        return false;
    }
    let mut padded = [0; 8];
    padded[..size].copy_from_slice(&bytes[..size]);
    let bits = u64::from_le_bytes(padded);
    let all = u64::MAX >> (64 - 8 * size);
    let sign = 1 << (8 * size - 1);
    // In total order, all bits of the lowest float are set, and all but the sign of the highest.
    let (lowest, highest) = match () {
        () if ty.is_floating_point() && ty.bit_width() as usize == 8 * size => (all, all & !sign),
        () if ty.is_signed_integer() => (sign, all & !sign),
        () if ty.is_unsigned_integer() => (0, all),
        () => return false,
    };
    bits == if largest { lowest } else { highest }
}

/// True if a comparator puts an element for which parameter `k` of its side is false after each one
/// for which it is true.
fn hides_last(comparator: &Computation, k: usize) -> bool {
    let with = |first: bool, second: bool| {
        let mut known: BTreeMap<InstructionId, bool> = BTreeMap::new();
        for (side, value) in [(2 * k, first), (2 * k + 1, second)] {
            if let Some(&parameter) = comparator.parameters().get(side) {
                known.insert(parameter, value);
            }
        }
        decided(comparator, known)
    };
    // Neither may two hidden elements exchange places: they are not looked at.
    with(true, false) == Some(true) && with(false, true) == Some(false) && with(false, false) == Some(false)
}

/// Returns the root of a predicate, given some truth values.
fn decided(computation: &Computation, mut known: BTreeMap<InstructionId, bool>) -> Option<bool> {
    for id in computation.post_order() {
        let operands = computation[id].operands();
        let value = |k: usize| operands.get(k).and_then(|operand| known.get(operand).copied());
        let result = match computation[id].op() {
            Op::Not {} => value(0).map(|value| !value),
            Op::And {} if value(0) == Some(false) || value(1) == Some(false) => Some(false),
            Op::Or {} if value(0) == Some(true) || value(1) == Some(true) => Some(true),
            Op::And {} | Op::Or {} if value(0).is_some() && value(0) == value(1) => value(0),
            Op::Select {} => match value(0) {
                Some(first) => value(if first { 1 } else { 2 }),
                None => value(1).filter(|&one| value(2) == Some(one)),
            },
            Op::Constant { literal } if literal.array_shape().element_type == shape::PrimitiveType::Pred => {
                literal.bytes().first().map(|&byte| byte != 0)
            }
            Op::Reshape {} | Op::Bitcast {} | Op::Copy {} => value(0),
            _ => None,
        };
        if let Some(result) = result {
            known.insert(id, result);
        }
    }
    known.get(&computation.root()).copied()
}
