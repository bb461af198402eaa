//! Non-maximum suppression: boxes that do not overlap, best scores first.

use crate::node::context::NodeContext;
use crate::node::data_types::*;
use crate::node::rule::{Rule, rule, rule_many};
use crate::ops::array::scatter::finite_limit;
use crate::ops::image::suppression::{Chosen, Limits, Similarity, box_sides, suppress};
use bounded::{Reducer, list};
use hlo::{ComparisonDirection, InstructionId, Op};
use shape::{PrimitiveType, Shape};
use support::Result;

pub(crate) const RULES: &[Rule] = &[
    rule("NonMaxSuppression", |cx| {
        let overlap = cx.attributes().float_or("iou_threshold", 0.5)?;
        let overlap = cx.scalar(PrimitiveType::F32, overlap.into());
        let chosen = of_boxes(cx, Some(overlap), None, None)?;
        chosen_only(cx, chosen.positions, &chosen)
    }),
    rule("NonMaxSuppressionV2", |cx| {
        let chosen = of_boxes(cx, None, None, None)?;
        chosen_only(cx, chosen.positions, &chosen)
    })
    .types("T", FLOATS_TO_32_BITS)
    .types("T_threshold", FLOATS_TO_32_BITS),
    rule("NonMaxSuppressionV3", |cx| {
        let chosen = of_boxes(cx, None, Some(4), None)?;
        chosen_only(cx, chosen.positions, &chosen)
    })
    .types("T", FLOATS_TO_32_BITS)
    .types("T_threshold", FLOATS_TO_32_BITS),
    rule_many("NonMaxSuppressionV4", |cx| {
        let chosen = of_boxes(cx, None, Some(4), None)?;
        Ok(vec![padded_or_chosen(cx, chosen.positions, &chosen)?, cx.reshape(chosen.counts, &[])?])
    })
    .types("T", FLOATS_TO_32_BITS)
    .types("T_threshold", FLOATS_TO_32_BITS),
    rule_many("NonMaxSuppressionV5", |cx| {
        let chosen = of_boxes(cx, None, Some(4), Some(5))?;
        let positions = padded_or_chosen(cx, chosen.positions, &chosen)?;
        let scores = padded_or_chosen(cx, chosen.scores, &chosen)?;
        Ok(vec![positions, scores, cx.reshape(chosen.counts, &[])?])
    })
    .types("T", FLOATS_TO_32_BITS),
    rule("NonMaxSuppressionWithOverlaps", with_overlaps),
    rule_many("CombinedNonMaxSuppression", combined),
];

/// Returns the only row of a matrix.
fn first_row(cx: &mut NodeContext<'_, '_>, matrix: InstructionId) -> Result<InstructionId> {
    let sizes = cx.sizes(matrix);
    cx.reshape(matrix, &sizes[1..])
}

/// Returns the only row of a matrix, truncated to the chosen elements.
fn chosen_only(
    cx: &mut NodeContext<'_, '_>,
    matrix: InstructionId,
    chosen: &Chosen,
) -> Result<InstructionId> {
    let row = first_row(cx, matrix)?;
    let count = cx.reshape(chosen.counts, &[])?;
    cx.bounded(row, &[Some(count)])
}

/// Returns the only row of a matrix, padded with zeros if the attribute requests it.
fn padded_or_chosen(
    cx: &mut NodeContext<'_, '_>,
    matrix: InstructionId,
    chosen: &Chosen,
) -> Result<InstructionId> {
    if cx.attributes().bool_or("pad_to_max_output_size", false)? {
        first_row(cx, matrix)
    } else {
        chosen_only(cx, matrix, chosen)
    }
}

/// Returns a threshold, a scalar, in the type of the scores.
fn threshold(cx: &mut NodeContext<'_, '_>, k: usize, element_type: PrimitiveType) -> Result<InstructionId> {
    let id = cx.input(k)?;
    let sizes = cx.sizes(id);
    cx.check(sizes.is_empty(), || format!("input {k}: expected a scalar, got shape {}", list(&sizes)))?;
    cx.convert(id, element_type)
}

/// Returns an overlap threshold, a number from 0 to 1.
fn share(cx: &mut NodeContext<'_, '_>, k: usize, element_type: PrimitiveType) -> Result<InstructionId> {
    let id = threshold(cx, k, element_type)?;
    checked_share(cx, id)
}

/// Checks an overlap threshold.
fn checked_share(cx: &mut NodeContext<'_, '_>, id: InstructionId) -> Result<InstructionId> {
    let known = cx.fold(id).and_then(|literal| literal.scalar_at(0).as_f64());
    cx.check(known.is_none_or(|share| (0.0..=1.0).contains(&share)), || {
        format!("iou_threshold: expected a number in [0, 1], got {}", known.unwrap_or_default())
    })?;
    Ok(id)
}

/// Returns the maximum number of chosen boxes, from an input.
fn output_size(cx: &mut NodeContext<'_, '_>, k: usize, lowest: i64) -> Result<i64> {
    let size = cx.constant_i64(k)?;
    cx.check(size >= lowest, || format!("input {k}: expected a number >= {lowest}, got {size}"))?;
    Ok(size)
}

/// Returns the scores of `count` candidates as one group.
fn scores_of(cx: &mut NodeContext<'_, '_>, k: usize, count: i64) -> Result<InstructionId> {
    let scores = cx.input(k)?;
    // Elements beyond the true size are never chosen.
    let scores = cx.masked_with(scores, f64::NEG_INFINITY)?;
    let sizes = cx.sizes(scores);
    cx.check(sizes == [count], || {
        format!("expected a score for each of {count} boxes, got shape {}", list(&sizes))
    })?;
    cx.reshape(scores, &[1, count])
}

/// `NonMaxSuppression*(boxes, scores, max_output_size, iou_threshold, score_threshold,
/// soft_nms_sigma)`. `overlap` replaces the input of the first threshold. The inputs of the second
/// threshold and of the strength of soft suppression are optional.
fn of_boxes(
    cx: &mut NodeContext<'_, '_>,
    overlap: Option<InstructionId>,
    score_at: Option<usize>,
    sigma_at: Option<usize>,
) -> Result<Chosen> {
    let boxes = cx.input(0)?;
    let boxes = cx.split(boxes)?.data;
    let sizes = cx.sizes(boxes);
    let &[count, 4] = &sizes[..] else {
        return Err(cx.invalid(format!("boxes: expected shape [boxes, 4], got {}", list(&sizes))));
    };
    let scores = scores_of(cx, 1, count)?;
    let element_type = cx.element_type(scores);
    let outputs = output_size(cx, 2, 0)?;
    let similarity = match overlap {
        Some(overlap) => checked_share(cx, overlap)?,
        None => share(cx, 3, element_type)?,
    };
    let score = match score_at {
        Some(k) => threshold(cx, k, element_type)?,
        // Every number passes, except the lowest one.
        None => cx.literal(finite_limit(element_type, Reducer::Maximum)),
    };
    let sigma = match sigma_at {
        Some(k) => soft_sigma(cx, k, element_type)?,
        None => None,
    };
    let boxes = cx.reshape(boxes, &[1, count, 4])?;
    let sides = box_sides(cx, boxes)?;
    suppress(
        cx,
        scores,
        Similarity::Boxes(sides),
        &Limits { outputs, outputs_now: None, similarity, score, sigma },
    )
}

/// `NonMaxSuppressionWithOverlaps(overlaps, scores, max_output_size, overlap_threshold,
/// score_threshold)`.
fn with_overlaps(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let overlaps = cx.input(0)?;
    let sizes = cx.sizes(overlaps);
    cx.check(sizes.len() == 2 && sizes[0] == sizes[1], || {
        format!("overlaps: expected a square matrix, got {}", list(&sizes))
    })?;
    let scores = scores_of(cx, 1, sizes[0])?;
    let outputs = output_size(cx, 2, 0)?;
    let element_type = cx.element_type(scores);
    let (similarity, score) = (threshold(cx, 3, element_type)?, threshold(cx, 4, element_type)?);
    let limits = Limits { outputs, outputs_now: None, similarity, score, sigma: None };
    let chosen = suppress(cx, scores, Similarity::Overlaps(overlaps), &limits)?;
    chosen_only(cx, chosen.positions, &chosen)
}

/// Returns the strength of soft suppression, or `None` if it is known to be off.
fn soft_sigma(
    cx: &mut NodeContext<'_, '_>,
    k: usize,
    element_type: PrimitiveType,
) -> Result<Option<InstructionId>> {
    let sigma = threshold(cx, k, element_type)?;
    let known = cx.fold(sigma).and_then(|literal| literal.scalar_at(0).as_f64());
    cx.check(known.is_none_or(|sigma| sigma >= 0.0), || {
        format!("soft_nms_sigma: expected a number >= 0, got {}", known.unwrap_or_default())
    })?;
    Ok(if known == Some(0.0) { None } else { Some(sigma) })
}

/// Sizes of `CombinedNonMaxSuppression`.
#[derive(Clone, Copy)]
struct Combined {
    batch: i64,
    /// Number of boxes of each candidate: 1 for all classes, or one for each class.
    kinds: i64,
    candidates: i64,
    classes: i64,
    /// Maximum number of chosen boxes per class.
    per_class: i64,
    /// Number of results per batch element.
    results: i64,
}

impl Combined {
    fn new(cx: &mut NodeContext<'_, '_>) -> Result<Self> {
        let (boxes, scores) = (cx.input(0)?, cx.input(1)?);
        let (box_sizes, score_sizes) = (cx.sizes(boxes), cx.sizes(scores));
        let (per_class, total) = (output_size(cx, 2, 1)?, output_size(cx, 3, 1)?);
        match (&box_sizes[..], &score_sizes[..]) {
            (&[batch, candidates, kinds, 4], &[score_batch, score_candidates, classes])
                if (batch, candidates) == (score_batch, score_candidates)
                    && (kinds == 1 || kinds == classes) =>
            {
                let most = per_class.saturating_mul(classes);
                let pads_per_class = cx.attributes().bool_or("pad_per_class", false)?;
                let results = if pads_per_class { total.min(most) } else { total };
                Ok(Self { batch, kinds, candidates, classes, per_class: per_class.min(candidates), results })
            }
            _ => Err(cx.invalid(format!(
                "expected boxes [batch, boxes, 1 or classes, 4] and scores [batch, boxes, classes], got {} \
                 and {}",
                list(&box_sizes),
                list(&score_sizes)
            ))),
        }
    }
}

/// `CombinedNonMaxSuppression(boxes, scores, max_output_size_per_class, max_total_size,
/// iou_threshold, score_threshold)`: suppresses each class of each batch element by itself, then
/// takes the best of all classes. Returns boxes, scores, classes, and the number of valid results.
/// Equal scores are ordered by class.
fn combined(cx: &mut NodeContext<'_, '_>) -> Result<Vec<InstructionId>> {
    let sizes = Combined::new(cx)?;
    let Combined { batch, kinds, candidates, classes, per_class, results } = sizes;
    let (boxes, scores) = (cx.input(0)?, cx.input(1)?);
    let f32 = PrimitiveType::F32;
    let (similarity, score) = (share(cx, 4, f32)?, threshold(cx, 5, f32)?);
    if [batch, candidates, classes].contains(&0) {
        let boxes = cx.splat(f32, &[batch, results, 4], 0.0)?;
        let row = cx.splat(f32, &[batch, results], 0.0)?;
        return Ok(vec![boxes, row, row, cx.splat(PrimitiveType::S32, &[batch], 0.0)?]);
    }
    // Put the candidates of a class next to each other.
    let boxes = cx.transpose(boxes, &[0, 2, 1, 3])?;
    let each = cx.broadcast_to(boxes, &[batch, classes, candidates, 4])?;
    let each = cx.reshape(each, &[batch * classes, candidates, 4])?;
    let sides = box_sides(cx, each)?;
    let scores = cx.transpose(scores, &[0, 2, 1])?;
    let scores = cx.reshape(scores, &[batch * classes, candidates])?;
    let limits = Limits { outputs: per_class, outputs_now: None, similarity, score, sigma: None };
    let chosen = suppress(cx, scores, Similarity::Boxes(sides), &limits)?;
    let all = [batch, classes * per_class];
    let best = best_first(cx, &chosen, sizes, &all)?;
    let class = quotient(cx, best.place, per_class)?;
    let kind = if kinds == 1 { cx.splat_like(class, 0.0)? } else { class };
    let number = cx.mul_scalar(kind, candidates as f64)?;
    let position = cx.gather_along(best.positions, best.place, 1, 1)?;
    let number = cx.add(number, position)?;
    let boxes = cx.reshape(boxes, &[batch, kinds * candidates, 4])?;
    let mut boxes = cx.gather_along(boxes, number, 1, 1)?;
    if cx.attributes().bool_or("clip_boxes", true)? {
        let (zero, one) = (cx.splat_like(boxes, 0.0)?, cx.splat_like(boxes, 1.0)?);
        let lower = cx.op(Op::Minimum {}, &[boxes, one])?;
        boxes = cx.op(Op::Maximum {}, &[lower, zero])?;
    }
    let class = cx.convert(class, f32)?;
    let (no_class, no_box) = (cx.splat_like(class, -1.0)?, cx.splat_like(boxes, 0.0)?);
    let class = cx.select(best.is_candidate, class, no_class)?;
    let box_sizes = cx.sizes(boxes);
    let is_candidate = cx.broadcast(best.is_candidate, &box_sizes, &[0, 1])?;
    let boxes = cx.select(is_candidate, boxes, no_box)?;
    finish(cx, [boxes, best.scores, class], best.counts, [batch, results])
}

/// The results of all classes of each batch element, highest scores first.
struct Best {
    /// In this order, `[batch, classes * per_class]`: scores, places among the results, and whether
    /// the result is valid.
    scores: InstructionId,
    place: InstructionId,
    is_candidate: InstructionId,
    /// Positions of the candidates, in order of places.
    positions: InstructionId,
    /// Number of results, `s32[batch]`.
    counts: InstructionId,
}

/// Sorts the results of all classes. Invalid results have a score of -1, as in TensorFlow.
fn best_first(
    cx: &mut NodeContext<'_, '_>,
    chosen: &Chosen,
    sizes: Combined,
    all: &[i64; 2],
) -> Result<Best> {
    let grid = [sizes.batch * sizes.classes, sizes.per_class];
    let number = cx.iota(PrimitiveType::S32, &grid, 1)?;
    let count = cx.broadcast(chosen.counts, &grid, &[0])?;
    let is_chosen = cx.compare(ComparisonDirection::Lt, number, count)?;
    let nothing = cx.splat_like(chosen.scores, -1.0)?;
    let scores = cx.select(is_chosen, chosen.scores, nothing)?;
    let scores = cx.reshape(scores, all)?;
    let place = cx.iota(PrimitiveType::S32, all, 1)?;
    let scalars = [PrimitiveType::F32, PrimitiveType::F32, PrimitiveType::S32, PrimitiveType::S32];
    let scalars = scalars.map(Shape::scalar);
    let metadata = cx.metadata().clone();
    let module = cx.module_mut();
    let to_apply =
        ::composite::build(module, "higher_score", &metadata, &scalars, |_, p| vec![p[1].lt(p[0])])?;
    let pair = cx.op(Op::Sort { dimension: 1, is_stable: true, to_apply }, &[scores, place])?;
    let (scores, place) = (cx.tuple_element(pair, 0)?, cx.tuple_element(pair, 1)?);
    let class = quotient(cx, place, sizes.per_class)?;
    let per_class = cx.reshape(chosen.counts, &[sizes.batch, sizes.classes])?;
    let count = cx.gather_along(per_class, class, 1, 1)?;
    let first = cx.mul_scalar(class, sizes.per_class as f64)?;
    let number = cx.sub(place, first)?;
    let is_candidate = cx.compare(ComparisonDirection::Lt, number, count)?;
    let counts = cx.reduce(per_class, Reducer::Add, &[1])?;
    let positions = cx.reshape(chosen.positions, all)?;
    Ok(Best { scores, place, is_candidate, positions, counts })
}

/// `a / divisor` of non-negative integers.
fn quotient(cx: &mut NodeContext<'_, '_>, a: InstructionId, divisor: i64) -> Result<InstructionId> {
    let divisor = cx.splat_like(a, divisor as f64)?;
    cx.div(a, divisor)
}

/// Returns the first results of each batch element, followed by zeros.
fn finish(
    cx: &mut NodeContext<'_, '_>,
    [boxes, scores, classes]: [InstructionId; 3],
    counts: InstructionId,
    [batch, results]: [i64; 2],
) -> Result<Vec<InstructionId>> {
    let limit = cx.splat_like(counts, results as f64)?;
    let counts = cx.op(Op::Minimum {}, &[counts, limit])?;
    let mut outputs = Vec::with_capacity(4);
    for id in [boxes, scores, classes] {
        let sizes = cx.sizes(id);
        let length = sizes[1].min(results);
        let first = cx.slice_in(id, 1, 0, length)?;
        let zero = cx.scalar(PrimitiveType::F32, 0.0);
        let mut padding = vec![(0, 0, 0); sizes.len()];
        padding[1] = (0, results - length, 0);
        let whole = cx.pad(first, zero, &padding)?;
        let mut result_sizes = sizes.clone();
        result_sizes[1] = results;
        debug_assert_eq!(result_sizes[0], batch);
        let number = cx.iota(PrimitiveType::S32, &result_sizes, 1)?;
        let count = cx.broadcast(counts, &result_sizes, &[0])?;
        let is_valid = cx.compare(ComparisonDirection::Lt, number, count)?;
        let zeros = cx.splat_like(whole, 0.0)?;
        outputs.push(cx.select(is_valid, whole, zeros)?);
    }
    outputs.push(counts);
    Ok(outputs)
}
