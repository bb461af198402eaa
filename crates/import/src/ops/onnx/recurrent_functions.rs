//! The activations that recurrent and fused ops name.

use crate::node::context::NodeContext;
use crate::ops::nn::activations::leaky_relu_of;
use hlo::{ComparisonDirection, InstructionId, Op};
use support::Result;

/// Default parameters of an activation.
pub(crate) fn defaults(name: &str) -> [f64; 2] {
    match name.to_ascii_lowercase().as_str() {
        "leakyrelu" => [0.01, 0.0],
        "thresholdedrelu" | "elu" | "scaledtanh" => [1.0, 1.0],
        "hardsigmoid" => [0.2, 0.5],
        _ => [1.0, 0.0],
    }
}

/// Applies an activation by its name.
pub(crate) fn activation(
    cx: &mut NodeContext<'_, '_>,
    name: &str,
    [alpha, beta]: [f64; 2],
    x: InstructionId,
) -> Result<InstructionId> {
    let zero = cx.splat_like(x, 0.0)?;
    match name.to_ascii_lowercase().as_str() {
        "relu" => cx.op(Op::Maximum {}, &[x, zero]),
        "tanh" => cx.op(Op::Tanh {}, &[x]),
        "sigmoid" => cx.op(Op::Logistic {}, &[x]),
        "affine" => {
            let y = cx.mul_scalar(x, alpha)?;
            cx.add_scalar(y, beta)
        }
        "leakyrelu" => leaky_relu_of(cx, x, alpha as f32),
        "thresholdedrelu" => {
            let is_above = cx.compare_scalar(ComparisonDirection::Ge, x, alpha)?;
            cx.select(is_above, x, zero)
        }
        "scaledtanh" => {
            let y = cx.mul_scalar(x, beta)?;
            let y = cx.op(Op::Tanh {}, &[y])?;
            cx.mul_scalar(y, alpha)
        }
        "hardsigmoid" => {
            let y = cx.mul_scalar(x, alpha)?;
            let y = cx.add_scalar(y, beta)?;
            clipped(cx, y, 0.0, 1.0)
        }
        "elu" => {
            let below = cx.op(Op::Expm1 {}, &[x])?;
            let below = cx.mul_scalar(below, alpha)?;
            let is_above = cx.compare_scalar(ComparisonDirection::Gt, x, 0.0)?;
            cx.select(is_above, x, below)
        }
        "softsign" => {
            let size = cx.op(Op::Abs {}, &[x])?;
            let size = cx.add_scalar(size, 1.0)?;
            cx.div(x, size)
        }
        "softplus" => {
            let exp = cx.op(Op::Exp {}, &[x])?;
            cx.op(Op::Log1p {}, &[exp])
        }
        "clip" => clipped(cx, x, alpha, beta),
        "hardswish" => {
            let weight = cx.mul_scalar(x, 1.0 / 6.0)?;
            let weight = cx.add_scalar(weight, 0.5)?;
            let weight = clipped(cx, weight, 0.0, 1.0)?;
            cx.mul(x, weight)
        }
        _ => Err(cx.invalid(format!("activation '{name}' does not exist"))),
    }
}

/// Clamps to two numbers.
pub(crate) fn clipped(
    cx: &mut NodeContext<'_, '_>,
    x: InstructionId,
    low: f64,
    high: f64,
) -> Result<InstructionId> {
    let (low, high) = (cx.splat_like(x, low)?, cx.splat_like(x, high)?);
    cx.op(Op::Clamp {}, &[low, x, high])
}
