//! Gathers. Indices out of range are clamped, as in XLA.

use crate::node::context::NodeContext;
use crate::node::data_types::*;
use crate::node::rule::{Rule, rule};
use bounded::list;
use hlo::{ComparisonDirection, GatherDimensionNumbers, InstructionId, Op};
use shape::PrimitiveType;
use support::Result;

pub(crate) const RULES: &[Rule] = &[
    rule("Gather", gather).types("Tparams", ALL).types("Tindices", INDICES),
    rule("GatherV2", gather_v2).types("Tparams", ALL).types("Tindices", INDICES),
    rule("GatherNd", gather_nd).types("Tparams", ALL).types("Tindices", INDICES),
    // The variable is read when the op runs, like a preceding `ReadVariableOp`.
    rule("ResourceGather", resource_gather).types("dtype", ALL).types("Tindices", INDICES),
    rule("ReverseSequence", reverse_sequence).types("T", ALL).types("Tlen", INDICES),
];

/// `Gather(params, indices) = params[indices, ...]`.
fn gather(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let (params, indices) = (cx.input(0)?, cx.input(1)?);
    let indices = cx.as_unsigned(indices)?;
    cx.gather_along(params, indices, 0, 0)
}

/// Gathers from the value of a variable. The leading `batch_dims` dimensions of both operands
/// correspond.
fn resource_gather(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let variable = cx.variable(0)?;
    let params = cx.read_variable(variable);
    let indices = cx.input(1)?;
    let batch_dims = cx.attributes().int_or("batch_dims", 0)?;
    cx.gather_along(params, indices, batch_dims, batch_dims)
}

/// `GatherV2(params, indices, axis)` with `batch_dims`.
fn gather_v2(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let (params, indices) = (cx.input(0)?, cx.input(1)?);
    let axis = cx.constant_i64(2)?;
    let batch_dims = cx.attributes().int_or("batch_dims", 0)?;
    cx.gather_along(params, indices, axis, batch_dims)
}

/// `GatherNd(params, indices)`: the last dimension of the indices is the number of leading
/// dimensions of `params` to index.
fn gather_nd(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let (params, indices) = (cx.input(0)?, cx.input(1)?);
    let (sizes, index_sizes) = (cx.sizes(params), cx.sizes(indices));
    let depth = index_sizes.last().copied();
    let depth = depth.and_then(|depth| usize::try_from(depth).ok()).filter(|&depth| depth <= sizes.len());
    let Some(depth) = depth.filter(|_| !sizes.is_empty()) else {
        return Err(cx.invalid(format!(
            "the last dimension of the indices {} exceeds the rank of the params {}",
            list(&index_sizes),
            list(&sizes)
        )));
    };
    let rows = &index_sizes[..index_sizes.len() - 1];
    let result = [rows, &sizes[depth..]].concat();
    if result.contains(&0) || sizes[..depth].contains(&0) {
        let element_type = cx.element_type(params);
        let zeros = cx.splat(element_type, &result, 0.0)?;
        let (of_params, of_indices) = (cx.split(params)?.sizes, cx.split(indices)?.sizes);
        return cx.bounded(zeros, &[&of_indices[..rows.len()], &of_params[depth..]].concat());
    }
    gather_vectors(cx, params, indices)
}

/// `result[i..., q...] = params[indices[i..., :]..., q...]`: the last dimension of the indices are
/// positions in the leading dimensions of `params`.
pub(crate) fn gather_vectors(
    cx: &mut NodeContext<'_, '_>,
    params: InstructionId,
    indices: InstructionId,
) -> Result<InstructionId> {
    let (sizes, mut rows) = (cx.sizes(params), cx.sizes(indices));
    let depth = rows.pop().unwrap_or(0) as usize;
    let first = rows.len();
    let result = [&rows[..], &sizes[depth..]].concat();
    let others: Vec<usize> = (first..result.len()).collect();
    if depth == 0 {
        return cx.broadcast(params, &result, &others);
    }
    let gather_dimension_numbers = GatherDimensionNumbers {
        offset_dims: others,
        collapsed_slice_dims: (0..depth).collect(),
        start_index_map: (0..depth).collect(),
        index_vector_dim: first,
        ..Default::default()
    };
    let mut slice_sizes = sizes;
    slice_sizes[..depth].fill(1);
    cx.op(Op::Gather { gather_dimension_numbers, slice_sizes, indices_are_sorted: false }, &[params, indices])
}

/// `ReverseSequence(x, lengths)`: reverses the first `length` elements of each sequence, and keeps
/// the others.
fn reverse_sequence(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let (x, lengths) = (cx.input(0)?, cx.input(1)?);
    let rank = cx.rank(x);
    let seq = cx.dimension(cx.attributes().int("seq_dim")?, rank)?;
    let batch = cx.dimension(cx.attributes().int_or("batch_dim", 0)?, rank)?;
    let (sizes, length_sizes) = (cx.sizes(x), cx.sizes(lengths));
    cx.check(seq != batch && length_sizes == [sizes[batch]], || {
        format!(
            "expected one length for each element of dimension {batch} of {1}, other than dimension {seq}, got lengths of shape {0}",
            list(&length_sizes),
            list(&sizes)
        )
    })?;
    let grid = [sizes[batch], sizes[seq]];
    let lengths = cx.convert(lengths, PrimitiveType::S32)?;
    let lengths = cx.broadcast(lengths, &grid, &[0])?;
    let position = cx.iota(PrimitiveType::S32, &grid, 1)?;
    let last = cx.add_scalar(lengths, -1.0)?;
    let mirrored = cx.sub(last, position)?;
    let inside = cx.compare(ComparisonDirection::Lt, position, lengths)?;
    let from = cx.select(inside, mirrored, position)?;
    let mut order: Vec<usize> = vec![batch, seq];
    order.extend((0..rank).filter(|d| *d != batch && *d != seq));
    let front = cx.transpose(x, &order)?;
    let gathered = cx.gather_along(front, from, 1, 1)?;
    let mut back = vec![0; rank];
    order.iter().enumerate().for_each(|(at, &d)| back[d] = at);
    cx.transpose(gathered, &back)
}
