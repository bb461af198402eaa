//! Padding.

use crate::node::context::NodeContext;
use crate::node::data_types::*;
use crate::node::rule::{Rule, rule};
use bounded::{Size, bounds, list, run_time};
use hlo::custom_call::ASSERT;
use hlo::{ComparisonDirection, InstructionId, Op};
use support::Result;

pub(crate) const RULES: &[Rule] = &[
    rule("Pad", |cx| pad(cx, false)).types("T", ALL),
    rule("PadV2", |cx| pad(cx, true)).types("T", ALL),
    rule("MirrorPad", mirror_pad).types("T", ALL),
    rule("MirrorPadGrad", mirror_pad_grad).types("T", ALL),
];

/// Returns a pair (before, after) for each dimension, from input 1.
fn paddings(cx: &mut NodeContext<'_, '_>, rank: usize) -> Result<Vec<(i64, i64)>> {
    let literal = cx.constant(1)?;
    let sizes = literal.array_shape().sizes();
    // An empty array has no pairs.
    let is_matrix = sizes == [rank as i64, 2] || (rank == 0 && literal.array_shape().element_count() == 0);
    cx.check(is_matrix, || {
        format!(
            "paddings: expected a matrix [{rank}, 2] with a pair for each dimension, got shape {}",
            list(&sizes)
        )
    })?;
    let values = literal.to_i64s().ok_or_else(|| cx.invalid("paddings: expected integers"))?;
    cx.check(values.iter().all(|&value| value >= 0), || "paddings: expected numbers >= 0".to_owned())?;
    Ok(values.chunks_exact(2).map(|pair| (pair[0], pair[1])).collect())
}

/// Pads an array with 0 or the scalar at input 2.
fn pad(cx: &mut NodeContext<'_, '_>, has_value: bool) -> Result<InstructionId> {
    let x = cx.input(0)?;
    let (rank, element_type) = (cx.rank(x), cx.element_type(x));
    let value = if has_value {
        let value = cx.input(2)?;
        cx.reshape(value, &[])?
    } else {
        cx.scalar(element_type, 0.0)
    };
    let numbers = cx.input(1)?;
    if cx.fold(numbers).is_none() && !cx.is_bounded(numbers) && cx.sizes(numbers) == [rank as i64, 2] {
        return pad_at_run_time(cx, x, value, &|dimension, end| Some((1, 2 * dimension + end)));
    }
    let padding: Vec<(i64, i64, i64)> =
        paddings(cx, rank)?.into_iter().map(|(low, high)| (low, high, 0)).collect();
    cx.pad(x, value, &padding)
}

/// Pads an array by numbers of which some are only known at run time. Where an array of `n` rows
/// gets `c - n` more, the result has `c` rows. `place` returns the input and the position in it of
/// the number before (0) or after (1) a dimension, or `None` for no padding.
pub(crate) fn pad_at_run_time(
    cx: &mut NodeContext<'_, '_>,
    x: InstructionId,
    value: InstructionId,
    place: &dyn Fn(usize, usize) -> Option<(usize, usize)>,
) -> Result<InstructionId> {
    let sizes = cx.all_sizes(x)?;
    let x = cx.split(x)?;
    let dimensions: Vec<usize> = (0..sizes.len()).collect();
    let mut data = cx.masked(&x, &dimensions, value)?;
    let (mut starts, mut results) = (Vec::new(), Vec::new());
    for (dimension, &size) in sizes.iter().enumerate() {
        let places = [place(dimension, 0), place(dimension, 1)];
        let [low, high] = [padding_size(cx, places[0])?, padding_size(cx, places[1])?];
        let result = padded_size(cx, size, [low, high], places, dimension)?;
        // Padding beyond the true size is not needed.
        let room = (result.bound - low.bound).max(0);
        if size.bound > room {
            data = cx.slice_in(data, dimension, 0, room)?;
        }
        starts.push(cx.size_value(low)?);
        results.push(result);
    }
    let bounds = bounds(&results);
    let fits = shape::index::element_count(&bounds).is_some();
    cx.check(fits, || format!("the result has too many elements: {}", list(&bounds)))?;
    let whole = cx.broadcast(value, &bounds, &[])?;
    let padded = cx.op(Op::DynamicUpdateSlice {}, &[&[whole, data][..], &starts].concat())?;
    cx.bounded(padded, &run_time(&results))
}

/// Returns one of the numbers, by input and position.
fn padding_size(cx: &mut NodeContext<'_, '_>, place: Option<(usize, usize)>) -> Result<Size> {
    let Some((input, position)) = place else { return Ok(Size::known(0)) };
    let size = cx.bounded_element(input, position)?;
    cx.check(size.bound >= 0, || "paddings: expected numbers >= 0".to_owned())?;
    Ok(size)
}

/// Returns the size of a dimension after it was padded.
fn padded_size(
    cx: &mut NodeContext<'_, '_>,
    size: Size,
    padding: [Size; 2],
    places: [Option<(usize, usize)>; 2],
    dimension: usize,
) -> Result<Size> {
    for (end, part) in padding.iter().enumerate() {
        // With a constant on the other side, the sum may be known.
        let (Some(own), None) = (size.size, padding[1 - end].size) else { continue };
        let (Some(_), Some(own)) = (part.size, cx.linear_element(own, 0)) else { continue };
        let Some((input, position)) = places[end] else { continue };
        let numbers = cx.input(input)?;
        let number = cx.linear_element(numbers, position);
        let sum = number.and_then(|number| cx.known_sum(number, own));
        let Some(sum) = sum.and_then(|sum| sum.checked_add(padding[1 - end].bound)) else { continue };
        let most = cx.s32(sum - padding[1 - end].bound)?;
        let own = cx.size_value(size)?;
        let is_positive = cx.compare(ComparisonDirection::Le, own, most)?;
        let message = format!("paddings: expected numbers >= 0 for dimension {dimension}");
        cx.fail_unless(ASSERT, is_positive, &message)?;
        return Ok(Size::known(sum));
    }
    let mut sum = size;
    for part in padding {
        let bound = sum.bound.checked_add(part.bound).filter(|&bound| bound <= i64::from(i32::MAX));
        let bound = bound.ok_or_else(|| cx.invalid("the result has too many elements"))?;
        let total = if sum.size.is_some() || part.size.is_some() {
            let (a, b) = (cx.size_value(sum)?, cx.size_value(part)?);
            Some(cx.add(a, b)?)
        } else {
            None
        };
        sum = Size { bound, size: total };
    }
    Ok(sum)
}

/// Returns 1 if the mirror image omits the element at the edge (`REFLECT`), or 0 if it repeats it
/// (`SYMMETRIC`).
fn excluded_edge(cx: &NodeContext<'_, '_>) -> Result<i64> {
    match cx.attributes().text("mode")? {
        "REFLECT" => Ok(1),
        "SYMMETRIC" => Ok(0),
        other => Err(cx.invalid(format!("mode: expected REFLECT or SYMMETRIC, got '{other}'"))),
    }
}

/// Pads the array with its mirror image at each end.
fn mirror_pad(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let mut x = cx.input(0)?;
    let sizes = cx.sizes(x);
    let edge = excluded_edge(cx)?;
    for (dimension, (low, high)) in paddings(cx, sizes.len())?.into_iter().enumerate().rev() {
        let size = sizes[dimension];
        cx.check(low <= size - edge && high <= size - edge, || {
            format!(
                "dimension {dimension} of {} is too short to mirror {low} and {high} elements",
                list(&sizes)
            )
        })?;
        let mut parts = Vec::new();
        if low > 0 {
            let part = cx.slice_in(x, dimension, edge, edge + low)?;
            parts.push(cx.reverse(part, vec![dimension])?);
        }
        parts.push(x);
        if high > 0 {
            let part = cx.slice_in(x, dimension, size - edge - high, size - edge)?;
            parts.push(cx.reverse(part, vec![dimension])?);
        }
        x = cx.concatenate(&parts, dimension)?;
    }
    Ok(x)
}

/// The gradient of `MirrorPad`: the center, plus the mirrored edges added to the elements that they
/// copy.
fn mirror_pad_grad(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let mut grad = cx.input(0)?;
    let sizes = cx.sizes(grad);
    let edge = excluded_edge(cx)?;
    let element_type = cx.element_type(grad);
    let zero = cx.scalar(element_type, 0.0);
    for (dimension, (low, high)) in paddings(cx, sizes.len())?.into_iter().enumerate().rev() {
        let size = sizes[dimension];
        let core_size = size - low - high;
        cx.check(low <= core_size - edge && high <= core_size - edge, || {
            format!("dimension {dimension} of {} is too short for paddings {low} and {high}", list(&sizes))
        })?;
        let mut sum = cx.slice_in(grad, dimension, low, size - high)?;
        for (start, limit, before) in [(0, low, edge), (size - high, size, core_size - high - edge)] {
            let part = cx.slice_in(grad, dimension, start, limit)?;
            let part = cx.reverse(part, vec![dimension])?;
            let mut padding = vec![(0, 0, 0); sizes.len()];
            padding[dimension] = (before, core_size - before - (limit - start), 0);
            let part = cx.pad(part, zero, &padding)?;
            sum = cx.add(sum, part)?;
        }
        grad = sum;
    }
    Ok(grad)
}
