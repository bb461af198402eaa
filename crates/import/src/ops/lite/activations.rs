//! Elementwise operators with one operand.

use super::arithmetic::{divided, inverse_root, multiplied, multiplied_by, narrow};
use super::fixed_point::Multiplier;
use super::operands::{Operands, Quantization};
use super::tables::{of_8_bits, of_entries, of_function};
use crate::node::context::NodeContext;
use crate::node::rule::{Rule, rule};
use ::composite::Expression;
use hlo::InstructionId;
use shape::PrimitiveType;
use support::Result;

pub(crate) const RULES: &[Rule] = &[
    rule("TFLiteAbs", abs),
    rule("TFLiteElu", |cx| real(cx, |x| if x < 0.0 { wide(x, libm::expm1) } else { x })),
    rule("TFLiteExp", |cx| real(cx, |x| wide(x, libm::exp))),
    rule("TFLiteGelu", gelu),
    rule("TFLiteHardSwish", hard_swish),
    rule("TFLiteLeakyRelu", leaky_relu),
    rule("TFLiteLog", log),
    rule("TFLiteRelu", |cx| relu(cx, [Some(0.0), None])),
    rule("TFLiteRelu0To1", |cx| relu(cx, [Some(0.0), Some(1.0)])),
    rule("TFLiteRelu6", |cx| relu(cx, [Some(0.0), Some(6.0)])),
    rule("TFLiteReluN1To1", |cx| relu(cx, [Some(-1.0), Some(1.0)])),
    rule("TFLiteRsqrt", rsqrt),
    rule("TFLiteSqrt", sqrt),
];

/// The operand and the quantization of operand and result.
pub(super) fn operand(cx: &mut NodeContext<'_, '_>) -> Result<(InstructionId, Quantization, Quantization)> {
    let operands = Operands::of_node(cx)?;
    let (x, from) = operands.input(cx, 0)?;
    let to = operands.output(cx, 0)?;
    Ok((x, from, to))
}

/// A function in double precision, rounded to single.
pub(super) fn wide(x: f32, function: impl Fn(f64) -> f64) -> f32 {
    function(f64::from(x)) as f32
}

/// Applies a function of real numbers by a table.
pub(super) fn real(cx: &mut NodeContext<'_, '_>, function: impl Fn(f32) -> f32) -> Result<InstructionId> {
    let (x, from, to) = operand(cx)?;
    of_function(cx, x, &from, &to, function)
}

/// Applies a function of integers, from `s64` to `s64`, and clamps its results.
fn integer(
    cx: &mut NodeContext<'_, '_>,
    x: InstructionId,
    from: &Quantization,
    to: &Quantization,
    body: impl for<'f> FnOnce(Expression<'f>) -> Expression<'f>,
) -> Result<InstructionId> {
    if from.element_type != PrimitiveType::S16 {
        return of_8_bits(cx, x, from, to, body);
    }
    let [low, high] = to.limits().map(|limit| limit as f64);
    cx.composite_one(&[x], |_, operands| {
        body(operands[0].convert(PrimitiveType::S64)).max(low).min(high).convert(to.element_type)
    })
}

/// A quotient of scales, which the reference computes in single precision.
pub(super) fn ratio(from: &Quantization, to: &Quantization) -> Multiplier {
    Multiplier::of(f64::from(from.scale() as f32 / to.scale() as f32))
}

/// Zero points as operands of expressions.
pub(super) fn zero_points(from: &Quantization, to: &Quantization) -> [f64; 2] {
    [from, to].map(|quantization| quantization.zero_point() as f64)
}

fn abs(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let (x, from, to) = operand(cx)?;
    let [zero, offset] = zero_points(&from, &to);
    integer(cx, x, &from, &to, |x| multiplied((x - zero).abs(), ratio(&from, &to)) + offset)
}

/// Clamps to bounds that may be absent.
fn relu(cx: &mut NodeContext<'_, '_>, bounds: [Option<f64>; 2]) -> Result<InstructionId> {
    let (x, from, to) = operand(cx)?;
    let [zero, offset] = zero_points(&from, &to);
    let [least, largest] = to.limits();
    let [low, high] = bounds.map(|bound| bound.map(|bound| to.stored(bound)));
    let low = low.map_or(least, |low| low.max(least)) as f64;
    let high = high.map_or(largest, |high| high.min(largest)) as f64;
    if from.scales == to.scales && zero == offset {
        return cx.composite_one(&[x], |_, operands| operands[0].max(low).min(high));
    }
    integer(cx, x, &from, &to, |x| (multiplied(x - zero, ratio(&from, &to)) + offset).max(low).min(high))
}

fn leaky_relu(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let (x, from, to) = operand(cx)?;
    let [zero, offset] = zero_points(&from, &to);
    let alpha = cx.attributes().float("alpha")?;
    let slope = Multiplier::of(f64::from(from.scale() as f32 * alpha / to.scale() as f32));
    integer(cx, x, &from, &to, |x| {
        let x = x - zero;
        x.ge(0.0).select(multiplied(x, ratio(&from, &to)), multiplied(x, slope)) + offset
    })
}

/// x × factor / 2^15, rounded to nearest.
fn high(x: Expression<'_>, factor: f64) -> Expression<'_> {
    let product = x * factor;
    let nudge = product.ge(0.0).select(x.splat(2f64.powi(14)), 1.0 - 2f64.powi(14));
    (product + nudge) / 32768.0
}

/// Clamps to the range of 16 bits.
fn saturated(x: Expression<'_>) -> Expression<'_> {
    x.max(-32768.0).min(32767.0)
}

/// x × relu6(x + 3) / 6 in 16 bits.
fn hard_swish(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let (x, from, to) = operand(cx)?;
    let [zero, offset] = zero_points(&from, &to);
    let scale = from.scale() as f32 / 128.0;
    let output = Multiplier::of(f64::from(scale / to.scale() as f32));
    let gate = Multiplier::of(f64::from(scale / (3.0f32 / 32768.0)));
    integer(cx, x, &from, &to, |x| {
        let scaled = (x - zero) * 128.0;
        let numerator = high(scaled, narrow(output));
        let mut opening = scaled;
        if gate.shift > 0 {
            opening = saturated(opening * 2f64.powi(gate.shift - 1));
        }
        opening = high(opening, narrow(gate));
        if gate.shift > 0 {
            opening = saturated(opening * 2.0);
        }
        opening = divided(opening, -gate.shift.min(0));
        let opening = (opening + 32768.0).shift_right_arithmetic(1.0);
        let product = numerator * opening / 32768.0;
        divided(product * 2f64.powi(output.shift.max(0)), -output.shift.min(0)) + offset
    })
}

fn gelu(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    if cx.attributes().bool_or("approximate", false)? {
        let scale = (2.0 / std::f64::consts::PI).sqrt() as f32;
        let bent = |x: f32| wide(scale * (x + 0.044_715 * x * x * x), libm::tanh);
        return real(cx, |x| 0.5 * x * (1.0 + bent(x)));
    }
    real(cx, |x| 0.5 * x * wide(x * -std::f32::consts::FRAC_1_SQRT_2, libm::erfc))
}

/// The logarithm of numbers that are not positive is the least result.
fn log(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let (x, from, to) = operand(cx)?;
    let least = (to.limits()[0] - to.zero_point()) as f32 * to.scale() as f32;
    of_function(cx, x, &from, &to, |x| if x <= 0.0 { least } else { wide(x, libm::log) })
}

/// 1 / √x. The reference refuses negative numbers.
fn rsqrt(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let (x, from, to) = operand(cx)?;
    let scale = to.scale() as f32;
    if from.element_type == PrimitiveType::S16 {
        let largest = f32::from(i16::MAX) * scale;
        return of_function(cx, x, &from, &to, |x| if x <= 0.0 { largest } else { 1.0 / x.sqrt() });
    }
    /// Bits that keep the intermediate result an integer.
    const SHIFT: i32 = 20;
    let multiplier = Multiplier::of(1.0 / f64::from((from.scale() as f32).sqrt() * scale));
    let multiplier = Multiplier { shift: multiplier.shift - SHIFT, ..multiplier };
    let [zero, offset] = zero_points(&from, &to);
    let largest = to.limits()[1] as f64;
    of_8_bits(cx, x, &from, &to, |x| {
        let x = x - zero;
        let [factor, shift] = inverse_root(x);
        let root = multiplied_by(x.splat(1.0), factor, shift + f64::from(SHIFT));
        x.equal(0.0).select(x.splat(largest), multiplied(root, multiplier) + offset)
    })
}

/// √x, rounded toward zero. The reference refuses negative numbers.
fn sqrt(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let (x, from, to) = operand(cx)?;
    let [zero, offset] = zero_points(&from, &to);
    if from.element_type != PrimitiveType::S16 {
        let real = |x: i64| from.scale() as f32 * (x - from.zero_point()) as f32;
        return of_entries(cx, x, &from, &to, |x| {
            (real(x).sqrt() / to.scale() as f32).trunc() + offset as f32
        });
    }
    integer(cx, x, &from, &to, |x| {
        let real = (x - zero).convert(PrimitiveType::F32) * from.scale();
        (real.sqrt() / to.scale()).convert(PrimitiveType::S64) + offset
    })
}
