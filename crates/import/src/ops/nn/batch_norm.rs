//! Batch normalization and the ops fused with it.

use crate::node::context::NodeContext;
use crate::node::data_types::*;
use crate::node::rule::{Rule, rule_many};
use crate::ops::math::reductions::accumulation_type;
use crate::ops::nn::pooling::check_same;
use crate::ops::nn::row_norm;
use crate::ops::nn::windows::Format;
use bounded::Reducer;
use hlo::{InstructionId, Op};
use shape::PrimitiveType;
use support::Result;

pub(crate) const RULES: &[Rule] = &[
    rule_many("FusedBatchNorm", |cx| fused_batch_norm(cx, false)).types("T", SINGLE),
    rule_many("FusedBatchNormV2", |cx| fused_batch_norm(cx, false))
        .types("T", FLOATS_TO_32_BITS)
        .types("U", SINGLE),
    rule_many("FusedBatchNormV3", |cx| fused_batch_norm(cx, true))
        .types("T", FLOATS_TO_32_BITS)
        .types("U", SINGLE),
    rule_many("_FusedBatchNormEx", fused_batch_norm_ex).types("T", FLOATS_TO_32_BITS).types("U", SINGLE),
    rule_many("FusedBatchNormGrad", fused_batch_norm_grad).types("T", SINGLE),
    rule_many("FusedBatchNormGradV2", fused_batch_norm_grad).types("T", FLOATS_TO_32_BITS).types("U", SINGLE),
    rule_many("FusedBatchNormGradV3", fused_batch_norm_grad).types("T", FLOATS_TO_32_BITS).types("U", SINGLE),
];

const SINGLE: &[tf::DataType] = &[tf::DataType::Float];

/// `FusedBatchNorm(x, scale, offset, mean, variance)`: `scale * (x - mean) / sqrt(variance +
/// epsilon) + offset`. In training, mean and variance are the batch's own.
///
/// Outputs: the result; mean and variance for later inference (in training the batch's with
/// Bessel's correction, averaged with the old ones); mean and variance for the gradient; since V3,
/// an empty array.
fn fused_batch_norm(cx: &mut NodeContext<'_, '_>, sixth_output: bool) -> Result<Vec<InstructionId>> {
    let x = cx.input(0)?;
    let (sizes, element_type) = (cx.sizes(x), cx.element_type(x));
    let feature_index = feature_index(cx, &sizes)?;
    let (scale, offset) = (cx.input(1)?, cx.input(2)?);
    let features = [sizes[feature_index]];
    check_same(cx, "scale", &cx.sizes(scale), &features)?;
    check_same(cx, "offset", &cx.sizes(offset), &features)?;
    let wide = cx.element_type(scale);
    // The statistics' type may be wider than the input's. Everything is computed in it.
    let x = cx.convert(x, wide)?;
    let mut outputs = if cx.attributes().bool_or("is_training", true)? {
        training(cx, x, [scale, offset], feature_index)?
    } else {
        inference(cx, x, [scale, offset], feature_index)?
    };
    outputs[0] = cx.convert(outputs[0], element_type)?;
    if sixth_output {
        outputs.push(cx.splat(wide, &[0], 0.0)?);
    }
    Ok(outputs)
}

fn feature_index(cx: &NodeContext<'_, '_>, sizes: &[i64]) -> Result<usize> {
    cx.check(matches!(sizes.len(), 4 | 5), || {
        format!("x: expected 4 dimensions, or 5 in 3-D, got {}", sizes.len())
    })?;
    Ok(Format::of_node(cx, sizes.len())?.feature)
}

fn epsilon(cx: &NodeContext<'_, '_>) -> Result<f32> {
    cx.attributes().float_or("epsilon", 1e-4)
}

fn inference(
    cx: &mut NodeContext<'_, '_>,
    x: InstructionId,
    [scale, offset]: [InstructionId; 2],
    feature_index: usize,
) -> Result<Vec<InstructionId>> {
    let (mean, variance) = (cx.input(3)?, cx.input(4)?);
    let features = cx.sizes(scale);
    check_same(cx, "mean", &cx.sizes(mean), &features)?;
    check_same(cx, "variance", &cx.sizes(variance), &features)?;
    let epsilon = epsilon(cx)?;
    let op = Op::BatchNormInference { epsilon, feature_index };
    let y = cx.op(op, &[x, scale, offset, mean, variance])?;
    Ok(vec![y, mean, variance, mean, variance])
}

fn training(
    cx: &mut NodeContext<'_, '_>,
    x: InstructionId,
    [scale, offset]: [InstructionId; 2],
    feature_index: usize,
) -> Result<Vec<InstructionId>> {
    let epsilon = epsilon(cx)?;
    let rows = if feature_index == 1 { row_norm::normalized(cx, x, [scale, offset], epsilon)? } else { None };
    let [y, mean, variance] = match rows {
        Some(results) => results,
        None => {
            let op = Op::BatchNormTraining { epsilon, feature_index };
            let results = cx.op(op, &[x, scale, offset])?;
            [cx.tuple_element(results, 0)?, cx.tuple_element(results, 1)?, cx.tuple_element(results, 2)?]
        }
    };
    let sizes = cx.sizes(x);
    if sizes.contains(&0) {
        // An empty batch has no variance, whatever the old one was.
        let nan = cx.splat_like(variance, f64::NAN)?;
        return Ok(vec![y, mean, nan, mean, variance]);
    }
    let samples: f64 = (0..sizes.len()).filter(|&d| d != feature_index).map(|d| sizes[d] as f64).product();
    let corrected = cx.mul_scalar(variance, samples / (samples - 1.0).max(1.0))?;
    let factor = cx.attributes().float_or("exponential_avg_factor", 1.0)?;
    if factor == 1.0 {
        return Ok(vec![y, mean, corrected, mean, variance]);
    }
    let (old_mean, old_variance) = (cx.input(3)?, cx.input(4)?);
    let features = cx.sizes(scale);
    check_same(cx, "mean", &cx.sizes(old_mean), &features)?;
    check_same(cx, "variance", &cx.sizes(old_variance), &features)?;
    let new_mean = moving_average(cx, old_mean, mean, factor)?;
    let new_variance = moving_average(cx, old_variance, corrected, factor)?;
    Ok(vec![y, new_mean, new_variance, mean, variance])
}

/// `(1 - factor) * old + factor * new`.
fn moving_average(
    cx: &mut NodeContext<'_, '_>,
    old: InstructionId,
    new: InstructionId,
    factor: f32,
) -> Result<InstructionId> {
    let old = cx.mul_scalar(old, f64::from(1.0 - factor))?;
    let new = cx.mul_scalar(new, f64::from(factor))?;
    cx.add(old, new)
}

/// Like [`fused_batch_norm`], followed by `Relu` if the attributes request it. A side input is
/// added before `Relu`. Without `Relu` it is ignored, as in XLA; TensorFlow's optimizer creates no
/// such node.
fn fused_batch_norm_ex(cx: &mut NodeContext<'_, '_>) -> Result<Vec<InstructionId>> {
    let mut outputs = fused_batch_norm(cx, true)?;
    let side_inputs = cx.attributes().int_or("num_side_inputs", 0)?;
    cx.check((0..=1).contains(&side_inputs), || {
        format!("num_side_inputs: expected 0 or 1, got {side_inputs}")
    })?;
    match cx.text_or("activation_mode", "Identity")? {
        "Identity" => return Ok(outputs),
        "Relu" => {}
        other => return Err(cx.invalid(format!("activation_mode: expected Identity or Relu, got '{other}'"))),
    }
    if side_inputs == 1 {
        let side = cx.input(5)?;
        check_same(cx, "the side input", &cx.sizes(side), &cx.sizes(outputs[0]))?;
        outputs[0] = cx.add(outputs[0], side)?;
    }
    let zero = cx.splat_like(outputs[0], 0.0)?;
    outputs[0] = cx.op(Op::Maximum {}, &[outputs[0], zero])?;
    Ok(outputs)
}

/// `FusedBatchNormGrad(gradient, x, scale, mean, variance)`: the gradients of x, scale, and offset,
/// and two empty arrays.
fn fused_batch_norm_grad(cx: &mut NodeContext<'_, '_>) -> Result<Vec<InstructionId>> {
    let (gradient, x, scale) = (cx.input(0)?, cx.input(1)?, cx.input(2)?);
    let (mean, variance) = (cx.input(3)?, cx.input(4)?);
    let (sizes, element_type, wide) = (cx.sizes(x), cx.element_type(x), cx.element_type(scale));
    let feature_index = feature_index(cx, &sizes)?;
    let features = [sizes[feature_index]];
    check_same(cx, "the gradient", &cx.sizes(gradient), &sizes)?;
    for (what, vector) in [("scale", scale), ("mean", mean), ("variance", variance)] {
        check_same(cx, what, &cx.sizes(vector), &features)?;
    }
    let (gradient, x) = (cx.convert(gradient, wide)?, cx.convert(x, wide)?);
    let epsilon = epsilon(cx)?;
    let [dx, dscale, doffset] = if cx.attributes().bool_or("is_training", true)? {
        let op = Op::BatchNormGrad { epsilon, feature_index };
        let results = cx.op(op, &[x, scale, mean, variance, gradient])?;
        [cx.tuple_element(results, 0)?, cx.tuple_element(results, 1)?, cx.tuple_element(results, 2)?]
    } else {
        inference_grad(cx, [gradient, x], [scale, mean, variance], feature_index)?
    };
    let dx = cx.convert(dx, element_type)?;
    let empty = cx.splat(PrimitiveType::F32, &[0], 0.0)?;
    Ok(vec![dx, dscale, doffset, empty, empty])
}

/// Returns the gradients for constant mean and variance: `g * scale * r`, `sum(g * (x - mean)) *
/// r`, and `sum(g)`, with `r = 1 / sqrt(variance + epsilon)`.
fn inference_grad(
    cx: &mut NodeContext<'_, '_>,
    [gradient, x]: [InstructionId; 2],
    [scale, mean, variance]: [InstructionId; 3],
    feature_index: usize,
) -> Result<[InstructionId; 3]> {
    let sizes = cx.sizes(x);
    let samples: Vec<usize> = (0..sizes.len()).filter(|&d| d != feature_index).collect();
    let epsilon = f64::from(epsilon(cx)?);
    let shifted = cx.add_scalar(variance, epsilon)?;
    let root = cx.op(Op::Rsqrt {}, &[shifted])?;
    let factor = cx.mul(root, scale)?;
    let factor = cx.broadcast(factor, &sizes, &[feature_index])?;
    let dx = cx.mul(gradient, factor)?;
    let mean = cx.broadcast(mean, &sizes, &[feature_index])?;
    let centered = cx.sub(x, mean)?;
    let product = cx.mul(gradient, centered)?;
    let product = sum(cx, product, &samples)?;
    let dscale = cx.mul(product, root)?;
    let doffset = sum(cx, gradient, &samples)?;
    Ok([dx, dscale, doffset])
}

fn sum(cx: &mut NodeContext<'_, '_>, x: InstructionId, dimensions: &[usize]) -> Result<InstructionId> {
    let element_type = cx.element_type(x);
    let wide = cx.convert(x, accumulation_type(element_type))?;
    let sum = cx.reduce(wide, Reducer::Add, dimensions)?;
    cx.convert(sum, element_type)
}
