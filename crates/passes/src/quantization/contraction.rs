//! Contractions of dequantized arrays as contractions of integers.

use super::constants::{channel_index, integer_literal, rewrite_all};
use super::edit::Edit;
use crate::pass::{Changed, Pass};
use crate::query::is_static;
use hlo::analysis::ChannelConstant;
use hlo::quantization::Dequantize;
use hlo::{Computation, ConvolutionForm, InstructionId, Module, Op};
use shape::{Literal, PrimitiveType};
use support::Result;

/// `contraction(dequantize(x), dequantize(w)) => convert(contraction(x - zero, w - zeros)) *
/// scale`, where x has bytes and one scale, and w is a constant with a scale for each output
/// feature. The sums are `s32`, and the scale is the product of both.
///
/// Changes the rounding: the sums are exact instead of sums of rounded products, and the product of
/// the scales is rounded once. Sums that could exceed 32 bits are left unchanged, and so are
/// contractions that `byte-contraction` does not take.
pub struct QuantizedContraction;

impl Pass for QuantizedContraction {
    fn name(&self) -> &'static str {
        "quantized-contraction"
    }

    fn run(&self, module: &mut Module) -> Result<Changed> {
        rewrite_all(module, rewritten)
    }
}

/// Returns the replacement of a contraction.
fn rewritten(computation: &mut Computation, root: InstructionId) -> Option<InstructionId> {
    let &[lhs, rhs] = computation[root].operands() else { return None };
    let is_single = computation[root].shape().as_array()?.element_type == PrimitiveType::F32;
    if !is_single || !computation[root].op().is_contraction() || !is_static(computation, root) {
        return None;
    }
    let x = Dequantize::of(computation, lhs)?;
    let w = Dequantize::of(computation, rhs)?;
    let (zero, scale) = (x.quantization.zero_point.only()?, x.quantization.scale.only()?);
    let is_byte = matches!(x.quantization.storage, PrimitiveType::S8 | PrimitiveType::U8);
    let features = Features::of(computation, root)?;
    let is_per_feature = |dimension: Option<usize>| dimension.is_none_or(|d| d == features.of_kernel);
    if !is_byte || !is_per_feature(w.quantization.dimension()) {
        return None;
    }
    let weights = Weights::of(computation, &w, features.of_kernel)?;
    // The largest magnitude of x, and of a sum.
    let [least, most] = x.quantization.range.map(|end| end as f64);
    let largest = (most - zero).max(zero - least);
    let has_zero = least <= zero && zero <= most && (zero == 0.0 || can_pad(computation[root].op()));
    if !has_zero || largest * weights.largest_sum > f64::from(i32::MAX) {
        return None;
    }
    let factor = w.quantization.scale.map(|of_weights| f64::from((of_weights * scale) as f32));
    let is_normal = |&value: &f64| (value as f32).is_normal();
    if !factor.values.iter().all(is_normal) {
        return None;
    }
    let factor = ChannelConstant { dimension: factor.dimension.map(|_| features.of_result), ..factor };
    let op = computation[root].op().clone();
    let mut edit = Edit::at(computation, root);
    let mut left = edit.convert(x.integers, PrimitiveType::S32);
    if zero != 0.0 {
        let shape = edit.computation[left].shape().expect_array().clone();
        let zeros = edit.spread(&ChannelConstant::of_all(zero), &shape);
        left = edit.add(Op::Subtract {}, &shape, &[left, zeros]);
    }
    let right = edit.literal(weights.literal);
    let right = edit.convert(right, PrimitiveType::S32);
    let shape = edit.computation[root].shape().expect_array().clone();
    let sums = edit.add(op, &shape.with_element_type(PrimitiveType::S32), &[left, right]);
    let sums = edit.convert(sums, PrimitiveType::F32);
    let factor = edit.spread(&factor, &shape);
    Some(edit.add(Op::Multiply {}, &shape, &[sums, factor]))
}

/// True if the zero point can surround the operand in place of padding.
fn can_pad(op: &Op) -> bool {
    let Op::Convolution { window, .. } = op else { return true };
    window.dimensions.iter().all(|d| d.base_dilation == 1 && d.padding_low >= 0 && d.padding_high >= 0)
}

/// The dimensions of the output features in the kernel and in the result.
struct Features {
    of_kernel: usize,
    of_result: usize,
}

impl Features {
    /// Returns the dimensions of a contraction that `byte-contraction` takes.
    fn of(computation: &Computation, id: InstructionId) -> Option<Self> {
        let array = |k: usize| computation[computation[id].operands()[k]].shape().expect_array();
        match computation[id].op() {
            op @ Op::Convolution { dim_labels: labels, .. } => {
                let is_canonical = ConvolutionForm::of(op) == Some(ConvolutionForm::Canonical);
                is_canonical.then_some(Self {
                    of_kernel: labels.kernel_output_feature_dimension,
                    of_result: labels.output_feature_dimension,
                })
            }
            Op::Dot { dot_dimension_numbers: numbers } => {
                let is_free = |d: &usize| {
                    !numbers.rhs_batch_dims.contains(d) && !numbers.rhs_contracting_dims.contains(d)
                };
                let free: Vec<usize> = (0..array(1).rank()).filter(is_free).collect();
                let is_along =
                    matches!(numbers.lhs_contracting_dims[..], [only] if only + 1 == array(0).rank());
                let only = match &free[..] {
                    &[only] if numbers.rhs_batch_dims.is_empty() => only,
                    _ => return None,
                };
                let last = computation[id].shape().as_array()?.rank().checked_sub(1)?;
                let is_wide = array(1).size(only) >= hlo::MIN_TILE_COLUMNS;
                (is_along && is_wide).then_some(Self { of_kernel: only, of_result: last })
            }
            _ => None,
        }
    }
}

/// Constant weights less their zero points.
struct Weights {
    /// `s8`.
    literal: Literal,
    /// The largest sum of magnitudes of an output feature.
    largest_sum: f64,
}

impl Weights {
    fn of(computation: &Computation, w: &Dequantize, features: usize) -> Option<Self> {
        let Op::Constant { literal } = computation[w.integers].op() else { return None };
        // Wider integers are rounded when they become `f32`.
        if w.quantization.storage.bit_width() > 16 {
            return None;
        }
        let shape = literal.array_shape().clone();
        let index = channel_index(&shape, w.quantization.dimension());
        let feature = channel_index(&shape, Some(features));
        let mut sums = vec![0i64; shape.size(features) as usize];
        let mut weights = Vec::with_capacity(literal.scalars().len());
        for (k, scalar) in literal.scalars().enumerate() {
            let weight = scalar.as_i64()?.checked_sub(w.quantization.zero_point.at(index(k)) as i64)?;
            i8::try_from(weight).ok()?;
            sums[feature(k)] += weight.abs();
            weights.push(weight);
        }
        let shape = shape.with_element_type(PrimitiveType::S8);
        let literal = integer_literal(&shape, weights.into_iter())?;
        let largest_sum = sums.into_iter().max()? as f64;
        Some(Self { literal, largest_sum })
    }
}
