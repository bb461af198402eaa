//! `Slice` and `StridedSlice` with a data-dependent size, of the array or of the slice.

use crate::node::context::NodeContext;
use crate::ops::array::slice_spec::{DenseDimension, DenseSpec, FinalDimension};
use bounded::{Size, list};
use hlo::{InstructionId, Op};
use support::Result;

/// `Slice(x, begin, size)`. The slice ends at the end of the array.
pub(crate) fn slice_bounded(
    cx: &mut NodeContext<'_, '_>,
    mut x: InstructionId,
    begin: InstructionId,
    size: InstructionId,
) -> Result<InstructionId> {
    let sizes = cx.sizes(x);
    let rank = [sizes.len() as i64];
    cx.check(cx.sizes(begin) == rank && cx.sizes(size) == rank, || {
        format!("begin and size: expected one element for each dimension of {}", list(&sizes))
    })?;
    for (d, &bound) in sizes.iter().enumerate() {
        let (start, requested) = (cx.constant_element(1, d)?, cx.constant_element(2, d)?);
        let is_bounded = cx.array(x).dimensions[d].is_dynamic;
        if start == Some(0) && (requested == Some(-1) || (requested == Some(bound) && !is_bounded)) {
            continue;
        }
        let limit = start.unwrap_or(0).saturating_add(requested.unwrap_or(0).max(0));
        cx.check(start.unwrap_or(0) >= 0 && requested.unwrap_or(0) >= -1 && limit <= bound, || {
            format!(
                "a slice of {requested:?} elements from {start:?} exceeds dimension {d} of {}",
                list(&sizes)
            )
        })?;
        let (zero, whole) = (cx.s32(0)?, cx.true_size(x, d)?);
        let start_value = cx.saturated_element(begin, d as i64)?;
        let start_value = cx.clamped(start_value, zero, whole)?;
        let rest = cx.sub(whole, start_value)?;
        let room = bound - start.unwrap_or(0);
        let length = match requested {
            // The slice fits, because the array is at least as large. There is nothing to check.
            Some(requested @ 0..) if !is_bounded => Size::known(requested),
            Some(-1) => Size { bound: room, size: Some(rest) },
            requested => {
                let size_value = cx.saturated_element(size, d as i64)?;
                let negative = cx.compare_scalar(hlo::ComparisonDirection::Lt, size_value, 0.0)?;
                let size_value = cx.select(negative, rest, size_value)?;
                let length = cx.op(Op::Minimum {}, &[size_value, rest])?;
                let known = requested.or_else(|| cx.range(size).high.filter(|&high| high >= 0));
                // A run-time size may also be -1, which means the rest.
                let low = requested.or_else(|| cx.range(size).low).unwrap_or(-1);
                let bound = if low < 0 { room } else { known.map_or(room, |known| known.min(room)) };
                Size { bound, size: Some(length) }
            }
        };
        let length = with_computed_bound(cx, length);
        x = cx.take(x, d, start_value, 1, length)?;
    }
    Ok(x)
}

/// Applies the masks of `StridedSlice`. Ends are clamped to the true size. The index of a removed
/// dimension is a run-time value.
pub(crate) fn strided_slice_bounded(
    cx: &mut NodeContext<'_, '_>,
    mut x: InstructionId,
    spec: &DenseSpec,
) -> Result<InstructionId> {
    for (d, dimension) in spec.dimensions.iter().enumerate() {
        x = cut(cx, x, d, dimension)?;
    }
    let processed = cx.all_sizes(x)?;
    let size = |dimension: &FinalDimension| match dimension {
        FinalDimension::Kept(d) => processed[*d],
        FinalDimension::New => Size::known(1),
    };
    let sizes: Vec<Size> = spec.result.iter().map(size).collect();
    cx.reshape_to(x, &sizes)
}

/// Slices one dimension.
fn cut(
    cx: &mut NodeContext<'_, '_>,
    x: InstructionId,
    d: usize,
    dimension: &DenseDimension,
) -> Result<InstructionId> {
    let stride = dimension.stride;
    cx.check(stride != 0, || "strides must not be 0".to_owned())?;
    cx.check(!dimension.shrink || stride > 0, || {
        "an index that removes its dimension must have stride 1".to_owned()
    })?;
    let Some(i) = dimension.sparse else { return Ok(x) };
    if dimension.begin_masked && dimension.end_masked && !dimension.shrink && stride == 1 {
        return Ok(x);
    }
    let bound = cx.sizes(x)[d];
    let (zero, whole) = (cx.s32(0)?, cx.true_size(x, d)?);
    let begins = cx.input(1)?;
    if dimension.shrink {
        let index = cx.saturated_element(begins, i as i64)?;
        let index = cx.wrapped(index, whole)?;
        let last = cx.s32((bound - 1).max(0))?;
        cx.check(bound > 0, || format!("index into the empty dimension {d}"))?;
        let index = cx.clamped(index, zero, last)?;
        return cx.take(x, d, index, 1, Size::known(1));
    }
    let minus_one = cx.s32(-1)?;
    let last = cx.add(whole, minus_one)?;
    let (low, high) = if stride > 0 { (zero, whole) } else { (minus_one, last) };
    let (first, beyond) = if stride > 0 { (low, high) } else { (high, low) };
    let end_of = |cx: &mut NodeContext<'_, '_>, input: usize, masked: bool, default: InstructionId| {
        if masked {
            return Ok(default);
        }
        let ends = cx.input(input)?;
        let end = cx.saturated_element(ends, i as i64)?;
        let end = cx.wrapped(end, whole)?;
        cx.clamped(end, low, high)
    };
    let begin = end_of(cx, 1, dimension.begin_masked, first)?;
    let end = end_of(cx, 2, dimension.end_masked, beyond)?;
    let (from, to) = if stride > 0 { (begin, end) } else { (end, begin) };
    let step = stride.saturating_abs().min(i64::from(i32::MAX));
    let span = cx.sub(to, from)?;
    let span = cx.add_scalar(span, (step - 1) as f64)?;
    let length = if step == 1 {
        span
    } else {
        let step = cx.s32(step)?;
        cx.div(span, step)?
    };
    let length = cx.op(Op::Maximum {}, &[length, zero])?;
    let most = (bound as u64).div_ceil(step as u64) as i64;
    let most = most.min(range_of_ends(cx, i, dimension, bound)?);
    let length = with_computed_bound(cx, Size { bound: most, size: Some(length) });
    cx.take(x, d, begin, step * stride.signum(), length)
}

/// Returns a size with the bound that follows from named dimensions: `x[:-1]` has one element less
/// than `x`.
fn with_computed_bound(cx: &mut NodeContext<'_, '_>, size: Size) -> Size {
    if size.size.is_none() || !cx.has_named_sizes() {
        return size;
    }
    let most = cx.size_range(size).high.unwrap_or(size.bound).max(0);
    Size { bound: size.bound.min(most), ..size }
}

/// Returns the maximum number of elements between two ends, one of which is known, with a stride of
/// 1.
fn range_of_ends(
    cx: &mut NodeContext<'_, '_>,
    i: usize,
    dimension: &DenseDimension,
    bound: i64,
) -> Result<i64> {
    if dimension.stride != 1 {
        return Ok(bound);
    }
    let end = if dimension.end_masked { None } else { cx.constant_element(2, i)? };
    let begin = if dimension.begin_masked { Some(0) } else { cx.constant_element(1, i)? };
    let end = end.filter(|&end| end >= 0).map_or(bound, |end| end.min(bound));
    let begin = begin.filter(|&begin| begin >= 0).map_or(0, |begin| begin.min(bound));
    Ok((end - begin).max(0))
}
