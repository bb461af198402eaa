//! Pooling.

use crate::node::context::NodeContext;
use crate::node::rule::{Rule, rule, rule_many};
use crate::ops::math::reductions::{accumulation_type, count_like};
use crate::ops::nn::windows::{WindowStep, padded_same};
use crate::ops::onnx::operands::{flag, float, place, required};
use crate::ops::onnx::shapes::resized;
use crate::ops::onnx::windows::{Rounding, Windows, span};
use bounded::{Indices, Reducer, Size, list};
use hlo::{ComparisonDirection, InstructionId, Op, SliceDimension, Window, WindowDimension};
use shape::{ArrayShape, Literal, PrimitiveType, Scalar};
use support::{Code, Error, Result};

pub(crate) const RULES: &[Rule] = &[
    rule("OnnxAveragePool", average_pool),
    rule("OnnxGlobalAveragePool", |cx| global(cx, Global::Mean)),
    rule("OnnxGlobalLpPool", |cx| global(cx, Global::Norm)),
    rule("OnnxGlobalMaxPool", |cx| global(cx, Global::Max)),
    rule("OnnxLpPool", lp_pool),
    rule_many("OnnxMaxPool", max_pool),
    rule("OnnxMaxRoiPool", max_roi_pool),
    rule("OnnxMaxUnpool", max_unpool),
];

/// Most positions of a window whose largest element has a position.
const MOST_TAPS: i64 = 4096;

/// Most positions along one dimension whose elements are counted.
const MOST_COUNTED: i64 = 1 << 22;

/// The windows of the node over an array (batch, features, spatial).
fn windows(cx: &NodeContext<'_, '_>, sizes: &[i64]) -> Result<Windows> {
    cx.check(sizes.len() >= 3, || format!("expected three or more dimensions, got {}", list(sizes)))?;
    let kernel = cx.attributes().ints("kernel_shape")?;
    let rounding = if flag(cx, "ceil_mode", false)? { Rounding::Ceil } else { Rounding::Floor };
    Windows::of_node(cx, &sizes[2..], &kernel, rounding)
}

/// An array whose sizes may be open, and its windows. Where the size determines the padding, the
/// array is padded with a value instead. Where the number of positions is rounded up, the padding
/// at the end reaches as far as a window may.
fn open_window(
    cx: &mut NodeContext<'_, '_>,
    x: InstructionId,
    windows: &Windows,
    value: Literal,
) -> Result<(InstructionId, Window)> {
    let sizes = cx.sizes(x);
    let mut window = window(windows, &sizes);
    let mut open = Vec::new();
    let auto = cx.text_or("auto_pad", "NOTSET")?;
    for (d, along) in window.dimensions.iter_mut().enumerate().skip(2) {
        if !cx.array(x).dimensions[d].is_dynamic {
            continue;
        }
        if auto.starts_with("SAME") && along.stride > 1 {
            open.push((
                d,
                WindowStep { filter: along.size, stride: along.stride, dilation: along.window_dilation },
            ));
            (along.padding_low, along.padding_high) = (0, 0);
            continue;
        }
        along.padding_high = windows.pads[d - 2][1];
        if !auto.starts_with("SAME") && flag(cx, "ceil_mode", false)? {
            // No window begins beyond the array and the padding before it.
            let is_within = along.padding_high + along.stride <= span(along.size, along.window_dilation);
            if !is_within {
                return Err(Error::unsupported(format!(
                    "ceil_mode with a stride of {} along dimension {d}: the number of windows depends on its size, which \
                     depends on data",
                    along.stride
                ))
                .coded(Code::BoundedSize));
            }
            along.padding_high += along.stride - 1;
        }
    }
    if open.is_empty() {
        return Ok((x, window));
    }
    let (value, is_upper) = (cx.literal(value), auto != "SAME_LOWER");
    Ok((padded_same(cx, x, &open, value, is_upper)?, window))
}

/// The windows as those of all dimensions.
fn window(windows: &Windows, sizes: &[i64]) -> Window {
    let mut dimensions = vec![WindowDimension::of_size(1); 2];
    dimensions.extend((2..sizes.len()).map(|d| windows.dimension(d - 2, sizes[d])));
    Window { dimensions }
}

pub(crate) fn average_pool(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let x = required(cx, 0)?;
    average(cx, x)
}

/// The mean of each window.
pub(crate) fn average(cx: &mut NodeContext<'_, '_>, x: InstructionId) -> Result<InstructionId> {
    let (sizes, element_type) = (cx.sizes(x), cx.element_type(x));
    let windows = windows(cx, &sizes)?;
    let counts_padding = flag(cx, "count_include_pad", false)?;
    let wide = cx.convert(x, accumulation_type(element_type))?;
    let wide_type = cx.element_type(wide);
    let zero = || bounded::scalar_literal(wide_type, 0.0);
    let (padded, window) = open_window(cx, wide, &windows, zero())?;
    let sums = cx.reduce_window(padded, Reducer::Add, window)?;
    let result = cx.sizes(sums);
    if result.contains(&0) {
        return cx.convert(sums, element_type);
    }
    if cx.is_bounded(x) {
        let is_padded = windows.pads.iter().flatten().any(|&pad| pad != 0);
        // Padding that the node does not state is not counted.
        let is_rounded_up = flag(cx, "ceil_mode", false)?;
        if counts_padding && is_padded && is_rounded_up {
            return Err(Error::unsupported("ceil_mode and count_include_pad with padding and open sizes")
                .coded(Code::BoundedSize));
        }
        let counts = if counts_padding && !is_rounded_up {
            let taps = cx.checked_product(&windows.kernel)?;
            cx.splat_like(sums, taps as f64)?
        } else {
            let ones = cx.splat_like(wide, 1.0)?;
            let ones = cx.with_sizes_of(ones, wide)?;
            let (ones, window) = open_window(cx, ones, &windows, zero())?;
            cx.reduce_window(ones, Reducer::Add, window)?
        };
        let mean = cx.div(sums, counts)?;
        return cx.convert(mean, element_type);
    }
    let mut counts = cx.scalar(wide_type, 1.0);
    counts = cx.broadcast(counts, &result[2..], &[])?;
    for d in 0..windows.kernel.len() {
        let positions = windows.results[d];
        cx.check(positions <= MOST_COUNTED, || {
            format!("{positions} windows along a dimension are too many")
        })?;
        let [low, high] = windows.pads[d];
        let [least, most] = if counts_padding { [-low, sizes[d + 2] + high] } else { [0, sizes[d + 2]] };
        let count = |position: i64| {
            let begin = position * windows.strides[d] - low;
            let taps = (0..windows.kernel[d]).map(|tap| begin + tap * windows.dilations[d]);
            Scalar::Float(taps.filter(|at| (least..most).contains(at)).count() as f64)
        };
        let literal =
            Literal::from_scalars(ArrayShape::new(wide_type, &[positions]), (0..positions).map(count));
        let along = cx.literal(literal);
        let along = cx.broadcast(along, &result[2..], &[d])?;
        counts = cx.mul(counts, along)?;
    }
    let dimensions: Vec<usize> = (2..result.len()).collect();
    let counts = cx.broadcast(counts, &result, &dimensions)?;
    let mean = cx.div(sums, counts)?;
    cx.convert(mean, element_type)
}

/// A function of all spatial dimensions.
enum Global {
    Max,
    Mean,
    Norm,
}

fn global(cx: &mut NodeContext<'_, '_>, kind: Global) -> Result<InstructionId> {
    let x = required(cx, 0)?;
    let (sizes, element_type) = (cx.sizes(x), cx.element_type(x));
    cx.check(sizes.len() >= 2, || format!("expected two or more dimensions, got {}", list(&sizes)))?;
    let axes: Vec<usize> = (2..sizes.len()).collect();
    let wide = cx.convert(x, accumulation_type(element_type))?;
    let y = match kind {
        Global::Max => cx.reduce(wide, Reducer::LargestNumber, &axes)?,
        Global::Mean => {
            let sum = cx.reduce(wide, Reducer::Add, &axes)?;
            let count = count_like(cx, x, &axes, sum)?;
            cx.div(sum, count)?
        }
        Global::Norm => {
            let p = cx.attributes().int_or("p", 2)? as f64;
            let powers = power_of_size(cx, wide, p)?;
            let sum = cx.reduce(powers, Reducer::Add, &axes)?;
            root(cx, sum, p)?
        }
    };
    let y = cx.convert(y, element_type)?;
    let mut result = cx.all_sizes(y)?;
    result.resize(sizes.len(), Size::known(1));
    resized(cx, y, &result)
}

/// `abs(x)^p`.
pub(crate) fn power_of_size(cx: &mut NodeContext<'_, '_>, x: InstructionId, p: f64) -> Result<InstructionId> {
    if p == 2.0 {
        return cx.mul(x, x);
    }
    let size = cx.op(Op::Abs {}, &[x])?;
    if p == 1.0 {
        return Ok(size);
    }
    let p = cx.splat_like(size, p)?;
    cx.op(Op::Power {}, &[size, p])
}

/// `x^(1 / p)`.
pub(crate) fn root(cx: &mut NodeContext<'_, '_>, x: InstructionId, p: f64) -> Result<InstructionId> {
    if p == 1.0 {
        return Ok(x);
    }
    if p == 2.0 {
        return cx.op(Op::Sqrt {}, &[x]);
    }
    let inverse = cx.splat_like(x, 1.0 / p)?;
    cx.op(Op::Power {}, &[x, inverse])
}

fn lp_pool(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let x = required(cx, 0)?;
    let (sizes, element_type) = (cx.sizes(x), cx.element_type(x));
    let p = cx.attributes().int_or("p", 2)? as f64;
    cx.check(p > 0.0, || format!("p: expected a positive number, got {p}"))?;
    let windows = windows(cx, &sizes)?;
    let wide = cx.convert(x, accumulation_type(element_type))?;
    let powers = power_of_size(cx, wide, p)?;
    let wide_type = cx.element_type(powers);
    let zero = bounded::scalar_literal(wide_type, 0.0);
    let (powers, window) = open_window(cx, powers, &windows, zero)?;
    let sums = cx.reduce_window(powers, Reducer::Add, window)?;
    let y = root(cx, sums, p)?;
    cx.convert(y, element_type)
}

/// The largest element of each window, and its position in the array.
fn max_pool(cx: &mut NodeContext<'_, '_>) -> Result<Vec<InstructionId>> {
    let x = required(cx, 0)?;
    let sizes = cx.sizes(x);
    let windows = windows(cx, &sizes)?;
    if cx.node().output_types.len() < 2 {
        let lowest = bounded::lowest(cx.element_type(x));
        let (x, window) = open_window(cx, x, &windows, lowest)?;
        return Ok(vec![cx.reduce_window(x, Reducer::LargestNumber, window)?]);
    }
    if cx.is_bounded(x) {
        return Err(Error::unsupported("positions of the largest elements of an array of open size")
            .coded(Code::BoundedSize));
    }
    let taps = cx.checked_product(&windows.kernel)?;
    cx.check(taps <= MOST_TAPS, || format!("positions in windows of {taps} elements are not supported"))?;
    // Positions in each row-major or, for `storage_order` 1, column-major image.
    let order: Vec<usize> = match cx.attributes().int_or("storage_order", 0)? {
        0 => (0..sizes.len()).collect(),
        _ => [0, 1].into_iter().chain((2..sizes.len()).rev()).collect(),
    };
    let mut positions: Option<InstructionId> = None;
    let mut stride = 1i64;
    for &d in order.iter().rev() {
        let along = cx.iota(PrimitiveType::S64, &sizes, d)?;
        let step = cx.literal(Literal::scalar(stride));
        let step = cx.broadcast(step, &sizes, &[])?;
        let along = cx.mul(along, step)?;
        positions = Some(match positions {
            Some(others) => cx.add(others, along)?,
            None => along,
        });
        stride = stride.saturating_mul(sizes[d]);
    }
    let positions = positions.ok_or_else(|| cx.invalid("the input is a scalar"))?;
    let element_type = cx.element_type(x);
    let all = window(&windows, &sizes);
    let padding: Vec<(i64, i64, i64)> =
        all.dimensions.iter().map(|d| (d.padding_low.max(0), d.padding_high.max(0), 0)).collect();
    let (lowest, nowhere) = (cx.literal(bounded::lowest(element_type)), cx.literal(Literal::scalar(-1i64)));
    let (x, positions) = (cx.pad(x, lowest, &padding)?, cx.pad(positions, nowhere, &padding)?);
    let mut best: Option<(InstructionId, InstructionId)> = None;
    for tap in 0..taps {
        let mut rest = tap;
        let mut slices: Vec<SliceDimension> =
            sizes[..2].iter().map(|&limit| SliceDimension { start: 0, limit, stride: 1 }).collect();
        let mut offsets = vec![0; windows.kernel.len()];
        for d in (0..windows.kernel.len()).rev() {
            offsets[d] = rest % windows.kernel[d] * windows.dilations[d];
            rest /= windows.kernel[d];
        }
        for (d, &offset) in offsets.iter().enumerate() {
            let start = offset + (-all.dimensions[d + 2].padding_low).max(0);
            let limit = start + (windows.results[d] - 1) * windows.strides[d] + 1;
            slices.push(SliceDimension { start, limit, stride: windows.strides[d] });
        }
        let (value, position) = (cx.slice(x, slices.clone())?, cx.slice(positions, slices)?);
        best = Some(match best {
            None => (value, position),
            Some((most, at)) => {
                let is_more = cx.compare(ComparisonDirection::Gt, value, most)?;
                // A window that begins in the padding has no position yet.
                let is_first = cx.compare_scalar(ComparisonDirection::Lt, at, 0.0)?;
                let is_more = cx.op(Op::Or {}, &[is_more, is_first])?;
                (cx.select(is_more, value, most)?, cx.select(is_more, position, at)?)
            }
        });
    }
    let (values, positions) = best.ok_or_else(|| cx.invalid("the window is empty"))?;
    Ok(vec![values, positions])
}

/// Puts elements back where they were before pooling.
fn max_unpool(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let (x, positions) = (required(cx, 0)?, required(cx, 1)?);
    let sizes = cx.sizes(x);
    cx.check(sizes.len() >= 3 && cx.sizes(positions) == sizes, || {
        format!("positions do not fit {}", list(&sizes))
    })?;
    let kernel = cx.attributes().ints("kernel_shape")?;
    let rank = sizes.len() - 2;
    let strides = cx.attributes().ints_or("strides", vec![1; rank])?;
    let pads = super::windows::stated_pads(cx, rank)?;
    cx.check(kernel.len() == rank && strides.len() == rank, || "the windows do not fit".to_owned())?;
    let mut inferred = sizes[..2].to_vec();
    for d in 0..rank {
        let size = (sizes[d + 2] - 1).saturating_mul(strides[d]).saturating_add(kernel[d]);
        inferred.push(size - pads[d][0] - pads[d][1]);
    }
    cx.check(inferred.iter().all(|&size| (0..1 << 40).contains(&size)), || {
        "the windows do not fit".to_owned()
    })?;
    let result = match place(cx, 2)? {
        Some(place) => cx.constant_sizes(place)?,
        None => inferred.clone(),
    };
    cx.check(result.len() == inferred.len(), || format!("output_shape {} does not fit", list(&result)))?;
    let (count, total) = (cx.checked_product(&sizes)?, cx.checked_product(&inferred)?);
    let element_type = cx.element_type(x);
    let zeros = cx.splat(element_type, &[total], 0.0)?;
    let (updates, positions) = (cx.reshape(x, &[count])?, cx.reshape(positions, &[count])?);
    let y = cx.scatter(zeros, positions, updates, Indices::Scalars, Reducer::Replace)?;
    // Positions are those of the inferred shape.
    let y = cx.reshape(y, &inferred)?;
    let padding: Vec<(i64, i64, i64)> =
        result.iter().zip(&inferred).map(|(&wanted, &own)| (0, wanted - own, 0)).collect();
    let zero = cx.scalar(element_type, 0.0);
    cx.pad(y, zero, &padding)
}

/// The largest elements of the cells of regions: (regions, features, pooled height, pooled width).
/// Inputs: an image (batch, features, height, width), and regions (number, 5), each the number of
/// an image and two corners `x, y`. A cell without elements has the result 0.
fn max_roi_pool(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let (x, rois) = (required(cx, 0)?, required(cx, 1)?);
    let (sizes, roi_sizes) = (cx.sizes(x), cx.sizes(rois));
    cx.check(sizes.len() == 4 && roi_sizes.len() == 2 && roi_sizes[1] == 5 && !sizes.contains(&0), || {
        format!("regions {} do not fit {}", list(&roi_sizes), list(&sizes))
    })?;
    let pooled = cx.attributes().ints("pooled_shape")?;
    let fits = pooled.len() == 2 && pooled.iter().all(|size| (1..1 << 16).contains(size));
    cx.check(fits, || format!("pooled_shape: expected a height and a width, got {}", list(&pooled)))?;
    let scale = float(cx, "spatial_scale", 1.0)?;
    let element_type = cx.element_type(x);
    let wide_type = accumulation_type(element_type);
    let rois = cx.convert(rois, wide_type)?;
    let count = roi_sizes[0];
    let column = |cx: &mut NodeContext<'_, '_>, k: i64| {
        let column = cx.slice_in(rois, 1, k, k + 1)?;
        cx.reshape(column, &[count])
    };
    // The elements of each cell of a row or a column of cells: (regions, cells, elements).
    let mut cells = Vec::new();
    for (d, [from, to]) in [[2, 4], [1, 3]].into_iter().enumerate() {
        let corner = |cx: &mut NodeContext<'_, '_>, k: i64| {
            let corner = column(cx, k)?;
            let corner = cx.mul_scalar(corner, scale)?;
            cx.op(Op::RoundNearestAfz {}, &[corner])
        };
        let (start, end) = (corner(cx, from)?, corner(cx, to)?);
        let extent = cx.sub(end, start)?;
        let extent = cx.add_scalar(extent, 1.0)?;
        let one = cx.splat_like(extent, 1.0)?;
        let extent = cx.op(Op::Maximum {}, &[extent, one])?;
        let divisor = cx.splat_like(extent, pooled[d] as f64)?;
        let bin = cx.div(extent, divisor)?;
        let grid = [count, pooled[d]];
        let (bin, start) = (cx.broadcast(bin, &grid, &[0])?, cx.broadcast(start, &grid, &[0])?);
        let cell = cx.iota(wide_type, &grid, 1)?;
        let next = cx.add_scalar(cell, 1.0)?;
        let (low, high) = (cx.mul(cell, bin)?, cx.mul(next, bin)?);
        let (low, high) = (cx.op(Op::Floor {}, &[low])?, cx.op(Op::Ceil {}, &[high])?);
        let (low, high) = (cx.add(low, start)?, cx.add(high, start)?);
        let wide = [count, pooled[d], sizes[d + 2]];
        let (low, high) = (cx.broadcast(low, &wide, &[0, 1])?, cx.broadcast(high, &wide, &[0, 1])?);
        let place = cx.iota(wide_type, &wide, 2)?;
        let after = cx.compare(ComparisonDirection::Ge, place, low)?;
        let before = cx.compare(ComparisonDirection::Lt, place, high)?;
        cells.push(cx.op(Op::And {}, &[after, before])?);
    }
    let images = column(cx, 0)?;
    let images = cx.convert(images, PrimitiveType::S32)?;
    let result = [count, sizes[1], pooled[0], pooled[1]];
    let zeros = cx.splat(element_type, &result, 0.0)?;
    cx.s32(count)?;
    let state = [zeros, x, images, cells[0], cells[1]];
    let results = cx.counted_loop(count as i32, &state, |cx, region, state| {
        let image = cx.dynamic_row(state[2], region)?;
        let mut y = cx.dynamic_row(state[1], image)?;
        // Rows first, then columns: (features, pooled height, width), then the result.
        for d in 0..2 {
            let own = cx.dynamic_row(state[3 + d], region)?;
            let (from, mask) = (cx.sizes(y), cx.sizes(own));
            let wide = if d == 0 {
                [from[0], mask[0], mask[1], from[2]]
            } else {
                [from[0], from[1], mask[0], mask[1]]
            };
            let spread = cx.broadcast(y, &wide, if d == 0 { &[0, 2, 3] } else { &[0, 1, 3] })?;
            let own = cx.broadcast(own, &wide, if d == 0 { &[1, 2] } else { &[2, 3] })?;
            let lowest = cx.literal(bounded::lowest(element_type));
            let lowest = cx.broadcast(lowest, &wide, &[])?;
            let kept = cx.select(own, spread, lowest)?;
            y = cx.reduce(kept, Reducer::LargestNumber, &[if d == 0 { 2 } else { 3 }])?;
        }
        let mut some: Option<InstructionId> = None;
        for d in 0..2 {
            let own = cx.dynamic_row(state[3 + d], region)?;
            let any = cx.reduce(own, Reducer::Or, &[1])?;
            let sizes = cx.sizes(y);
            let any = cx.broadcast(any, &sizes, &[d + 1])?;
            some = Some(match some {
                Some(some) => cx.op(Op::And {}, &[some, any])?,
                None => any,
            });
        }
        let some = some.ok_or_else(|| cx.invalid("no cells"))?;
        let zero = cx.splat_like(y, 0.0)?;
        let y = cx.select(some, y, zero)?;
        let all = cx.with_dynamic_row(state[0], y, region)?;
        Ok([vec![all], state[1..].to_vec()].concat())
    })?;
    Ok(results[0])
}
