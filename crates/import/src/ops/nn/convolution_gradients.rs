//! The gradients of convolutions, which are themselves convolutions. The input's gradient is the
//! transposed convolution.

use crate::node::context::NodeContext;
use crate::node::data_types::*;
use crate::node::rule::{Rule, rule};
use crate::ops::nn::convolution::{ConvAttributes, check_depthwise, depthwise_as_grouped};
use crate::ops::nn::windows::Format;
use bounded::{Size, bounds, list};
use hlo::{ConvolutionDimensionNumbers, InstructionId, Op, Window, WindowDimension};
use support::{Code, Error, Result};

pub(crate) const RULES: &[Rule] = &[
    rule("Conv2DBackpropInput", |cx| input_gradient(cx, 4, false)).types("T", CONVOLUTION),
    rule("Conv3DBackpropInputV2", |cx| input_gradient(cx, 5, false)).types("T", FLOATS),
    rule("DepthwiseConv2dNativeBackpropInput", |cx| input_gradient(cx, 4, true)).types("T", FLOATS),
    rule("Conv2DBackpropFilter", |cx| filter_gradient(cx, 4, false)).types("T", FLOATS),
    rule("Conv3DBackpropFilterV2", |cx| filter_gradient(cx, 5, false)).types("T", FLOATS),
    rule("DepthwiseConv2dNativeBackpropFilter", |cx| filter_gradient(cx, 4, true)).types("T", FLOATS),
];

/// The forward convolution that a gradient belongs to.
struct Forward {
    attributes: ConvAttributes,
    groups: i64,
    /// The window along each spatial dimension.
    windows: Vec<WindowDimension>,
}

impl Forward {
    /// Checks that the gradient has the shape of the forward convolution's result.
    fn new(
        cx: &NodeContext<'_, '_>,
        input: &[i64],
        filter: &[i64],
        gradient: &[i64],
        depthwise: bool,
    ) -> Result<Self> {
        let rank = input.len();
        let attributes = ConvAttributes::of_node(cx, rank)?;
        let (groups, out) = if depthwise {
            check_depthwise(cx, &attributes, input, filter)?;
            (input[attributes.format.feature], depthwise_as_grouped(cx, filter)?[3])
        } else {
            (attributes.groups(cx, input, filter)?, filter[rank - 1])
        };
        let mut result = input.to_vec();
        result[attributes.format.feature] = out;
        let mut windows = Vec::new();
        for (&dimension, &filter_size) in attributes.format.spatial.iter().zip(filter) {
            let step = attributes.step(dimension, filter_size);
            let (window, positions) = attributes.padding.window(cx, dimension, input[dimension], step)?;
            windows.push(window);
            result[dimension] = positions;
        }
        cx.check(gradient == result, || {
            format!(
                "the gradient's shape differs from that of the convolution of {} by {}: {} vs. {}",
                list(input),
                list(filter),
                list(gradient),
                list(&result)
            )
        })?;
        Ok(Self { attributes, groups, windows })
    }
}

/// `BackpropInput(input_sizes, filter, gradient)`: the gradient, dilated by the strides, convolved
/// with the reversed filter.
fn input_gradient(cx: &mut NodeContext<'_, '_>, rank: usize, depthwise: bool) -> Result<InstructionId> {
    let (filter, gradient) = (cx.input(1)?, cx.input(2)?);
    let (filter_sizes, gradient_sizes) = (cx.sizes(filter), cx.sizes(gradient));
    cx.check_rank("the filter", &filter_sizes, rank)?;
    cx.check_rank("the gradient", &gradient_sizes, rank)?;
    let strides = ConvAttributes::of_node(cx, rank)?.strides;
    let input_sizes = input_sizes(cx, gradient, &filter_sizes, &strides)?;
    let forward = Forward::new(cx, &input_sizes, &filter_sizes, &gradient_sizes, depthwise)?;
    let element_type = cx.element_type(gradient);
    if gradient_sizes.contains(&0) {
        return cx.splat(element_type, &input_sizes, 0.0);
    }
    let spatial = rank - 2;
    let mut window = Window::default();
    for (i, forward_window) in forward.windows.iter().enumerate() {
        let dimension = forward.attributes.format.spatial[i];
        let span = (forward_window.size - 1) * forward_window.window_dilation + 1;
        let spread = (gradient_sizes[dimension] - 1) * forward_window.stride + 1;
        let padding_low = span - 1 - forward_window.padding_low;
        window.dimensions.push(WindowDimension {
            padding_low,
            padding_high: input_sizes[dimension] + span - 1 - spread - padding_low,
            window_dilation: forward_window.window_dilation,
            base_dilation: forward_window.stride,
            ..WindowDimension::of_size(forward_window.size)
        });
    }
    let filter = match forward.groups {
        groups if groups > 1 && !depthwise => inputs_of_all_groups(cx, filter, groups)?,
        _ => filter,
    };
    let filter = cx.reverse(filter, (0..spatial).collect())?;
    let op = Op::Convolution {
        window,
        dim_labels: ConvolutionDimensionNumbers {
            kernel_input_feature_dimension: spatial + 1,
            kernel_output_feature_dimension: spatial,
            ..forward.attributes.dimension_numbers()
        },
        feature_group_count: forward.groups,
        batch_group_count: 1,
    };
    cx.op(op, &[gradient, filter])
}

/// Returns the shape of the input, or its bounds, from all sizes or only the spatial ones. Those of
/// open dimensions must be the same multiple of the gradient's and as many more in every run, from
/// which the padding follows.
fn input_sizes(
    cx: &mut NodeContext<'_, '_>,
    gradient: InstructionId,
    filter: &[i64],
    strides: &[i64],
) -> Result<Vec<i64>> {
    let stated = cx.bounded_sizes(0)?;
    let own = cx.all_sizes(gradient)?;
    let rank = own.len();
    let format = Format::of_node(cx, rank)?;
    let all = if stated.len() == rank {
        stated
    } else {
        cx.check(stated.len() == rank - 2, || {
            format!(
                "input_sizes: expected {rank} sizes, one for each dimension, got {}",
                list(&bounds(&stated))
            )
        })?;
        let mut all = own.clone();
        all[format.feature] = Size::known(filter[rank - 2]);
        for (&dimension, &size) in format.spatial.iter().zip(&stated) {
            all[dimension] = size;
        }
        all
    };
    for &d in format.spatial.iter().filter(|&&d| own[d].size.is_some() || all[d].size.is_some()) {
        let multiple = cx.size_sum(Size::known(0), own[d], strides[d])?;
        let more = multiple.and_then(|multiple| cx.known_difference(all[d], multiple));
        if more != Some(all[d].bound - own[d].bound * strides[d]) {
            return Err(Error::unsupported(format!(
                "the padding depends on the size of dimension {d}, which depends on data: it is not {} times that of \
                 the gradient and as many more in every run",
                strides[d]
            ))
            .coded(Code::BoundedSize));
        }
    }
    Ok(bounds(&all))
}

/// Converts a filter `[spatial..., in, groups * out]` to `[spatial..., groups * in, out]`.
fn inputs_of_all_groups(
    cx: &mut NodeContext<'_, '_>,
    filter: InstructionId,
    groups: i64,
) -> Result<InstructionId> {
    let sizes = cx.sizes(filter);
    let spatial = sizes.len() - 2;
    let (features, out) = (sizes[spatial], sizes[spatial + 1] / groups);
    let split = cx.reshape(filter, &[&sizes[..spatial], &[features, groups, out]].concat())?;
    let mut permutation: Vec<usize> = (0..spatial + 3).collect();
    permutation.swap(spatial, spatial + 1);
    let groups_first = cx.transpose(split, &permutation)?;
    cx.reshape(groups_first, &[&sizes[..spatial], &[groups * features, out]].concat())
}

/// `BackpropFilter(input, filter_sizes, gradient)`: the input convolved with the gradient, which is
/// dilated by the strides. The sum runs over the batch, and the groups are groups of the batch.
fn filter_gradient(cx: &mut NodeContext<'_, '_>, rank: usize, depthwise: bool) -> Result<InstructionId> {
    let (input, gradient) = (cx.input(0)?, cx.input(2)?);
    let (input_sizes, gradient_sizes) = (cx.sizes(input), cx.sizes(gradient));
    cx.check_rank("the input", &input_sizes, rank)?;
    cx.check_rank("the gradient", &gradient_sizes, rank)?;
    let filter_sizes = cx.constant_sizes(1)?;
    cx.check(filter_sizes.len() == rank, || {
        format!("filter_sizes: expected {rank} sizes, got {}", list(&filter_sizes))
    })?;
    let forward = Forward::new(cx, &input_sizes, &filter_sizes, &gradient_sizes, depthwise)?;
    let element_type = cx.element_type(gradient);
    if gradient_sizes.contains(&0) || input_sizes.contains(&0) {
        return cx.splat(element_type, &filter_sizes, 0.0);
    }
    let format = &forward.attributes.format;
    let mut window = Window::default();
    for (forward_window, &dimension) in forward.windows.iter().zip(&format.spatial) {
        let span = (forward_window.size - 1) * forward_window.window_dilation + 1;
        let spread = (gradient_sizes[dimension] - 1) * forward_window.stride + 1;
        // Negative if no window contains the last elements of the input.
        let total = spread + span - 1 - input_sizes[dimension];
        window.dimensions.push(WindowDimension {
            stride: forward_window.window_dilation,
            padding_low: forward_window.padding_low,
            padding_high: total - forward_window.padding_low,
            window_dilation: forward_window.stride,
            ..WindowDimension::of_size(gradient_sizes[dimension])
        });
    }
    let spatial = rank - 2;
    let dim_labels = ConvolutionDimensionNumbers {
        input_batch_dimension: format.feature,
        input_feature_dimension: format.batch,
        input_spatial_dimensions: format.spatial.clone(),
        kernel_input_feature_dimension: format.batch,
        kernel_output_feature_dimension: format.feature,
        kernel_spatial_dimensions: format.spatial.clone(),
        output_batch_dimension: spatial,
        output_feature_dimension: spatial + 1,
        output_spatial_dimensions: (0..spatial).collect(),
    };
    let op =
        Op::Convolution { window, dim_labels, feature_group_count: 1, batch_group_count: forward.groups };
    let result = cx.op(op, &[input, gradient])?;
    cx.reshape(result, &filter_sizes)
}
