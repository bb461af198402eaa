//! Convolutions, of floats and of integers.

use crate::node::context::NodeContext;
use crate::node::rule::{Rule, rule, rule_many};
use crate::ops::nn::windows::{WindowStep, padded_same};
use crate::ops::onnx::operands::{optional, required};
use crate::ops::onnx::products::{centered, quantized, spread_along};
use crate::ops::onnx::windows::{Rounding, Windows, span, stated_pads, steps};
use bounded::list;
use hlo::{ConvolutionDimensionNumbers, InstructionId, Op, Window, WindowDimension};
use shape::PrimitiveType;
use support::{Code, Error, Result};

pub(crate) const RULES: &[Rule] = &[
    rule_many("OnnxCausalConvWithState", causal_conv),
    rule("OnnxConv", conv),
    rule("OnnxConvInteger", conv_integer),
    rule("OnnxConvTranspose", conv_transpose),
    rule("OnnxMsFusedConv", fused_conv),
    rule("OnnxQLinearConv", qlinear_conv),
];

/// Batch first, features second, as ONNX has them.
fn dimension_numbers(spatial: usize) -> ConvolutionDimensionNumbers {
    ConvolutionDimensionNumbers {
        input_batch_dimension: 0,
        input_feature_dimension: 1,
        input_spatial_dimensions: (2..spatial + 2).collect(),
        kernel_output_feature_dimension: 0,
        kernel_input_feature_dimension: 1,
        kernel_spatial_dimensions: (2..spatial + 2).collect(),
        output_batch_dimension: 0,
        output_feature_dimension: 1,
        output_spatial_dimensions: (2..spatial + 2).collect(),
    }
}

/// The convolution of `x` with a filter (outputs, inputs of a group, window).
pub(crate) fn convolved(
    cx: &mut NodeContext<'_, '_>,
    x: InstructionId,
    filter: InstructionId,
) -> Result<InstructionId> {
    let (sizes, filter_sizes) = (cx.sizes(x), cx.sizes(filter));
    cx.check(sizes.len() >= 3, || format!("expected three or more dimensions, got {}", list(&sizes)))?;
    cx.check_rank("the filter", &filter_sizes, sizes.len())?;
    let groups = group_count(cx, &sizes, filter_sizes[0], filter_sizes[1])?;
    let kernel = cx.attributes().ints_or("kernel_shape", filter_sizes[2..].to_vec())?;
    cx.check(kernel == filter_sizes[2..], || {
        format!("kernel_shape {} differs from that of the filter, {}", list(&kernel), list(&filter_sizes))
    })?;
    let windows = Windows::of_node(cx, &sizes[2..], &filter_sizes[2..], Rounding::Floor)?;
    let mut dimensions: Vec<WindowDimension> =
        (0..kernel.len()).map(|d| windows.dimension(d, sizes[d + 2])).collect();
    let auto = cx.text_or("auto_pad", "NOTSET")?;
    let (is_same, is_upper) = (auto.starts_with("SAME"), auto != "SAME_LOWER");
    let mut open = Vec::new();
    for (d, along) in dimensions.iter_mut().enumerate() {
        if cx.array(x).dimensions[d + 2].is_dynamic {
            // The size determines the padding of the last position.
            along.padding_high = windows.pads[d][1];
            if is_same && along.stride > 1 {
                open.push((
                    d + 2,
                    WindowStep { filter: along.size, stride: along.stride, dilation: along.window_dilation },
                ));
                (along.padding_low, along.padding_high) = (0, 0);
            }
        }
    }
    let x = if open.is_empty() {
        x
    } else {
        let element_type = cx.element_type(x);
        let zero = cx.scalar(element_type, 0.0);
        padded_same(cx, x, &open, zero, is_upper)?
    };
    let op = Op::Convolution {
        window: Window { dimensions },
        dim_labels: dimension_numbers(kernel.len()),
        feature_group_count: groups,
        batch_group_count: 1,
    };
    cx.op(op, &[x, filter])
}

/// The number of groups, in which the features of an array with these sizes fit the filter.
fn group_count(cx: &NodeContext<'_, '_>, sizes: &[i64], outputs: i64, inputs: i64) -> Result<i64> {
    let groups = cx.attributes().int_or("group", 1)?;
    let fits =
        groups > 0 && inputs.checked_mul(groups) == Some(sizes[1]) && outputs % groups == 0 && inputs > 0;
    cx.check(fits, || {
        format!(
            "{} features do not fit a filter with {inputs} inputs and {outputs} outputs in {groups} groups",
            sizes[1]
        )
    })?;
    Ok(groups)
}

/// Adds a number for each feature.
fn with_bias(cx: &mut NodeContext<'_, '_>, y: InstructionId, k: usize) -> Result<InstructionId> {
    let Some(bias) = optional(cx, k)? else { return Ok(y) };
    let sizes = cx.sizes(y);
    cx.check(cx.sizes(bias) == [sizes[1]], || format!("the bias does not fit {} features", sizes[1]))?;
    let bias = cx.broadcast(bias, &sizes, &[1])?;
    cx.add(y, bias)
}

fn conv(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let (x, filter) = (required(cx, 0)?, required(cx, 1)?);
    let y = convolved(cx, x, filter)?;
    with_bias(cx, y, 2)
}

/// A convolution, the sum with another array, and an activation.
fn fused_conv(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let mut y = conv(cx)?;
    if let Some(z) = optional(cx, 3)? {
        let sizes = cx.sizes(y);
        let z = cx.broadcast_to(z, &sizes)?;
        y = cx.add(y, z)?;
    }
    if !cx.attributes().has("activation") {
        return Ok(y);
    }
    let name = cx.attributes().text("activation")?;
    let parameters = cx.attributes().floats_or("activation_params", Vec::new())?;
    let parameter = |k: usize| parameters.get(k).copied().map_or(0.0, f64::from);
    super::recurrent_functions::activation(cx, name, [parameter(0), parameter(1)], y)
}

fn conv_integer(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let (x, filter) = (required(cx, 0)?, required(cx, 1)?);
    let (x_zero, filter_zero) = (optional(cx, 2)?, optional(cx, 3)?);
    let x = centered(cx, x, x_zero, 0)?;
    let filter = centered(cx, filter, filter_zero, 0)?;
    convolved(cx, x, filter)
}

/// Inputs: x, its scale and zero point, the filter with both, the result's scale and zero point,
/// and a bias in steps of the product of the first two scales.
fn qlinear_conv(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let mut inputs = Vec::new();
    for k in 0..8 {
        inputs.push(required(cx, k)?);
    }
    let x = centered(cx, inputs[0], Some(inputs[2]), 0)?;
    let filter = centered(cx, inputs[3], Some(inputs[5]), 0)?;
    let sums = convolved(cx, x, filter)?;
    let sums = with_bias(cx, sums, 8)?;
    let sizes = cx.sizes(sums);
    let element_type = cx.output_type(0)?;
    requantized(cx, sums, [inputs[1], inputs[4], inputs[6]], inputs[7], element_type, &sizes, 1)
}

/// Sums of products in steps of two scales, as integers in steps of a third one. The factor is that
/// of ONNX Runtime: the product of two scales divided by the third, in single precision.
pub(crate) fn requantized(
    cx: &mut NodeContext<'_, '_>,
    sums: InstructionId,
    [x_scale, w_scale, y_scale]: [InstructionId; 3],
    zero_point: InstructionId,
    element_type: PrimitiveType,
    sizes: &[i64],
    dimension: usize,
) -> Result<InstructionId> {
    let scales = [x_scale, w_scale, y_scale].map(|scale| cx.convert(scale, PrimitiveType::F32));
    let [x_scale, w_scale, y_scale] = scales;
    let x_scale = spread_along(cx, x_scale?, sizes, sizes.len().saturating_sub(2))?;
    let w_scale = spread_along(cx, w_scale?, sizes, dimension)?;
    let y_scale = spread_along(cx, y_scale?, sizes, dimension)?;
    let product = cx.mul(x_scale, w_scale)?;
    let factor = cx.div(product, y_scale)?;
    let real = cx.convert(sums, PrimitiveType::F32)?;
    let steps = cx.mul(real, factor)?;
    quantized(cx, steps, Some(zero_point), element_type, dimension)
}

/// The filter is (inputs, outputs of a group, window).
fn conv_transpose(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let (x, filter) = (required(cx, 0)?, required(cx, 1)?);
    let (sizes, filter_sizes) = (cx.sizes(x), cx.sizes(filter));
    cx.check(sizes.len() >= 3, || format!("expected three or more dimensions, got {}", list(&sizes)))?;
    cx.check_rank("the filter", &filter_sizes, sizes.len())?;
    let rank = sizes.len() - 2;
    let groups = cx.attributes().int_or("group", 1)?;
    let (inputs, outputs, kernel) = (filter_sizes[0], filter_sizes[1], &filter_sizes[2..]);
    cx.check(groups > 0 && inputs == sizes[1] && inputs % groups == 0, || {
        format!("{} features do not fit a filter {} in {groups} groups", sizes[1], list(&filter_sizes))
    })?;
    let all_outputs = cx.checked_product(&[outputs, groups])?;
    let [strides, dilations] = steps(cx, rank)?;
    let more = cx.attributes().ints_or("output_padding", vec![0; rank])?;
    cx.check(more.len() == rank && more.iter().all(|more| (0..1 << 30).contains(more)), || {
        format!("output_padding {} does not fit {rank} dimensions", list(&more))
    })?;
    let mut pads = stated_pads(cx, rank)?;
    let wanted = cx.attributes().ints_or("output_shape", Vec::new())?;
    let auto = cx.text_or("auto_pad", "NOTSET")?;
    // Versions before 11 may state the sizes of all dimensions.
    let wanted = if wanted.len() == rank + 2 { wanted[2..].to_vec() } else { wanted };
    cx.check(wanted.is_empty() || wanted.len() == rank, || {
        format!("output_shape {} does not fit {rank} dimensions", list(&wanted))
    })?;
    let mut dimensions = Vec::new();
    for d in 0..rank {
        let span = span(kernel[d], dilations[d]);
        let whole =
            (sizes[d + 2] - 1).saturating_mul(strides[d]).saturating_add(more[d]).saturating_add(span);
        cx.check(span < 1 << 40 && whole < 1 << 40, || "the result is too large".to_owned())?;
        let stated = wanted.get(d).copied();
        let size = match auto {
            "SAME_UPPER" | "SAME_LOWER" => Some(stated.unwrap_or(sizes[d + 2] * strides[d])),
            "VALID" => {
                pads[d] = [0, 0];
                stated
            }
            _ => stated,
        };
        if stated.is_some() && cx.array(x).dimensions[d + 2].is_dynamic {
            return Err(Error::unsupported(format!(
                "output_shape: the padding depends on the size of dimension {}, which depends on data",
                d + 2
            ))
            .coded(Code::BoundedSize));
        }
        if let Some(size) = size {
            cx.check((0..1 << 40).contains(&size), || format!("output_shape {} is wrong", list(&wanted)))?;
            let total = whole - size;
            // The reference rounds a negative total down, too.
            let half = total.div_euclid(2);
            pads[d] = if auto == "SAME_UPPER" { [half, total - half] } else { [total - half, half] };
        }
        dimensions.push(WindowDimension {
            padding_low: span - 1 - pads[d][0],
            padding_high: span - 1 - pads[d][1] + more[d],
            window_dilation: dilations[d],
            base_dilation: strides[d],
            ..WindowDimension::of_size(kernel[d])
        });
    }
    // As the filter of a convolution: (outputs, inputs of a group, reversed window).
    let grouped = [&[groups, inputs / groups, outputs], kernel].concat();
    let filter = cx.reshape(filter, &grouped)?;
    let order: Vec<usize> = [0, 2, 1].into_iter().chain(3..rank + 3).collect();
    let filter = cx.transpose(filter, &order)?;
    let filter = cx.reshape(filter, &[&[all_outputs, inputs / groups], kernel].concat())?;
    let filter = cx.reverse(filter, (2..rank + 2).collect())?;
    let op = Op::Convolution {
        window: Window { dimensions },
        dim_labels: dimension_numbers(rank),
        feature_group_count: groups,
        batch_group_count: 1,
    };
    let y = cx.op(op, &[x, filter])?;
    with_bias(cx, y, 2)
}

/// A depthwise convolution over time that begins with the inputs of earlier runs, and the inputs
/// for the next one. Inputs: x (batch, features, time), the filter (features, 1, window), a bias,
/// and the state (batch, features, window - 1).
fn causal_conv(cx: &mut NodeContext<'_, '_>) -> Result<Vec<InstructionId>> {
    let (x, filter) = (required(cx, 0)?, required(cx, 1)?);
    let (sizes, filter_sizes) = (cx.sizes(x), cx.sizes(filter));
    cx.check(sizes.len() == 3 && filter_sizes.len() == 3, || {
        format!("expected three dimensions, got {} and {}", list(&sizes), list(&filter_sizes))
    })?;
    let (features, window) = (sizes[1], filter_sizes[2]);
    cx.check(filter_sizes == [features, 1, window] && window > 0, || {
        format!("a filter {} does not fit {}", list(&filter_sizes), list(&sizes))
    })?;
    let before = [sizes[0], features, window - 1];
    let state = match optional(cx, 3)? {
        Some(state) => {
            cx.check(cx.sizes(state) == before, || format!("the state must be {}", list(&before)))?;
            state
        }
        None => cx.reshape_empty(x, &before)?,
    };
    let whole = cx.concatenate(&[state, x], 2)?;
    let op = Op::Convolution {
        window: Window { dimensions: vec![WindowDimension::of_size(window)] },
        dim_labels: dimension_numbers(1),
        feature_group_count: features,
        batch_group_count: 1,
    };
    let y = cx.op(op, &[whole, filter])?;
    let mut y = with_bias(cx, y, 2)?;
    match cx.text_or("activation", "none")? {
        "none" | "" => {}
        "silu" | "swish" => {
            let weight = cx.op(Op::Logistic {}, &[y])?;
            y = cx.mul(y, weight)?;
        }
        other => return Err(cx.invalid(format!("activation: '{other}' does not exist"))),
    }
    let next = cx.slice_in(whole, 2, sizes[2], sizes[2] + window - 1)?;
    let count = cx.node().output_types.len();
    Ok([y, next].into_iter().take(count).collect())
}
