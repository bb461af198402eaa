//! Slices: `Slice`, `StridedSlice` with all its masks, its gradient, and what puts values in place of a slice.

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

/// `Slice(x, begin, size)`: a size of -1 is the rest. With a begin that is not constant it is clamped such that the slice
/// fits, as in XLA.
fn slice(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let (x, begin_input) = (cx.input(0)?, cx.input(1)?);
    let sizes = cx.sizes(x);
    let size_input = cx.input(2)?;
    let is_known = cx.fold(size_input).is_some();
    if cx.is_bounded(x) || !is_known || has_rest_from_run_time(cx, begin_input)? {
        return slice_bounded(cx, x, begin_input, size_input);
    }
    let mut wanted = cx.constant_i64s(2)?;
    let begin_sizes = cx.sizes(begin_input);
    cx.check(wanted.len() == sizes.len() && begin_sizes == [sizes.len() as i64], || {
        format!(
            "begin and size must have an element for each dimension of {}, but have {} and {}",
            list(&sizes),
            list(&begin_sizes),
            wanted.len()
        )
    })?;
    let mut begin = Vec::new();
    for d in 0..sizes.len() {
        begin.push(cx.constant_element(1, d)?);
    }
    if begin.iter().all(Option::is_some) {
        let mut dimensions = Vec::new();
        for (d, start) in begin.into_iter().flatten().enumerate() {
            let size = if wanted[d] == -1 { sizes[d].checked_sub(start).unwrap_or(-1) } else { wanted[d] };
            let limit = start.checked_add(size);
            let fits = start >= 0 && size >= 0 && limit.is_some_and(|limit| limit <= sizes[d]);
            cx.check(fits, || {
                format!(
                    "a slice of {} elements from {start} is out of dimension {d} of {}",
                    wanted[d],
                    list(&sizes)
                )
            })?;
            dimensions.push(SliceDimension { start, limit: start + size, stride: 1 });
        }
        return cx.slice(x, dimensions);
    }
    // All that is left, where the begin is known of that dimension alone.
    for ((wanted, begin), &size) in wanted.iter_mut().zip(&begin).zip(&sizes) {
        if let (-1, Some(begin)) = (*wanted, begin) {
            *wanted = size.checked_sub(*begin).filter(|rest| *rest <= size).unwrap_or(-1);
        }
    }
    let fits = wanted.iter().zip(&sizes).all(|(&w, &size)| (0..=size).contains(&w));
    cx.check(fits, || format!("a slice of size {} does not fit into {}", list(&wanted), list(&sizes)))?;
    let mut operands = vec![x];
    for d in 0..sizes.len() {
        let element = cx.slice_in(begin_input, 0, d as i64, d as i64 + 1)?;
        operands.push(cx.reshape(element, &[])?);
    }
    cx.op(Op::DynamicSlice { dynamic_slice_sizes: wanted }, &operands)
}

/// Whether a size is -1 and its begin is known at run time only.
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

/// The ranges of all dimensions, `None` where a bound is known at run time only.
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

/// `begin`, `end` and `strides` are vectors of one length; the strides, which must be known.
fn strides(cx: &mut NodeContext<'_, '_>, begin_input: usize) -> Result<Vec<i64>> {
    let strides = cx.constant_i64s(begin_input + 2)?;
    for k in begin_input..begin_input + 2 {
        let bound = cx.input(k)?;
        let sizes = cx.sizes(bound);
        cx.check(sizes == [strides.len() as i64], || {
            format!(
                "begin, end and strides must be vectors of one length, but input {k} has shape {} and there are {} \
                 strides",
                list(&sizes),
                strides.len()
            )
        })?;
    }
    Ok(strides)
}

/// `StridedSlice(x, begin, end, strides)`. An index that drops its dimension may depend on run-time values, and so may the
/// ends of a range whose length is known, as in `x[i:i + 2]`: they wrap around once if negative, then are clamped such
/// that the range fits. Other ends of ranges must be known at compile time.
fn strided_slice(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
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
            // Cut already, by its run-time index.
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

/// Whether a dimension is bounded, or becomes so: the ends of a range depend on a run, and not only where it begins.
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

/// The result's sizes: new dimensions have size 1, dropped ones are gone.
fn final_sizes(spec: &DenseSpec, processed: &[i64]) -> Vec<i64> {
    let size = |dimension: &FinalDimension| match dimension {
        FinalDimension::Kept(d) => processed[*d],
        FinalDimension::New => 1,
    };
    spec.result.iter().map(size).collect()
}

/// The length of a range whose ends are known at run time only.
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
    // Which of the two ends is in the way?
    let input = if !dimension.begin_masked && cx.constant_element(1, i)?.is_none() { 1 } else { 2 };
    let id = cx.input(input)?;
    Err(cx.not_constant(input, id))
}

/// Where each dimension's range begins, as a scalar; negative run-time values wrap around once.
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

/// Cuts each dimension whose range is known at run time only; the others stay whole.
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

/// The gradient where some begin is known at run time only: `dy` is as large as the slice was, so it says the sizes.
fn run_time_grad(
    cx: &mut NodeContext<'_, '_>,
    dy: InstructionId,
    spec: &DenseSpec,
    ranges: &[Option<Range>],
    sizes: &[i64],
) -> Result<InstructionId> {
    let unit = spec.dimensions.iter().all(|dimension| dimension.stride == 1);
    cx.check(unit, || "strides must be 1 where begin or end are known at run time only".to_owned())?;
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

/// `StridedSliceGrad(shape, begin, end, strides, dy)`: zeros of `shape`, with `dy` where the slice was taken.
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
    let (dy_sizes, wanted) = (cx.sizes(dy), final_sizes(&spec, &place.slice));
    cx.check(dy_sizes == wanted, || {
        format!("the gradient has shape {}, but the slice has shape {}", list(&dy_sizes), list(&wanted))
    })?;
    place.put(cx, dy)
}

/// Where the elements of a slice lie in the array that it is of.
struct Place {
    padding: Vec<(i64, i64, i64)>,
    reversed: Vec<usize>,
    /// The sizes of the slice, before dimensions are dropped or added.
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

    /// The elements in their places, zeros around them.
    fn put(&self, cx: &mut NodeContext<'_, '_>, elements: InstructionId) -> Result<InstructionId> {
        let element_type = cx.element_type(elements);
        let zero = cx.scalar(element_type, 0.0);
        let elements = cx.reshape(elements, &self.slice)?;
        let padded = cx.pad(elements, zero, &self.padding)?;
        cx.reverse(padded, self.reversed.clone())
    }
}

/// `StridedSliceAssign(variable, begin, end, strides, value)`: the elements of a slice of a variable become those of the
/// value.
fn strided_slice_assign(cx: &mut NodeContext<'_, '_>) -> Result<Vec<Value>> {
    let variable = cx.variable(0)?;
    let old = cx.read_variable(variable);
    let updated = strided_slice_update(cx, old)?;
    cx.assign_variable(variable, updated)
}

/// `TensorStridedSliceUpdate(x, begin, end, strides, value)`: a copy of `x` with the value in place of a slice.
fn tensor_strided_slice_update(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let old = cx.input(0)?;
    strided_slice_update(cx, old)
}

/// `old` with the value at input 4, broadcast, in place of the slice that inputs 1 to 3 describe. Bounds known at run time
/// only are taken as `StridedSlice` takes them.
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
    let (value_sizes, wanted) = (cx.sizes(value), final_sizes(&spec, &slice));
    let fits = broadcast_sizes(&value_sizes, &wanted).is_some_and(|sizes| sizes == wanted);
    cx.check(fits, || {
        format!("the value has shape {}, but the slice has shape {}", list(&value_sizes), list(&wanted))
    })?;
    let value = cx.broadcast_to(value, &wanted)?;
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
            "strides must be 1 where begin or end of an assigned slice are known at run time only".to_owned(),
        )
    })?;
    let place = Place::new(&known, &sizes);
    let ones = cx.splat(PrimitiveType::Pred, &place.slice, 1.0)?;
    let (is_new, new) = (place.put(cx, ones)?, place.put(cx, value)?);
    cx.select(is_new, new, old)
}
