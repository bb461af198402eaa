//! Samples of images at places between elements.

use crate::node::context::NodeContext;
use crate::node::rule::{Rule, rule};
use crate::ops::onnx::operands::{constant, flag, optional, required};
use bounded::{Reducer, list};
use hlo::{ComparisonDirection, GatherDimensionNumbers, InstructionId, Op};
use shape::PrimitiveType;
use support::Result;

pub(crate) const RULES: &[Rule] = &[
    rule("OnnxAffineGrid", affine_grid),
    rule("OnnxDeformConv", deform_conv),
    rule("OnnxGridSample", grid_sample),
    rule("OnnxRoiAlign", roi_align),
];

/// Places in `[-1, 1]` along a dimension, as numbers.
fn places(size: i64, align: bool) -> Vec<f64> {
    let place = |k: i64| {
        if align {
            if size > 1 { 2.0 * k as f64 / (size - 1) as f64 - 1.0 } else { 0.0 }
        } else {
            (2 * k + 1) as f64 / size as f64 - 1.0
        }
    };
    (0..size).map(place).collect()
}

/// The places in an image that affine maps send the elements of another one to.
fn affine_grid(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let theta = required(cx, 0)?;
    let sizes = constant(cx, 1)?.and_then(|literal| literal.to_i64s()).unwrap_or_default();
    let rank = sizes.len().saturating_sub(2);
    let fits = matches!(rank, 2 | 3)
        && cx.sizes(theta) == [sizes[0], rank as i64, rank as i64 + 1]
        && sizes.iter().all(|size| (1..1 << 24).contains(size));
    cx.check(fits, || format!("maps of shape {} do not fit {}", list(&cx.sizes(theta)), list(&sizes)))?;
    let align = flag(cx, "align_corners", false)?;
    let element_type = cx.element_type(theta);
    let result = [&[sizes[0]], &sizes[2..]].concat();
    let mut components = Vec::new();
    for row in 0..rank as i64 {
        let mut sum: Option<InstructionId> = None;
        for column in 0..=rank as i64 {
            let factor = cx.slice_in(theta, 1, row, row + 1)?;
            let factor = cx.slice_in(factor, 2, column, column + 1)?;
            let factor = cx.reshape(factor, &[sizes[0]])?;
            let mut part = cx.broadcast(factor, &result, &[0])?;
            if column < rank as i64 {
                // The first component is that of the last dimension.
                let d = rank - 1 - column as usize;
                let shape = shape::ArrayShape::new(element_type, &[sizes[d + 2]]);
                let along = cx.literal(shape::Literal::from_floats(shape, places(sizes[d + 2], align)));
                let along = cx.broadcast(along, &result, &[d + 1])?;
                part = cx.mul(part, along)?;
            }
            sum = Some(match sum {
                Some(sum) => cx.add(sum, part)?,
                None => part,
            });
        }
        let sum = sum.ok_or_else(|| cx.invalid("the maps are empty"))?;
        components.push(cx.reshape(sum, &[&result[..], &[1]].concat())?);
    }
    cx.concatenate(&components, result.len())
}

/// Positions outside of an image.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Border {
    Zeros,
    Clamp,
    Reflect,
}

/// Elements along one dimension that samples read: positions, and weights.
type Taps = Vec<(InstructionId, InstructionId)>;

/// Reflects places at two ends until they are between them.
fn reflected(cx: &mut NodeContext<'_, '_>, x: InstructionId, low: f64, high: f64) -> Result<InstructionId> {
    let range = high - low;
    if range <= 0.0 {
        return cx.splat_like(x, low);
    }
    let offset = cx.add_scalar(x, -low)?;
    let offset = cx.op(Op::Abs {}, &[offset])?;
    let period = cx.splat_like(offset, 2.0 * range)?;
    let within = cx.op(Op::Remainder {}, &[offset, period])?;
    let back = cx.sub(period, within)?;
    let is_back = cx.compare_scalar(ComparisonDirection::Gt, within, range)?;
    let place = cx.select(is_back, back, within)?;
    cx.add_scalar(place, low)
}

/// The samples of an image (batch, features, spatial) at taps along its spatial dimensions. Taps
/// are arrays (batch, places). The result is (batch, places, features).
fn sampled(
    cx: &mut NodeContext<'_, '_>,
    x: InstructionId,
    taps: &[Taps],
    border: Border,
) -> Result<InstructionId> {
    let sizes = cx.sizes(x);
    let rank = taps.len();
    let order: Vec<usize> = [0].into_iter().chain(2..rank + 2).chain([1]).collect();
    let last = cx.transpose(x, &order)?;
    let grid = cx.sizes(taps[0][0].0);
    let result = [grid[0], grid[1], sizes[1]];
    let total: usize = taps.iter().map(Vec::len).product();
    let mut sum: Option<InstructionId> = None;
    for k in 0..total {
        let (mut rest, mut weight, mut valid): (usize, Option<InstructionId>, Option<InstructionId>) =
            (k, None, None);
        let batch = cx.iota(PrimitiveType::S32, &[grid[0], grid[1], 1], 0)?;
        let mut parts = vec![batch];
        for (d, taps) in taps.iter().enumerate() {
            let (position, own) = taps[rest % taps.len()];
            rest /= taps.len();
            let size = sizes[d + 2];
            let position = match border {
                Border::Reflect => position,
                _ => {
                    let is_inside = inside(cx, position, size)?;
                    if border == Border::Zeros {
                        valid = Some(match valid {
                            Some(valid) => cx.op(Op::And {}, &[valid, is_inside])?,
                            None => is_inside,
                        });
                    }
                    clamped(cx, position, size)?
                }
            };
            parts.push(cx.reshape(position, &[grid[0], grid[1], 1])?);
            weight = Some(match weight {
                Some(weight) => cx.mul(weight, own)?,
                None => own,
            });
        }
        let indices = cx.concatenate(&parts, 2)?;
        let gather_dimension_numbers = GatherDimensionNumbers {
            offset_dims: vec![2],
            collapsed_slice_dims: (0..=rank).collect(),
            start_index_map: (0..=rank).collect(),
            index_vector_dim: 2,
            ..Default::default()
        };
        let slice_sizes = [vec![1; rank + 1], vec![sizes[1]]].concat();
        let op = Op::Gather { gather_dimension_numbers, slice_sizes, indices_are_sorted: false };
        let mut values = cx.op(op, &[last, indices])?;
        let mut weight = weight.ok_or_else(|| cx.invalid("an image needs spatial dimensions"))?;
        if let Some(valid) = valid {
            let zero = cx.splat_like(weight, 0.0)?;
            weight = cx.select(valid, weight, zero)?;
            let valid = cx.broadcast(valid, &result, &[0, 1])?;
            let zero = cx.splat_like(values, 0.0)?;
            values = cx.select(valid, values, zero)?;
        }
        let weight = cx.broadcast(weight, &result, &[0, 1])?;
        let part = cx.mul(values, weight)?;
        sum = Some(match sum {
            Some(sum) => cx.add(sum, part)?,
            None => part,
        });
    }
    sum.ok_or_else(|| cx.invalid("an image needs spatial dimensions"))
}

fn inside(cx: &mut NodeContext<'_, '_>, position: InstructionId, size: i64) -> Result<InstructionId> {
    let low = cx.compare_scalar(ComparisonDirection::Ge, position, 0.0)?;
    let high = cx.compare_scalar(ComparisonDirection::Lt, position, size as f64)?;
    cx.op(Op::And {}, &[low, high])
}

fn clamped(cx: &mut NodeContext<'_, '_>, position: InstructionId, size: i64) -> Result<InstructionId> {
    let (zero, last) = (cx.splat_like(position, 0.0)?, cx.splat_like(position, (size - 1) as f64)?);
    cx.op(Op::Clamp {}, &[zero, position, last])
}

/// Taps of the elements around places, which are floats.
fn taps_around(
    cx: &mut NodeContext<'_, '_>,
    at: InstructionId,
    mode: &str,
    reflects: Option<(i64, bool)>,
) -> Result<Taps> {
    let floor = cx.op(Op::Floor {}, &[at])?;
    let offsets: &[f64] = match mode {
        "nearest" => &[0.0],
        "linear" | "bilinear" => &[0.0, 1.0],
        "cubic" | "bicubic" => &[-1.0, 0.0, 1.0, 2.0],
        other => return Err(cx.invalid(format!("mode: '{other}' does not exist"))),
    };
    let fraction = cx.sub(at, floor)?;
    let mut taps = Vec::new();
    for &offset in offsets {
        let mut position = if mode == "nearest" {
            cx.op(Op::RoundNearestEven {}, &[at])?
        } else {
            cx.add_scalar(floor, offset)?
        };
        if let Some((size, align)) = reflects {
            let edge = if align { 0.0 } else { 0.5 };
            let place = reflected(cx, position, -edge, (size - 1) as f64 + edge)?;
            let place = cx.op(Op::RoundNearestEven {}, &[place])?;
            position = clamped(cx, place, size)?;
        }
        let distance = cx.add_scalar(fraction, -offset)?;
        let distance = cx.op(Op::Abs {}, &[distance])?;
        let weight = match offsets.len() {
            1 => cx.splat_like(at, 1.0)?,
            2 => {
                let one = cx.splat_like(distance, 1.0)?;
                cx.sub(one, distance)?
            }
            _ => cubic(cx, -0.75, distance, offset == 0.0 || offset == 1.0)?,
        };
        taps.push((cx.convert(position, PrimitiveType::S32)?, weight));
    }
    Ok(taps)
}

/// Keys' kernel with a coefficient, for distances up to 1 or from 1 to 2.
pub(crate) fn cubic(
    cx: &mut NodeContext<'_, '_>,
    a: f64,
    x: InstructionId,
    is_near: bool,
) -> Result<InstructionId> {
    let factors = if is_near { [a + 2.0, -(a + 3.0), 0.0, 1.0] } else { [a, -5.0 * a, 8.0 * a, -4.0 * a] };
    let mut sum = cx.splat_like(x, factors[0])?;
    for factor in &factors[1..] {
        sum = cx.mul(sum, x)?;
        sum = cx.add_scalar(sum, *factor)?;
    }
    Ok(sum)
}

/// Inputs: an image (batch, features, spatial), and places (batch, spatial.., components), the
/// first component for the last dimension.
fn grid_sample(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let (x, grid) = (required(cx, 0)?, required(cx, 1)?);
    let (sizes, grid_sizes) = (cx.sizes(x), cx.sizes(grid));
    let rank = sizes.len().saturating_sub(2);
    let fits = rank > 0
        && grid_sizes.len() == rank + 2
        && grid_sizes[0] == sizes[0]
        && grid_sizes[rank + 1] == rank as i64
        && !sizes.contains(&0);
    cx.check(fits, || format!("a grid {} does not fit {}", list(&grid_sizes), list(&sizes)))?;
    let mode = cx.text_or("mode", "linear")?;
    let align = flag(cx, "align_corners", false)?;
    let border = match cx.text_or("padding_mode", "zeros")? {
        "zeros" => Border::Zeros,
        "border" => Border::Clamp,
        "reflection" => Border::Reflect,
        other => return Err(cx.invalid(format!("padding_mode: '{other}' does not exist"))),
    };
    let element_type = cx.element_type(x);
    let wide = if element_type == PrimitiveType::F64 { PrimitiveType::F64 } else { PrimitiveType::F32 };
    let (x, grid) = (cx.convert(x, wide)?, cx.convert(grid, wide)?);
    let places = cx.checked_product(&grid_sizes[1..=rank])?;
    let mut taps = Vec::new();
    for d in 0..rank {
        let size = sizes[d + 2] as f64;
        let component = (rank - 1 - d) as i64;
        let at = cx.slice_in(grid, rank + 1, component, component + 1)?;
        let at = cx.reshape(at, &[sizes[0], places])?;
        let at = cx.add_scalar(at, 1.0)?;
        let mut at = if align {
            cx.mul_scalar(at, (size - 1.0) / 2.0)?
        } else {
            let at = cx.mul_scalar(at, size / 2.0)?;
            cx.add_scalar(at, -0.5)?
        };
        match border {
            Border::Zeros => {}
            Border::Clamp if mode == "nearest" || mode.ends_with("linear") => {
                let (low, high) = (cx.splat_like(at, 0.0)?, cx.splat_like(at, size - 1.0)?);
                at = cx.op(Op::Clamp {}, &[low, at, high])?;
            }
            Border::Clamp => {}
            Border::Reflect => {
                let edge = if align { 0.0 } else { 0.5 };
                at = reflected(cx, at, -edge, size - 1.0 + edge)?;
            }
        }
        let reflects = (border == Border::Reflect).then_some((sizes[d + 2], align));
        taps.push(taps_around(cx, at, mode, reflects)?);
    }
    let samples = sampled(cx, x, &taps, border)?;
    let samples = cx.transpose(samples, &[0, 2, 1])?;
    let result = [&sizes[..2], &grid_sizes[1..=rank]].concat();
    let samples = cx.reshape(samples, &result)?;
    if element_type.is_integer() {
        let rounded = cx.op(Op::RoundNearestEven {}, &[samples])?;
        return cx.convert(rounded, element_type);
    }
    cx.convert(samples, element_type)
}

/// Inputs: an image (batch, features, height, width), regions (number, 4) with two corners `x, y`,
/// and the image of each region.
fn roi_align(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let (x, rois, images) = (required(cx, 0)?, required(cx, 1)?, required(cx, 2)?);
    let (sizes, roi_sizes) = (cx.sizes(x), cx.sizes(rois));
    cx.check(sizes.len() == 4 && roi_sizes.len() == 2 && roi_sizes[1] == 4 && !sizes.contains(&0), || {
        format!("regions {} do not fit {}", list(&roi_sizes), list(&sizes))
    })?;
    let count = roi_sizes[0];
    cx.check(cx.sizes(images) == [count], || "expected one image for each region".to_owned())?;
    let attributes = cx.attributes();
    let results = [attributes.int_or("output_height", 1)?, attributes.int_or("output_width", 1)?];
    let samples = attributes.int_or("sampling_ratio", 0)?;
    let scale = f64::from(attributes.float_or("spatial_scale", 1.0)?);
    let default =
        if crate::ops::onnx::operands::opset(cx)? < 16 { "output_half_pixel" } else { "half_pixel" };
    let is_half = cx.text_or("coordinate_transformation_mode", default)? == "half_pixel";
    cx.check(results.iter().all(|size| (1..1 << 16).contains(size)), || {
        "the output is too large".to_owned()
    })?;
    cx.check((1..256).contains(&samples), || {
        "sampling_ratio must be a positive number: with 0, the number of samples depends on the regions"
            .to_owned()
    })?;
    let is_max = cx.text_or("mode", "avg")? == "max";
    let element_type = cx.element_type(x);
    let rois = cx.convert(rois, element_type)?;
    let corner = |cx: &mut NodeContext<'_, '_>, k: i64| {
        let corner = cx.slice_in(rois, 1, k, k + 1)?;
        let corner = cx.reshape(corner, &[count])?;
        let corner = cx.mul_scalar(corner, scale)?;
        cx.add_scalar(corner, if is_half { -0.5 } else { 0.0 })
    };
    let grid = [count, results[0], samples, results[1], samples];
    let all = cx.checked_product(&grid)?;
    // Positions and weights of both neighbors, and whether the place is in the image.
    let mut neighbors = Vec::new();
    let mut valid: Option<InstructionId> = None;
    for (d, [from, to]) in [[1, 3], [0, 2]].into_iter().enumerate() {
        let (start, end) = (corner(cx, from)?, corner(cx, to)?);
        let mut extent = cx.sub(end, start)?;
        if !is_half {
            let one = cx.splat_like(extent, 1.0)?;
            extent = cx.op(Op::Maximum {}, &[extent, one])?;
        }
        let size = sizes[d + 2];
        let bin = cx.mul_scalar(extent, 1.0 / results[d] as f64)?;
        let (bin, start) = (cx.broadcast(bin, &grid, &[0])?, cx.broadcast(start, &grid, &[0])?);
        let position = cx.iota(element_type, &grid, 2 * d + 1)?;
        let sample = cx.iota(element_type, &grid, 2 * d + 2)?;
        let sample = cx.add_scalar(sample, 0.5)?;
        let sample = cx.mul_scalar(sample, 1.0 / samples as f64)?;
        let steps = cx.add(position, sample)?;
        let offset = cx.mul(steps, bin)?;
        let at = cx.add(start, offset)?;
        let low = cx.compare_scalar(ComparisonDirection::Ge, at, -1.0)?;
        let high = cx.compare_scalar(ComparisonDirection::Le, at, size as f64)?;
        let is_inside = cx.op(Op::And {}, &[low, high])?;
        valid = Some(match valid {
            Some(valid) => cx.op(Op::And {}, &[valid, is_inside])?,
            None => is_inside,
        });
        let (zero, last) = (cx.splat_like(at, 0.0)?, cx.splat_like(at, (size - 1) as f64)?);
        let at = cx.op(Op::Clamp {}, &[zero, at, last])?;
        let floor = cx.op(Op::Floor {}, &[at])?;
        let fraction = cx.sub(at, floor)?;
        let one = cx.splat_like(at, 1.0)?;
        let rest = cx.sub(one, fraction)?;
        let next = cx.add_scalar(floor, 1.0)?;
        let next = cx.op(Op::Minimum {}, &[next, last])?;
        let positions = [cx.convert(floor, PrimitiveType::S32)?, cx.convert(next, PrimitiveType::S32)?];
        neighbors.push([(positions[0], rest), (positions[1], fraction)]);
    }
    let last = cx.transpose(x, &[0, 2, 3, 1])?;
    let images = cx.convert(images, PrimitiveType::S32)?;
    let images = cx.broadcast(images, &grid, &[0])?;
    let images = cx.reshape(images, &[all, 1])?;
    let mut total: Option<InstructionId> = None;
    for (y, y_weight) in neighbors[0] {
        for (x, x_weight) in neighbors[1] {
            let (y, x) = (cx.reshape(y, &[all, 1])?, cx.reshape(x, &[all, 1])?);
            let indices = cx.concatenate(&[images, y, x], 1)?;
            let gather_dimension_numbers = GatherDimensionNumbers {
                offset_dims: vec![1],
                collapsed_slice_dims: vec![0, 1, 2],
                start_index_map: vec![0, 1, 2],
                index_vector_dim: 1,
                ..Default::default()
            };
            let slice_sizes = vec![1, 1, 1, sizes[1]];
            let op = Op::Gather { gather_dimension_numbers, slice_sizes, indices_are_sorted: false };
            let values = cx.op(op, &[last, indices])?;
            let weight = cx.mul(y_weight, x_weight)?;
            let weight = cx.reshape(weight, &[all])?;
            let weight = cx.broadcast(weight, &[all, sizes[1]], &[0])?;
            let part = cx.mul(values, weight)?;
            // The maximum is that of the weighted neighbors, as in ONNX Runtime.
            total = Some(match total {
                Some(total) if is_max => cx.op(Op::Maximum {}, &[total, part])?,
                Some(total) => cx.add(total, part)?,
                None => part,
            });
        }
    }
    let (total, valid) = total.zip(valid).ok_or_else(|| cx.invalid("no samples"))?;
    let valid = cx.reshape(valid, &[all])?;
    let valid = cx.broadcast(valid, &[all, sizes[1]], &[0])?;
    let zero = cx.splat_like(total, 0.0)?;
    let total = cx.select(valid, total, zero)?;
    let total = cx.reshape(total, &[&grid[..], &[sizes[1]]].concat())?;
    let reducer = if is_max { Reducer::Maximum } else { Reducer::Add };
    let mut y = cx.reduce(total, reducer, &[2, 4])?;
    if !is_max {
        y = cx.mul_scalar(y, 1.0 / (samples * samples) as f64)?;
    }
    cx.transpose(y, &[0, 3, 1, 2])
}

/// A convolution whose taps are moved by offsets. Inputs: x (batch, features, height, width), the
/// filter, offsets (batch, 2 * groups * taps, height, width), a bias, and a mask of the taps.
fn deform_conv(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let (x, filter, offsets) = (required(cx, 0)?, required(cx, 1)?, required(cx, 2)?);
    let (bias, mask) = (optional(cx, 3)?, optional(cx, 4)?);
    let (sizes, filter_sizes) = (cx.sizes(x), cx.sizes(filter));
    cx.check(sizes.len() == 4 && filter_sizes.len() == 4, || {
        format!("expected four dimensions, got {} and {}", list(&sizes), list(&filter_sizes))
    })?;
    let groups = cx.attributes().int_or("group", 1)?;
    let offset_groups = cx.attributes().int_or("offset_group", 1)?;
    let kernel = &filter_sizes[2..];
    let windows = super::windows::Windows::of_node(cx, &sizes[2..], kernel, super::windows::Rounding::Floor)?;
    let taps = cx.checked_product(kernel)?;
    let [height, width] = [windows.results[0], windows.results[1]];
    let places = height * width;
    let (batch, features, outputs) = (sizes[0], sizes[1], filter_sizes[0]);
    let fits = groups > 0
        && offset_groups > 0
        && features % offset_groups == 0
        && features % groups == 0
        && outputs % groups == 0
        && filter_sizes[1] == features / groups
        && cx.sizes(offsets) == [batch, offset_groups * taps * 2, height, width]
        && taps <= 1024;
    cx.check(fits, || format!("offsets and filter {} do not fit {}", list(&filter_sizes), list(&sizes)))?;
    let offsets = cx.reshape(offsets, &[batch, offset_groups, taps, 2, height, width])?;
    let element_type = cx.element_type(x);
    // Columns: (batch, offset groups, taps, places, features of a group).
    let per_group = features / offset_groups;
    let all = batch * offset_groups;
    let grid = [batch, offset_groups, taps, height, width];
    let mut places_of = Vec::new();
    for d in 0..2 {
        let moved = cx.slice_in(offsets, 3, d as i64, d as i64 + 1)?;
        let moved = cx.reshape(moved, &grid)?;
        let at = cx.iota(element_type, &grid, d + 3)?;
        let at = cx.mul_scalar(at, windows.strides[d] as f64)?;
        let at = cx.add_scalar(at, -windows.pads[d][0] as f64)?;
        let tap: Vec<f64> = (0..taps)
            .map(|tap| {
                let index = if d == 0 { tap / kernel[1] } else { tap % kernel[1] };
                (index * windows.dilations[d]) as f64
            })
            .collect();
        let shape = shape::ArrayShape::new(element_type, &[taps]);
        let tap = cx.literal(shape::Literal::from_floats(shape, tap));
        let tap = cx.broadcast(tap, &grid, &[2])?;
        let at = cx.add(at, tap)?;
        let at = cx.add(at, moved)?;
        places_of.push(cx.reshape(at, &[all, taps * places])?);
    }
    let grouped = cx.reshape(x, &[all, per_group, sizes[2], sizes[3]])?;
    let mut around = Vec::new();
    for at in places_of {
        around.push(taps_around(cx, at, "linear", None)?);
    }
    let mut columns = sampled(cx, grouped, &around, Border::Zeros)?;
    if let Some(mask) = mask {
        cx.check(cx.sizes(mask) == [batch, offset_groups * taps, height, width], || {
            "the mask does not fit".to_owned()
        })?;
        let mask = cx.reshape(mask, &[all, taps * places])?;
        let mask = cx.broadcast(mask, &[all, taps * places, per_group], &[0, 1])?;
        columns = cx.mul(columns, mask)?;
    }
    let columns = cx.reshape(columns, &[batch, offset_groups, taps, places, per_group])?;
    let columns = cx.transpose(columns, &[1, 4, 2, 0, 3])?;
    let depth = filter_sizes[1] * taps;
    let columns = cx.reshape(columns, &[groups, depth, batch * places])?;
    let filter = cx.reshape(filter, &[groups, outputs / groups, depth])?;
    let y = crate::ops::linalg::products::dot(cx, filter, columns, 1, 2, 1)?;
    let y = cx.reshape(y, &[outputs, batch, height, width])?;
    let mut y = cx.transpose(y, &[1, 0, 2, 3])?;
    if let Some(bias) = bias {
        cx.check(cx.sizes(bias) == [outputs], || "the bias does not fit".to_owned())?;
        let sizes = cx.sizes(y);
        let bias = cx.broadcast(bias, &sizes, &[1])?;
        y = cx.add(y, bias)?;
    }
    Ok(y)
}
