//! Elementwise arithmetic: one HLO opcode each, or a few.

use crate::lists::sums;
use crate::node::context::NodeContext;
use crate::node::data_types::*;
use crate::node::rule::{Rule, rule, rule_values};
use crate::values::value::Value;
use bounded::list;
use hlo::{ComparisonDirection, InstructionId, Op};
use shape::PrimitiveType;
use support::Result;

pub(crate) const RULES: &[Rule] = &[
    rule("Add", |cx| cx.binary(Op::Add {})).types("T", NUMBERS),
    rule("AddV2", |cx| cx.binary(Op::Add {})).types("T", NUMBERS),
    rule("Sub", |cx| cx.binary(Op::Subtract {})).types("T", NUMBERS),
    rule("Mul", |cx| cx.binary(Op::Multiply {})).types("T", NUMBERS),
    rule("Maximum", |cx| cx.binary(Op::Maximum {})).types("T", REAL),
    rule("Minimum", |cx| cx.binary(Op::Minimum {})).types("T", REAL),
    // Integers: base 1 to a negative power is 1, any other base 0, as in XLA.
    rule("Pow", |cx| cx.binary(Op::Power {})).types("T", SIGNED_NUMBERS),
    rule("SquaredDifference", squared_difference).types("T", NUMBERS),
    rule("Atan2", |cx| cx.binary(Op::Atan2 {})).types("T", FLOATS),
    rule("BitwiseAnd", |cx| cx.binary(Op::And {})).types("T", INTEGERS),
    rule("BitwiseOr", |cx| cx.binary(Op::Or {})).types("T", INTEGERS),
    rule("BitwiseXor", |cx| cx.binary(Op::Xor {})).types("T", INTEGERS),
    // A count outside of 0..width shifts out all bits, as in XLA.
    rule("LeftShift", |cx| cx.binary(Op::ShiftLeft {})).types("T", INTEGERS),
    rule("RightShift", right_shift).types("T", INTEGERS),
    rule("LogicalAnd", |cx| cx.binary(Op::And {})),
    rule("LogicalOr", |cx| cx.binary(Op::Or {})),
    rule("LogicalNot", |cx| cx.unary(Op::Not {})),
    rule("Invert", |cx| cx.unary(Op::Not {})).types("T", INTEGERS),
    rule("PopulationCount", population_count).types("T", INTEGERS),
    rule("Neg", |cx| cx.unary(Op::Negate {})).types("T", SIGNED_NUMBERS),
    rule("Abs", |cx| cx.unary(Op::Abs {})).types("T", SIGNED_REAL),
    rule("Sign", |cx| cx.unary(Op::Sign {})).types("T", SIGNED_NUMBERS),
    rule("Square", square).types("T", NUMBERS),
    rule("Sqrt", |cx| cx.unary(Op::Sqrt {})).types("T", FLOATS_AND_COMPLEX),
    rule("Rsqrt", |cx| cx.unary(Op::Rsqrt {})).types("T", FLOATS_AND_COMPLEX),
    rule("Exp", |cx| cx.unary(Op::Exp {})).types("T", FLOATS_AND_COMPLEX),
    rule("Expm1", |cx| cx.unary(Op::Expm1 {})).types("T", FLOATS_AND_COMPLEX),
    rule("Log", |cx| cx.unary(Op::Log {})).types("T", FLOATS_AND_COMPLEX),
    rule("Log1p", |cx| cx.unary(Op::Log1p {})).types("T", FLOATS_AND_COMPLEX),
    rule("Tanh", |cx| cx.unary(Op::Tanh {})).types("T", FLOATS_AND_COMPLEX),
    rule("Floor", |cx| cx.unary(Op::Floor {})).types("T", FLOATS),
    rule("Ceil", |cx| cx.unary(Op::Ceil {})).types("T", FLOATS),
    rule("Rint", |cx| cx.unary(Op::RoundNearestEven {})).types("T", FLOATS),
    rule("Round", round).types("T", SIGNED_NUMBERS),
    rule("IsFinite", |cx| cx.unary(Op::IsFinite {})).types("T", FLOATS),
    rule("IsNan", is_nan).types("T", FLOATS),
    rule("IsInf", is_inf).types("T", FLOATS),
    rule("ClipByValue", clip_by_value).types("T", REAL_AND_QUANTIZED),
    rule("SqrtGrad", sqrt_grad).types("T", FLOATS_AND_COMPLEX),
    rule("RsqrtGrad", rsqrt_grad).types("T", FLOATS_AND_COMPLEX),
    rule("ReciprocalGrad", reciprocal_grad).types("T", FLOATS_AND_COMPLEX),
    rule("InvGrad", reciprocal_grad).types("T", FLOATS_AND_COMPLEX),
    rule("TanhGrad", tanh_grad).types("T", FLOATS_AND_COMPLEX),
    rule("SigmoidGrad", sigmoid_grad).types("T", FLOATS_AND_COMPLEX),
    rule_values("AddN", add_n).types("T", SUMMABLE),
];

/// `AddN(x0, x1, ...) = x0 + x1 + ...` of arrays of one shape, or of lists.
fn add_n(cx: &mut NodeContext<'_, '_>) -> Result<Vec<Value>> {
    if cx.inputs().iter().any(|input| matches!(input, Value::List(_))) {
        return sums::add_n(cx);
    }
    let inputs = cx.inputs_from(0)?;
    let mut sum = *inputs.first().ok_or_else(|| cx.invalid("expected at least one input"))?;
    let sizes = cx.sizes(sum);
    for &input in &inputs[1..] {
        let other = cx.sizes(input);
        cx.check(other == sizes, || format!("Incompatible shapes: {} vs. {}", list(&sizes), list(&other)))?;
        sum = cx.add(sum, input)?;
    }
    Ok(vec![Value::Array(sum)])
}

/// `SquaredDifference(x, y) = conj(x - y) * (x - y)`.
fn squared_difference(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let difference = cx.binary(Op::Subtract {})?;
    let conjugate = cx.conjugate(difference)?;
    cx.mul(conjugate, difference)
}

/// Shifts signed integers arithmetically and unsigned integers logically. A count outside of
/// 0..width yields the sign or 0, as in XLA.
fn right_shift(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let unsigned = cx.type_attribute("T")?.is_unsigned_integer();
    cx.binary(if unsigned { Op::ShiftRightLogical {} } else { Op::ShiftRightArithmetic {} })
}

/// Returns the number of ones, as `uint8`.
fn population_count(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let count = cx.unary(Op::PopulationCount {})?;
    cx.convert(count, PrimitiveType::U8)
}

/// `Square(x) = x * x`.
fn square(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let x = cx.input(0)?;
    cx.mul(x, x)
}

/// Rounds to the nearest integer, ties to even. Integers are unchanged, and complex numbers are
/// rounded part by part.
fn round(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let x = cx.input(0)?;
    let element_type = cx.element_type(x);
    if element_type.is_integer() {
        return Ok(x);
    }
    if element_type.is_complex() {
        let (re, im) = cx.parts(x)?;
        let re = cx.op(Op::RoundNearestEven {}, &[re])?;
        let im = cx.op(Op::RoundNearestEven {}, &[im])?;
        return cx.op(Op::Complex {}, &[re, im]);
    }
    cx.op(Op::RoundNearestEven {}, &[x])
}

/// `x != x`.
fn is_nan(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let x = cx.input(0)?;
    cx.compare(ComparisonDirection::Ne, x, x)
}

/// `|x| == inf`.
fn is_inf(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let magnitude = cx.unary(Op::Abs {})?;
    cx.compare_scalar(ComparisonDirection::Eq, magnitude, f64::INFINITY)
}

/// `ClipByValue(x, low, high) = minimum(maximum(x, low), high)`. NaN is preserved, and crossed
/// bounds yield the upper one, as in XLA. Bounds are scalars or have the shape of `x`.
fn clip_by_value(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let (x, low, high) = (cx.input(0)?, cx.input(1)?, cx.input(2)?);
    let sizes = cx.sizes(x);
    for bound in [low, high] {
        let actual = cx.sizes(bound);
        cx.check(actual.is_empty() || actual == sizes, || {
            format!(
                "expected a scalar bound or one of the input's shape, got {} for an input of shape {}",
                list(&actual),
                list(&sizes)
            )
        })?;
    }
    let (low, high) = (cx.broadcast_to(low, &sizes)?, cx.broadcast_to(high, &sizes)?);
    let raised = cx.op(Op::Maximum {}, &[x, low])?;
    cx.op(Op::Minimum {}, &[raised, high])
}

/// `SqrtGrad(y, dy) = dy * 0.5 / y`.
fn sqrt_grad(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let (y, dy) = cx.binary_inputs()?;
    let half = cx.mul_scalar(dy, 0.5)?;
    cx.div(half, y)
}

/// `RsqrtGrad(y, dy) = y * y * y * (dy / -2)`.
fn rsqrt_grad(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let (y, dy) = cx.binary_inputs()?;
    let square = cx.mul(y, y)?;
    let cube = cx.mul(square, y)?;
    let minus_two = cx.splat_like(dy, -2.0)?;
    let half = cx.div(dy, minus_two)?;
    cx.mul(cube, half)
}

/// `ReciprocalGrad(y, dy) = -(dy * (y * y))`.
fn reciprocal_grad(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let (y, dy) = cx.binary_inputs()?;
    let square = cx.mul(y, y)?;
    let product = cx.mul(dy, square)?;
    cx.neg(product)
}

/// `TanhGrad(y, dy) = dy * (1 - y * y)`.
fn tanh_grad(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let (y, dy) = cx.binary_inputs()?;
    let one = cx.splat_like(y, 1.0)?;
    let square = cx.mul(y, y)?;
    let derivative = cx.sub(one, square)?;
    cx.mul(dy, derivative)
}

/// `SigmoidGrad(y, dy) = dy * y * (1 - y)`.
fn sigmoid_grad(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let (y, dy) = cx.binary_inputs()?;
    let one = cx.splat_like(y, 1.0)?;
    let product = cx.mul(dy, y)?;
    let rest = cx.sub(one, y)?;
    cx.mul(product, rest)
}
