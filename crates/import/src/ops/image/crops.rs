//! Crops of images, resized.

use crate::node::context::NodeContext;
use crate::node::data_types::*;
use crate::node::rule::{Rule, rule};
use bounded::{Indices, Reducer, list};
use hlo::{ComparisonDirection, GatherDimensionNumbers, InstructionId, Op};
use shape::PrimitiveType;
use support::Result;

pub(crate) const RULES: &[Rule] = &[
    rule("CropAndResize", crop_and_resize).types("T", IMAGE),
    rule("CropAndResizeGradImage", crop_grad_image).types("T", FLOATS),
    rule("CropAndResizeGradBoxes", crop_grad_boxes).types("T", IMAGE),
];

/// The positions of the pixels of crops along one side of the images: `[boxes, pixels]` each.
struct Side {
    /// True if the position is within the image.
    is_inside: InstructionId,
    lower: InstructionId,
    upper: InstructionId,
    nearest: InstructionId,
    /// Distance from the lower pixel.
    weight: InstructionId,
}

/// `CropAndResize(images, boxes, box_ind, crop_size)`: resizes each box, `[y1, x1, y2, x2]` as
/// fractions of its image, to one size. Pixels outside the image have the value of an attribute.
fn crop_and_resize(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let (images, boxes, numbers) = (cx.input(0)?, cx.input(1)?, cx.input(2)?);
    let (sizes, box_sizes, number_sizes) = (cx.sizes(images), cx.sizes(boxes), cx.sizes(numbers));
    let crop = cx.constant_sizes(3)?;
    let (&[batch, height, width, depth], &[count, 4], &[rows, columns]) =
        (&sizes[..], &box_sizes[..], &crop[..])
    else {
        return Err(cx.invalid(format!(
            "expected images of rank 4, boxes [n, 4], and two sizes, got {}, {}, and {}",
            list(&sizes),
            list(&box_sizes),
            list(&crop)
        )));
    };
    let limit = i64::from(i32::MAX);
    let fits = number_sizes == [count] && sizes.iter().chain(&crop).all(|&size| size <= limit);
    cx.check(fits && rows > 0 && columns > 0 && height > 0 && width > 0, || {
        format!(
            "expected an image number for each of {count} boxes, and nonempty images and crops, got {}, {}, and {}",
            list(&number_sizes),
            list(&sizes),
            list(&crop)
        )
    })?;
    let result = [count, rows, columns, depth];
    if result.contains(&0) || batch == 0 {
        return cx.splat(PrimitiveType::F32, &result, 0.0);
    }
    let (vertical, horizontal) = sides(cx, boxes, [height, width], [rows, columns], Step::OfExtent)?;
    let grid = [count, rows, columns];
    let y = |cx: &mut NodeContext<'_, '_>, id| cx.broadcast(id, &grid, &[0, 1]);
    let x = |cx: &mut NodeContext<'_, '_>, id| cx.broadcast(id, &grid, &[0, 2]);
    let number = cx.broadcast(numbers, &grid, &[0])?;
    let pixels = |cx: &mut NodeContext<'_, '_>, row, column| {
        let (row, column) = (y(cx, row)?, x(cx, column)?);
        pixels(cx, images, [number, row, column])
    };
    let value = match cx.text_or("method", "bilinear")? {
        "nearest" => pixels(cx, vertical.nearest, horizontal.nearest)?,
        "bilinear" => {
            let (down, across) = (y(cx, vertical.weight)?, x(cx, horizontal.weight)?);
            let weight = |cx: &mut NodeContext<'_, '_>, id| cx.broadcast(id, &result, &[0, 1, 2]);
            let (down, across) = (weight(cx, down)?, weight(cx, across)?);
            let mut lines = Vec::with_capacity(2);
            for row in [vertical.lower, vertical.upper] {
                let (left, right) = (pixels(cx, row, horizontal.lower)?, pixels(cx, row, horizontal.upper)?);
                lines.push(between(cx, left, right, across)?);
            }
            between(cx, lines[0], lines[1], down)?
        }
        other => return Err(cx.invalid(format!("method: expected bilinear or nearest, got '{other}'"))),
    };
    let outside = cx.attributes().float_or("extrapolation_value", 0.0)?;
    let outside = cx.splat_like(value, outside.into())?;
    let (down, across) = (y(cx, vertical.is_inside)?, x(cx, horizontal.is_inside)?);
    let is_inside = cx.op(Op::And {}, &[down, across])?;
    let is_inside = cx.broadcast(is_inside, &result, &[0, 1, 2])?;
    cx.select(is_inside, value, outside)
}

/// `a + (b - a) * weight`.
fn between(
    cx: &mut NodeContext<'_, '_>,
    a: InstructionId,
    b: InstructionId,
    weight: InstructionId,
) -> Result<InstructionId> {
    let difference = cx.sub(b, a)?;
    let step = cx.mul(difference, weight)?;
    cx.add(a, step)
}

/// Rounding of the distance between two pixels of a crop.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Step {
    /// Divide the extent in the image last.
    OfExtent,
    /// Compute the ratio of image pixels to crop pixels first.
    OfRatio,
}

/// Returns the positions of the pixels of crops of `crop` rows and columns, down and across images
/// of `image` rows and columns.
fn sides(
    cx: &mut NodeContext<'_, '_>,
    boxes: InstructionId,
    image: [i64; 2],
    crop: [i64; 2],
    step: Step,
) -> Result<(Side, Side)> {
    let count = cx.sizes(boxes)[0];
    let corner = |cx: &mut NodeContext<'_, '_>, k: i64| {
        let corner = cx.slice_in(boxes, 1, k, k + 1)?;
        cx.reshape(corner, &[count])
    };
    let (y1, x1, y2, x2) = (corner(cx, 0)?, corner(cx, 1)?, corner(cx, 2)?, corner(cx, 3)?);
    Ok((side(cx, y1, y2, image[0], crop[0], step)?, side(cx, x1, x2, image[1], crop[1], step)?))
}

/// Returns the positions of `count` pixels of a crop from `start` to `end`, which are fractions of
/// an image side of `size` pixels.
fn side(
    cx: &mut NodeContext<'_, '_>,
    start: InstructionId,
    end: InstructionId,
    size: i64,
    count: i64,
    step: Step,
) -> Result<Side> {
    let last = (size - 1) as f64;
    let grid = [cx.sizes(start)[0], count];
    let position = if count > 1 {
        let extent = cx.sub(end, start)?;
        let step = match step {
            Step::OfExtent => {
                let extent = cx.mul_scalar(extent, last)?;
                let steps = cx.splat_like(extent, (count - 1) as f64)?;
                cx.div(extent, steps)?
            }
            Step::OfRatio => cx.mul_scalar(extent, f64::from(ratio(size, count)))?,
        };
        let first = cx.mul_scalar(start, last)?;
        let (step, first) = (cx.broadcast(step, &grid, &[0])?, cx.broadcast(first, &grid, &[0])?);
        let number = cx.iota(PrimitiveType::F32, &grid, 1)?;
        let distance = cx.mul(number, step)?;
        cx.add(first, distance)?
    } else {
        let sum = cx.add(start, end)?;
        let middle = cx.mul_scalar(sum, 0.5)?;
        let middle = cx.mul_scalar(middle, last)?;
        cx.broadcast(middle, &grid, &[0])?
    };
    let (zero, end) = (cx.splat_like(position, 0.0)?, cx.splat_like(position, last)?);
    let from_start = cx.compare(ComparisonDirection::Ge, position, zero)?;
    let to_end = cx.compare(ComparisonDirection::Le, position, end)?;
    let is_inside = cx.op(Op::And {}, &[from_start, to_end])?;
    let lower = cx.op(Op::Floor {}, &[position])?;
    let weight = cx.sub(position, lower)?;
    let (upper, nearest) = (cx.op(Op::Ceil {}, &[position])?, cx.op(Op::RoundNearestAfz {}, &[position])?);
    // Positions outside or NaN are not used; gathers clamp them.
    let mut index = |id| cx.convert(id, PrimitiveType::S32);
    Ok(Side { is_inside, lower: index(lower)?, upper: index(upper)?, nearest: index(nearest)?, weight })
}

/// Returns the distance between two pixels of a crop, in pixels of the image.
fn ratio(size: i64, count: i64) -> f32 {
    (size - 1) as f32 / (count - 1) as f32
}

/// Returns the pixels of images at index triples of one shape, in float32.
fn pixels(
    cx: &mut NodeContext<'_, '_>,
    images: InstructionId,
    at: [InstructionId; 3],
) -> Result<InstructionId> {
    let rank = cx.rank(at[0]);
    let indices = triples(cx, at)?;
    let slice_sizes = vec![1, 1, 1, cx.sizes(images)[3]];
    let gather_dimension_numbers = GatherDimensionNumbers {
        offset_dims: vec![rank],
        collapsed_slice_dims: vec![0, 1, 2],
        start_index_map: vec![0, 1, 2],
        index_vector_dim: rank,
        ..Default::default()
    };
    let op = Op::Gather { gather_dimension_numbers, slice_sizes, indices_are_sorted: false };
    let pixels = cx.op(op, &[images, indices])?;
    cx.convert(pixels, PrimitiveType::F32)
}

/// Stacks three arrays of one shape along a new last dimension.
fn triples(cx: &mut NodeContext<'_, '_>, at: [InstructionId; 3]) -> Result<InstructionId> {
    let mut single = cx.sizes(at[0]);
    let rank = single.len();
    single.push(1);
    let mut parts = Vec::with_capacity(3);
    for index in at {
        parts.push(cx.reshape(index, &single)?);
    }
    cx.concatenate(&parts, rank)
}

/// Returns the sizes `[boxes, rows, columns, depth]` of the gradient of crops, after checking them
/// against boxes and images.
fn crop_sizes(
    cx: &NodeContext<'_, '_>,
    [gradient, boxes, numbers]: [InstructionId; 3],
    image: &[i64],
) -> Result<[i64; 4]> {
    let (sizes, box_sizes, number_sizes) = (cx.sizes(gradient), cx.sizes(boxes), cx.sizes(numbers));
    match (&sizes[..], &box_sizes[..], &number_sizes[..], image) {
        (&[count, rows, columns, depth], &[boxes, 4], &[numbers], &[_, height, width, image_depth])
            if count == boxes
                && count == numbers
                && depth == image_depth
                && [rows, columns, height, width].iter().all(|&size| size > 0)
                && image.iter().chain(&sizes).all(|&size| i32::try_from(size).is_ok()) =>
        {
            Ok([count, rows, columns, depth])
        }
        _ => Err(cx.invalid(format!(
            "the shapes of gradients of crops {}, boxes {}, image numbers {}, and images {} do not match",
            list(&sizes),
            list(&box_sizes),
            list(&number_sizes),
            list(image)
        ))),
    }
}

/// `CropAndResizeGradImage(gradient, boxes, box_ind, image_size)`: the contribution of each pixel
/// of the images to the crops. Boxes with an invalid image number contribute nothing.
fn crop_grad_image(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let (gradient, boxes, numbers) = (cx.input(0)?, cx.input(1)?, cx.input(2)?);
    let image = cx.constant_sizes(3)?;
    let element_type = cx.output_type(0)?;
    let sizes = crop_sizes(cx, [gradient, boxes, numbers], &image)?;
    let [count, rows, columns, _] = sizes;
    let mut sum = cx.splat(element_type, &image, 0.0)?;
    if image.contains(&0) || sizes.contains(&0) {
        return Ok(sum);
    }
    let (vertical, horizontal) = sides(cx, boxes, [image[1], image[2]], [rows, columns], Step::OfExtent)?;
    let grid = [count, rows, columns];
    let number = cx.broadcast(numbers, &grid, &[0])?;
    let (down, across) = (
        cx.broadcast(vertical.is_inside, &grid, &[0, 1])?,
        cx.broadcast(horizontal.is_inside, &grid, &[0, 2])?,
    );
    let is_inside = cx.op(Op::And {}, &[down, across])?;
    let nowhere = cx.splat_like(number, -1.0)?;
    let number = cx.select(is_inside, number, nowhere)?;
    let mut add = |cx: &mut NodeContext<'_, '_>, row, column, values| {
        let row = cx.broadcast(row, &grid, &[0, 1])?;
        let column = cx.broadcast(column, &grid, &[0, 2])?;
        let indices = triples(cx, [number, row, column])?;
        let values = cx.convert(values, element_type)?;
        sum = cx.scatter(sum, indices, values, Indices::Vectors, Reducer::Add)?;
        Ok(())
    };
    match cx.text_or("method", "bilinear")? {
        "nearest" => add(cx, vertical.nearest, horizontal.nearest, gradient)?,
        "bilinear" => {
            let (down, across) = (
                cx.broadcast(vertical.weight, &sizes, &[0, 1])?,
                cx.broadcast(horizontal.weight, &sizes, &[0, 2])?,
            );
            for (row, is_lower) in [(vertical.lower, true), (vertical.upper, false)] {
                let weight = share_of(cx, down, is_lower)?;
                let line = cx.mul(weight, gradient)?;
                for (column, is_left) in [(horizontal.lower, true), (horizontal.upper, false)] {
                    let weight = share_of(cx, across, is_left)?;
                    let value = cx.mul(weight, line)?;
                    add(cx, row, column, value)?;
                }
            }
        }
        other => return Err(cx.invalid(format!("method: expected bilinear or nearest, got '{other}'"))),
    }
    Ok(sum)
}

/// Returns the weight of the lower or the upper pixel.
fn share_of(cx: &mut NodeContext<'_, '_>, weight: InstructionId, is_lower: bool) -> Result<InstructionId> {
    if !is_lower {
        return Ok(weight);
    }
    let one = cx.splat_like(weight, 1.0)?;
    cx.sub(one, weight)
}

/// `CropAndResizeGradBoxes(gradient, images, boxes, box_ind)`: the derivative with respect to the
/// corners of the boxes. It is 0 for boxes with an invalid image number.
fn crop_grad_boxes(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let (gradient, images, boxes, numbers) = (cx.input(0)?, cx.input(1)?, cx.input(2)?, cx.input(3)?);
    let method = cx.text_or("method", "bilinear")?;
    cx.check(method == "bilinear", || format!("method: expected bilinear, got '{method}'"))?;
    let image = cx.sizes(images);
    let sizes = crop_sizes(cx, [gradient, boxes, numbers], &image)?;
    let [count, rows, columns, _] = sizes;
    if sizes.contains(&0) || image.contains(&0) {
        return cx.splat(PrimitiveType::F32, &[count, 4], 0.0);
    }
    let (vertical, horizontal) = sides(cx, boxes, [image[1], image[2]], [rows, columns], Step::OfRatio)?;
    let grid = [count, rows, columns];
    let number = cx.broadcast(numbers, &grid, &[0])?;
    let corner = |cx: &mut NodeContext<'_, '_>, row, column| {
        let row = cx.broadcast(row, &grid, &[0, 1])?;
        let column = cx.broadcast(column, &grid, &[0, 2])?;
        pixels(cx, images, [number, row, column])
    };
    let (top_left, top_right) =
        (corner(cx, vertical.lower, horizontal.lower)?, corner(cx, vertical.lower, horizontal.upper)?);
    let (bottom_left, bottom_right) =
        (corner(cx, vertical.upper, horizontal.lower)?, corner(cx, vertical.upper, horizontal.upper)?);
    let (down, across) =
        (cx.broadcast(vertical.weight, &sizes, &[0, 1])?, cx.broadcast(horizontal.weight, &sizes, &[0, 2])?);
    let edge = |from, to| Edge { from, to };
    let slope_down = slope(cx, across, edge(top_left, bottom_left), edge(top_right, bottom_right))?;
    let slope_across = slope(cx, down, edge(top_left, top_right), edge(bottom_left, bottom_right))?;
    let is_image = {
        let zero = cx.splat_like(number, 0.0)?;
        let last = cx.splat_like(number, (image[0] - 1) as f64)?;
        let clamped = cx.op(Op::Clamp {}, &[zero, number, last])?;
        cx.compare(ComparisonDirection::Eq, number, clamped)?
    };
    let (is_down, is_across) = (
        cx.broadcast(vertical.is_inside, &grid, &[0, 1])?,
        cx.broadcast(horizontal.is_inside, &grid, &[0, 2])?,
    );
    let is_inside = cx.op(Op::And {}, &[is_down, is_across])?;
    let is_inside = cx.op(Op::And {}, &[is_inside, is_image])?;
    let is_inside = cx.broadcast(is_inside, &sizes, &[0, 1, 2])?;
    let mut parts = Vec::with_capacity(4);
    for end in [false, true] {
        for (slope, axis) in [(slope_down, 1), (slope_across, 2)] {
            let change = cx.mul(slope, gradient)?;
            let zero = cx.splat_like(change, 0.0)?;
            let change = cx.select(is_inside, change, zero)?;
            let moved = movement(cx, image[axis], sizes[axis], end)?;
            let moved = cx.broadcast(moved, &sizes, &[axis])?;
            let change = cx.mul(change, moved)?;
            let sum = cx.reduce(change, Reducer::Add, &[1, 2, 3])?;
            parts.push(cx.reshape(sum, &[count, 1])?);
        }
    }
    cx.concatenate(&parts, 1)
}

/// Two neighboring pixels.
struct Edge {
    from: InstructionId,
    to: InstructionId,
}

/// Interpolates the difference of two pixels between two such pairs.
fn slope(
    cx: &mut NodeContext<'_, '_>,
    weight: InstructionId,
    first: Edge,
    second: Edge,
) -> Result<InstructionId> {
    let (a, b) = (cx.sub(first.to, first.from)?, cx.sub(second.to, second.from)?);
    let rest = share_of(cx, weight, true)?;
    let (a, b) = (cx.mul(rest, a)?, cx.mul(weight, b)?);
    cx.add(a, b)
}

/// Returns the derivative of the positions of a crop's `count` pixels, on an image side of `size`
/// pixels, with respect to the start or the end of the box.
fn movement(cx: &mut NodeContext<'_, '_>, size: i64, count: i64, end: bool) -> Result<InstructionId> {
    let last = (size - 1) as f64;
    if count == 1 {
        return cx.splat(PrimitiveType::F32, &[1], 0.5 * last);
    }
    let number = cx.iota(PrimitiveType::F32, &[count], 0)?;
    let of_end = cx.mul_scalar(number, f64::from(ratio(size, count)))?;
    if end {
        return Ok(of_end);
    }
    let last = cx.splat_like(of_end, last)?;
    cx.sub(last, of_end)
}
