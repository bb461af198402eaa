//! The elements of operands that an instruction reads for some elements of its result.

use super::extent::{Extent, Need, joined, reshaped};
use crate::{Computation, InstructionId, Op, WindowDimension};

/// Returns the reads of each operand, by leaf, for the elements of an instruction that are read.
/// Fusions, loops, and branches read everything.
pub(super) fn operand_needs(computation: &Computation, id: InstructionId, need: &[Need]) -> Vec<Vec<Need>> {
    let instruction = &computation[id];
    let operands = instruction.operands();
    let whole = |&operand: &InstructionId| super::all(computation[operand].shape());
    let everything = || operands.iter().map(whole).collect::<Vec<_>>();
    let sizes = |id: InstructionId| computation[id].shape().as_array().map(|array| array.sizes());
    // Tuples: each element by itself.
    match instruction.op() {
        Op::Tuple {} => {
            let mut leaves = need.iter();
            let of_operand = |&operand: &InstructionId| {
                let count = computation[operand].shape().leaves().len();
                leaves.by_ref().take(count).cloned().collect()
            };
            return operands.iter().map(of_operand).collect();
        }
        Op::GetTupleElement { index } => {
            let shapes = match computation[operands[0]].shape() {
                shape::Shape::Tuple(elements) => elements.iter().map(|element| element.leaves().len()),
                _ => return everything(),
            };
            let counts: Vec<usize> = shapes.collect();
            let before: usize = counts[..*index].iter().sum();
            let mut all: Vec<Need> = vec![None; counts.iter().sum()];
            for (place, one) in need.iter().enumerate() {
                all[before + place].clone_from(one);
            }
            return vec![all];
        }
        _ => {}
    }
    // A result that is not read needs nothing, but the instruction runs.
    let read = need.iter().cloned().reduce(joined).flatten();
    let Some(read) = read else { return everything() };
    let is_one_array = |operand: &InstructionId| sizes(*operand).is_some();
    if !operands.iter().all(is_one_array) {
        return everything();
    }
    let own = sizes(id).unwrap_or_default();
    let mut needs = everything();
    let mut set = |k: usize, extents: Vec<Option<Extent>>| needs[k] = vec![Some(extents)];
    match instruction.op() {
        op if op.is_elementwise() || matches!(op, Op::Copy {} | Op::Clamp {} | Op::Select {}) => {
            for (k, &operand) in operands.iter().enumerate() {
                if sizes(operand) == Some(own.clone()) {
                    set(k, read.clone());
                }
            }
        }
        Op::Broadcast { dimensions } => set(0, dimensions.iter().map(|&d| read[d]).collect()),
        Op::Transpose { dimensions } => {
            let mut extents = vec![None; read.len()];
            for (to, &from) in dimensions.iter().enumerate() {
                extents[from] = read[to];
            }
            set(0, extents);
        }
        Op::Reshape {} | Op::Bitcast {} => {
            let source = sizes(operands[0]).unwrap_or_default();
            let is_same = source.iter().product::<i64>() == own.iter().product::<i64>();
            if is_same {
                set(0, reshaped(&own, &read, &source));
            }
        }
        Op::Slice { slice } => {
            let of = |(extent, part): (&Option<Extent>, &crate::SliceDimension)| {
                extent.and_then(|e| e.plus(-1)?.times(part.stride)?.plus(part.start + 1))
            };
            set(0, read.iter().zip(slice).map(of).collect());
        }
        Op::Pad { padding } => {
            let of = |(extent, part): (&Option<Extent>, &crate::PaddingDimension)| {
                let extent = extent.filter(|_| part.interior_padding == 0)?;
                extent.plus(part.edge_padding_low.checked_neg()?)
            };
            set(0, read.iter().zip(&padding.dimensions).map(of).collect());
        }
        Op::Concatenate { dimension } => {
            let mut before = 0i64;
            for (k, &operand) in operands.iter().enumerate() {
                let mut extents = read.clone();
                extents[*dimension] = read[*dimension].and_then(|extent| extent.plus(-before));
                before += sizes(operand).map_or(0, |sizes| sizes[*dimension]);
                set(k, extents);
            }
        }
        Op::Reverse { dimensions } => {
            let of = |(d, extent): (usize, &Option<Extent>)| extent.filter(|_| !dimensions.contains(&d));
            set(0, read.iter().enumerate().map(of).collect());
        }
        Op::DynamicSlice { .. } => {
            // The slice begins at the latest such that it ends with the array.
            let all = sizes(operands[0]).unwrap_or_default();
            let latest = all.iter().zip(&own).map(|(all, own)| all - own);
            set(
                0,
                read.iter().zip(latest).map(|(extent, latest)| extent.and_then(|e| e.plus(latest))).collect(),
            );
        }
        Op::DynamicUpdateSlice {} => {
            // The update begins at 0 or later.
            set(0, read.clone());
            set(1, read.clone());
        }
        Op::Sort { dimension, .. } => {
            for k in 0..operands.len() {
                let mut extents = read.clone();
                extents[*dimension] = None;
                set(k, extents);
            }
        }
        Op::TopK { .. } => {
            let mut extents = read.clone();
            extents.iter_mut().rev().take(1).for_each(|last| *last = None);
            set(0, extents);
        }
        // Each transform reads its own numbers only.
        Op::Fft { fft_length, .. } => {
            let mut extents = read.clone();
            extents.iter_mut().rev().take(fft_length.len()).for_each(|extent| *extent = None);
            set(0, extents);
        }
        // The elements that updates change are those at their places.
        Op::Scatter { .. } => (0..operands.len() / 2).for_each(|k| set(k, read.clone())),
        Op::Reduce { dimensions, .. } => {
            for (k, &operand) in operands[..operands.len() / 2].iter().enumerate() {
                let mut kept = read.iter();
                let rank = sizes(operand).map_or(0, |sizes| sizes.len());
                let of =
                    |d: usize| if dimensions.contains(&d) { None } else { kept.next().copied().flatten() };
                set(k, (0..rank).map(of).collect());
            }
        }
        Op::ReduceWindow { window, .. } => {
            let extents: Vec<Option<Extent>> = read
                .iter()
                .zip(&window.dimensions)
                .map(|(&extent, window)| windowed(extent, window))
                .collect();
            (0..operands.len() / 2).for_each(|k| set(k, extents.clone()));
        }
        Op::Dot { dot_dimension_numbers: numbers } => {
            let (lhs, rhs) = (sizes(operands[0]).unwrap_or_default(), sizes(operands[1]).unwrap_or_default());
            let sides = [
                (&numbers.lhs_batch_dims, &numbers.lhs_contracting_dims, lhs.len()),
                (&numbers.rhs_batch_dims, &numbers.rhs_contracting_dims, rhs.len()),
            ];
            let mut next = numbers.lhs_batch_dims.len();
            for (k, (batch, contracting, rank)) in sides.into_iter().enumerate() {
                let mut extents = vec![None; rank];
                batch.iter().zip(&read).for_each(|(&d, &extent)| extents[d] = extent);
                for d in (0..rank).filter(|d| !batch.contains(d) && !contracting.contains(d)) {
                    extents[d] = read[next];
                    next += 1;
                }
                set(k, extents);
            }
        }
        Op::Convolution { window, dim_labels, batch_group_count: 1, .. } => {
            let rank = sizes(operands[0]).map_or(0, |sizes| sizes.len());
            let mut extents = vec![None; rank];
            extents[dim_labels.input_batch_dimension] = read[dim_labels.output_batch_dimension];
            let spatial =
                dim_labels.input_spatial_dimensions.iter().zip(&dim_labels.output_spatial_dimensions);
            for ((&from, &to), window) in spatial.zip(&window.dimensions) {
                extents[from] = windowed(read[to], window);
            }
            set(0, extents);
        }
        Op::Gather { gather_dimension_numbers: numbers, slice_sizes, .. } => {
            let rank = sizes(operands[1]).map_or(0, |sizes| sizes.len());
            let mut batch = (0..own.len()).filter(|d| !numbers.offset_dims.contains(d));
            let of = |d: usize| {
                if d == numbers.index_vector_dim { None } else { batch.next().and_then(|to| read[to]) }
            };
            set(1, (0..rank).map(of).collect());
            // Slices as long as a dimension begin at 0, so the result has its first elements.
            let all = sizes(operands[0]).unwrap_or_default();
            let mut offsets = numbers.offset_dims.iter();
            let of = |d: usize| {
                let is_left_out =
                    numbers.collapsed_slice_dims.contains(&d) || numbers.operand_batching_dims.contains(&d);
                let to = if is_left_out { None } else { offsets.next() };
                to.and_then(|&to| read[to]).filter(|_| slice_sizes[d] == all[d])
            };
            set(0, (0..all.len()).map(of).collect());
        }
        _ => {}
    }
    needs
}

/// The elements that the first windows cover.
fn windowed(windows: Option<Extent>, window: &WindowDimension) -> Option<Extent> {
    let reach = (window.size - 1).checked_mul(window.window_dilation)?;
    let last = windows?.plus(-1)?.times(window.stride)?;
    let last = last.plus(reach.checked_sub(window.padding_low)?)?;
    last.divided_by(window.base_dilation)?.plus(1)
}
