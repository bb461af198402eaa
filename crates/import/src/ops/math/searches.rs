//! Positions among sorted values, and membership of a class in the most likely ones.

use crate::node::context::NodeContext;
use crate::node::data_types::*;
use crate::node::rule::{Rule, rule};
use bounded::{Reducer, list};
use hlo::{ComparisonDirection, InstructionId, Op};
use shape::index::element_count;
use shape::{Literal, PrimitiveType};
use support::Result;

pub(crate) const RULES: &[Rule] = &[
    rule("LowerBound", |cx| bound(cx, ComparisonDirection::Gt))
        .types("T", SORTABLE)
        .types("out_type", INDICES),
    rule("UpperBound", |cx| bound(cx, ComparisonDirection::Ge))
        .types("T", SORTABLE)
        .types("out_type", INDICES),
    rule("Bucketize", bucketize).types("T", BUCKETIZED),
    rule("InTopK", |cx| {
        let k = cx.attributes().int("k")?;
        let k = cx.scalar(PrimitiveType::S64, k as f64);
        in_top_k(cx, k)
    })
    .types("T", INDICES),
    rule("InTopKV2", |cx| {
        let k = cx.input(2)?;
        in_top_k(cx, k)
    })
    .types("T", INDICES),
];

const BUCKETIZED: &[tf::DataType] =
    &[tf::DataType::Float, tf::DataType::Double, tf::DataType::Int32, tf::DataType::Int64];

/// Maximum length of rows of sorted values to compare with every value. Longer rows use binary
/// search.
const MAX_COMPARED: i64 = 32;

/// `LowerBound(sorted, values)` and `UpperBound`: for each value of a row, the number of sorted
/// values of that row that are less than it, or not greater. NaN sorts before everything.
fn bound(cx: &mut NodeContext<'_, '_>, direction: ComparisonDirection) -> Result<InstructionId> {
    let (sorted, values) = (cx.input(0)?, cx.input(1)?);
    let (sizes, value_sizes) = (cx.sizes(sorted), cx.sizes(values));
    let fits = sizes.len() == 2 && value_sizes.len() == 2 && sizes[0] == value_sizes[0];
    cx.check(fits, || {
        format!(
            "expected two matrices with the same number of rows, got {} and {}",
            list(&sizes),
            list(&value_sizes)
        )
    })?;
    let counts = positions(cx, sorted, values, direction)?;
    let index_type = cx.output_type(0)?;
    cx.convert(counts, index_type)
}

/// Returns the number of sorted values of the same row that each value exceeds, in the sense of the
/// comparison.
pub(crate) fn positions(
    cx: &mut NodeContext<'_, '_>,
    sorted: InstructionId,
    values: InstructionId,
    direction: ComparisonDirection,
) -> Result<InstructionId> {
    let (rows, length) = (cx.sizes(sorted)[0], cx.sizes(sorted)[1]);
    let count = cx.sizes(values)[1];
    let position = if length <= i64::from(i32::MAX) / 2 { PrimitiveType::S32 } else { PrimitiveType::S64 };
    if length <= MAX_COMPARED {
        let grid = [rows, count, length];
        let (sorted, values) = (cx.broadcast(sorted, &grid, &[0, 2])?, cx.broadcast(values, &grid, &[0, 1])?);
        let beyond = cx.compare(direction, values, sorted)?;
        let beyond = cx.convert(beyond, position)?;
        return cx.reduce(beyond, Reducer::Add, &[2]);
    }
    let mut positions = cx.splat(position, &[rows, count], 0.0)?;
    let mut step = 1 << (63 - length.leading_zeros());
    while step > 0 {
        // Compare with the last of the next `step` values. Positions beyond the end never count.
        let next = cx.add_scalar(positions, step as f64)?;
        let last = cx.add_scalar(next, -1.0)?;
        let value = cx.gather_along(sorted, last, 1, 1)?;
        let beyond = cx.compare(direction, values, value)?;
        let exists = cx.compare_scalar(ComparisonDirection::Le, next, length as f64)?;
        let passed = cx.op(Op::And {}, &[beyond, exists])?;
        positions = cx.select(passed, next, positions)?;
        step /= 2;
    }
    Ok(positions)
}

/// `Bucketize(x)`: the number of the attribute's boundaries that are not greater than an element.
/// Compares doubles in double precision, and other types in float32.
fn bucketize(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let x = cx.input(0)?;
    let boundaries = cx.attributes().floats("boundaries")?;
    cx.check(boundaries.is_sorted(), || "the boundaries are not sorted".to_owned())?;
    let wide = match cx.element_type(x) {
        PrimitiveType::F64 => PrimitiveType::F64,
        _ => PrimitiveType::F32,
    };
    let sizes = cx.sizes(x);
    let count = element_count(&sizes).unwrap_or(i64::MAX);
    let values = cx.convert(x, wide)?;
    let values = cx.reshape(values, &[1, count])?;
    let sorted = cx.literal(Literal::from_elements(&[1, boundaries.len() as i64], &boundaries));
    let sorted = cx.convert(sorted, wide)?;
    let counts = positions(cx, sorted, values, ComparisonDirection::Ge)?;
    let counts = cx.convert(counts, PrimitiveType::S32)?;
    cx.reshape(counts, &sizes)
}

/// `InTopK(predictions, targets)`: true if fewer than `k` classes of a row are predicted more
/// likely than the target, whose prediction must be finite.
fn in_top_k(cx: &mut NodeContext<'_, '_>, k: InstructionId) -> Result<InstructionId> {
    let (predictions, targets) = (cx.input(0)?, cx.input(1)?);
    let (sizes, target_sizes) = (cx.sizes(predictions), cx.sizes(targets));
    cx.check(sizes.len() == 2 && target_sizes == sizes[..1], || {
        format!(
            "expected a matrix of predictions and one target for each row, got shapes {} and {}",
            list(&sizes),
            list(&target_sizes)
        )
    })?;
    let rank = cx.rank(k);
    cx.check(rank == 0, || format!("k: expected a scalar, got rank {rank}"))?;
    let class = cx.element_type(targets);
    let classes = cx.iota(class, &sizes, 1)?;
    let wide = cx.broadcast(targets, &sizes, &[0])?;
    let is_target = cx.compare(ComparisonDirection::Eq, classes, wide)?;
    let zero = cx.splat_like(predictions, 0.0)?;
    let own = cx.select(is_target, predictions, zero)?;
    let own = cx.reduce(own, Reducer::Add, &[1])?;
    let own_wide = cx.broadcast(own, &sizes, &[0])?;
    let is_more = cx.compare(ComparisonDirection::Gt, predictions, own_wide)?;
    let is_more = cx.convert(is_more, PrimitiveType::S64)?;
    let more = cx.reduce(is_more, Reducer::Add, &[1])?;
    let k = cx.convert(k, PrimitiveType::S64)?;
    let k = cx.broadcast(k, &target_sizes, &[])?;
    let few = cx.compare(ComparisonDirection::Lt, more, k)?;
    let is_finite = cx.op(Op::IsFinite {}, &[own])?;
    let exists = cx.reduce(is_target, Reducer::Or, &[1])?;
    let certain = cx.op(Op::And {}, &[is_finite, exists])?;
    cx.op(Op::And {}, &[few, certain])
}
