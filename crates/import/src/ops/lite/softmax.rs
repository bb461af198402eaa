//! Softmax, its logarithm, and normalization, along the last dimension.

use super::activations::operand;
use super::arithmetic::{
    divided, exp_of_negative, inverse_root, leading_zeros, log_of_12_bits, multiplied, multiplied_by,
    reciprocal, shifted,
};
use super::fixed_point::{Multiplier, arithmetic_shift, doubling_high, rounding_shift};
use super::operands::Quantization;
use super::tables::{all_numbers, interpolated, looked_up, of_16_bits};
use crate::node::context::NodeContext;
use crate::node::rule::{Rule, rule};
use ::composite::Expression;
use hlo::InstructionId;
use shape::PrimitiveType;
use support::Result;

pub(crate) const RULES: &[Rule] = &[
    rule("TFLiteL2Normalization", l2_normalization),
    rule("TFLiteLogSoftmax", log_softmax),
    rule("TFLiteSoftmax", softmax),
];

/// Integer bits of scaled differences, of which exp is computed.
const DIFFERENCE_BITS: i32 = 5;
/// Integer bits of sums.
const SUM_BITS: i32 = 12;

/// Rows of the last dimension. A scalar is one row.
struct Rows {
    sizes: Vec<i64>,
}

impl Rows {
    fn of(cx: &NodeContext<'_, '_>, x: InstructionId) -> Self {
        let sizes = cx.sizes(x);
        Self { sizes: if sizes.is_empty() { vec![1] } else { sizes } }
    }

    /// One value for each row, repeated for all elements.
    fn repeated<'f>(&self, x: Expression<'f>) -> Expression<'f> {
        let dimensions: Vec<usize> = (0..self.sizes.len() - 1).collect();
        x.broadcast(&self.sizes, &dimensions)
    }

    fn last(&self) -> [usize; 1] {
        [self.sizes.len() - 1]
    }

    /// Elements minus the largest one of the row, in `s64`.
    fn differences<'f>(&self, x: Expression<'f>) -> Expression<'f> {
        let x = x.reshape(&self.sizes).convert(PrimitiveType::S64);
        x - self.repeated(x.maximum(&self.last()))
    }
}

/// Scaling of differences of 8-bit numbers.
struct Scaling {
    multiplier: Multiplier,
    /// Differences below do not count.
    least: f64,
}

impl Scaling {
    /// `PreprocessSoftmaxScaling` and `CalculateInputRadius`.
    fn of(from: &Quantization, beta: f64) -> Self {
        let unit = 2f64.powi(31 - DIFFERENCE_BITS);
        let multiplier = Multiplier::of((beta * from.scale() * unit).min(2f64.powi(31) - 1.0));
        let radius = (2f64.powi(DIFFERENCE_BITS) - 1.0) * unit / 2f64.powi(multiplier.shift);
        Self { multiplier, least: -radius.floor() }
    }

    /// exp of the differences, without integer bits, by a table of -255 to 0. It is 0 for those
    /// that do not count.
    fn exponentials<'f>(&self, differences: Expression<'f>) -> Expression<'f> {
        let numbers = all_numbers(differences.function(), -255);
        let exponentials = exp_of_negative(multiplied(numbers, self.multiplier));
        let counts = numbers.ge(self.least);
        let table = counts.select(exponentials, 0.0).convert(PrimitiveType::S32);
        looked_up(table, differences + 255.0).convert(PrimitiveType::S64)
    }
}

fn softmax(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let (x, from, to) = operand(cx)?;
    let beta = cx.attributes().float("beta")?;
    let (sizes, rows) = (cx.sizes(x), Rows::of(cx, x));
    if from.element_type == PrimitiveType::S16 {
        return softmax_of_16_bits(cx, x, &from, beta);
    }
    let scaling = Scaling::of(&from, f64::from(beta));
    let [low, high] = to.limits().map(|limit| limit as f64);
    let bits = if to.element_type == PrimitiveType::S16 { 16.0 } else { 8.0 };
    cx.composite_one(&[x], |_, operands| {
        let differences = rows.differences(operands[0]);
        let exponentials = scaling.exponentials(differences);
        let sums = divided(exponentials, SUM_BITS).sum(&rows.last());
        let [scale, over] = reciprocal(sums, SUM_BITS);
        let exponent = rows.repeated(over + (31.0 - bits));
        let products = doubling_high(rows.repeated(scale), exponentials);
        let results = rounding_shift(products, exponent) + low;
        let results = results.max(low).min(high);
        let counts = differences.ge(scaling.least);
        counts.select(results, low).convert(to.element_type).reshape(&sizes)
    })
}

/// Softmax by tables of exp in [-10, 0] and 1 / (1 + x) in [0, 1].
fn softmax_of_16_bits(
    cx: &mut NodeContext<'_, '_>,
    x: InstructionId,
    from: &Quantization,
    beta: f32,
) -> Result<InstructionId> {
    const RANGE: f64 = 65535.0;
    let ends = |scale: f64, zero_point: f64| [-32768.0, 32767.0].map(|end: f64| scale * (end - zero_point));
    let fractions = ends(2.0 / RANGE, 0.0);
    let exponentials = interpolated(ends(10.0 / RANGE, 32767.0), fractions, libm::exp, |x| x);
    let inverses = interpolated(ends(1.0 / RANGE, -32768.0), fractions, |x| 1.0 / (1.0 + x), |x| x);
    let multiplier = Multiplier::of(f64::from(from.scale() as f32 * beta) / (10.0 / RANGE));
    let (sizes, rows) = (cx.sizes(x), Rows::of(cx, x));
    cx.composite_one(&[x], |_, operands| {
        let scaled = multiplied(rows.differences(operands[0]), multiplier) + 32767.0;
        let scaled = scaled.max(-32768.0).min(32767.0).convert(PrimitiveType::S32);
        let terms = of_16_bits(&exponentials, scaled).convert(PrimitiveType::S64);
        let sums = terms.sum(&rows.last());
        let headroom = leading_zeros(sums);
        let one = sums.splat(1.0);
        let normal = arithmetic_shift((sums << (headroom - 1.0)) + 2f64.powi(13), one * 14.0);
        let offset = (normal - (2f64.powi(15) + 2f64.powi(16))).max(-32768.0).min(32767.0);
        let inverse = of_16_bits(&inverses, offset.convert(PrimitiveType::S32)).convert(PrimitiveType::S64);
        let shift = 31.0 - headroom;
        let half = one << (shift - 1.0);
        let products = terms * rows.repeated(inverse) + rows.repeated(half);
        let results = arithmetic_shift(products, rows.repeated(shift));
        results.max(0.0).min(32767.0).convert(PrimitiveType::S16).reshape(&sizes)
    })
}

fn log_softmax(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    /// Integer bits of the result.
    const BITS: i32 = 4;
    let (x, from, to) = operand(cx)?;
    let (sizes, rows) = (cx.sizes(x), Rows::of(cx, x));
    let scaling = Scaling::of(&from, 1.0);
    let Multiplier { factor, shift } = scaling.multiplier;
    // From scaled differences back to differences.
    let reverse = Multiplier::of(2f64.powi(31 - shift) / f64::from(factor));
    let [low, high] = to.limits().map(|limit| limit as f64);
    cx.composite_one(&[x], |_, operands| {
        let differences = rows.differences(operands[0]);
        let sums = divided(scaling.exponentials(differences), SUM_BITS).sum(&rows.last());
        let log = log_of_12_bits(sums);
        let least = multiplied(log + f64::from(i32::MIN), reverse).max(scaling.least - 1.0);
        let scaled = multiplied(differences, scaling.multiplier);
        let results = divided(scaled - rows.repeated(log), 31 - DIFFERENCE_BITS - BITS) + high;
        let results = results.max(low).min(high);
        let counts = differences.gt(rows.repeated(least));
        counts.select(results, low).convert(to.element_type).reshape(&sizes)
    })
}

/// x / |x|, with 7 bits of a fraction.
fn l2_normalization(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    const BITS: i32 = 7;
    let (x, from, to) = operand(cx)?;
    let (sizes, rows) = (cx.sizes(x), Rows::of(cx, x));
    let [low, high] = to.limits().map(|limit| limit as f64);
    let is_signed = to.element_type == PrimitiveType::S8;
    cx.composite_one(&[x], |_, operands| {
        let x = operands[0].reshape(&rows.sizes).convert(PrimitiveType::S64) - from.zero_point() as f64;
        let [factor, shift] = inverse_root((x * x).sum(&rows.last()));
        let results = if is_signed {
            multiplied_by(x, rows.repeated(factor), rows.repeated(shift + f64::from(BITS)))
        } else {
            let scaled = multiplied_by(shifted(x, BITS), rows.repeated(factor), rows.repeated(shift));
            scaled + 128.0
        };
        results.max(low).min(high).convert(to.element_type).reshape(&sizes)
    })
}
