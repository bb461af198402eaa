//! Parts of images at a size of their own, and the gradient of the nearest pixels.

use crate::context::{NodeContext, list};
use crate::data_types::*;
use crate::image_resize::nearest_sources;
use crate::reducer::Reducer;
use crate::rule::{Rule, rule};
use hlo::{ComparisonDirection, GatherDimensionNumbers, InstructionId, Op, ScatterDimensionNumbers};
use shape::{Literal, PrimitiveType};
use support::Result;

pub(crate) const RULES: &[Rule] = &[
    rule("CropAndResize", crop_and_resize).types("T", IMAGE),
    rule("ResizeNearestNeighborGrad", resize_nearest_grad).types("T", IMAGE),
];

/// Where the pixels of crops lie along one side of the images: `[boxes, pixels]` each.
struct Side {
    /// Whether the position lies within the image.
    is_inside: InstructionId,
    lower: InstructionId,
    upper: InstructionId,
    nearest: InstructionId,
    /// How far it is from the lower pixel.
    weight: InstructionId,
}

/// `CropAndResize(images, boxes, box_ind, crop_size)`: each box, `[y1, x1, y2, x2]` as shares of its image, at one size;
/// outside of the image is the attribute's value.
fn crop_and_resize(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let (images, boxes, numbers) = (cx.input(0)?, cx.input(1)?, cx.input(2)?);
    let (sizes, box_sizes, number_sizes) = (cx.sizes(images), cx.sizes(boxes), cx.sizes(numbers));
    let crop = cx.constant_sizes(3)?;
    let (&[batch, height, width, depth], &[count, 4], &[rows, columns]) =
        (&sizes[..], &box_sizes[..], &crop[..])
    else {
        return Err(cx.invalid(format!(
            "images of rank 4, boxes [n, 4] and two sizes are needed, but they are {}, {} and {}",
            list(&sizes),
            list(&box_sizes),
            list(&crop)
        )));
    };
    let limit = i64::from(i32::MAX);
    let fits = number_sizes == [count] && sizes.iter().chain(&crop).all(|&size| size <= limit);
    cx.check(fits && rows > 0 && columns > 0 && height > 0 && width > 0, || {
        format!(
            "there must be an image number for each of {count} boxes ({}), and pixels in images {} and crops {}",
            list(&number_sizes),
            list(&sizes),
            list(&crop)
        )
    })?;
    let result = [count, rows, columns, depth];
    if result.contains(&0) || batch == 0 {
        return cx.splat(PrimitiveType::F32, &result, 0.0);
    }
    let corner = |cx: &mut NodeContext<'_, '_>, k: i64| {
        let corner = cx.slice_in(boxes, 1, k, k + 1)?;
        cx.reshape(corner, &[count])
    };
    let (y1, x1, y2, x2) = (corner(cx, 0)?, corner(cx, 1)?, corner(cx, 2)?, corner(cx, 3)?);
    let (vertical, horizontal) = (side(cx, y1, y2, height, rows)?, side(cx, x1, x2, width, columns)?);
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
        other => return Err(cx.invalid(format!("method must be bilinear or nearest, but is '{other}'"))),
    };
    let outside = cx.node.attributes.float_or("extrapolation_value", 0.0)?;
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

/// The positions from `start` to `end`, shares of an image's side of `size` pixels, at `count` pixels of a crop.
fn side(
    cx: &mut NodeContext<'_, '_>,
    start: InstructionId,
    end: InstructionId,
    size: i64,
    count: i64,
) -> Result<Side> {
    let last = (size - 1) as f64;
    let grid = [cx.sizes(start)[0], count];
    let position = if count > 1 {
        let extent = cx.sub(end, start)?;
        let extent = cx.mul_scalar(extent, last)?;
        let steps = cx.splat_like(extent, (count - 1) as f64)?;
        let step = cx.div(extent, steps)?;
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
    // What is outside, or NaN, is not looked at; gathers clamp.
    let mut index = |id| cx.convert(id, PrimitiveType::S32);
    Ok(Side { is_inside, lower: index(lower)?, upper: index(upper)?, nearest: index(nearest)?, weight })
}

/// The pixels of images at index triples of one shape, in float32.
fn pixels(
    cx: &mut NodeContext<'_, '_>,
    images: InstructionId,
    at: [InstructionId; 3],
) -> Result<InstructionId> {
    let mut single = cx.sizes(at[0]);
    let rank = single.len();
    single.push(1);
    let mut parts = Vec::with_capacity(3);
    for index in at {
        parts.push(cx.reshape(index, &single)?);
    }
    let indices = cx.concatenate(&parts, rank)?;
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

/// `ResizeNearestNeighborGrad(gradient, size)`: each pixel of the images was shown by some of the gradient's, whose sum it
/// is given.
fn resize_nearest_grad(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let mut gradient = cx.input(0)?;
    let element_type = cx.element_type(gradient);
    let sizes = cx.sizes(gradient);
    let size = cx.constant_sizes(1)?;
    let sources = nearest_sources(cx, &size, &sizes)?;
    let to_apply = cx.importer.reducer(Reducer::Add, element_type)?;
    for (dimension, sources) in [1, 2].into_iter().zip(sources) {
        let mut sizes = cx.sizes(gradient);
        let indices = cx.literal(Literal::from_elements(&[sources.len() as i64], &sources));
        sizes[dimension] = size[dimension - 1];
        let sums = cx.splat(element_type, &sizes, 0.0)?;
        let scatter_dimension_numbers = ScatterDimensionNumbers {
            update_window_dims: (0..4).filter(|&d| d != dimension).collect(),
            inserted_window_dims: vec![dimension],
            scatter_dims_to_operand_dims: vec![dimension],
            index_vector_dim: 1,
            ..Default::default()
        };
        let op = Op::Scatter {
            scatter_dimension_numbers,
            indices_are_sorted: true,
            unique_indices: false,
            to_apply,
        };
        gradient = cx.op(op, &[sums, indices, gradient])?;
    }
    Ok(gradient)
}
