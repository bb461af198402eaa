//! Convolutions with integer weights.

use crate::node::context::NodeContext;
use crate::node::rule::{Rule, rule};
use crate::ops::lite::contraction::{Contraction, Hybrid, Scaling};
use crate::ops::lite::operands::Operands;
use crate::ops::nn::windows::{Padding, WindowStep};
use hlo::{ConvolutionDimensionNumbers, InstructionId, Op, Window, WindowDimension};
use shape::{PrimitiveType, Shape};
use support::Result;

pub(crate) const RULES: &[Rule] = &[
    rule("TFLiteConv2d", conv_2d),
    rule("TFLiteDepthwiseConv2d", depthwise_conv_2d),
    rule("TFLiteTransposeConv", transpose_conv),
];

/// Padding of the node, from its number in the schema.
pub(crate) fn padding(cx: &NodeContext<'_, '_>) -> Result<Padding> {
    match cx.attributes().int("padding")? {
        0 => Ok(Padding::Same),
        1 => Ok(Padding::Valid),
        other => Err(cx.invalid(format!("padding {other} is unknown"))),
    }
}

/// A positive attribute for height and width.
pub(crate) fn pair(cx: &NodeContext<'_, '_>, height: &str, width: &str, default: i64) -> Result<[i64; 2]> {
    let attributes = cx.attributes();
    let values = [attributes.int_or(height, default)?, attributes.int_or(width, default)?];
    cx.check(values.iter().all(|&value| value > 0), || {
        format!("{height} and {width}: expected positive numbers, got {values:?}")
    })?;
    Ok(values)
}

/// Arithmetic of convolutions. Unsigned ones use an older way to multiply scales.
fn contraction(cx: &NodeContext<'_, '_>, operands: &Operands, positions: [usize; 3]) -> Result<Contraction> {
    let (_, input) = operands.input(cx, positions[0])?;
    let is_unsigned = input.element_type == PrimitiveType::U8;
    Ok(Contraction {
        positions,
        scaling: if is_unsigned { Scaling::FixedOfSingle } else { Scaling::Fixed },
        hybrid: Hybrid { rows: 1, is_asymmetric: true, is_stepwise: true, order: None, has_tanh: false },
    })
}

/// Sizes of two operands with four dimensions each.
fn sizes_of(cx: &NodeContext<'_, '_>, operands: &Operands, [x, w]: [usize; 2]) -> Result<[Vec<i64>; 2]> {
    let (x_sizes, w_sizes) = (cx.sizes(operands.input(cx, x)?.0), cx.sizes(operands.input(cx, w)?.0));
    cx.check_rank("the input", &x_sizes, 4)?;
    cx.check_rank("the filter", &w_sizes, 4)?;
    cx.check(w_sizes.iter().all(|&size| size > 0), || "the filter has no elements".to_owned())?;
    Ok([x_sizes, w_sizes])
}

/// The windows of a convolution over height and width, and their numbers of positions.
fn windows(cx: &NodeContext<'_, '_>, input: [i64; 2], filter: [i64; 2]) -> Result<(Window, [i64; 2])> {
    let padding = padding(cx)?;
    let strides = pair(cx, "stride_h", "stride_w", 1)?;
    let dilations = pair(cx, "dilation_h_factor", "dilation_w_factor", 1)?;
    let (mut window, mut positions) = (Window::default(), [0; 2]);
    for d in 0..2 {
        let step = WindowStep { filter: filter[d], stride: strides[d], dilation: dilations[d] };
        let (dimension, count) = padding.window(cx, d + 1, input[d], step)?;
        window.dimensions.push(dimension);
        positions[d] = count;
    }
    Ok((window, positions))
}

/// Dimension numbers for filters with these dimensions of output and input features.
fn labels(output: usize, input: usize) -> ConvolutionDimensionNumbers {
    ConvolutionDimensionNumbers {
        input_batch_dimension: 0,
        input_feature_dimension: 3,
        input_spatial_dimensions: vec![1, 2],
        kernel_output_feature_dimension: output,
        kernel_input_feature_dimension: input,
        kernel_spatial_dimensions: vec![1, 2],
        output_batch_dimension: 0,
        output_feature_dimension: 3,
        output_spatial_dimensions: vec![1, 2],
    }
}

/// The filter is (output features, height, width, input features of a group).
fn conv_2d(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let operands = Operands::of_node(cx)?;
    let [x, w] = sizes_of(cx, &operands, [0, 1])?;
    let groups = x[3] / w[3];
    cx.check(groups > 0 && x[3] % w[3] == 0 && w[0] % groups == 0, || {
        format!("a filter {w:?} does not fit an input {x:?}")
    })?;
    let (window, positions) = windows(cx, [x[1], x[2]], [w[1], w[2]])?;
    let mut contraction = contraction(cx, &operands, [0, 1, 2])?;
    let (_, weights) = operands.input(cx, 1)?;
    if groups == 1 && weights.scales.iter().all(|scale| *scale == weights.scales[0]) {
        contraction.hybrid.is_asymmetric = false;
        contraction.hybrid.is_stepwise = false;
    }
    let op = Op::Convolution {
        window,
        dim_labels: labels(0, 3),
        feature_group_count: groups,
        batch_group_count: 1,
    };
    let sizes = [x[0], positions[0], positions[1], w[0]];
    contraction.build(cx, &operands, &mut |cx, x, w, sum_type| {
        cx.op_shaped(&Shape::array(sum_type, &sizes), op.clone(), &[x, w])
    })
}

/// The filter is (1, height, width, output features).
fn depthwise_conv_2d(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let operands = Operands::of_node(cx)?;
    let [x, w] = sizes_of(cx, &operands, [0, 1])?;
    cx.check(w[0] == 1 && x[3] > 0 && w[3] % x[3] == 0, || {
        format!("a filter {w:?} does not fit an input {x:?}")
    })?;
    let (window, positions) = windows(cx, [x[1], x[2]], [w[1], w[2]])?;
    let mut contraction = contraction(cx, &operands, [0, 1, 2])?;
    contraction.hybrid.is_stepwise = false;
    let op =
        Op::Convolution { window, dim_labels: labels(3, 0), feature_group_count: x[3], batch_group_count: 1 };
    let sizes = [x[0], positions[0], positions[1], w[3]];
    contraction.build(cx, &operands, &mut |cx, x, w, sum_type| {
        cx.op_shaped(&Shape::array(sum_type, &sizes), op.clone(), &[x, w])
    })
}

/// The gradient of a convolution's input. Inputs are the sizes of the result, the filter (output
/// features, height, width, input features), and the input.
fn transpose_conv(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let operands = Operands::of_node(cx)?;
    let sizes = cx.constant_sizes(0)?;
    let [x, w] = sizes_of(cx, &operands, [2, 1])?;
    cx.check_rank("the result", &sizes, 4)?;
    cx.check(x[3] == w[3] && sizes[0] == x[0] && sizes[3] == w[0], || {
        format!("a filter {w:?} does not fit an input {x:?} and a result {sizes:?}")
    })?;
    let (forward, _) = windows(cx, [sizes[1], sizes[2]], [w[1], w[2]])?;
    let mut window = Window::default();
    for (d, forward) in forward.dimensions.iter().enumerate() {
        let spread = if x[d + 1] == 0 { 0 } else { (x[d + 1] - 1) * forward.stride + 1 };
        let padding_low = forward.size - 1 - forward.padding_low;
        window.dimensions.push(WindowDimension {
            padding_low,
            padding_high: sizes[d + 1] + forward.size - 1 - spread - padding_low,
            base_dilation: forward.stride,
            ..WindowDimension::of_size(forward.size)
        });
    }
    let op =
        Op::Convolution { window, dim_labels: labels(0, 3), feature_group_count: 1, batch_group_count: 1 };
    let contraction = contraction(cx, &operands, [2, 1, 3])?;
    contraction.build(cx, &operands, &mut |cx, x, w, sum_type| {
        let w = cx.reverse(w, vec![1, 2])?;
        cx.op_shaped(&Shape::array(sum_type, &sizes), op.clone(), &[x, w])
    })
}
