//! How often values occur, and dense arrays from lists of positions.

use crate::builder::reducer::Reducer;
use crate::node::context::{NodeContext, list};
use crate::node::data_types::*;
use crate::node::rule::{Rule, rule};
use crate::ops::array::scatter::{Indices, scatter};
use hlo::{ComparisonDirection, InstructionId, Op};
use shape::PrimitiveType;
use shape::index::element_count;
use support::{Error, Result};

pub(crate) const RULES: &[Rule] = &[
    rule("Bincount", |cx| bincount(cx, false)).types("T", COUNTED),
    rule("DenseBincount", |cx| bincount(cx, true)).types("T", COUNTED).types("Tidx", INDICES),
    rule("SparseToDense", sparse_to_dense).types("T", ALL).types("Tindices", INDICES),
    rule("UnravelIndex", unravel_index).types("Tidx", INDICES),
];

const COUNTED: &[tf::DataType] =
    &[tf::DataType::Float, tf::DataType::Double, tf::DataType::Int32, tf::DataType::Int64];

/// `Bincount(x, size, weights)`: how often each number below `size` occurs, or the sum of its weights; others are not
/// counted. `DenseBincount` counts each row of a matrix by itself; with `binary_output` it tells whether a number occurs.
fn bincount(cx: &mut NodeContext<'_, '_>, by_rows: bool) -> Result<InstructionId> {
    let (x, weights) = (cx.input(0)?, cx.input(2)?);
    let size = cx.constant_i64(1)?;
    let (sizes, weight_sizes) = (cx.sizes(x), cx.sizes(weights));
    cx.check(size >= 0, || format!("size must not be negative, but is {size}"))?;
    cx.check(!by_rows || sizes.len() <= 2, || {
        format!("at most a matrix can be counted, but the shape is {}", list(&sizes))
    })?;
    let has_weights = element_count(&weight_sizes) != Some(0) || sizes.contains(&0);
    cx.check(weight_sizes == sizes || !has_weights || sizes.contains(&0), || {
        format!(
            "weights must have the shape of the values {}, or be empty; they have {}",
            list(&sizes),
            list(&weight_sizes)
        )
    })?;
    let element_type = cx.element_type(weights);
    let count = element_count(&sizes).unwrap_or(i64::MAX);
    let is_binary = by_rows && cx.node.attributes.bool_or("binary_output", false)?;
    let updates = match weight_sizes == sizes && !is_binary {
        true => cx.reshape(weights, &[count])?,
        false => cx.splat(element_type, &[count], 1.0)?,
    };
    let reducer = if is_binary { Reducer::Replace } else { Reducer::Add };
    let index_type = cx.element_type(x);
    if let (true, &[rows, columns]) = (by_rows, &sizes[..]) {
        let row = cx.iota(index_type, &sizes, 0)?;
        let pair = [rows.saturating_mul(columns), 1];
        let (row, value) = (cx.reshape(row, &pair)?, cx.reshape(x, &pair)?);
        let indices = cx.concatenate(&[row, value], 1)?;
        let bins = cx.splat(element_type, &[rows, size], 0.0)?;
        return scatter(cx, bins, indices, updates, Indices::Vectors, reducer);
    }
    let indices = cx.reshape(x, &[count])?;
    let bins = cx.splat(element_type, &[size], 0.0)?;
    scatter(cx, bins, indices, updates, Indices::Scalars, reducer)
}

/// `SparseToDense(indices, shape, values, default)`: the values at their indices, the default elsewhere.
fn sparse_to_dense(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let (mut indices, mut values, default) = (cx.input(0)?, cx.input(2)?, cx.input(3)?);
    let sizes = cx.constant_sizes(1)?;
    let index_sizes = cx.sizes(indices);
    let (count, depth) = match index_sizes[..] {
        [] => (1, 1),
        [count] => (count, 1),
        [count, depth] => (count, depth),
        _ => {
            return Err(cx.invalid(format!(
                "sparse_indices must be a matrix at most, but have {}",
                list(&index_sizes)
            )));
        }
    };
    cx.check(sizes.len() as i64 == depth, || {
        format!("indices of {depth} elements do not fit the shape {}", list(&sizes))
    })?;
    let value_sizes = cx.sizes(values);
    cx.check(value_sizes.is_empty() || value_sizes == [count], || {
        format!("there must be one value, or {count}, but their shape is {}", list(&value_sizes))
    })?;
    let rank = cx.rank(default);
    cx.check(rank == 0, || format!("default_value must be a scalar, but has rank {rank}"))?;
    let dense = cx.broadcast(default, &sizes, &[])?;
    indices = cx.reshape(indices, &[count, depth])?;
    if value_sizes.is_empty() {
        values = cx.broadcast(values, &[count], &[])?;
    }
    if depth == 0 {
        return Err(Error::unsupported(
            "sparse_indices without elements, into a scalar; use the value itself",
        ));
    }
    scatter(cx, dense, indices, values, Indices::Vectors, Reducer::Replace)
}

/// `UnravelIndex(indices, dims)`: row-major positions as indices, one row for each dimension.
fn unravel_index(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let indices = cx.input(0)?;
    let dims = cx.constant_sizes(1)?;
    let index_sizes = cx.sizes(indices);
    cx.check(index_sizes.len() <= 1 && !dims.is_empty() && !dims.contains(&0), || {
        format!(
            "a scalar or a vector of indices and dims above 0 are needed, but they are {} and {}",
            list(&index_sizes),
            list(&dims)
        )
    })?;
    let row_sizes = [&[1][..], &index_sizes].concat();
    let mut rest = indices;
    let mut rows = Vec::with_capacity(dims.len());
    for &dim in dims.iter().rev() {
        let dim = cx.splat_like(rest, dim as f64)?;
        let row = cx.op(Op::Remainder {}, &[rest, dim])?;
        rows.push(cx.reshape(row, &row_sizes)?);
        rest = cx.div(rest, dim)?;
    }
    rows.reverse();
    cx.concatenate(&rows, 0)
}

/// `SegmentSum(data, segment_ids)` and its kin: rows of equal ids combined, 0 where an id has none (1 for products). The ids must be known,
/// for the shape of the result follows from the last one.
pub(crate) fn known_segments(cx: &mut NodeContext<'_, '_>, reducer: Reducer) -> Result<InstructionId> {
    let (data, ids) = (cx.input(0)?, cx.input(1)?);
    let known = cx.constant_i64s(1)?;
    let (sizes, id_sizes) = (cx.sizes(data), cx.sizes(ids));
    let ascends = known.is_sorted() && known.first().is_none_or(|&id| id >= 0);
    cx.check(ascends && id_sizes.len() == 1 && sizes.first() == id_sizes.first(), || {
        format!(
            "segment_ids must be a vector of sorted numbers from 0 on, one for each row of the data {}; their shape is {}",
            list(&sizes),
            list(&id_sizes)
        )
    })?;
    let count = known.last().map_or(0, |&last| last.saturating_add(1));
    let result = [&[count][..], &sizes[1..]].concat();
    cx.check(element_count(&result).is_some(), || {
        format!("the result would have the shape {}", list(&result))
    })?;
    let element_type = cx.element_type(data);
    let neutral = cx.literal(reducer.neutral(element_type));
    let start = cx.broadcast(neutral, &result, &[])?;
    let combined = scatter(cx, start, ids, data, Indices::Scalars, reducer)?;
    if matches!(reducer, Reducer::Add | Reducer::Multiply) || result.contains(&0) {
        return Ok(combined);
    }
    // The largest and the smallest of no rows are 0.
    let empty = cx.splat(PrimitiveType::S32, &[count], 0.0)?;
    let ones = cx.splat(PrimitiveType::S32, &id_sizes, 1.0)?;
    let filled = scatter(cx, empty, ids, ones, Indices::Scalars, Reducer::Replace)?;
    let filled = cx.compare_scalar(ComparisonDirection::Ne, filled, 0.0)?;
    let filled = cx.broadcast(filled, &result, &[0])?;
    let zero = cx.splat_like(combined, 0.0)?;
    cx.select(filled, combined, zero)
}
