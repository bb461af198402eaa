//! Slices: `Slice`, `StridedSlice` with all its masks, its gradient, and assignments to slices.

use crate::node::context::NodeContext;
use crate::node::data_types::*;
use crate::node::rule::{Rule, rule, rule_values};
use crate::ops::array::bounded_slices::{slice_bounded, strided_slice_bounded};
use crate::ops::array::slice_spec::{DenseDimension, DenseSpec, FinalDimension, Range};
use crate::values::value::Value;
use bounded::{broadcast_sizes, list};
use hlo::{ComparisonDirection, InstructionId, Op, SliceDimension};
use shape::PrimitiveType;
use support::{Error, Result};

pub(crate) const RULES: &[Rule] = &[
    rule("Slice", slice).types("T", ALL).types("Index", INDICES),
    rule("StridedSlice", strided_slice).types("T", ALL).types("Index", INDICES),
    rule("StridedSliceGrad", strided_slice_grad).types("T", ALL).types("Index", INDICES),
    rule_values("StridedSliceAssign", strided_slice_assign).types("T", ALL).types("Index", INDICES).effect(),
    rule_values("ResourceStridedSliceAssign", strided_slice_assign)
        .types("T", ALL)
        .types("Index", INDICES)
        .effect(),
    rule("TensorStridedSliceUpdate", tensor_strided_slice_update).types("T", ALL).types("Index", INDICES),
];

/// `Slice(x, begin, size)`. A size of -1 means the rest. A run-time begin is clamped such that the
/// slice fits, as in XLA.
fn slice(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let (x, begin_input) = (cx.input(0)?, cx.input(1)?);
    let sizes = cx.sizes(x);
    let size_input = cx.input(2)?;
    let is_known = cx.fold(size_input).is_some();
    if cx.is_bounded(x) || !is_known || has_rest_from_run_time(cx, begin_input)? {
        return slice_bounded(cx, x, begin_input, size_input);
    }
    let mut requested = cx.constant_i64s(2)?;
    let begin_sizes = cx.sizes(begin_input);
    cx.check(requested.len() == sizes.len() && begin_sizes == [sizes.len() as i64], || {
        format!(
            "begin and size: expected one element for each dimension of {}, got {} and {}",
            list(&sizes),
            list(&begin_sizes),
            requested.len()
        )
    })?;
    let mut begin = Vec::new();
    for d in 0..sizes.len() {
        begin.push(cx.constant_element(1, d)?);
    }
    if begin.iter().all(Option::is_some) {
        let mut dimensions = Vec::new();
        for (d, start) in begin.into_iter().flatten().enumerate() {
            let size =
                if requested[d] == -1 { sizes[d].checked_sub(start).unwrap_or(-1) } else { requested[d] };
            let limit = start.checked_add(size);
            let fits = start >= 0 && size >= 0 && limit.is_some_and(|limit| limit <= sizes[d]);
            cx.check(fits, || {
                format!(
                    "a slice of {} elements from {start} exceeds dimension {d} of {}",
                    requested[d],
                    list(&sizes)
                )
            })?;
            dimensions.push(SliceDimension { start, limit: start + size, stride: 1 });
        }
        return cx.slice(x, dimensions);
    }
    // Resolve sizes of -1 in dimensions whose begin is known.
    for ((requested, begin), &size) in requested.iter_mut().zip(&begin).zip(&sizes) {
        if let (-1, Some(begin)) = (*requested, begin) {
            *requested = size.checked_sub(*begin).filter(|rest| *rest <= size).unwrap_or(-1);
        }
    }
    let fits = requested.iter().zip(&sizes).all(|(&w, &size)| (0..=size).contains(&w));
    cx.check(fits, || format!("a slice of size {} does not fit in {}", list(&requested), list(&sizes)))?;
    let mut operands = vec![x];
    for d in 0..sizes.len() {
        let element = cx.slice_in(begin_input, 0, d as i64, d as i64 + 1)?;
        operands.push(cx.reshape(element, &[])?);
    }
    cx.op(Op::DynamicSlice { dynamic_slice_sizes: requested }, &operands)
}

/// True if a size is -1 and its begin is a run-time value.
fn has_rest_from_run_time(cx: &mut NodeContext<'_, '_>, begin: InstructionId) -> Result<bool> {
    let sizes = cx.constant_i64s(2)?;
    if cx.sizes(begin) != [sizes.len() as i64] {
        return Ok(false);
    }
    for (d, &size) in sizes.iter().enumerate() {
        if size == -1 && cx.constant_element(1, d)?.is_none() {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Returns the ranges of all dimensions, with `None` for run-time bounds.
fn ranges(
    cx: &mut NodeContext<'_, '_>,
    spec: &DenseSpec,
    sizes: &[i64],
    begin_input: usize,
) -> Result<Vec<Option<Range>>> {
    let mut ranges = Vec::new();
    for (dimension, &size) in spec.dimensions.iter().zip(sizes) {
        let (begin, end) = match dimension.sparse {
            Some(i) => (cx.constant_element(begin_input, i)?, cx.constant_element(begin_input + 1, i)?),
            None => (None, None),
        };
        ranges.push(dimension.range(cx, begin, end, size)?);
    }
    Ok(ranges)
}

/// Returns the strides, which must be known. Checks that `begin`, `end`, and `strides` are vectors
/// of one length.
fn strides(cx: &mut NodeContext<'_, '_>, begin_input: usize) -> Result<Vec<i64>> {
    let strides = cx.constant_i64s(begin_input + 2)?;
    for k in begin_input..begin_input + 2 {
        let bound = cx.input(k)?;
        let sizes = cx.sizes(bound);
        cx.check(sizes == [strides.len() as i64], || {
            format!(
                "begin, end, and strides must be vectors of one length, but input {k} has shape {} and there are {} \
                 strides",
                list(&sizes),
                strides.len()
            )
        })?;
    }
    Ok(strides)
}

/// `StridedSlice(x, begin, end, strides)`.
///
/// An index that removes its dimension may be a run-time value. So may the ends of a range of known
/// length, as in `x[i:i + 2]`. Negative values wrap around once, then the range is clamped such
/// that it fits. Other ranges with run-time ends yield results of bounded size.
pub(crate) fn strided_slice(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let mut x = cx.input(0)?;
    let sizes = cx.sizes(x);
    let strides = strides(cx, 1)?;
    let spec = DenseSpec::new(cx, &strides, sizes.len())?;
    if needs_bounds(cx, x, &spec)? {
        return strided_slice_bounded(cx, x, &spec);
    }
    let ranges = ranges(cx, &spec, &sizes, 1)?;
    if ranges.iter().any(Option::is_none) {
        x = run_time_indices(cx, x, &spec, &ranges)?;
    }
    let (mut reversed, mut slices, mut processed) = (Vec::new(), Vec::new(), Vec::new());
    for (d, range) in ranges.iter().enumerate() {
        let Some(range) = range else {
            // Already sliced by its run-time index.
            let limit = cx.sizes(x)[d];
            slices.push(SliceDimension { start: 0, limit, stride: 1 });
            processed.push(limit);
            continue;
        };
        let start = if range.stride < 0 { sizes[d] - 1 - range.begin } else { range.begin };
        let stride = range.stride.saturating_abs();
        let limit = if range.size == 0 { start } else { start + (range.size - 1) * stride + 1 };
        // An empty range may begin anywhere.
        let (start, limit) = if range.size == 0 { (0, 0) } else { (start, limit) };
        if range.stride < 0 {
            reversed.push(d);
        }
        slices.push(SliceDimension { start, limit, stride: stride.min(sizes[d].max(1)) });
        processed.push(range.size);
    }
    let x = cx.reverse(x, reversed)?;
    let x = cx.slice(x, slices)?;
    cx.reshape(x, &final_sizes(&spec, &processed))
}

/// True if a dimension is bounded, or becomes bounded because the length of a range is a run-time
/// value.
fn needs_bounds(cx: &mut NodeContext<'_, '_>, x: InstructionId, spec: &DenseSpec) -> Result<bool> {
    if cx.is_bounded(x) {
        return Ok(true);
    }
    for dimension in spec.dimensions.iter().filter(|dimension| !dimension.shrink) {
        let Some(i) = dimension.sparse else { continue };
        let begin = dimension.begin_masked || cx.constant_element(1, i)?.is_some();
        let end = dimension.end_masked || cx.constant_element(2, i)?.is_some();
        let has_length = dimension.stride == 1
            && !dimension.begin_masked
            && !dimension.end_masked
            && cx.constant_difference(2, 1, i)?.is_some();
        if !(has_length || begin && end) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Returns the result's sizes: new dimensions have size 1, and removed ones are absent.
fn final_sizes(spec: &DenseSpec, processed: &[i64]) -> Vec<i64> {
    let size = |dimension: &FinalDimension| match dimension {
        FinalDimension::Kept(d) => processed[*d],
        FinalDimension::New => 1,
    };
    spec.result.iter().map(size).collect()
}

/// Returns the length of a range with run-time ends.
fn run_time_size(cx: &mut NodeContext<'_, '_>, dimension: &DenseDimension, size: i64) -> Result<i64> {
    if dimension.shrink {
        return Ok(1);
    }
    let i = dimension.sparse.unwrap_or_default();
    if dimension.stride == 1
        && !dimension.begin_masked
        && !dimension.end_masked
        && let Some(length) = cx.constant_difference(2, 1, i)?
    {
        return Ok(length.clamp(0, size));
    }
    // Report the end that is not constant.
    let input = if !dimension.begin_masked && cx.constant_element(1, i)?.is_none() { 1 } else { 2 };
    let id = cx.input(input)?;
    Err(cx.not_constant(input, id))
}

/// Returns the begin of each dimension's range as a scalar. Negative run-time values wrap around
/// once.
fn run_time_starts(
    cx: &mut NodeContext<'_, '_>,
    spec: &DenseSpec,
    ranges: &[Option<Range>],
    sizes: &[i64],
) -> Result<Vec<InstructionId>> {
    let begins = cx.input(1)?;
    let index_type = cx.element_type(begins);
    let mut starts = Vec::new();
    for (d, dimension) in spec.dimensions.iter().enumerate() {
        if let Some(range) = &ranges[d] {
            starts.push(cx.scalar(index_type, range.begin as f64));
            continue;
        }
        let position = dimension.sparse.unwrap_or_default() as i64;
        let index = cx.slice_in(begins, 0, position, position + 1)?;
        let index = cx.reshape(index, &[])?;
        let negative = cx.compare_scalar(ComparisonDirection::Lt, index, 0.0)?;
        let wrapped = cx.add_scalar(index, sizes[d] as f64)?;
        starts.push(cx.select(negative, wrapped, index)?);
    }
    Ok(starts)
}

/// Slices each dimension with a run-time range. The others remain whole.
fn run_time_indices(
    cx: &mut NodeContext<'_, '_>,
    x: InstructionId,
    spec: &DenseSpec,
    ranges: &[Option<Range>],
) -> Result<InstructionId> {
    let mut sizes = cx.sizes(x);
    let whole: Vec<Option<Range>> = ranges
        .iter()
        .zip(&sizes)
        .map(|(range, &size)| range.as_ref().map(|_| Range { begin: 0, stride: 1, size }))
        .collect();
    let mut operands = vec![x];
    operands.extend(run_time_starts(cx, spec, &whole, &sizes)?);
    for (d, dimension) in spec.dimensions.iter().enumerate() {
        if ranges[d].is_none() {
            sizes[d] = run_time_size(cx, dimension, sizes[d])?;
        }
    }
    cx.op(Op::DynamicSlice { dynamic_slice_sizes: sizes }, &operands)
}

/// The gradient of a slice with a run-time begin. The shape of `dy` is that of the slice, so it
/// provides the sizes.
fn run_time_grad(
    cx: &mut NodeContext<'_, '_>,
    dy: InstructionId,
    spec: &DenseSpec,
    ranges: &[Option<Range>],
    sizes: &[i64],
) -> Result<InstructionId> {
    let unit = spec.dimensions.iter().all(|dimension| dimension.stride == 1);
    cx.check(unit, || "strides must be 1 where begin or end are run-time values".to_owned())?;
    let dy_sizes = cx.sizes(dy);
    cx.check(dy_sizes.len() == spec.result.len(), || {
        format!(
            "the gradient has shape {}, but the slice has {} dimensions",
            list(&dy_sizes),
            spec.result.len()
        )
    })?;
    let mut processed = vec![1; sizes.len()];
    for (dimension, &size) in spec.result.iter().zip(&dy_sizes) {
        if let FinalDimension::Kept(d) = dimension {
            processed[*d] = size;
        }
    }
    let element_type = cx.element_type(dy);
    let zeros = cx.splat(element_type, sizes, 0.0)?;
    if processed.contains(&0) {
        return Ok(zeros);
    }
    let dy = cx.reshape(dy, &processed)?;
    let mut operands = vec![zeros, dy];
    operands.extend(run_time_starts(cx, spec, ranges, sizes)?);
    cx.op(Op::DynamicUpdateSlice {}, &operands)
}

/// `StridedSliceGrad(shape, begin, end, strides, dy)`: zeros of `shape`, with `dy` in place of the
/// slice.
fn strided_slice_grad(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let sizes = cx.constant_sizes(0)?;
    let dy = cx.input(4)?;
    let strides = strides(cx, 1)?;
    let spec = DenseSpec::new(cx, &strides, sizes.len())?;
    let ranges = ranges(cx, &spec, &sizes, 1)?;
    if ranges.iter().any(Option::is_none) {
        return run_time_grad(cx, dy, &spec, &ranges, &sizes);
    }
    let known: Vec<Range> = ranges.into_iter().flatten().collect();
    let place = Place::new(&known, &sizes);
    let (dy_sizes, requested) = (cx.sizes(dy), final_sizes(&spec, &place.slice));
    cx.check(dy_sizes == requested, || {
        format!("the gradient has shape {}, but the slice has shape {}", list(&dy_sizes), list(&requested))
    })?;
    place.put(cx, dy)
}

/// The positions of a slice's elements in its array.
struct Place {
    padding: Vec<(i64, i64, i64)>,
    reversed: Vec<usize>,
    /// The sizes of the slice, before dimensions are removed or added.
    slice: Vec<i64>,
}

impl Place {
    fn new(ranges: &[Range], sizes: &[i64]) -> Self {
        let mut place = Self { padding: Vec::new(), reversed: Vec::new(), slice: Vec::new() };
        for (d, range) in ranges.iter().enumerate() {
            let start = if range.stride < 0 { sizes[d] - 1 - range.begin } else { range.begin };
            let stride = range.stride.saturating_abs().min(sizes[d].max(1));
            if range.stride < 0 {
                place.reversed.push(d);
            }
            place.padding.push(match range.size {
                0 => (sizes[d], 0, 0),
                size => (start, sizes[d] - start - ((size - 1) * stride + 1), stride - 1),
            });
            place.slice.push(range.size);
        }
        place
    }

    /// Returns the elements at their positions, surrounded by zeros.
    fn put(&self, cx: &mut NodeContext<'_, '_>, elements: InstructionId) -> Result<InstructionId> {
        let element_type = cx.element_type(elements);
        let zero = cx.scalar(element_type, 0.0);
        let elements = cx.reshape(elements, &self.slice)?;
        let padded = cx.pad(elements, zero, &self.padding)?;
        cx.reverse(padded, self.reversed.clone())
    }
}

/// `StridedSliceAssign(variable, begin, end, strides, value)`: assigns the value to a slice of a
/// variable.
fn strided_slice_assign(cx: &mut NodeContext<'_, '_>) -> Result<Vec<Value>> {
    let variable = cx.variable(0)?;
    let old = cx.read_variable(variable);
    let updated = strided_slice_update(cx, old)?;
    cx.assign_variable(variable, updated)
}

/// `TensorStridedSliceUpdate(x, begin, end, strides, value)`: a copy of `x` with the value in place
/// of a slice.
fn tensor_strided_slice_update(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let old = cx.input(0)?;
    strided_slice_update(cx, old)
}

/// Returns `old` with the value at input 4, broadcast, in place of the slice that inputs 1 to 3
/// describe. Run-time bounds are handled as in `StridedSlice`.
fn strided_slice_update(cx: &mut NodeContext<'_, '_>, old: InstructionId) -> Result<InstructionId> {
    let value = cx.input(4)?;
    let sizes = cx.sizes(old);
    let strides = strides(cx, 1)?;
    let spec = DenseSpec::new(cx, &strides, sizes.len())?;
    let ranges = ranges(cx, &spec, &sizes, 1)?;
    let mut slice = Vec::new();
    for (d, range) in ranges.iter().enumerate() {
        slice.push(match range {
            Some(range) => range.size,
            None => run_time_size(cx, &spec.dimensions[d], sizes[d])?,
        });
    }
    let (value_sizes, requested) = (cx.sizes(value), final_sizes(&spec, &slice));
    let fits = broadcast_sizes(&value_sizes, &requested).is_some_and(|sizes| sizes == requested);
    cx.check(fits, || {
        format!("the value has shape {}, but the slice has shape {}", list(&value_sizes), list(&requested))
    })?;
    let value = cx.broadcast_to(value, &requested)?;
    if slice.contains(&0) {
        return Ok(old);
    }
    let is_dense = |range: &Option<Range>| range.as_ref().is_none_or(|r| r.stride == 1 || r.size == 1);
    if ranges.iter().all(is_dense) {
        let mut operands = vec![old, cx.reshape(value, &slice)?];
        operands.extend(run_time_starts(cx, &spec, &ranges, &sizes)?);
        return cx.op(Op::DynamicUpdateSlice {}, &operands);
    }
    let known: Option<Vec<Range>> = ranges.into_iter().collect();
    let known = known.ok_or_else(|| {
        Error::unsupported(
            "strides must be 1 where begin or end of an assigned slice are run-time values".to_owned(),
        )
    })?;
    let place = Place::new(&known, &sizes);
    let ones = cx.splat(PrimitiveType::Pred, &place.slice, 1.0)?;
    let (is_new, new) = (place.put(cx, ones)?, place.put(cx, value)?);
    cx.select(is_new, new, old)
}
