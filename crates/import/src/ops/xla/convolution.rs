//! XLA's convolution as an op, with all its parameters.

use crate::node::context::NodeContext;
use crate::node::data_types::*;
use crate::node::rule::{Rule, rule};
use bounded::list;
use hlo::{ConvolutionDimensionNumbers, InstructionId, Op, Window, WindowDimension};
use support::Result;

pub(crate) const RULES: &[Rule] = &[
    rule("XlaConv", xla_conv).types("T", NUMBERS_AND_QUANTIZED).types("Tindices", INDICES),
    rule("XlaConvV2", xla_conv)
        .types("LhsT", NUMBERS_AND_QUANTIZED)
        .types("RhsT", NUMBERS_AND_QUANTIZED)
        .types("preferred_element_type", NUMBERS_AND_QUANTIZED),
];

/// `XlaConv(lhs, rhs, window_strides, padding, lhs_dilation, rhs_dilation, feature_group_count)`.
/// Computed in the type of the result, unless it is narrower than the operands'.
fn xla_conv(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let (mut lhs, mut rhs) = (cx.input(0)?, cx.input(1)?);
    let bytes = cx.attributes().string("dimension_numbers")?;
    let dim_labels = hlo::proto::convolution_dimension_numbers_from_bytes(&bytes).map_err(|error| {
        cx.invalid(format!(
            "dimension_numbers is not a serialized ConvolutionDimensionNumbers: {}",
            error.message()
        ))
    })?;
    let window = window(cx, rhs, &dim_labels)?;
    let feature_group_count = cx.constant_i64(6)?;
    let batch_group_count = cx.attributes().int_or("batch_group_count", 1)?;
    let element_type = cx.output_type(0)?;
    let widest = cx.element_type(lhs).bit_width().max(cx.element_type(rhs).bit_width());
    if element_type.bit_width() >= widest {
        (lhs, rhs) = (cx.convert(lhs, element_type)?, cx.convert(rhs, element_type)?);
    }
    let op = Op::Convolution { window, dim_labels, feature_group_count, batch_group_count };
    let result = cx.op(op, &[lhs, rhs])?;
    cx.convert(result, element_type)
}

/// Returns the window over a kernel, from the inputs that describe it.
fn window(
    cx: &mut NodeContext<'_, '_>,
    kernel: InstructionId,
    labels: &ConvolutionDimensionNumbers,
) -> Result<Window> {
    let spatial = labels.kernel_spatial_dimensions.len();
    let sizes = cx.sizes(kernel);
    cx.check(labels.kernel_spatial_dimensions.iter().all(|&d| d < sizes.len()), || {
        format!(
            "dimension_numbers refers to dimensions that a kernel of shape {} does not have",
            list(&sizes)
        )
    })?;
    let strides = cx.constant_i64s(2)?;
    let base_dilations = cx.constant_i64s(4)?;
    let window_dilations = cx.constant_i64s(5)?;
    let padding = cx.constant(3)?;
    let padding_sizes = padding.array_shape().sizes();
    let padding = padding.to_i64s().unwrap_or_default();
    let fits = padding_sizes == [spatial as i64, 2] && padding.len() == 2 * spatial;
    cx.check(fits, || {
        format!(
            "padding: expected a matrix [{spatial}, 2] with a pair for each spatial dimension, got shape {}",
            list(&padding_sizes)
        )
    })?;
    let lists = [
        ("window_strides", &strides),
        ("lhs_dilation", &base_dilations),
        ("rhs_dilation", &window_dilations),
    ];
    for (name, values) in lists {
        cx.check(values.len() == spatial, || {
            format!(
                "{name}: expected one integer for each of the {spatial} spatial dimensions, got {}",
                list(values)
            )
        })?;
    }
    let dimension = |d: usize| WindowDimension {
        stride: strides[d],
        padding_low: padding[2 * d],
        padding_high: padding[2 * d + 1],
        window_dilation: window_dilations[d],
        base_dilation: base_dilations[d],
        ..WindowDimension::of_size(sizes[labels.kernel_spatial_dimensions[d]])
    };
    Ok(Window { dimensions: (0..spatial).map(dimension).collect() })
}
