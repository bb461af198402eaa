//! Quantization of float tensors at run time, as in TensorFlow Lite's `portable_tensor_utils.cc`.

use crate::node::context::NodeContext;
use ::composite::Expression;
use hlo::{InstructionId, Op};
use shape::PrimitiveType;
use support::Result;

/// A float tensor as integers of eight bits.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Dynamic {
    /// `s8`.
    pub(crate) values: InstructionId,
    /// `f32`, of the leading dimensions.
    pub(crate) scales: InstructionId,
    /// `s32`, of the leading dimensions; `None` if all are 0.
    pub(crate) zero_points: Option<InstructionId>,
}

/// Quantizes a tensor with a scale for each index of the leading `rows` dimensions.
pub(crate) fn quantize(
    cx: &mut NodeContext<'_, '_>,
    x: InstructionId,
    rows: usize,
    is_asymmetric: bool,
) -> Result<Dynamic> {
    let build = if is_asymmetric { asymmetric } else { symmetric };
    let results = cx.composite(&[x], |_, operands| build(operands[0], rows))?;
    Ok(Dynamic { values: results[0], scales: results[1], zero_points: results.get(2).copied() })
}

/// Values from -127 to 127 (`SymmetricQuantizeFloats`).
fn symmetric(x: Expression<'_>, rows: usize) -> Vec<Expression<'_>> {
    let sizes = x.sizes();
    let inner: Vec<usize> = (rows..sizes.len()).collect();
    let outer: Vec<usize> = (0..rows).collect();
    let range = x.largest_magnitude(&inner);
    let is_zero = range.equal(0.0);
    let scales = is_zero.select(range.splat(1.0), range / 127.0);
    let inverse = is_zero.select(range.splat(0.0), range.splat(127.0) / range);
    let values = rounded(x * inverse.broadcast(&sizes, &outer)).max(-127.0).min(127.0);
    vec![values.convert(PrimitiveType::S8), scales]
}

/// Values from -128 to 127, with a zero point for which 0 is exact (`AsymmetricQuantizeFloats`).
fn asymmetric(x: Expression<'_>, rows: usize) -> Vec<Expression<'_>> {
    let sizes = x.sizes();
    let inner: Vec<usize> = (rows..sizes.len()).collect();
    let outer: Vec<usize> = (0..rows).collect();
    let least = (-(-x).maximum(&inner)).min(0.0).convert(PrimitiveType::F64);
    let largest = x.maximum(&inner).max(0.0).convert(PrimitiveType::F64);
    let is_zero = least.equal(largest);
    let step = (largest - least) / 255.0;
    let (below, above) = (least / step, largest / step);
    // The end with the smaller error determines the zero point.
    let is_from_least = (below.abs() + 128.0).lt(above.abs() + 127.0);
    let point = is_from_least.select(below.splat(-128.0) - below, above.splat(127.0) - above);
    let point = is_zero.select(point.splat(0.0), rounded(point).max(-128.0).min(127.0));
    let step = step.convert(PrimitiveType::F32);
    let scales = is_zero.select(step.splat(1.0), step);
    let inverse = is_zero.select(step.splat(0.0), step.splat(1.0) / scales);
    let zero_points = point.convert(PrimitiveType::F32).broadcast(&sizes, &outer);
    let values = rounded(zero_points + x * inverse.broadcast(&sizes, &outer)).max(-128.0).min(127.0);
    vec![values.convert(PrimitiveType::S8), scales, point.convert(PrimitiveType::S32)]
}

/// Rounds to nearest, and away from zero at halves.
fn rounded(x: Expression<'_>) -> Expression<'_> {
    x.function().op(Op::RoundNearestAfz {}, &[x], None)
}
