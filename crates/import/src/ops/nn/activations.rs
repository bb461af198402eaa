//! Activation functions and their gradients. NaN propagates throughout.

use crate::node::context::NodeContext;
use crate::node::data_types::*;
use crate::node::rule::{Rule, rule};
use bounded::list;
use hlo::{ComparisonDirection, InstructionId, Op};
use shape::PrimitiveType;
use support::Result;

pub(crate) const RULES: &[Rule] = &[
    rule("Relu", relu).types("T", RELU),
    rule("Relu6", relu6).types("T", REAL),
    rule("LeakyRelu", leaky_relu).types("T", FLOATS),
    rule("Prelu", prelu).types("T", FLOATS),
    rule("Elu", elu).types("T", FLOATS),
    rule("Selu", selu).types("T", FLOATS),
    rule("Softplus", softplus).types("T", FLOATS),
    rule("Softsign", softsign).types("T", FLOATS),
    rule("Sigmoid", sigmoid).types("T", FLOATS_AND_COMPLEX),
    rule("ReluGrad", relu_grad).types("T", REAL),
    rule("Relu6Grad", relu6_grad).types("T", REAL),
    rule("LeakyReluGrad", leaky_relu_grad).types("T", FLOATS),
    rule("EluGrad", elu_grad).types("T", FLOATS),
    rule("SeluGrad", selu_grad).types("T", FLOATS),
    rule("SoftplusGrad", softplus_grad).types("T", FLOATS),
    rule("SoftsignGrad", softsign_grad).types("T", FLOATS),
];

const SELU_SCALE: f64 = 1.050_700_987_355_480_5;
const SELU_SCALE_ALPHA: f64 = 1.758_099_340_847_376_9;

/// `Relu(x) = maximum(x, 0)`.
fn relu(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let x = cx.input(0)?;
    let zero = cx.splat_like(x, 0.0)?;
    cx.op(Op::Maximum {}, &[x, zero])
}

/// `Relu6(x) = minimum(maximum(x, 0), 6)`.
fn relu6(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let positive = relu(cx)?;
    let six = cx.splat_like(positive, 6.0)?;
    cx.op(Op::Minimum {}, &[positive, six])
}

/// `LeakyRelu(x) = x > 0 ? x : alpha * x`.
fn leaky_relu(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let x = cx.input(0)?;
    let alpha = cx.attributes().float_or("alpha", 0.2)?;
    leaky_relu_of(cx, x, alpha)
}

/// Like [`leaky_relu`], for any array.
pub(crate) fn leaky_relu_of(
    cx: &mut NodeContext<'_, '_>,
    x: InstructionId,
    alpha: f32,
) -> Result<InstructionId> {
    let scaled = cx.mul_scalar(x, f64::from(alpha))?;
    let positive = cx.compare_scalar(ComparisonDirection::Gt, x, 0.0)?;
    cx.select(positive, x, scaled)
}

/// `Prelu(x) = x < 0 ? alpha * x : x`. An op of TensorFlow.js.
fn prelu(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let (x, alpha) = (cx.input(0)?, cx.input(1)?);
    prelu_of(cx, x, alpha)
}

/// Like [`prelu`], for any array. `alpha` is broadcast to its shape.
pub(crate) fn prelu_of(
    cx: &mut NodeContext<'_, '_>,
    x: InstructionId,
    alpha: InstructionId,
) -> Result<InstructionId> {
    let sizes = cx.sizes(x);
    let alpha = cx.broadcast_to(alpha, &sizes)?;
    let scaled = cx.mul(x, alpha)?;
    let negative = cx.compare_scalar(ComparisonDirection::Lt, x, 0.0)?;
    cx.select(negative, scaled, x)
}

/// `Elu(x) = x > 0 ? x : expm1(x)`.
fn elu(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let x = cx.input(0)?;
    let positive = cx.compare_scalar(ComparisonDirection::Gt, x, 0.0)?;
    let expm1 = cx.op(Op::Expm1 {}, &[x])?;
    cx.select(positive, x, expm1)
}

/// `Selu(x) = x > 0 ? scale * x : scale * alpha * expm1(x)`.
fn selu(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let x = cx.input(0)?;
    let positive = cx.compare_scalar(ComparisonDirection::Gt, x, 0.0)?;
    let scaled = cx.mul_scalar(x, SELU_SCALE)?;
    let expm1 = cx.op(Op::Expm1 {}, &[x])?;
    let negative = cx.mul_scalar(expm1, SELU_SCALE_ALPHA)?;
    cx.select(positive, scaled, negative)
}

/// `Softplus(x) = log(1 + exp(x))`. It is `x` if adding 1 to `exp(x)` changes nothing, and `exp(x)`
/// if that is negligible against 1.
fn softplus(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let x = cx.input(0)?;
    let mantissa_bits = match cx.element_type(x) {
        PrimitiveType::Bf16 => 7,
        PrimitiveType::F16 => 10,
        PrimitiveType::F32 => 23,
        _ => 52,
    };
    let threshold = 2.0 - f64::from(mantissa_bits) * std::f64::consts::LN_2;
    let too_large = cx.compare_scalar(ComparisonDirection::Gt, x, -threshold)?;
    let too_small = cx.compare_scalar(ComparisonDirection::Lt, x, threshold)?;
    let exp = cx.op(Op::Exp {}, &[x])?;
    let log1p = cx.op(Op::Log1p {}, &[exp])?;
    let rest = cx.select(too_small, exp, log1p)?;
    cx.select(too_large, x, rest)
}

/// `Softsign(x) = x / (|x| + 1)`.
fn softsign(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let x = cx.input(0)?;
    let magnitude = cx.op(Op::Abs {}, &[x])?;
    let divisor = cx.add_scalar(magnitude, 1.0)?;
    cx.div(x, divisor)
}

/// `Sigmoid(x) = 1 / (1 + exp(-x))`.
fn sigmoid(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let x = cx.input(0)?;
    if !cx.element_type(x).is_complex() {
        return cx.op(Op::Logistic {}, &[x]);
    }
    let negative = cx.neg(x)?;
    let exp = cx.op(Op::Exp {}, &[negative])?;
    let divisor = cx.add_scalar(exp, 1.0)?;
    let one = cx.splat_like(x, 1.0)?;
    cx.div(one, divisor)
}

/// Returns gradients and features (or activations), which must have one shape.
fn gradient_inputs(cx: &mut NodeContext<'_, '_>) -> Result<(InstructionId, InstructionId)> {
    let (gradients, features) = (cx.input(0)?, cx.input(1)?);
    let (a, b) = (cx.sizes(gradients), cx.sizes(features));
    cx.check(a == b, || format!("Incompatible shapes: {} vs. {}", list(&a), list(&b)))?;
    Ok((gradients, features))
}

/// `ReluGrad(g, x) = x > 0 ? g : 0`.
fn relu_grad(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let (g, x) = gradient_inputs(cx)?;
    let positive = cx.compare_scalar(ComparisonDirection::Gt, x, 0.0)?;
    let zero = cx.splat_like(g, 0.0)?;
    cx.select(positive, g, zero)
}

/// `Relu6Grad(g, x) = 0 < x < 6 ? g : 0`.
fn relu6_grad(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let (g, x) = gradient_inputs(cx)?;
    let positive = cx.compare_scalar(ComparisonDirection::Gt, x, 0.0)?;
    let small = cx.compare_scalar(ComparisonDirection::Lt, x, 6.0)?;
    let active = cx.op(Op::And {}, &[positive, small])?;
    let zero = cx.splat_like(g, 0.0)?;
    cx.select(active, g, zero)
}

/// `LeakyReluGrad(g, x) = x > 0 ? g : alpha * g`.
fn leaky_relu_grad(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let (g, x) = gradient_inputs(cx)?;
    let alpha = f64::from(cx.attributes().float_or("alpha", 0.2)?);
    let positive = cx.compare_scalar(ComparisonDirection::Gt, x, 0.0)?;
    let scaled = cx.mul_scalar(g, alpha)?;
    cx.select(positive, g, scaled)
}

/// `EluGrad(g, y) = y > 0 ? g : g * (y + 1)`.
fn elu_grad(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let (g, y) = gradient_inputs(cx)?;
    let positive = cx.compare_scalar(ComparisonDirection::Gt, y, 0.0)?;
    let derivative = cx.add_scalar(y, 1.0)?;
    let negative = cx.mul(g, derivative)?;
    cx.select(positive, g, negative)
}

/// `SeluGrad(g, y) = y > 0 ? g * scale : g * (y + scale * alpha)`.
fn selu_grad(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let (g, y) = gradient_inputs(cx)?;
    let positive = cx.compare_scalar(ComparisonDirection::Gt, y, 0.0)?;
    let scaled = cx.mul_scalar(g, SELU_SCALE)?;
    let derivative = cx.add_scalar(y, SELU_SCALE_ALPHA)?;
    let negative = cx.mul(g, derivative)?;
    cx.select(positive, scaled, negative)
}

/// `SoftplusGrad(g, x) = g * sigmoid(x)`.
fn softplus_grad(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let (g, x) = gradient_inputs(cx)?;
    let sigmoid = cx.op(Op::Logistic {}, &[x])?;
    cx.mul(g, sigmoid)
}

/// `SoftsignGrad(g, x) = g / (1 + |x|)^2`.
fn softsign_grad(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let (g, x) = gradient_inputs(cx)?;
    let magnitude = cx.op(Op::Abs {}, &[x])?;
    let divisor = cx.add_scalar(magnitude, 1.0)?;
    let square = cx.mul(divisor, divisor)?;
    cx.div(g, square)
}
