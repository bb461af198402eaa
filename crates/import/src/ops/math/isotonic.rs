//! Isotonic regression: the closest nonincreasing sequence for each row.

use crate::node::context::NodeContext;
use crate::node::data_types::*;
use crate::node::rule::{Rule, rule_many};
use crate::ops::math::scans::running_sum;
use crate::ops::math::searches::positions;
use bounded::{Reducer, list};
use hlo::{ComparisonDirection, GatherDimensionNumbers, InstructionId, Op};
use shape::PrimitiveType;
use support::Result;

pub(crate) const RULES: &[Rule] =
    &[rule_many("IsotonicRegression", isotonic_regression).types("T", REAL).types("output_dtype", FLOATS)];

/// `IsotonicRegression(x)`: for each row, the nonincreasing sequence with the least squared
/// distance, and the number of the constant segment of each element. Increasing neighbors are
/// pooled from left to right. Each iteration of the loop adds one element of each row as a new
/// pool, or merges the last two pools.
fn isotonic_regression(cx: &mut NodeContext<'_, '_>) -> Result<Vec<InstructionId>> {
    let x = cx.input(0)?;
    let output_type = cx.output_type(0)?;
    let sizes = cx.sizes(x);
    let Some((&length, outer)) = sizes.split_last() else {
        return Err(cx.invalid("expected one or more dimensions, got a scalar"));
    };
    let rows: i64 = outer.iter().product();
    cx.check(i32::try_from(rows.saturating_mul(length).saturating_add(1)).is_ok(), || {
        format!("{} has too many elements", list(&sizes))
    })?;
    let x = cx.convert(x, output_type)?;
    if rows == 0 || length == 0 {
        let segments = cx.splat(PrimitiveType::S32, &sizes, 0.0)?;
        return Ok(vec![x, segments]);
    }
    let x = cx.reshape(x, &[rows * length])?;
    let sums = cx.splat_like(x, 0.0)?;
    let counts = cx.splat(PrimitiveType::S32, &[rows * length], 0.0)?;
    let zeros = cx.splat(PrimitiveType::S32, &[rows], 0.0)?;
    let goes_on = cx.scalar(PrimitiveType::Pred, 1.0);
    let results = cx.bounded_loop(
        2 * length as u64 + 1,
        &[x, sums, counts, zeros, zeros, goes_on],
        |_, _, state| Ok(state[5]),
        |cx, _, state| pool(cx, state, length),
    )?;
    // Discard pools that were merged into others.
    let grid = [rows, length];
    let number = cx.iota(PrimitiveType::S32, &grid, 1)?;
    let pools = cx.broadcast(results[3], &grid, &[0])?;
    let is_pool = cx.compare(ComparisonDirection::Lt, number, pools)?;
    let (sums, counts) = (cx.reshape(results[1], &grid)?, cx.reshape(results[2], &grid)?);
    let none = cx.splat_like(counts, 0.0)?;
    let counts = cx.select(is_pool, counts, none)?;
    let ends = running_sum(cx, counts, 1)?;
    let segments = positions(cx, ends, number, ComparisonDirection::Ge)?;
    let divisors = cx.convert(counts, output_type)?;
    let means = cx.div(sums, divisors)?;
    let solution = cx.gather_along(means, segments, 1, 1)?;
    let segments = cx.convert(segments, PrimitiveType::S32)?;
    Ok(vec![cx.reshape(solution, &sizes)?, cx.reshape(segments, &sizes)?])
}

/// One iteration. The state is `x`; for each row, a stack of pools' sums and element counts, its
/// height, and the number of elements added; and whether any row changed.
fn pool(cx: &mut NodeContext<'_, '_>, state: &[InstructionId], length: i64) -> Result<Vec<InstructionId>> {
    let &[x, sums, counts, height, taken, _] = state else {
        unreachable!("the loop state does not have six arrays")
    };
    let rows = cx.sizes(height);
    let row = cx.iota(PrimitiveType::S32, &rows, 0)?;
    let first = cx.mul_scalar(row, length as f64)?;
    let at = |cx: &mut NodeContext<'_, '_>, below: f64| {
        let position = cx.add_scalar(height, -below)?;
        let zero = cx.splat_like(position, 0.0)?;
        let position = cx.op(Op::Maximum {}, &[position, zero])?;
        cx.add(first, position)
    };
    let (last, before) = (at(cx, 1.0)?, at(cx, 2.0)?);
    let mean = |cx: &mut NodeContext<'_, '_>, place: InstructionId| {
        let (sum, count) = (elements(cx, sums, place)?, elements(cx, counts, place)?);
        let element_type = cx.element_type(sum);
        let divisor = cx.convert(count, element_type)?;
        Ok((sum, count, cx.div(sum, divisor)?))
    };
    let (last_sum, last_count, last_mean) = mean(cx, last)?;
    let (sum, count, mean) = mean(cx, before)?;
    let rises = cx.compare(ComparisonDirection::Gt, last_mean, mean)?;
    let are_two = cx.compare_scalar(ComparisonDirection::Ge, height, 2.0)?;
    let joins = cx.op(Op::And {}, &[rises, are_two])?;
    let is_left = cx.compare_scalar(ComparisonDirection::Lt, taken, length as f64)?;
    let stays = cx.op(Op::Not {}, &[joins])?;
    let takes = cx.op(Op::And {}, &[stays, is_left])?;
    let source = cx.add(first, taken)?;
    let element = elements(cx, x, source)?;
    let (joint_sum, joint_count) = (cx.add(sum, last_sum)?, cx.add(count, last_count)?);
    let one = cx.splat_like(count, 1.0)?;
    let (new_sum, new_count) = (cx.select(joins, joint_sum, element)?, cx.select(joins, joint_count, one)?);
    let top = cx.add(first, height)?;
    let place = cx.select(joins, before, top)?;
    let acts = cx.op(Op::Or {}, &[joins, takes])?;
    let nowhere = cx.splat_like(place, -1.0)?;
    let place = cx.select(acts, place, nowhere)?;
    let replace =
        |cx: &mut NodeContext<'_, '_>, buffer, new| cx.scatter_rows(buffer, place, new, Reducer::Replace);
    let (sums, counts) = (replace(cx, sums, new_sum)?, replace(cx, counts, new_count)?);
    let taken_now = cx.convert(takes, PrimitiveType::S32)?;
    let joined_now = cx.convert(joins, PrimitiveType::S32)?;
    let taken = cx.add(taken, taken_now)?;
    let height = cx.add(height, taken_now)?;
    let height = cx.sub(height, joined_now)?;
    let goes_on = cx.reduce(acts, Reducer::Or, &[0])?;
    Ok(vec![x, sums, counts, height, taken, goes_on])
}

/// Returns the elements of a vector at positions, which are clamped.
fn elements(
    cx: &mut NodeContext<'_, '_>,
    vector: InstructionId,
    places: InstructionId,
) -> Result<InstructionId> {
    let gather_dimension_numbers = GatherDimensionNumbers {
        collapsed_slice_dims: vec![0],
        start_index_map: vec![0],
        index_vector_dim: 1,
        ..Default::default()
    };
    let op = Op::Gather { gather_dimension_numbers, slice_sizes: vec![1], indices_are_sorted: false };
    cx.op(op, &[vector, places])
}
