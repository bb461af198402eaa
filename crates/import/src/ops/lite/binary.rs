//! Elementwise operators with two operands.

use super::activations::ratio;
use super::arithmetic::{divided, divided_by, leading_zeros, multiplied, multiplied_by, reciprocal};
use super::fixed_point::{Multiplier, doubling_high};
use super::operands::{Operands, Quantization};
use crate::node::context::NodeContext;
use crate::node::rule::{Rule, rule};
use ::composite::Expression;
use hlo::InstructionId;
use shape::PrimitiveType;
use support::{Error, Result};

pub(crate) const RULES: &[Rule] = &[
    rule("TFLiteAdd", |cx| sum(cx, |a, b| a + b)),
    rule("TFLiteSub", |cx| sum(cx, |a, b| a - b)),
    rule("TFLiteMul", mul),
    rule("TFLiteDiv", div),
    rule("TFLiteSquaredDifference", squared_difference),
    rule("TFLitePrelu", prelu),
    rule("TFLiteEqual", |cx| compare(cx, true, |a, b| a.equal(b))),
    rule("TFLiteNotEqual", |cx| compare(cx, true, |a, b| a.not_equal(b))),
    rule("TFLiteLess", |cx| compare(cx, false, |a, b| a.lt(b))),
    rule("TFLiteLessEqual", |cx| compare(cx, false, |a, b| a.le(b))),
    rule("TFLiteGreater", |cx| compare(cx, false, |a, b| a.gt(b))),
    rule("TFLiteGreaterEqual", |cx| compare(cx, false, |a, b| a.ge(b))),
];

/// A function of two numbers.
type Binary = for<'f> fn(Expression<'f>, Expression<'f>) -> Expression<'f>;

/// Two operands of one shape.
struct Pair {
    values: [InstructionId; 2],
    from: [Quantization; 2],
    to: Quantization,
}

impl Pair {
    fn of_node(cx: &mut NodeContext<'_, '_>) -> Result<Self> {
        let operands = Operands::of_node(cx)?;
        let (a, from_a) = operands.input(cx, 0)?;
        let (b, from_b) = operands.input(cx, 1)?;
        let to = operands.output(cx, 0)?;
        let sizes = cx.broadcast_sizes(&cx.sizes(a), &cx.sizes(b))?;
        let values = [cx.broadcast_to(a, &sizes)?, cx.broadcast_to(b, &sizes)?];
        Ok(Self { values, from: [from_a, from_b], to })
    }

    fn scales(&self) -> [f32; 3] {
        let [a, b] = &self.from;
        [a, b, &self.to].map(|quantization| quantization.scale() as f32)
    }

    /// Applies a function to the stored numbers without their zero points, in `s64`. Adds the zero
    /// point of the result and clamps to `limits`.
    fn map(
        &self,
        cx: &mut NodeContext<'_, '_>,
        limits: [i64; 2],
        body: impl for<'f> FnOnce(Expression<'f>, Expression<'f>) -> Expression<'f>,
    ) -> Result<InstructionId> {
        let [low, high] = limits.map(|limit| limit as f64);
        let offset = self.to.zero_point() as f64;
        cx.composite_one(&self.values, |_, operands| {
            let [a, b] = self.centered(operands);
            (body(a, b) + offset).max(low).min(high).convert(self.to.element_type)
        })
    }

    fn centered<'f>(&self, operands: &[Expression<'f>]) -> [Expression<'f>; 2] {
        [0, 1].map(|k| operands[k].convert(PrimitiveType::S64) - self.from[k].zero_point() as f64)
    }

    /// The limits of the result with the fused activation.
    fn limits(&self, cx: &NodeContext<'_, '_>) -> Result<[i64; 2]> {
        let activation = cx.attributes().int("activation")?;
        let limits = self.to.activation_limits(activation);
        limits.ok_or_else(|| Error::unsupported(format!("fused activation {activation} is not supported")))
    }
}

/// The exponent of a scale that is a power of 2, nearly.
fn exponent(scale: f32) -> Option<i32> {
    let log = (libm::log(f64::from(scale)) as f32) * (1.0 / std::f32::consts::LN_2);
    ((log - log.round()).abs() < 1e-3).then(|| log.round() as i32)
}

/// Both operands, scaled to twice the larger scale and shifted to the left.
fn aligned<'f>(scales: [f32; 3], left: i32, [a, b]: [Expression<'f>; 2]) -> [Expression<'f>; 2] {
    let twice = f64::from(2.0 * scales[0].max(scales[1]));
    // The shift does not overflow.
    let scaled = |x, scale: f32| multiplied(x << f64::from(left), Multiplier::of(f64::from(scale) / twice));
    [scaled(a, scales[0]), scaled(b, scales[1])]
}

/// Sum or difference.
fn sum(cx: &mut NodeContext<'_, '_>, body: Binary) -> Result<InstructionId> {
    let pair = Pair::of_node(cx)?;
    let limits = pair.limits(cx)?;
    let scales = pair.scales();
    let is_wide = pair.to.element_type == PrimitiveType::S16;
    if is_wide
        && cx.attributes().bool_or("pot_scale_int16", true)?
        && let [Some(a), Some(b), Some(to)] = scales.map(exponent)
    {
        // One of the scales is that of the result; the other one is not larger.
        let [a, b] = [a - to, b - to];
        cx.check(a <= 0 && b <= 0 && (a == 0 || b == 0), || {
            "one of its operands must have the scale of the result, and the other one not a larger one"
                .to_owned()
        })?;
        return pair.map(cx, limits, |x, y| body(divided(x, -a), divided(y, -b)).max(-32768.0).min(32767.0));
    }
    let left = if is_wide { 15 } else { 20 };
    let twice = f64::from(2.0 * scales[0].max(scales[1]));
    let output = Multiplier::of(twice / f64::from((1 << left) as f32 * scales[2]));
    pair.map(cx, limits, |a, b| {
        let [a, b] = aligned(scales, left, [a, b]);
        multiplied(body(a, b), output)
    })
}

fn squared_difference(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    const LEFT: i32 = 7;
    let pair = Pair::of_node(cx)?;
    let scales = pair.scales();
    let twice = f64::from(2.0 * scales[0].max(scales[1]));
    let output = Multiplier::of(twice * twice / f64::from((1 << (LEFT * 2)) as f32 * scales[2]));
    pair.map(cx, pair.to.limits(), |a, b| {
        let [a, b] = aligned(scales, LEFT, [a, b]);
        let difference = a - b;
        multiplied(difference * difference, output)
    })
}

fn mul(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let pair = Pair::of_node(cx)?;
    let limits = pair.limits(cx)?;
    let [a, b, to] = pair.scales();
    let output = Multiplier::of(f64::from(a * b / to));
    let [from, other] = &pair.from;
    if from.element_type == PrimitiveType::S16
        && other.element_type == PrimitiveType::S16
        && pair.to.element_type != PrimitiveType::S16
    {
        // Products of fractions of 15 bits, of which the result keeps 7.
        return pair.map(cx, limits, |a, b| {
            let product = a * b;
            let nudge = product.ge(0.0).select(a.splat(2f64.powi(14)), 1.0 - 2f64.powi(14));
            divided(((product + nudge) / 32768.0).min(32767.0), 8)
        });
    }
    pair.map(cx, limits, |a, b| multiplied(a * b, output))
}

/// Division by multiplication with the reciprocal.
fn div(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let pair = Pair::of_node(cx)?;
    let limits = pair.limits(cx)?;
    let [a, b, to] = pair.scales();
    let output = Multiplier::of(f64::from(a / (b * to)));
    pair.map(cx, limits, |a, b| {
        let is_negative = b.lt(0.0);
        let (a, b) = (is_negative.select(-a, a), b.abs());
        let [inverse, bits] = reciprocal(b, 31);
        // Redundant sign bits of 32.
        let headroom = leading_zeros(a.lt(0.0).select(-1.0 - a, a)) - 1.0;
        let quotient = multiplied_by(a, inverse, headroom);
        let scaled = doubling_high(quotient, a.splat(f64::from(output.factor)));
        divided_by(scaled, bits + headroom - f64::from(output.shift))
    })
}

fn prelu(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let pair = Pair::of_node(cx)?;
    let [from, alpha, to] = pair.scales();
    let slope = Multiplier::of(f64::from(from * alpha / to));
    let identity = ratio(&pair.from[0], &pair.to);
    pair.map(cx, pair.to.limits(), |x, alpha| {
        x.ge(0.0).select(multiplied(x, identity), multiplied(x * alpha, slope))
    })
}

/// Compares real numbers, or stored ones of 16 bits unless `scales_16_bits`.
fn compare(cx: &mut NodeContext<'_, '_>, scales_16_bits: bool, body: Binary) -> Result<InstructionId> {
    let pair = Pair::of_node(cx)?;
    if pair.from[0].element_type == PrimitiveType::S16 && !scales_16_bits {
        return cx.composite_one(&pair.values, |_, operands| body(operands[0], operands[1]));
    }
    let [a, b, _] = pair.scales().map(|scale| Multiplier::of(f64::from(scale)));
    cx.composite_one(&pair.values, |_, operands| {
        let [x, y] = pair.centered(operands);
        body(multiplied(x << 8.0, a), multiplied(y << 8.0, b))
    })
}
