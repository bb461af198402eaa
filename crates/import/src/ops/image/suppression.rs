//! Greedy suppression: of several overlapping candidates, the one with the highest score remains.
//! Each iteration of a loop chooses one candidate of each group.

use crate::node::context::NodeContext;
use bounded::Reducer;
use hlo::{ComparisonDirection, GatherDimensionNumbers, InstructionId, Op};
use shape::{Literal, PrimitiveType};
use support::Result;

/// The similarity of two candidates of a group.
#[derive(Clone, Copy)]
pub(crate) enum Similarity {
    /// Intersection over union of boxes, from [`box_sides`] of `[groups, candidates, 4]`.
    Boxes(InstructionId),
    /// `[candidates, candidates]`, for one group: row `i` is the similarity of `i` to each other
    /// candidate.
    Overlaps(InstructionId),
}

/// Conditions for choosing a candidate.
#[derive(Clone, Copy)]
pub(crate) struct Limits {
    /// Maximum number of chosen candidates per group.
    pub(crate) outputs: i64,
    /// A smaller run-time limit, an `s32` scalar.
    pub(crate) outputs_now: Option<InstructionId>,
    /// Candidates that are more similar than this suppress each other. A scalar of the scores'
    /// type.
    pub(crate) similarity: InstructionId,
    /// Threshold that scores must exceed. A scalar of their type.
    pub(crate) score: InstructionId,
    /// If positive, similarity lowers scores instead, by `exp(-similarity^2 / (2 * sigma))`. A
    /// scalar of the scores' type.
    pub(crate) sigma: Option<InstructionId>,
}

/// The chosen candidates, highest scores first, followed by zeros.
#[derive(Clone, Copy)]
pub(crate) struct Chosen {
    /// Positions of candidates, `s32[groups, outputs]`.
    pub(crate) positions: InstructionId,
    /// Their scores at the time of choice, `[groups, outputs]`.
    pub(crate) scores: InstructionId,
    /// Number of chosen candidates, `s32[groups]`.
    pub(crate) counts: InstructionId,
}

/// State of the loop.
#[derive(Clone, Copy)]
struct State {
    /// Scores of the candidates that may still be chosen, `[groups, candidates]`. Others are minus
    /// infinity.
    live: InstructionId,
    /// The highest of these in each group.
    best: InstructionId,
    /// Candidates chosen so far and their scores, `[rounds, groups]`.
    positions: InstructionId,
    scores: InstructionId,
    /// Number of chosen candidates in each group.
    counts: InstructionId,
    /// Array of the [`Similarity`].
    likeness: InstructionId,
    /// Values of the [`Limits`].
    similarity: InstructionId,
    score: InstructionId,
    sigma: Option<InstructionId>,
    outputs_now: Option<InstructionId>,
}

impl State {
    fn to_vec(self) -> Vec<InstructionId> {
        let Self { live, best, positions, scores, counts, likeness, similarity, score, sigma, outputs_now } =
            self;
        let mut state = vec![live, best, positions, scores, counts, likeness, similarity, score];
        state.extend([sigma, outputs_now].into_iter().flatten());
        state
    }

    /// Returns the state with the arrays that represent it within or after the loop.
    fn replaced(self, state: &[InstructionId]) -> Self {
        let mut state = state.iter().copied();
        let mut next = |old| state.next().unwrap_or(old);
        Self {
            live: next(self.live),
            best: next(self.best),
            positions: next(self.positions),
            scores: next(self.scores),
            counts: next(self.counts),
            likeness: next(self.likeness),
            similarity: next(self.similarity),
            score: next(self.score),
            sigma: self.sigma.map(&mut next),
            outputs_now: self.outputs_now.map(&mut next),
        }
    }
}

/// The sides of boxes `[groups, candidates, 4]` of two opposite corners `y, x, y, x`, and their
/// areas: `f32[5, groups * candidates]` with the smaller sides first.
pub(crate) fn box_sides(cx: &mut NodeContext<'_, '_>, boxes: InstructionId) -> Result<InstructionId> {
    let boxes = cx.convert(boxes, PrimitiveType::F32)?;
    let sizes = cx.sizes(boxes);
    let count = sizes[0] * sizes[1];
    let boxes = cx.reshape(boxes, &[count, 4])?;
    let boxes = cx.transpose(boxes, &[1, 0])?;
    let side = |cx: &mut NodeContext<'_, '_>, k: i64| cx.slice_in(boxes, 0, k, k + 1);
    let (y1, x1, y2, x2) = (side(cx, 0)?, side(cx, 1)?, side(cx, 2)?, side(cx, 3)?);
    let (top, bottom) = (cx.op(Op::Minimum {}, &[y1, y2])?, cx.op(Op::Maximum {}, &[y1, y2])?);
    let (left, right) = (cx.op(Op::Minimum {}, &[x1, x2])?, cx.op(Op::Maximum {}, &[x1, x2])?);
    let (height, width) = (cx.sub(bottom, top)?, cx.sub(right, left)?);
    let area = cx.mul(height, width)?;
    cx.concatenate(&[top, left, bottom, right, area], 0)
}

/// Chooses at most `limits.outputs` candidates of each group, from their scores `[groups,
/// candidates]`. Each round chooses the highest score, or the first of equal ones, among candidates
/// that are not too similar to one chosen before.
pub(crate) fn suppress(
    cx: &mut NodeContext<'_, '_>,
    scores: InstructionId,
    similarity: Similarity,
    limits: &Limits,
) -> Result<Chosen> {
    let sizes = cx.sizes(scores);
    let (groups, candidates) = (sizes[0], sizes[1]);
    let element_type = cx.element_type(scores);
    let rounds = limits.outputs.min(candidates);
    cx.check(i32::try_from(candidates).is_ok() && i32::try_from(limits.outputs).is_ok(), || {
        format!("too many candidates ({candidates}) or outputs ({})", limits.outputs)
    })?;
    let counts = cx.splat(PrimitiveType::S32, &[groups], 0.0)?;
    if rounds == 0 || groups == 0 {
        let positions = cx.splat(PrimitiveType::S32, &[groups, limits.outputs], 0.0)?;
        let scores = cx.splat(element_type, &[groups, limits.outputs], 0.0)?;
        return Ok(Chosen { positions, scores, counts });
    }
    let threshold = cx.broadcast(limits.score, &sizes, &[])?;
    let is_above = cx.compare(ComparisonDirection::Gt, scores, threshold)?;
    let gone = cx.splat_like(scores, f64::NEG_INFINITY)?;
    let live = cx.select(is_above, scores, gone)?;
    let best = cx.reduce(live, Reducer::Maximum, &[1])?;
    let positions = cx.splat(PrimitiveType::S32, &[rounds, groups], 0.0)?;
    let chosen_scores = cx.splat(element_type, &[rounds, groups], 0.0)?;
    // Without a run-time limit, the loop compares with this constant, which is rebuilt inside.
    if limits.outputs_now.is_none() {
        cx.literal(Literal::scalar(rounds as i32));
    }
    let likeness = match similarity {
        Similarity::Boxes(id) => id,
        // Transpose, so that the columns are contiguous.
        Similarity::Overlaps(id) => cx.transpose(id, &[1, 0])?,
    };
    let initial = State {
        live,
        best,
        positions,
        scores: chosen_scores,
        counts,
        likeness,
        similarity: limits.similarity,
        score: limits.score,
        sigma: limits.sigma,
        outputs_now: limits.outputs_now,
    };
    let goes_on = |cx: &mut NodeContext<'_, '_>, index: InstructionId, state: &[InstructionId]| {
        let state = initial.replaced(state);
        let highest = cx.reduce(state.best, Reducer::Maximum, &[0])?;
        let is_left = cx.compare_scalar(ComparisonDirection::Gt, highest, f64::NEG_INFINITY)?;
        let limit = match state.outputs_now {
            Some(limit) => limit,
            None => cx.literal(Literal::scalar(rounds as i32)),
        };
        let is_below_limit = cx.compare(ComparisonDirection::Lt, index, limit)?;
        cx.op(Op::And {}, &[is_left, is_below_limit])
    };
    let results = cx.bounded_loop(rounds as u64, &initial.to_vec(), goes_on, |cx, index, state| {
        Ok(round(cx, initial.replaced(state), index, similarity, &sizes)?.to_vec())
    })?;
    let results = initial.replaced(&results);
    let padded = |cx: &mut NodeContext<'_, '_>, id: InstructionId| {
        let rows = cx.transpose(id, &[1, 0])?;
        let zero = cx.element_type(rows);
        let zero = cx.scalar(zero, 0.0);
        cx.pad(rows, zero, &[(0, 0, 0), (0, limits.outputs - rounds, 0)])
    };
    Ok(Chosen {
        positions: padded(cx, results.positions)?,
        scores: padded(cx, results.scores)?,
        counts: results.counts,
    })
}

/// Returns the state after a round, in which one more candidate of each group is chosen, if any is
/// left.
fn round(
    cx: &mut NodeContext<'_, '_>,
    state: State,
    index: InstructionId,
    similarity: Similarity,
    sizes: &[i64],
) -> Result<State> {
    let is_live = cx.compare_scalar(ComparisonDirection::Gt, state.best, f64::NEG_INFINITY)?;
    let position = first_of(cx, state.live, state.best)?;
    let alike = match similarity {
        Similarity::Boxes(_) => intersections(cx, state.likeness, position, sizes)?,
        Similarity::Overlaps(_) => {
            let row = cx.reshape(position, &[])?;
            let row = cx.dynamic_row(state.likeness, row)?;
            cx.reshape(row, sizes)?
        }
    };
    let element_type = cx.element_type(state.live);
    let alike = cx.convert(alike, element_type)?;
    let lowered = lowered(cx, &state, alike)?;
    let number = cx.iota(PrimitiveType::S32, sizes, 1)?;
    let chosen = cx.broadcast(position, sizes, &[0])?;
    let is_chosen = cx.compare(ComparisonDirection::Eq, number, chosen)?;
    let gone = cx.splat_like(lowered, f64::NEG_INFINITY)?;
    let live = cx.select(is_chosen, gone, lowered)?;
    let best = cx.reduce(live, Reducer::Maximum, &[1])?;
    let (none, no_score) = (cx.splat_like(position, 0.0)?, cx.splat_like(state.best, 0.0)?);
    let row = cx.select(is_live, position, none)?;
    let positions = cx.with_dynamic_row(state.positions, row, index)?;
    let row = cx.select(is_live, state.best, no_score)?;
    let scores = cx.with_dynamic_row(state.scores, row, index)?;
    let one = cx.convert(is_live, PrimitiveType::S32)?;
    let counts = cx.add(state.counts, one)?;
    Ok(State { live, best, positions, scores, counts, ..state })
}

/// Returns the first position in each row that contains a value, which must occur in the row.
fn first_of(
    cx: &mut NodeContext<'_, '_>,
    rows: InstructionId,
    value: InstructionId,
) -> Result<InstructionId> {
    let sizes = cx.sizes(rows);
    let value = cx.broadcast(value, &sizes, &[0])?;
    let is_value = cx.compare(ComparisonDirection::Eq, rows, value)?;
    let number = cx.iota(PrimitiveType::S32, &sizes, 1)?;
    let last = cx.splat_like(number, (sizes[1] - 1) as f64)?;
    let number = cx.select(is_value, number, last)?;
    cx.reduce(number, Reducer::Minimum, &[1])
}

/// Returns the scores of the live candidates after a choice, given their similarity to it. Scores
/// of candidates that are too similar become minus infinity. With a positive `sigma`, all scores
/// are lowered instead, and those not above the threshold become minus infinity.
///
/// In TensorFlow Lite, which the attribute `_lite` states, candidates at the limit are too similar,
/// and they become minus infinity with a `sigma`, too.
fn lowered(cx: &mut NodeContext<'_, '_>, state: &State, alike: InstructionId) -> Result<InstructionId> {
    let State { live: scores, similarity, score: threshold, sigma, .. } = *state;
    let sizes = cx.sizes(scores);
    let gone = cx.splat_like(scores, f64::NEG_INFINITY)?;
    let limit = cx.broadcast(similarity, &sizes, &[])?;
    let is_lite = cx.attributes().bool_or("_lite", false)?;
    let direction = if is_lite { ComparisonDirection::Ge } else { ComparisonDirection::Gt };
    let is_alike = cx.compare(direction, alike, limit)?;
    let hard = cx.select(is_alike, gone, scores)?;
    let Some(sigma) = sigma else { return Ok(hard) };
    let half = cx.splat_like(sigma, -0.5)?;
    let scale = cx.div(half, sigma)?;
    let scale = cx.broadcast(scale, &sizes, &[])?;
    let exponent = cx.mul(scale, alike)?;
    let exponent = cx.mul(exponent, alike)?;
    let weight = cx.op(Op::Exp {}, &[exponent])?;
    let soft = cx.mul(scores, weight)?;
    let threshold = cx.broadcast(threshold, &sizes, &[])?;
    let stays = cx.compare(ComparisonDirection::Gt, soft, threshold)?;
    let mut soft = cx.select(stays, soft, gone)?;
    if is_lite {
        soft = cx.select(is_alike, gone, soft)?;
    }
    let is_soft = cx.compare_scalar(ComparisonDirection::Gt, sigma, 0.0)?;
    let is_soft = cx.broadcast(is_soft, &sizes, &[])?;
    cx.select(is_soft, soft, hard)
}

/// Returns the intersection over union of all boxes of each group with its box at `position`, or 0
/// if either has no area.
fn intersections(
    cx: &mut NodeContext<'_, '_>,
    sides: InstructionId,
    position: InstructionId,
    sizes: &[i64],
) -> Result<InstructionId> {
    let (groups, candidates) = (sizes[0], sizes[1]);
    let group = cx.iota(PrimitiveType::S32, &[groups], 0)?;
    let first = cx.mul_scalar(group, candidates as f64)?;
    let column = cx.add(first, position)?;
    let gather_dimension_numbers = GatherDimensionNumbers {
        offset_dims: vec![0],
        collapsed_slice_dims: vec![1],
        start_index_map: vec![1],
        index_vector_dim: 1,
        ..Default::default()
    };
    let op = Op::Gather { gather_dimension_numbers, slice_sizes: vec![5, 1], indices_are_sorted: false };
    let chosen = cx.op(op, &[sides, column])?;
    let pair = |cx: &mut NodeContext<'_, '_>, k: i64| -> Result<(InstructionId, InstructionId)> {
        let all = cx.slice_in(sides, 0, k, k + 1)?;
        let all = cx.reshape(all, sizes)?;
        let one = cx.slice_in(chosen, 0, k, k + 1)?;
        let one = cx.reshape(one, &[groups])?;
        Ok((all, cx.broadcast(one, sizes, &[0])?))
    };
    let extent = |cx: &mut NodeContext<'_, '_>, low: i64| {
        let (a, b) = pair(cx, low)?;
        let start = cx.op(Op::Maximum {}, &[a, b])?;
        let (a, b) = pair(cx, low + 2)?;
        let end = cx.op(Op::Minimum {}, &[a, b])?;
        let extent = cx.sub(end, start)?;
        let zero = cx.splat_like(extent, 0.0)?;
        cx.op(Op::Maximum {}, &[extent, zero])
    };
    let (height, width) = (extent(cx, 0)?, extent(cx, 1)?);
    let intersection = cx.mul(height, width)?;
    let (area, chosen_area) = pair(cx, 4)?;
    let both = cx.add(area, chosen_area)?;
    let union = cx.sub(both, intersection)?;
    let share = cx.div(intersection, union)?;
    let is_empty = cx.compare_scalar(ComparisonDirection::Le, area, 0.0)?;
    let is_chosen_empty = cx.compare_scalar(ComparisonDirection::Le, chosen_area, 0.0)?;
    let is_empty = cx.op(Op::Or {}, &[is_empty, is_chosen_empty])?;
    let zero = cx.splat_like(share, 0.0)?;
    cx.select(is_empty, zero, share)
}
