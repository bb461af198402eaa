//! Ops whose results have a data-dependent number of rows.

use crate::node::context::NodeContext;
use crate::node::rule::{Rule, rule, rule_many};
use crate::ops::array::unique::{groups, keys, scattered};
use crate::ops::image::suppression::{Limits, Similarity, box_sides, suppress};
use crate::ops::onnx::operands::{flag, number, optional, required};
use bounded::{Reducer, list};
use hlo::{ComparisonDirection, InstructionId};
use shape::PrimitiveType;
use support::Result;

pub(crate) const RULES: &[Rule] =
    &[rule("OnnxNonMaxSuppression", non_max_suppression), rule_many("OnnxUnique", unique)];

/// Inputs: boxes (batch, boxes, 4), scores (batch, classes, boxes), most boxes of a class, and the
/// thresholds of overlaps and scores. The result has rows of batch, class, and box.
fn non_max_suppression(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let (boxes, scores) = (required(cx, 0)?, required(cx, 1)?);
    // Boxes beyond the true size are never chosen.
    let (boxes, scores) = (cx.split(boxes)?.data, cx.masked_with(scores, f64::NEG_INFINITY)?);
    let (sizes, score_sizes) = (cx.sizes(boxes), cx.sizes(scores));
    let fits = sizes.len() == 3
        && score_sizes.len() == 3
        && sizes[2] == 4
        && score_sizes[0] == sizes[0]
        && score_sizes[2] == sizes[1];
    cx.check(fits, || format!("scores {} do not fit boxes {}", list(&score_sizes), list(&sizes)))?;
    let [batch, classes, count] = [score_sizes[0], score_sizes[1], score_sizes[2]];
    let outputs = number(cx, 2)?.unwrap_or(0.0).clamp(0.0, count as f64) as i64;
    let groups = batch * classes;
    let element_type = cx.element_type(scores);
    let threshold = |cx: &mut NodeContext<'_, '_>, k: usize, default: f64| match optional(cx, k)? {
        Some(threshold) => {
            let threshold = cx.reshape(threshold, &[])?;
            cx.convert(threshold, element_type)
        }
        None => Ok(cx.scalar(element_type, default)),
    };
    let similarity = threshold(cx, 3, 0.0)?;
    let score = threshold(cx, 4, f64::NEG_INFINITY)?;
    let mut boxes = boxes;
    if flag(cx, "center_point_box", false)? {
        let centers = cx.slice_in(boxes, 2, 0, 2)?;
        let extents = cx.slice_in(boxes, 2, 2, 4)?;
        let halves = cx.mul_scalar(extents, 0.5)?;
        let (low, high) = (cx.sub(centers, halves)?, cx.add(centers, halves)?);
        boxes = cx.concatenate(&[low, high], 2)?;
    }
    let wide = cx.broadcast(boxes, &[batch, classes, count, 4], &[0, 2, 3])?;
    let wide = cx.reshape(wide, &[groups, count, 4])?;
    let sides = box_sides(cx, wide)?;
    let flat = cx.reshape(scores, &[groups, count])?;
    let limits = Limits { outputs, outputs_now: None, similarity, score, sigma: None };
    let chosen = suppress(cx, flat, Similarity::Boxes(sides), &limits)?;
    let all = groups * outputs;
    let grid = [groups, outputs];
    let slot = cx.iota(PrimitiveType::S32, &grid, 1)?;
    let counts = cx.broadcast(chosen.counts, &grid, &[0])?;
    let exists = cx.compare(ComparisonDirection::Lt, slot, counts)?;
    let group = cx.iota(PrimitiveType::S32, &[batch, classes, outputs], 0)?;
    let class = cx.iota(PrimitiveType::S32, &[batch, classes, outputs], 1)?;
    let mut columns = Vec::new();
    for column in [group, class, chosen.positions] {
        columns.push(cx.reshape(column, &[all, 1])?);
    }
    let rows = cx.concatenate(&columns, 1)?;
    let rows = cx.convert(rows, PrimitiveType::S64)?;
    if all == 0 {
        return Ok(rows);
    }
    let exists = cx.reshape(exists, &[all])?;
    let (positions, number) = cx.kept_positions(exists)?;
    let kept = cx.gather_along(rows, positions, 0, 0)?;
    cx.bounded(kept, &[Some(number), None])
}

/// Distinct elements, or slices along an axis: sorted, or in order of first occurrence; with the
/// first position of each, the number of each element, and how often each occurs.
fn unique(cx: &mut NodeContext<'_, '_>) -> Result<Vec<InstructionId>> {
    let mut x = required(cx, 0)?;
    let axis = if cx.attributes().has("axis") {
        let axis = cx.attributes().int("axis")?;
        cx.dimension(axis, cx.rank(x))?
    } else {
        let count = cx.checked_product(&cx.sizes(x))?;
        x = cx.reshape(x, &[count])?;
        0
    };
    let sizes = cx.sizes(x);
    let rows = sizes[axis];
    cx.s32(rows)?;
    if rows == 0 {
        let none = cx.splat(PrimitiveType::S64, &[0], 0.0)?;
        let count = cx.node().output_types.len();
        return Ok([x, none, none, none].into_iter().take(count).collect());
    }
    let (keys, _) = keys(cx, x, axis)?;
    let group = groups(cx, keys, rows)?;
    let row = cx.iota(PrimitiveType::S32, &[rows], 0)?;
    let first = scattered(cx, group, row, rows as f64, Reducer::Minimum)?;
    // A group that does not exist begins beyond the end.
    let exists = cx.compare_scalar(ComparisonDirection::Lt, first, rows as f64)?;
    let ones = cx.convert(exists, PrimitiveType::S32)?;
    let count = cx.reduce(ones, Reducer::Add, &[0])?;
    let (positions, number) = if flag(cx, "sorted", true)? {
        (first, group)
    } else {
        let stands_for = cx.gather_along(first, group, 0, 0)?;
        let is_first = cx.compare(ComparisonDirection::Eq, stands_for, row)?;
        let (_, before) = cx.ranks(is_first)?;
        let number = cx.gather_along(before, stands_for, 0, 0)?;
        (cx.kept_positions(is_first)?.0, number)
    };
    let elements = cx.gather_along(x, positions, axis as i64, 0)?;
    let mut true_sizes = vec![None; sizes.len()];
    true_sizes[axis] = Some(count);
    let elements = cx.bounded(elements, &true_sizes)?;
    let each = cx.splat_like(row, 1.0)?;
    let counts = scattered(cx, number, each, 0.0, Reducer::Add)?;
    let mut results = vec![elements];
    for (numbers, is_bounded) in [(positions, true), (number, false), (counts, true)] {
        let numbers = cx.convert(numbers, PrimitiveType::S64)?;
        results.push(if is_bounded { cx.bounded(numbers, &[Some(count)])? } else { numbers });
    }
    let count = cx.node().output_types.len();
    results.truncate(count);
    Ok(results)
}
