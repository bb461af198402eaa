//! Products of floats with weights that may be integers. Each row of the floats then gets a scale
//! of its own for the time of the product (`portable_tensor_utils.cc`).

use composite::Expression;
use hlo::Op;
use shape::PrimitiveType;

/// Multiplies rows `[n, columns]` by the transpose of weights `[units, columns]`. A vector of
/// weights is a diagonal matrix. Weights of integers have a scale.
pub(super) fn product<'f>(
    rows: Expression<'f>,
    weights: Expression<'f>,
    scale: Option<f32>,
    is_asymmetric: bool,
) -> Expression<'f> {
    if weights.rank() == 1 {
        return rows * real(weights, scale).broadcast(&rows.sizes(), &[1]);
    }
    if weights.element_type() == PrimitiveType::F32 {
        return rows.dot(weights.transpose(&[1, 0]), 0);
    }
    let weights = stored(weights);
    let Rows { integers, scales, offsets } =
        if is_asymmetric { asymmetric_rows(rows) } else { symmetric_rows(rows) };
    let mut sums = integers.dot(weights.transpose(&[1, 0]), 0);
    let sizes = sums.sizes();
    if let Some(offsets) = offsets {
        sums = sums - weights.sum(&[1]).broadcast(&sizes, &[1]) * offsets.broadcast(&sizes, &[0]);
    }
    let scales = scales * f64::from(scale.unwrap_or(1.0));
    sums.convert(PrimitiveType::F32) * scales.broadcast(&sizes, &[0])
}

/// Weights as floats.
pub(super) fn real(weights: Expression<'_>, scale: Option<f32>) -> Expression<'_> {
    if weights.element_type() == PrimitiveType::F32 {
        return weights;
    }
    stored(weights).convert(PrimitiveType::F32) * f64::from(scale.unwrap_or(1.0))
}

/// Weights as 32-bit integers. The kernels read bytes as signed numbers whatever their type is.
fn stored(weights: Expression<'_>) -> Expression<'_> {
    weights.bitcast_convert(PrimitiveType::S8).convert(PrimitiveType::S32)
}

/// Rows of floats: scale × (integer - offset).
struct Rows<'f> {
    /// `[n, columns]`.
    integers: Expression<'f>,
    /// `[n]`.
    scales: Expression<'f>,
    /// `[n]`.
    offsets: Option<Expression<'f>>,
}

fn rounded(x: Expression<'_>) -> Expression<'_> {
    x.function().op(Op::RoundNearestAfz {}, &[x], None)
}

/// `PortableSymmetricQuantizeFloats`.
fn symmetric_rows(rows: Expression<'_>) -> Rows<'_> {
    let range = rows.largest_magnitude(&[1]);
    let is_zero = range.equal(0.0);
    let one = range.splat(1.0);
    let scales = is_zero.select(one, range / 127.0);
    let inverses = is_zero.select(one, 127.0 / range);
    let steps = rounded(rows * inverses.broadcast(&rows.sizes(), &[0]));
    let integers = steps.max(-127.0).min(127.0).convert(PrimitiveType::S32);
    Rows { integers, scales, offsets: None }
}

/// `PortableAsymmetricQuantizeFloats`, which computes the scale and the zero point in double
/// precision.
fn asymmetric_rows(rows: Expression<'_>) -> Rows<'_> {
    let (low, high) = (-128.0, 127.0);
    let least = (-(-rows).maximum(&[1])).min(0.0).convert(PrimitiveType::F64);
    let largest = rows.maximum(&[1]).max(0.0).convert(PrimitiveType::F64);
    let is_zero = least.equal(largest);
    let one = least.splat(1.0);
    let scale = is_zero.select(one, (largest - least) / 255.0);
    let (from_least, from_largest) = (least / scale, largest / scale);
    let is_nearer = (from_least.abs() + 128.0).lt(from_largest.abs() + 127.0);
    let zero_point = is_nearer.select(low - from_least, high - from_largest);
    let zero_point = rounded(zero_point.max(low).min(high));
    let offsets = is_zero.select(zero_point.splat(0.0), zero_point).convert(PrimitiveType::F32);
    let scales = scale.convert(PrimitiveType::F32);
    let inverses = 1.0 / scales;
    let sizes = rows.sizes();
    let steps = offsets.broadcast(&sizes, &[0]) + rows * inverses.broadcast(&sizes, &[0]);
    let integers = rounded(steps).max(low).min(high).convert(PrimitiveType::S32);
    Rows { integers, scales, offsets: Some(offsets.convert(PrimitiveType::S32)) }
}
