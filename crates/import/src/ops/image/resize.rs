//! Resized images.

use crate::node::context::NodeContext;
use crate::node::data_types::*;
use crate::node::rule::{Rule, rule};
use crate::ops::array::space_to_depth::multiple;
use crate::ops::image::resample::{Resampling, repeated};
use bounded::{Reducer, Size, bounds, list};
use hlo::{DotDimensionNumbers, GatherDimensionNumbers, InstructionId, Op, ScatterDimensionNumbers};
use shape::{Literal, PrimitiveType};
use support::{Error, Result};

pub(crate) const RULES: &[Rule] = &[
    rule("ResizeBilinear", resize_bilinear).types("T", IMAGE),
    rule("ResizeNearestNeighbor", resize_nearest).types("T", IMAGE),
    rule("ResizeBilinearGrad", resize_bilinear_grad).types("T", FLOATS),
    rule("ResizeNearestNeighborGrad", resize_nearest_grad).types("T", IMAGE),
];

/// Maximum number of pixels along one dimension of a resized image.
const MAX_PIXELS: i64 = 1 << 22;

/// The source positions of the pixels of a resized image. They are computed in float32, as in
/// TensorFlow's kernels.
#[derive(Clone, Copy, Debug)]
struct Sampling {
    align_corners: bool,
    half_pixel_centers: bool,
}

impl Sampling {
    fn of_node(cx: &NodeContext<'_, '_>) -> Result<Self> {
        let align_corners = cx.attributes().bool_or("align_corners", false)?;
        let half_pixel_centers = cx.attributes().bool_or("half_pixel_centers", false)?;
        cx.check(!(align_corners && half_pixel_centers), || {
            "align_corners and half_pixel_centers cannot both be true: they place pixels differently"
                .to_owned()
        })?;
        Ok(Self { align_corners, half_pixel_centers })
    }

    /// Pixels of the source per pixel of the result.
    fn scale(self, from: i64, to: i64) -> f32 {
        if self.align_corners && to > 1 {
            (from - 1) as f32 / (to - 1) as f32
        } else {
            from as f32 / to as f32
        }
    }

    /// For each pixel of the result, the source pixel that it copies.
    fn nearest(self, from: i64, to: i64) -> Vec<i32> {
        let scale = self.scale(from, to);
        let source = |pixel: i64| {
            let position =
                if self.half_pixel_centers { (pixel as f32 + 0.5) * scale } else { pixel as f32 * scale };
            let source = if self.align_corners { position.round() } else { position.floor() };
            (source as i64).clamp(0, from - 1) as i32
        };
        (0..to).map(source).collect()
    }

    /// The number of times that each pixel of the source is copied, if all are equally often.
    fn repeats(self, from: i64, to: i64) -> Option<i64> {
        let repeats = to / from;
        let mut sources = (0..to).zip(self.nearest(from, to));
        let is_regular = to % from == 0 && sources.all(|(pixel, s)| i64::from(s) == pixel / repeats);
        is_regular.then_some(repeats)
    }

    /// For each pixel of the result, its position among the source's pixels, clamped to the first
    /// and the last.
    fn positions(self, from: i64, to: i64) -> Vec<f32> {
        let scale = self.scale(from, to);
        let position = |pixel: i64| {
            let position = if self.half_pixel_centers {
                (pixel as f32 + 0.5) * scale - 0.5
            } else {
                pixel as f32 * scale
            };
            position.clamp(0.0, (from - 1) as f32)
        };
        (0..to).map(position).collect()
    }
}

/// Checks the shape `[n, h, w, c]` of images. They must have pixels, but not too many.
fn check_images(cx: &NodeContext<'_, '_>, sizes: &[i64]) -> Result<()> {
    cx.check_rank("the images", sizes, 4)?;
    cx.check(sizes[1] > 0 && sizes[2] > 0, || format!("the images of shape {} have no pixels", list(sizes)))?;
    check_pixels(sizes[1].max(sizes[2]))
}

/// Returns the two sizes at input 1, checked against the maximum.
fn new_size(cx: &mut NodeContext<'_, '_>) -> Result<[Size; 2]> {
    let sizes = cx.bounded_i64s(1)?;
    match sizes[..] {
        [h, w] if h.bound > 0 && w.bound > 0 => {
            check_pixels(h.bound.max(w.bound))?;
            Ok([h, w])
        }
        _ => Err(cx.invalid(format!("size: expected two positive integers, got {}", list(&bounds(&sizes))))),
    }
}

fn check_pixels(pixels: i64) -> Result<()> {
    if pixels <= MAX_PIXELS {
        return Ok(());
    }
    Err(Error::unsupported(format!(
        "images of {pixels} pixels along one side are not supported; the maximum is {MAX_PIXELS}"
    )))
}

/// Returns the slices of an array at some positions of a dimension.
fn take(
    cx: &mut NodeContext<'_, '_>,
    x: InstructionId,
    dimension: usize,
    positions: &[i32],
) -> Result<InstructionId> {
    let mut slice_sizes = cx.sizes(x);
    if positions.iter().copied().eq(0..slice_sizes[dimension] as i32) {
        return Ok(x);
    }
    slice_sizes[dimension] = 1;
    let indices = cx.literal(Literal::from_elements(&[positions.len() as i64], positions));
    let gather_dimension_numbers = GatherDimensionNumbers {
        offset_dims: (0..slice_sizes.len()).filter(|&d| d != dimension).collect(),
        collapsed_slice_dims: vec![dimension],
        start_index_map: vec![dimension],
        index_vector_dim: 1,
        ..Default::default()
    };
    let op = Op::Gather { gather_dimension_numbers, slice_sizes, indices_are_sorted: true };
    cx.op(op, &[x, indices])
}

/// Copies the nearest pixel of the source to each pixel.
fn resize_nearest(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let mut x = cx.input(0)?;
    let sizes = cx.sizes(x);
    check_images(cx, &sizes)?;
    let size = new_size(cx)?;
    let sampling = Sampling::of_node(cx)?;
    for (dimension, (from, to)) in sizes[1..3].iter().copied().zip(size).enumerate() {
        if is_open(cx, x, dimension + 1, to) {
            x = open_nearest(cx, x, dimension + 1, to, sampling)?;
            continue;
        }
        let to = to.bound;
        x = match sampling.repeats(from, to) {
            Some(1) => x,
            // Repeating every pixel the same number of times needs no table.
            Some(repeats) => repeated(cx, x, dimension + 1, repeats)?,
            None => take(cx, x, dimension + 1, &sampling.nearest(from, to))?,
        };
    }
    Ok(x)
}

/// For rows and columns of resized images of shape `resized`, the source rows and columns that they
/// show.
fn nearest_sources(cx: &NodeContext<'_, '_>, size: &[i64], resized: &[i64]) -> Result<[Vec<i32>; 2]> {
    check_images(cx, resized)?;
    let &[height, width] = size else {
        return Err(cx.invalid(format!("size: expected two positive integers, got {}", list(size))));
    };
    check_images(cx, &[resized[0], height, width, resized[3]])?;
    let sampling = Sampling::of_node(cx)?;
    Ok([sampling.nearest(height, resized[1]), sampling.nearest(width, resized[2])])
}

/// Interpolates each pixel between two rows and two columns of the source, weighted by distance.
/// Computes in float32, regardless of the images' type.
fn resize_bilinear(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let x = cx.input(0)?;
    let sizes = cx.sizes(x);
    check_images(cx, &sizes)?;
    let size = new_size(cx)?;
    let sampling = Sampling::of_node(cx)?;
    let mut x = cx.convert(x, PrimitiveType::F32)?;
    for (dimension, (from, to)) in sizes[1..3].iter().copied().zip(size).enumerate() {
        x = if is_open(cx, x, dimension + 1, to) {
            open_bilinear(cx, x, dimension + 1, to, sampling)?
        } else {
            interpolate(cx, x, dimension + 1, from, &sampling.positions(from, to.bound))?
        };
    }
    Ok(x)
}

/// True if a dimension has an open size, or gets one.
fn is_open(cx: &NodeContext<'_, '_>, x: InstructionId, dimension: usize, to: Size) -> bool {
    to.size.is_some() || cx.array(x).dimensions[dimension].is_dynamic
}

/// The places in the source of the pixels of the result, or of their centers, at the scale
/// [`Sampling::scale`].
fn open_places(
    cx: &mut NodeContext<'_, '_>,
    along: &Resampling,
    sampling: Sampling,
) -> Result<InstructionId> {
    let mut scale = cx.div(along.from, along.to)?;
    if sampling.align_corners {
        let (last, last_of_result) = (along.last(cx)?, cx.add_scalar(along.to, -1.0)?);
        let between = cx.div(last, last_of_result)?;
        scale = along.for_one(cx, scale, between)?;
    }
    let scale = along.spread(cx, scale)?;
    let pixels =
        if sampling.half_pixel_centers { cx.add_scalar(along.positions, 0.5)? } else { along.positions };
    cx.mul(pixels, scale)
}

/// Copies the nearest pixels along a dimension of open size, like [`resize_nearest`].
fn open_nearest(
    cx: &mut NodeContext<'_, '_>,
    x: InstructionId,
    dimension: usize,
    to: Size,
    sampling: Sampling,
) -> Result<InstructionId> {
    let from = cx.all_sizes(x)?[dimension];
    // The scale is the same in every run.
    if let Some(repeats) = sampling.repeats(from.bound, to.bound).filter(|_| !sampling.align_corners) {
        let product = multiple(cx, from, repeats)?;
        if cx.known_difference(product, to) == Some(0) {
            return repeated(cx, x, dimension, repeats);
        }
    }
    let along = Resampling::new(cx, x, dimension, to, PrimitiveType::F32)?;
    let places = open_places(cx, &along, sampling)?;
    let op = if sampling.align_corners { Op::RoundNearestAfz {} } else { Op::Floor {} };
    let places = cx.op(op, &[places])?;
    let copied = along.elements(cx, x, dimension, places)?;
    along.finish(cx, x, dimension, copied)
}

/// Interpolates pixels along a dimension of open size, like [`resize_bilinear`].
fn open_bilinear(
    cx: &mut NodeContext<'_, '_>,
    x: InstructionId,
    dimension: usize,
    to: Size,
    sampling: Sampling,
) -> Result<InstructionId> {
    let along = Resampling::new(cx, x, dimension, to, PrimitiveType::F32)?;
    let places = open_places(cx, &along, sampling)?;
    let places = if sampling.half_pixel_centers { cx.add_scalar(places, -0.5)? } else { places };
    let last = along.last(cx)?;
    let (zero, last) = (cx.splat_like(places, 0.0)?, along.spread(cx, last)?);
    let places = cx.op(Op::Minimum {}, &[places, last])?;
    let places = cx.op(Op::Maximum {}, &[places, zero])?;
    let lower = cx.op(Op::Floor {}, &[places])?;
    let upper = cx.add_scalar(lower, 1.0)?;
    let weights = cx.sub(places, lower)?;
    let first = along.elements(cx, x, dimension, lower)?;
    let second = along.elements(cx, x, dimension, upper)?;
    let weights = along.weights(cx, weights, first, dimension)?;
    let difference = cx.sub(second, first)?;
    let step = cx.mul(difference, weights)?;
    let resized = cx.add(first, step)?;
    along.finish(cx, x, dimension, resized)
}

/// `(1 - t) * x[floor(p)] + t * x[floor(p) + 1]` along a dimension, where `t = p - floor(p)`.
fn interpolate(
    cx: &mut NodeContext<'_, '_>,
    x: InstructionId,
    dimension: usize,
    from: i64,
    positions: &[f32],
) -> Result<InstructionId> {
    let lower: Vec<i32> = positions.iter().map(|p| p.floor() as i32).collect();
    let upper: Vec<i32> = lower.iter().map(|&l| (i64::from(l) + 1).min(from - 1) as i32).collect();
    let weights: Vec<f32> = positions.iter().map(|p| p - p.floor()).collect();
    let first = take(cx, x, dimension, &lower)?;
    if weights.iter().all(|&weight| weight == 0.0) {
        return Ok(first);
    }
    let second = take(cx, x, dimension, &upper)?;
    let sizes = cx.sizes(first);
    let weights = cx.literal(Literal::from_elements(&[weights.len() as i64], &weights));
    let weights = cx.broadcast(weights, &sizes, &[dimension])?;
    let difference = cx.sub(second, first)?;
    let step = cx.mul(difference, weights)?;
    cx.add(first, step)
}

/// `ResizeBilinearGrad(gradient, images)`: the transpose of the interpolation weights times the
/// gradient.
fn resize_bilinear_grad(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let (gradient, images) = (cx.input(0)?, cx.input(1)?);
    let (gradient_sizes, sizes) = (cx.sizes(gradient), cx.sizes(images));
    check_images(cx, &sizes)?;
    check_images(cx, &gradient_sizes)?;
    cx.check(gradient_sizes[0] == sizes[0] && gradient_sizes[3] == sizes[3], || {
        format!(
            "images and gradient must have the same batch and features: {} vs. {}",
            list(&sizes),
            list(&gradient_sizes)
        )
    })?;
    let element_type = cx.output_type(0)?;
    let sampling = Sampling::of_node(cx)?;
    let mut x = cx.convert(gradient, PrimitiveType::F32)?;
    for dimension in [1, 2] {
        let positions = sampling.positions(sizes[dimension], gradient_sizes[dimension]);
        let weights = tent_weights(cx, sizes[dimension], &positions)?;
        let dot_dimension_numbers = DotDimensionNumbers {
            lhs_contracting_dims: vec![dimension],
            rhs_contracting_dims: vec![1],
            ..Default::default()
        };
        let product = cx.op(Op::Dot { dot_dimension_numbers }, &[x, weights])?;
        // Move the new last dimension to the place of the old one.
        let permutation = if dimension == 1 { [0, 3, 1, 2] } else { [0, 1, 3, 2] };
        x = cx.transpose(product, &permutation)?;
    }
    cx.convert(x, element_type)
}

/// `[from, to]`: the weight of each source pixel in each result pixel, `max(0, 1 - |p - source|)`.
fn tent_weights(cx: &mut NodeContext<'_, '_>, from: i64, positions: &[f32]) -> Result<InstructionId> {
    let sizes = [from, positions.len() as i64];
    let positions = cx.literal(Literal::from_elements(&[sizes[1]], positions));
    let positions = cx.broadcast(positions, &sizes, &[1])?;
    let pixels = cx.iota(PrimitiveType::F32, &sizes, 0)?;
    let difference = cx.sub(positions, pixels)?;
    let distance = cx.op(Op::Abs {}, &[difference])?;
    let one = cx.splat_like(distance, 1.0)?;
    let weight = cx.sub(one, distance)?;
    let zero = cx.splat_like(distance, 0.0)?;
    cx.op(Op::Maximum {}, &[weight, zero])
}

/// `ResizeNearestNeighborGrad(gradient, size)`: each pixel of the images gets the sum of the
/// gradient at the pixels that show it.
fn resize_nearest_grad(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let mut gradient = cx.input(0)?;
    let element_type = cx.element_type(gradient);
    let sizes = cx.sizes(gradient);
    let size = cx.constant_sizes(1)?;
    let sources = nearest_sources(cx, &size, &sizes)?;
    let to_apply = cx.reducer(Reducer::Add, element_type)?;
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
