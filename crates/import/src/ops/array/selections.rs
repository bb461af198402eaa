//! Ops that select elements: a data-dependent number of them, with results of bounded size, or one
//! of two for each position.

use crate::node::context::NodeContext;
use crate::node::data_types::*;
use crate::node::rule::{Rule, rule, rule_many};
use bounded::{Reducer, Size, list};
use hlo::{ComparisonDirection, ComparisonType, ComputationBuilder, ComputationId, InstructionId, Op};
use shape::index::{element_count, row_major_strides};
use shape::{PrimitiveType, Shape};
use support::Result;

pub(crate) const RULES: &[Rule] = &[
    rule("Where", where_op).types("T", ALL),
    rule_many("DynamicPartition", dynamic_partition).types("T", ALL),
    rule("Select", select).types("T", ALL),
    rule("SelectV2", select_v2).types("T", ALL),
];

/// `Where(x)`: the indices of the nonzero elements in row-major order, one per row.
fn where_op(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let x = cx.input(0)?;
    let sizes = cx.sizes(x);
    let count = element_count(&sizes).unwrap_or(i64::MAX);
    let rank = sizes.len() as i64;
    if count == 0 {
        return cx.splat(PrimitiveType::S64, &[0, rank], 0.0);
    }
    cx.s32(count)?;
    let holds = match cx.element_type(x) {
        PrimitiveType::Pred => x,
        _ => cx.compare_scalar(ComparisonDirection::Ne, x, 0.0)?,
    };
    let holds = cx.masked_with(holds, 0.0)?;
    let flat = cx.reshape(holds, &[count])?;
    let (positions, count_kept) = cx.kept_positions(flat)?;
    let mut columns = Vec::new();
    for (&size, stride) in sizes.iter().zip(row_major_strides(&sizes)) {
        let stride = cx.splat_like(positions, stride as f64)?;
        let index = cx.div(positions, stride)?;
        let size = cx.splat_like(index, size as f64)?;
        let index = cx.op(Op::Remainder {}, &[index, size])?;
        let index = cx.convert(index, PrimitiveType::S64)?;
        columns.push(cx.reshape(index, &[count, 1])?);
    }
    let indices = match columns.as_slice() {
        [] => cx.splat(PrimitiveType::S64, &[count, 0], 0.0)?,
        columns => cx.concatenate(columns, 1)?,
    };
    cx.bounded(indices, &[Some(count_kept), None])
}

/// `DynamicPartition(data, partitions)`: the rows of each partition, in order. Rows of no partition
/// are dropped.
///
/// The rows are sorted by partition, so that each partition is contiguous.
fn dynamic_partition(cx: &mut NodeContext<'_, '_>) -> Result<Vec<InstructionId>> {
    let (data, partitions) = (cx.input(0)?, cx.input(1)?);
    let (sizes, index_sizes) = (cx.sizes(data), cx.sizes(partitions));
    cx.check(sizes.starts_with(&index_sizes), || {
        format!(
            "the shape {} of the data does not begin with the shape {} of the partitions",
            list(&sizes),
            list(&index_sizes)
        )
    })?;
    let rows = element_count(&index_sizes).unwrap_or(i64::MAX);
    cx.s32(rows)?;
    let row_sizes = [&[rows][..], &sizes[index_sizes.len()..]].concat();
    let count = cx.node().output_types.len();
    let data = cx.reshape(data, &row_sizes)?;
    let partitions = cx.reshape(partitions, &[rows])?;
    if rows == 0 {
        return Ok(vec![data; count]);
    }
    let partitions = cx.convert(partitions, PrimitiveType::S32)?;
    let positions = cx.iota(PrimitiveType::S32, &[rows], 0)?;
    let to_apply = ascending(cx, PrimitiveType::S32, PrimitiveType::S32)?;
    let sorted = cx.op(Op::Sort { dimension: 0, is_stable: true, to_apply }, &[partitions, positions])?;
    let order = cx.tuple_element(sorted, 1)?;
    let data = cx.gather_along(data, order, 0, 0)?;
    let mut results = Vec::new();
    for partition in 0..count {
        let before = counted(cx, partitions, ComparisonDirection::Lt, partition)?;
        let size = counted(cx, partitions, ComparisonDirection::Eq, partition)?;
        results.push(cx.take(data, 0, before, 1, Size { bound: rows, size: Some(size) })?);
    }
    Ok(results)
}

/// Counts the elements of a vector that compare with a number, as an `s32` scalar.
fn counted(
    cx: &mut NodeContext<'_, '_>,
    x: InstructionId,
    direction: ComparisonDirection,
    value: usize,
) -> Result<InstructionId> {
    let holds = cx.compare_scalar(direction, x, value as f64)?;
    let ones = cx.convert(holds, PrimitiveType::S32)?;
    cx.reduce(ones, Reducer::Add, &[0])
}

/// The comparator of a sort by its first operand, an integer. The second operand is carried along.
fn ascending(
    cx: &mut NodeContext<'_, '_>,
    key: PrimitiveType,
    value: PrimitiveType,
) -> Result<ComputationId> {
    let mut builder = ComputationBuilder::new(format!("ascending.{key}"));
    let a = builder.parameter("a", Shape::scalar(key));
    let b = builder.parameter("b", Shape::scalar(key));
    builder.parameter("x", Shape::scalar(value));
    builder.parameter("y", Shape::scalar(value));
    let op = Op::Compare { direction: ComparisonDirection::Lt, comparison_type: ComparisonType::Default };
    let root = builder.op(cx.module(), op, &[a, b])?;
    Ok(cx.add_computation(builder.finish(root)))
}

/// `Select(cond, x, y)`. `cond` is a scalar, has the shape of `x`, or is a vector over its first
/// dimension.
fn select(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let (cond, x, y) = (cx.input(0)?, cx.input(1)?, cx.input(2)?);
    let (cond_sizes, sizes, y_sizes) = (cx.sizes(cond), cx.sizes(x), cx.sizes(y));
    cx.check(sizes == y_sizes, || {
        format!("'then' and 'else' have different shapes: {} vs. {}", list(&sizes), list(&y_sizes))
    })?;
    if cond_sizes.is_empty() || cond_sizes == sizes {
        return cx.select(cond, x, y);
    }
    let by_row = cond_sizes.len() == 1 && sizes.first() == cond_sizes.first();
    cx.check(by_row, || {
        format!(
            "'cond': expected a scalar, the shape {} of 'then', or a vector over its first dimension, got \
             shape {}",
            list(&sizes),
            list(&cond_sizes)
        )
    })?;
    let cond = cx.broadcast(cond, &sizes, &[0])?;
    cx.select(cond, x, y)
}

/// `SelectV2(cond, x, y)` with broadcasting of all three.
fn select_v2(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let (cond, x, y) = (cx.input(0)?, cx.input(1)?, cx.input(2)?);
    let sizes = cx.broadcast_sizes(&cx.sizes(x), &cx.sizes(y))?;
    let sizes = cx.broadcast_sizes(&sizes, &cx.sizes(cond))?;
    let (x, y) = (cx.broadcast_to(x, &sizes)?, cx.broadcast_to(y, &sizes)?);
    // A scalar condition applies to all elements.
    let cond = if cx.rank(cond) == 0 { cond } else { cx.broadcast_to(cond, &sizes)? };
    cx.select(cond, x, y)
}
