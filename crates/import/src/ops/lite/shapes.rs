//! Concatenation, and resizing of images.

use super::activations::operand;
use super::operands::Operands;
use super::tables::of_entries;
use crate::node::context::NodeContext;
use crate::node::rule::{Rule, rule};
use ::composite::Expression;
use hlo::{GatherDimensionNumbers, InstructionId, Op};
use shape::{Literal, PrimitiveType};
use support::{Error, Result};

pub(crate) const RULES: &[Rule] =
    &[rule("TFLiteConcatenation", concatenation), rule("TFLiteResizeBilinear", resize_bilinear)];

/// Only `uint8` operands may have other scales than the result.
fn concatenation(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let operands = Operands::of_node(cx)?;
    let to = operands.output(cx, 0)?;
    let activation = cx.attributes().int("activation")?;
    if activation != 0 {
        return Err(Error::unsupported(format!("fused activation {activation} is not supported")));
    }
    let mut parts = Vec::new();
    for k in 0..cx.inputs().len() {
        let (x, from) = operands.input(cx, k)?;
        let is_same = from.scales == to.scales && from.zero_points == to.zero_points;
        if is_same || from.element_type != PrimitiveType::U8 {
            parts.push(x);
            continue;
        }
        let scale = from.scale() as f32 * (1.0 / to.scale() as f32);
        let bias = -from.zero_point() as f32 * scale;
        let stored = |x: i64| (x as f32 * scale + bias).round() + to.zero_point() as f32;
        parts.push(of_entries(cx, x, &from, &to, stored)?);
    }
    let rank = cx.sizes(parts[0]).len();
    let axis = cx.attributes().int("axis")?;
    let dimension = cx.dimension(axis, rank)?;
    match parts.as_slice() {
        [only] => Ok(*only),
        parts => cx.op(Op::Concatenate { dimension }, parts),
    }
}

/// The pixels of the source that pixels of the result are between, along one dimension.
struct Positions<T> {
    lower: Vec<i32>,
    upper: Vec<i32>,
    /// Weights of the upper pixels.
    weights: Vec<T>,
}

/// Places of pixels.
#[derive(Clone, Copy)]
struct Sampling {
    align_corners: bool,
    half_pixel_centers: bool,
}

impl Sampling {
    /// Positions in single precision.
    fn real(self, from: i64, to: i64) -> Positions<f32> {
        let scale = if self.align_corners && to > 1 {
            (from - 1) as f32 / (to - 1) as f32
        } else {
            from as f32 / to as f32
        };
        let position = |pixel: i64| {
            if self.half_pixel_centers { (pixel as f32 + 0.5) * scale - 0.5 } else { pixel as f32 * scale }
        };
        let lower = |p: f32| (p.floor() as i32).max(0);
        let upper = |p: f32| (p.ceil() as i32).min(from as i32 - 1);
        let positions: Vec<f32> = (0..to).map(position).collect();
        Positions {
            lower: positions.iter().map(|&p| lower(p)).collect(),
            upper: positions.iter().map(|&p| upper(p)).collect(),
            weights: positions.iter().map(|&p| p - lower(p) as f32).collect(),
        }
    }

    /// Positions in units of 1/1024.
    fn integer(self, from: i64, to: i64) -> Positions<i64> {
        let scale = if self.align_corners && to > 1 {
            (1024 * (from - 1) + (to - 1) / 2) / (to - 1)
        } else {
            (1024 * from + to / 2) / to
        };
        let position = |pixel: i64| {
            if self.half_pixel_centers { pixel * scale + scale / 2 - 512 } else { pixel * scale }
        };
        let lower = |p: i64| (p / 1024).max(0);
        let positions: Vec<i64> = (0..to).map(position).collect();
        Positions {
            lower: positions.iter().map(|&p| lower(p) as i32).collect(),
            upper: positions.iter().map(|&p| ((p + 1023) / 1024).min(from - 1) as i32).collect(),
            weights: positions.iter().map(|&p| p - 1024 * lower(p)).collect(),
        }
    }
}

/// The slices of a dimension at some indices.
fn taken<'f>(x: Expression<'f>, dimension: usize, indices: &[i32]) -> Expression<'f> {
    let mut slice_sizes = x.sizes();
    if indices.iter().copied().eq(0..slice_sizes[dimension] as i32) {
        return x;
    }
    slice_sizes[dimension] = 1;
    let gather_dimension_numbers = GatherDimensionNumbers {
        offset_dims: (0..slice_sizes.len()).filter(|&d| d != dimension).collect(),
        collapsed_slice_dims: vec![dimension],
        start_index_map: vec![dimension],
        index_vector_dim: 1,
        ..Default::default()
    };
    let indices = x.function().literal(Literal::from_elements(&[indices.len() as i64], indices));
    let op = Op::Gather { gather_dimension_numbers, slice_sizes, indices_are_sorted: true };
    x.function().op(op, &[x, indices], None)
}

/// The sum of the four neighbors, weighted. `one` is the sum of both weights along a dimension.
fn interpolated<'f, T: shape::NativeType>(
    x: Expression<'f>,
    [rows, columns]: &[Positions<T>; 2],
    one: f64,
) -> Expression<'f> {
    let pixels = |y: &[i32], column: &[i32]| taken(taken(x, 1, y), 2, column);
    let sizes = pixels(&rows.lower, &columns.lower).sizes();
    let weights = |positions: &Positions<T>, dimension: usize| {
        let weights = Literal::from_elements(&[positions.weights.len() as i64], &positions.weights);
        x.function().literal(weights).broadcast(&sizes, &[dimension])
    };
    let (down, right) = (weights(rows, 1), weights(columns, 2));
    pixels(&rows.lower, &columns.lower) * (one - down) * (one - right)
        + pixels(&rows.upper, &columns.lower) * down * (one - right)
        + pixels(&rows.lower, &columns.upper) * (one - down) * right
        + pixels(&rows.upper, &columns.upper) * down * right
}

/// In single precision for `uint8`, and in fixed point for others.
fn resize_bilinear(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let (x, from, to) = operand(cx)?;
    let attributes = cx.attributes();
    let sampling = Sampling {
        align_corners: attributes.bool_or("align_corners", false)?,
        half_pixel_centers: attributes.bool_or("half_pixel_centers", false)?,
    };
    let sizes = cx.sizes(x);
    let size = cx.constant_i64s(1)?;
    cx.check(sizes.len() == 4 && size.len() == 2 && size.iter().all(|&size| size > 0), || {
        "expected images [n, h, w, c] and two positive sizes".to_owned()
    })?;
    if from.element_type == PrimitiveType::U8 {
        let positions = [0, 1].map(|k| sampling.real(sizes[k + 1], size[k]));
        return cx.composite_one(&[x], |_, operands| {
            let sum = interpolated(operands[0].convert(PrimitiveType::F32), &positions, 1.0) + 0.5;
            sum.convert(PrimitiveType::S32).convert(to.element_type)
        });
    }
    let positions = [0, 1].map(|k| sampling.integer(sizes[k + 1], size[k]));
    cx.composite_one(&[x], |_, operands| {
        let sum = interpolated(operands[0].convert(PrimitiveType::S64), &positions, 1024.0);
        let half = 2f64.powi(19);
        let half = sum.gt(0.0).select(sum.splat(half), -half);
        ((sum + half) / 2f64.powi(20)).convert(to.element_type)
    })
}
