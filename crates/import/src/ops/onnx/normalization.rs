//! Normalization.

use crate::node::context::NodeContext;
use crate::node::rule::{Rule, rule, rule_many};
use crate::ops::math::reductions::count_like;
use crate::ops::onnx::operands::{dimensions, flag, float, opset, optional, required};
use crate::ops::onnx::pooling::{power_of_size, root};
use crate::ops::onnx::shapes::resized;
use bounded::{Reducer, Size, list};
use hlo::{ComparisonDirection, InstructionId, Op, Window, WindowDimension};
use shape::PrimitiveType;
use support::Result;

pub(crate) const RULES: &[Rule] = &[
    rule_many("OnnxBatchNormalization", batch_normalization),
    rule("OnnxGroupNormalization", group_normalization),
    rule("OnnxInstanceNormalization", instance_normalization),
    rule("OnnxLRN", local_response),
    rule_many("OnnxLayerNormalization", layer_normalization),
    rule("OnnxLpNormalization", lp_normalization),
    rule("OnnxMeanVarianceNormalization", mean_variance),
    rule_many("OnnxMsSkipLayerNormalization", |cx| skip_layer_normalization(cx, false)),
    rule_many("OnnxMsSkipSimplifiedLayerNormalization", |cx| skip_layer_normalization(cx, true)),
    rule("OnnxRMSNormalization", rms_normalization),
    rule_many("OnnxSimplifiedLayerNormalization", simplified_layer_normalization),
];

/// The type in which statistics are computed.
fn wide_type(element_type: PrimitiveType) -> PrimitiveType {
    match element_type {
        PrimitiveType::F64 => PrimitiveType::F64,
        _ => PrimitiveType::F32,
    }
}

/// The mean along axes, with the sizes of the array.
fn mean(cx: &mut NodeContext<'_, '_>, x: InstructionId, axes: &[usize]) -> Result<[InstructionId; 2]> {
    let sizes = cx.sizes(x);
    let sum = cx.reduce(x, Reducer::Add, axes)?;
    let count = count_like(cx, x, axes, sum)?;
    let mean = cx.div(sum, count)?;
    let others: Vec<usize> = (0..sizes.len()).filter(|d| !axes.contains(d)).collect();
    Ok([mean, cx.broadcast(mean, &sizes, &others)?])
}

/// An array less its mean, divided by its standard deviation along axes; with the mean and the
/// inverse of the deviation.
struct Normalized {
    y: InstructionId,
    mean: InstructionId,
    inverse: InstructionId,
}

/// Normalizes along axes. Without `centers`, the deviation is that from 0.
fn normalized(
    cx: &mut NodeContext<'_, '_>,
    x: InstructionId,
    axes: &[usize],
    epsilon: f64,
    centers: bool,
) -> Result<Normalized> {
    let sizes = cx.sizes(x);
    let others: Vec<usize> = (0..sizes.len()).filter(|d| !axes.contains(d)).collect();
    let [average, spread] = mean(cx, x, axes)?;
    let centered = if centers { cx.sub(x, spread)? } else { x };
    let square = cx.mul(centered, centered)?;
    let [variance, _] = mean(cx, square, axes)?;
    let variance = cx.add_scalar(variance, epsilon)?;
    let inverse = cx.op(Op::Rsqrt {}, &[variance])?;
    let factor = cx.broadcast(inverse, &sizes, &others)?;
    Ok(Normalized { y: cx.mul(centered, factor)?, mean: average, inverse })
}

fn batch_normalization(cx: &mut NodeContext<'_, '_>) -> Result<Vec<InstructionId>> {
    let x = required(cx, 0)?;
    let (sizes, element_type) = (cx.sizes(x), cx.element_type(x));
    cx.check(sizes.len() >= 2, || format!("expected two or more dimensions, got {}", list(&sizes)))?;
    let wide = wide_type(element_type);
    let x = cx.convert(x, wide)?;
    let mut parameters = Vec::new();
    let mut types = Vec::new();
    for k in 1..5 {
        let parameter = required(cx, k)?;
        cx.check(cx.sizes(parameter) == [sizes[1]], || {
            format!("input {k} does not have one number for each of {} features", sizes[1])
        })?;
        types.push(cx.element_type(parameter));
        parameters.push(cx.convert(parameter, wide)?);
    }
    let epsilon = float(cx, "epsilon", 1e-5)? as f32;
    let [scale, bias, old_mean, old_variance] = [parameters[0], parameters[1], parameters[2], parameters[3]];
    let count = cx.node().output_types.len();
    if !flag(cx, "training_mode", false)? {
        let op = Op::BatchNormInference { epsilon, feature_index: 1 };
        let y = cx.op(op, &[x, scale, bias, old_mean, old_variance])?;
        let y = cx.convert(y, element_type)?;
        let mean = cx.convert(old_mean, types[2])?;
        let variance = cx.convert(old_variance, types[3])?;
        return Ok([y, mean, variance, mean, variance].into_iter().take(count).collect());
    }
    let results = cx.op(Op::BatchNormTraining { epsilon, feature_index: 1 }, &[x, scale, bias])?;
    let y = cx.tuple_element(results, 0)?;
    let (new_mean, new_variance) = (cx.tuple_element(results, 1)?, cx.tuple_element(results, 2)?);
    let momentum = float(cx, "momentum", 0.9)?;
    let mut updated = Vec::new();
    for (old, new, element_type) in [(old_mean, new_mean, types[2]), (old_variance, new_variance, types[3])] {
        let old = cx.mul_scalar(old, momentum)?;
        let new = cx.mul_scalar(new, 1.0 - momentum)?;
        let sum = cx.add(old, new)?;
        updated.push(cx.convert(sum, element_type)?);
    }
    let y = cx.convert(y, element_type)?;
    Ok([y, updated[0], updated[1]].into_iter().take(count).collect())
}

/// Multiplies with a scale and adds a bias for each index of a dimension.
fn with_scale(
    cx: &mut NodeContext<'_, '_>,
    y: InstructionId,
    scale: InstructionId,
    bias: InstructionId,
    dimension: usize,
) -> Result<InstructionId> {
    let (sizes, wide) = (cx.sizes(y), cx.element_type(y));
    let mut spread = Vec::new();
    for parameter in [scale, bias] {
        cx.check(cx.sizes(parameter) == [sizes[dimension]], || {
            format!("scale and bias need one number for each of {}", sizes[dimension])
        })?;
        let parameter = cx.convert(parameter, wide)?;
        spread.push(cx.broadcast(parameter, &sizes, &[dimension])?);
    }
    let y = cx.mul(y, spread[0])?;
    cx.add(y, spread[1])
}

fn instance_normalization(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let (x, scale, bias) = (required(cx, 0)?, required(cx, 1)?, required(cx, 2)?);
    let (sizes, element_type) = (cx.sizes(x), cx.element_type(x));
    cx.check(sizes.len() >= 3, || format!("expected three or more dimensions, got {}", list(&sizes)))?;
    let x = cx.convert(x, wide_type(element_type))?;
    let axes: Vec<usize> = (2..sizes.len()).collect();
    let epsilon = float(cx, "epsilon", 1e-5)?;
    let y = normalized(cx, x, &axes, epsilon, true)?.y;
    let y = with_scale(cx, y, scale, bias, 1)?;
    cx.convert(y, element_type)
}

fn group_normalization(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let (x, scale, bias) = (required(cx, 0)?, required(cx, 1)?, required(cx, 2)?);
    let (sizes, element_type) = (cx.sizes(x), cx.element_type(x));
    let groups = cx.attributes().int("num_groups")?;
    cx.check(sizes.len() >= 3 && groups > 0 && sizes[1] % groups == 0, || {
        format!("{} does not fit {groups} groups", list(&sizes))
    })?;
    let x = cx.convert(x, wide_type(element_type))?;
    let all = cx.all_sizes(x)?;
    let mut split = vec![all[0], Size::known(groups), Size::known(sizes[1] / groups)];
    if cx.is_bounded(x) {
        split.extend(&all[2..]);
    } else {
        split.push(Size::known(cx.checked_product(&sizes[2..])?));
    }
    let x = resized(cx, x, &split)?;
    let epsilon = float(cx, "epsilon", 1e-5)?;
    let axes: Vec<usize> = (2..split.len()).collect();
    let y = normalized(cx, x, &axes, epsilon, true)?.y;
    // Before version 21, there is a scale for each group.
    if opset(cx)? < 21 {
        let y = with_scale(cx, y, scale, bias, 1)?;
        let y = resized(cx, y, &all)?;
        return cx.convert(y, element_type);
    }
    let y = resized(cx, y, &all)?;
    let y = with_scale(cx, y, scale, bias, 1)?;
    cx.convert(y, element_type)
}

/// The dimensions from an axis on.
fn trailing(cx: &NodeContext<'_, '_>, rank: usize) -> Result<Vec<usize>> {
    let axis = cx.attributes().int_or("axis", -1)?;
    Ok((cx.dimension(axis, rank)?..rank).collect())
}

/// Multiplies with a scale and adds a bias, which are broadcast.
fn with_broadcast(
    cx: &mut NodeContext<'_, '_>,
    y: InstructionId,
    scale: Option<InstructionId>,
    bias: Option<InstructionId>,
) -> Result<InstructionId> {
    let (sizes, wide) = (cx.sizes(y), cx.element_type(y));
    let mut y = y;
    for (parameter, op) in [(scale, Op::Multiply {}), (bias, Op::Add {})] {
        if let Some(parameter) = parameter {
            let parameter = cx.convert(parameter, wide)?;
            let parameter = cx.broadcast_to(parameter, &sizes)?;
            y = cx.op(op, &[y, parameter])?;
        }
    }
    Ok(y)
}

/// Layer normalization of an array in a wide type. Returns the result, the mean, and the inverse of
/// the deviation.
pub(crate) fn layer(
    cx: &mut NodeContext<'_, '_>,
    x: InstructionId,
    [scale, bias]: [Option<InstructionId>; 2],
    axes: &[usize],
    centers: bool,
) -> Result<[InstructionId; 3]> {
    let sizes = cx.sizes(x);
    let epsilon = float(cx, "epsilon", 1e-5)?;
    let Normalized { y, mean, inverse } = normalized(cx, x, axes, epsilon, centers)?;
    let y = with_broadcast(cx, y, scale, bias)?;
    let kept: Vec<i64> = (0..sizes.len()).map(|d| if axes.contains(&d) { 1 } else { sizes[d] }).collect();
    Ok([y, cx.reshape(mean, &kept)?, cx.reshape(inverse, &kept)?])
}

/// The results in the types of the outputs, as many as there are.
fn as_outputs(cx: &mut NodeContext<'_, '_>, results: &[InstructionId]) -> Result<Vec<InstructionId>> {
    let count = cx.node().output_types.len();
    let convert = |(k, &result)| {
        let element_type = cx.output_type(k)?;
        cx.convert(result, element_type)
    };
    results.iter().take(count).enumerate().map(convert).collect()
}

fn layer_normalization(cx: &mut NodeContext<'_, '_>) -> Result<Vec<InstructionId>> {
    let x = required(cx, 0)?;
    let (scale, bias) = (optional(cx, 1)?, optional(cx, 2)?);
    let element_type = cx.element_type(x);
    let axes = trailing(cx, cx.rank(x))?;
    let x = cx.convert(x, wide_type(element_type))?;
    let results = layer(cx, x, [scale, bias], &axes, true)?;
    as_outputs(cx, &results)
}

fn simplified_layer_normalization(cx: &mut NodeContext<'_, '_>) -> Result<Vec<InstructionId>> {
    let x = required(cx, 0)?;
    let scale = optional(cx, 1)?;
    let element_type = cx.element_type(x);
    let axes = trailing(cx, cx.rank(x))?;
    let x = cx.convert(x, wide_type(element_type))?;
    let [y, _, inverse] = layer(cx, x, [scale, None], &axes, false)?;
    as_outputs(cx, &[y, inverse])
}

fn rms_normalization(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let x = required(cx, 0)?;
    let scale = optional(cx, 1)?;
    let element_type = cx.element_type(x);
    let axes = trailing(cx, cx.rank(x))?;
    let x = cx.convert(x, wide_type(element_type))?;
    let [y, _, _] = layer(cx, x, [scale, None], &axes, false)?;
    cx.convert(y, element_type)
}

/// Normalizes the sum of an input, a skipped one, and a bias. Inputs: input, skip, gamma, then beta
/// (unless simplified), and the bias.
fn skip_layer_normalization(cx: &mut NodeContext<'_, '_>, is_simplified: bool) -> Result<Vec<InstructionId>> {
    let (x, skip, scale) = (required(cx, 0)?, required(cx, 1)?, required(cx, 2)?);
    let (beta, bias) =
        if is_simplified { (None, optional(cx, 3)?) } else { (optional(cx, 3)?, optional(cx, 4)?) };
    let (sizes, element_type) = (cx.sizes(x), cx.element_type(x));
    let wide = wide_type(element_type);
    let mut sum = cx.convert(x, wide)?;
    for other in [Some(skip), bias].into_iter().flatten() {
        let other = cx.convert(other, wide)?;
        let other = cx.broadcast_to(other, &sizes)?;
        sum = cx.add(sum, other)?;
    }
    cx.check(!sizes.is_empty(), || "the input is a scalar".to_owned())?;
    let epsilon_axes = [sizes.len() - 1];
    let [y, mean, inverse] = layer(cx, sum, [Some(scale), beta], &epsilon_axes, !is_simplified)?;
    as_outputs(cx, &[y, mean, inverse, sum])
}

fn mean_variance(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let x = required(cx, 0)?;
    let (rank, element_type) = (cx.rank(x), cx.element_type(x));
    let axes = cx.attributes().ints_or("axes", vec![0, 2, 3])?;
    let axes = dimensions(cx, &axes, rank)?;
    let sizes = cx.sizes(x);
    let others: Vec<usize> = (0..rank).filter(|d| !axes.contains(d)).collect();
    let x = cx.convert(x, wide_type(element_type))?;
    let [_, spread] = mean(cx, x, &axes)?;
    let centered = cx.sub(x, spread)?;
    let square = cx.mul(centered, centered)?;
    let [variance, _] = mean(cx, square, &axes)?;
    let deviation = cx.op(Op::Sqrt {}, &[variance])?;
    let deviation = cx.add_scalar(deviation, 1e-9)?;
    let deviation = cx.broadcast(deviation, &sizes, &others)?;
    let y = cx.div(centered, deviation)?;
    cx.convert(y, element_type)
}

fn lp_normalization(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let x = required(cx, 0)?;
    let sizes = cx.sizes(x);
    let axis = cx.attributes().int_or("axis", -1)?;
    let axis = cx.dimension(axis, sizes.len())?;
    let p = cx.attributes().int_or("p", 2)? as f64;
    cx.check(p == 1.0 || p == 2.0, || format!("p: expected 1 or 2, got {p}"))?;
    let powers = power_of_size(cx, x, p)?;
    let sum = cx.reduce(powers, Reducer::Add, &[axis])?;
    let norm = root(cx, sum, p)?;
    // A row of zeros stays one.
    let is_zero = cx.compare_scalar(ComparisonDirection::Eq, norm, 0.0)?;
    let one = cx.splat_like(norm, 1.0)?;
    let norm = cx.select(is_zero, one, norm)?;
    let others: Vec<usize> = (0..sizes.len()).filter(|&d| d != axis).collect();
    let norm = cx.broadcast(norm, &sizes, &others)?;
    cx.div(x, norm)
}

/// `x / (bias + alpha / size * sum(x^2))^beta`, with sums over neighboring features.
fn local_response(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let x = required(cx, 0)?;
    let sizes = cx.sizes(x);
    cx.check(sizes.len() >= 2, || format!("expected two or more dimensions, got {}", list(&sizes)))?;
    let size = cx.attributes().int("size")?;
    cx.check((1..1 << 30).contains(&size), || format!("size: expected a positive number, got {size}"))?;
    let (alpha, beta) = (float(cx, "alpha", 1e-4)?, float(cx, "beta", 0.75)?);
    let bias = float(cx, "bias", 1.0)?;
    let square = cx.mul(x, x)?;
    let mut dimensions = vec![WindowDimension::of_size(1); sizes.len()];
    let before = (size - 1) / 2;
    dimensions[1] = WindowDimension {
        padding_low: before,
        padding_high: size - 1 - before,
        ..WindowDimension::of_size(size)
    };
    let sums = cx.reduce_window(square, Reducer::Add, Window { dimensions })?;
    let scaled = cx.mul_scalar(sums, alpha / size as f64)?;
    let base = cx.add_scalar(scaled, bias)?;
    let exponent = cx.splat_like(base, -beta)?;
    let factor = cx.op(Op::Power {}, &[base, exponent])?;
    cx.mul(x, factor)
}
