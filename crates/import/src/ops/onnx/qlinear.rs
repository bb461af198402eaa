//! Ops of ONNX Runtime on quantized arrays, each with a scale and a zero point.

use crate::node::context::NodeContext;
use crate::node::rule::{Rule, rule};
use crate::ops::nn::activations::leaky_relu_of;
use crate::ops::onnx::operands::{count, flag, float, optional, required};
use crate::ops::onnx::pooling::average;
use crate::ops::onnx::products::{quantized, spread_along};
use crate::ops::onnx::reductions::softmax_along;
use bounded::Reducer;
use hlo::{InstructionId, Op};
use shape::PrimitiveType;
use support::Result;

pub(crate) const RULES: &[Rule] = &[
    rule("OnnxMsQLinearAdd", |cx| binary(cx, Op::Add {})),
    rule("OnnxMsQLinearAveragePool", average_pool),
    rule("OnnxMsQLinearConcat", concat),
    rule("OnnxMsQLinearGlobalAveragePool", global_average_pool),
    rule("OnnxMsQLinearLeakyRelu", leaky_relu),
    rule("OnnxMsQLinearMul", |cx| binary(cx, Op::Multiply {})),
    rule("OnnxMsQLinearSigmoid", sigmoid),
    rule("OnnxMsQLinearSoftmax", softmax),
    rule("OnnxMsQLinearWhere", choose),
];

/// The real numbers of the quantized array at an input, with its scale and its zero point after it.
fn real(cx: &mut NodeContext<'_, '_>, k: usize) -> Result<InstructionId> {
    let (x, scale) = (required(cx, k)?, required(cx, k + 1)?);
    let sizes = cx.sizes(x);
    let mut real = cx.convert(x, PrimitiveType::F32)?;
    if let Some(zero_point) = optional(cx, k + 2)? {
        let zero_point = cx.convert(zero_point, PrimitiveType::F32)?;
        let zero_point = spread_along(cx, zero_point, &sizes, 0)?;
        real = cx.sub(real, zero_point)?;
    }
    let scale = spread_along(cx, scale, &sizes, 0)?;
    cx.mul(real, scale)
}

/// Quantizes with the scale and the zero point at an input.
fn stored(cx: &mut NodeContext<'_, '_>, y: InstructionId, k: usize) -> Result<InstructionId> {
    let (scale, zero_point) = (required(cx, k)?, optional(cx, k + 1)?);
    let sizes = cx.sizes(y);
    let scale = spread_along(cx, scale, &sizes, 0)?;
    let steps = cx.div(y, scale)?;
    let element_type = cx.output_type(0)?;
    quantized(cx, steps, zero_point, element_type, 0)
}

fn binary(cx: &mut NodeContext<'_, '_>, op: Op) -> Result<InstructionId> {
    let (a, b) = (real(cx, 0)?, real(cx, 3)?);
    let (a, b) = cx.broadcast_pair(a, b)?;
    let y = cx.op(op, &[a, b])?;
    stored(cx, y, 6)
}

/// The array with features second.
fn features_second(cx: &mut NodeContext<'_, '_>, x: InstructionId) -> Result<InstructionId> {
    let rank = cx.rank(x);
    cx.check(rank >= 3, || "expected three or more dimensions".to_owned())?;
    let order: Vec<usize> = [0, rank - 1].into_iter().chain(1..rank - 1).collect();
    cx.transpose(x, &order)
}

fn features_last(cx: &mut NodeContext<'_, '_>, x: InstructionId) -> Result<InstructionId> {
    let order: Vec<usize> = [0].into_iter().chain(2..cx.rank(x)).chain([1]).collect();
    cx.transpose(x, &order)
}

fn average_pool(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let mut x = real(cx, 0)?;
    let is_last = flag(cx, "channels_last", false)?;
    if is_last {
        x = features_second(cx, x)?;
    }
    let mut y = average(cx, x)?;
    if is_last {
        y = features_last(cx, y)?;
    }
    stored(cx, y, 3)
}

fn global_average_pool(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let x = real(cx, 0)?;
    let sizes = cx.sizes(x);
    let rank = sizes.len();
    cx.check(rank >= 3, || "expected three or more dimensions".to_owned())?;
    let axes: Vec<usize> = if flag(cx, "channels_last", false)? { 1..rank - 1 } else { 2..rank }.collect();
    let sum = cx.reduce(x, Reducer::Add, &axes)?;
    let total: i64 = axes.iter().map(|&d| sizes[d]).product();
    let total = cx.splat_like(sum, total as f64)?;
    let mean = cx.div(sum, total)?;
    let kept: Vec<i64> = (0..rank).map(|d| if axes.contains(&d) { 1 } else { sizes[d] }).collect();
    let y = cx.reshape(mean, &kept)?;
    stored(cx, y, 3)
}

/// Inputs: scale and zero point of the result, then each array with both.
fn concat(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let mut parts = Vec::new();
    for k in (2..count(cx)?).step_by(3) {
        parts.push(real(cx, k)?);
    }
    let first = *parts.first().ok_or_else(|| cx.invalid("the op has no arrays"))?;
    let axis = cx.attributes().int("axis")?;
    let axis = cx.dimension(axis, cx.rank(first))?;
    let y = cx.concatenate(&parts, axis)?;
    stored(cx, y, 0)
}

fn leaky_relu(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let x = real(cx, 0)?;
    let alpha = float(cx, "alpha", 0.01)?;
    let y = leaky_relu_of(cx, x, alpha as f32)?;
    stored(cx, y, 3)
}

fn sigmoid(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let x = real(cx, 0)?;
    let y = cx.op(Op::Logistic {}, &[x])?;
    stored(cx, y, 3)
}

fn softmax(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let x = real(cx, 0)?;
    let sizes = cx.sizes(x);
    let axis = cx.attributes().int_or("axis", -1)?;
    let axis = cx.dimension(axis, sizes.len())?;
    let y = if cx.attributes().int_or("opset", 13)? < 13 {
        let rows = [cx.checked_product(&sizes[..axis])?, cx.checked_product(&sizes[axis..])?];
        let x = cx.reshape(x, &rows)?;
        let y = softmax_along(cx, x, 1, false)?;
        cx.reshape(y, &sizes)?
    } else {
        softmax_along(cx, x, axis, false)?
    };
    stored(cx, y, 3)
}

/// Inputs: a condition, two arrays with scale and zero point, and those of the result.
fn choose(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let condition = required(cx, 0)?;
    let (x, y) = (real(cx, 1)?, real(cx, 4)?);
    let (x, y) = cx.broadcast_pair(x, y)?;
    let sizes = cx.sizes(x);
    let all = cx.broadcast_sizes(&sizes, &cx.sizes(condition))?;
    let (x, y) = (cx.broadcast_to(x, &all)?, cx.broadcast_to(y, &all)?);
    let condition = cx.broadcast_to(condition, &all)?;
    let z = cx.select(condition, x, y)?;
    stored(cx, z, 7)
}
