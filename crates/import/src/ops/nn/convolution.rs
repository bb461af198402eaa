//! Convolutions.

use crate::node::context::NodeContext;
use crate::node::data_types::*;
use crate::node::rule::{Rule, rule};
use crate::ops::nn::windows::{Format, Padding, WindowStep, padded_same};
use bounded::list;
use hlo::{ConvolutionDimensionNumbers, InstructionId, Op, Window};
use support::Result;

pub(crate) const RULES: &[Rule] = &[
    rule("Conv2D", |cx| conv_of_rank(cx, 4)).types("T", CONVOLUTION),
    rule("Conv3D", |cx| conv_of_rank(cx, 5)).types("T", FLOATS),
    rule("Conv", conv).types("T", CONVOLUTION),
    rule("DepthwiseConv2dNative", depthwise_conv).types("T", FLOATS),
];

/// The attributes of a convolution. Each list has one entry for each dimension of its input.
#[derive(Clone, Debug)]
pub(crate) struct ConvAttributes {
    pub(crate) format: Format,
    pub(crate) padding: Padding,
    pub(crate) strides: Vec<i64>,
    pub(crate) dilations: Vec<i64>,
}

impl ConvAttributes {
    /// Reads the attributes of a node whose input has this rank.
    pub(crate) fn of_node(cx: &NodeContext<'_, '_>, rank: usize) -> Result<Self> {
        let format = Format::of_node(cx, rank)?;
        let padding = Padding::of_node(cx, rank)?;
        padding.check_spatial(cx, &format)?;
        let strides = cx.positive_ints("strides", rank, None)?;
        let dilations = cx.positive_ints("dilations", rank, Some(1))?;
        cx.check_only_spatial("strides", &strides, &format)?;
        cx.check_only_spatial("dilations", &dilations, &format)?;
        Ok(Self { format, padding, strides, dilations })
    }

    /// Returns the motion of the window along a spatial dimension of the input, for a filter of the
    /// given size there.
    pub(crate) fn step(&self, dimension: usize, filter: i64) -> WindowStep {
        WindowStep { filter, stride: self.strides[dimension], dilation: self.dilations[dimension] }
    }

    /// Returns the dimension numbers for a filter `[spatial..., in, out]`. The result has the
    /// format of the input.
    pub(crate) fn dimension_numbers(&self) -> ConvolutionDimensionNumbers {
        let spatial = self.format.spatial.len();
        ConvolutionDimensionNumbers {
            input_batch_dimension: self.format.batch,
            input_feature_dimension: self.format.feature,
            input_spatial_dimensions: self.format.spatial.clone(),
            kernel_input_feature_dimension: spatial,
            kernel_output_feature_dimension: spatial + 1,
            kernel_spatial_dimensions: (0..spatial).collect(),
            output_batch_dimension: self.format.batch,
            output_feature_dimension: self.format.feature,
            output_spatial_dimensions: self.format.spatial.clone(),
        }
    }

    /// Returns the number of feature groups: the number of the input's features divided by that of
    /// the filter's input features. The filter is `[spatial..., in, out]`.
    pub(crate) fn groups(&self, cx: &NodeContext<'_, '_>, input: &[i64], filter: &[i64]) -> Result<i64> {
        let spatial = self.format.spatial.len();
        cx.check_rank("the filter", filter, spatial + 2)?;
        cx.check(filter[..=spatial].iter().all(|&size| size > 0), || {
            format!("the filter has no elements: {}", list(filter))
        })?;
        let (features, filter_features, out) =
            (input[self.format.feature], filter[spatial], filter[spatial + 1]);
        cx.check(features > 0 && features % filter_features == 0, || {
            format!(
                "the input's features are not a multiple of the filter's: {features} (dimension {} of {}) vs. \
                 {filter_features} (dimension {spatial} of {})",
                self.format.feature,
                list(input),
                list(filter)
            )
        })?;
        let groups = features / filter_features;
        cx.check(out % groups == 0, || {
            format!(
                "the filter's {out} output features (shape {}) do not divide into {groups} groups: the input has \
                 {groups} times its input features",
                list(filter)
            )
        })?;
        Ok(groups)
    }
}

/// Builds a convolution whose attributes have one entry for each dimension of its input.
fn conv_of_rank(cx: &mut NodeContext<'_, '_>, rank: usize) -> Result<InstructionId> {
    let (input, filter) = (cx.input(0)?, cx.input(1)?);
    let attributes = ConvAttributes::of_node(cx, rank)?;
    convolve(cx, input, filter, &attributes)
}

/// Convolves an input with a filter `[spatial..., in, out]`. The sizes determine the number of
/// groups.
pub(crate) fn convolve(
    cx: &mut NodeContext<'_, '_>,
    input: InstructionId,
    filter: InstructionId,
    attributes: &ConvAttributes,
) -> Result<InstructionId> {
    let sizes = cx.sizes(input);
    cx.check_rank("the input", &sizes, attributes.format.rank())?;
    let groups = attributes.groups(cx, &sizes, &cx.sizes(filter))?;
    grouped(cx, input, filter, attributes, groups)
}

fn grouped(
    cx: &mut NodeContext<'_, '_>,
    mut input: InstructionId,
    filter: InstructionId,
    attributes: &ConvAttributes,
    groups: i64,
) -> Result<InstructionId> {
    let (sizes, filter_sizes) = (cx.sizes(input), cx.sizes(filter));
    let mut window = Window::default();
    let mut open = Vec::new();
    for (&dimension, &filter_size) in attributes.format.spatial.iter().zip(&filter_sizes) {
        let step = attributes.step(dimension, filter_size);
        let mut along = attributes.padding.window(cx, dimension, sizes[dimension], step)?.0;
        if attributes.padding.depends_on_size(cx, input, dimension, step) {
            open.push((dimension, step));
            (along.padding_low, along.padding_high) = (0, 0);
        }
        window.dimensions.push(along);
    }
    if !open.is_empty() {
        let element_type = cx.element_type(input);
        let zero = cx.scalar(element_type, 0.0);
        input = padded_same(cx, input, &open, zero, true)?;
    }
    let op = Op::Convolution {
        window,
        dim_labels: attributes.dimension_numbers(),
        feature_group_count: groups,
        batch_group_count: 1,
    };
    cx.op(op, &[input, filter])
}

fn depthwise_conv(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let (input, filter) = (cx.input(0)?, cx.input(1)?);
    convolve_depthwise(cx, input, filter)
}

/// Convolves each feature with its own filters. The filter `[h, w, c, m]` is `[h, w, 1, c*m]` as a
/// convolution in `c` groups.
pub(crate) fn convolve_depthwise(
    cx: &mut NodeContext<'_, '_>,
    input: InstructionId,
    filter: InstructionId,
) -> Result<InstructionId> {
    let (sizes, filter_sizes) = (cx.sizes(input), cx.sizes(filter));
    cx.check_rank("the input", &sizes, 4)?;
    let attributes = ConvAttributes::of_node(cx, 4)?;
    check_depthwise(cx, &attributes, &sizes, &filter_sizes)?;
    let grouped_sizes = depthwise_as_grouped(cx, &filter_sizes)?;
    let filter = cx.reshape(filter, &grouped_sizes)?;
    grouped(cx, input, filter, &attributes, sizes[attributes.format.feature])
}

/// Checks that the filter `[h, w, c, m]` has the input's number of features.
pub(crate) fn check_depthwise(
    cx: &NodeContext<'_, '_>,
    attributes: &ConvAttributes,
    input: &[i64],
    filter: &[i64],
) -> Result<()> {
    cx.check_rank("the filter", filter, 4)?;
    cx.check(filter[..3].iter().all(|&size| size > 0), || {
        format!("the filter has no elements: {}", list(filter))
    })?;
    let features = input[attributes.format.feature];
    cx.check(features == filter[2], || {
        format!(
            "the depthwise filter and the input have different numbers of features: {features} (dimension {} of {}) vs. {} (dimension 2 \
             of {})",
            attributes.format.feature,
            list(input),
            filter[2],
            list(filter)
        )
    })
}

/// Returns the shape of a depthwise filter as that of a grouped convolution.
pub(crate) fn depthwise_as_grouped(cx: &NodeContext<'_, '_>, filter: &[i64]) -> Result<[i64; 4]> {
    Ok([filter[0], filter[1], 1, cx.checked_product(&filter[2..4])?])
}

/// `Conv` with any number of spatial and batch dimensions. The batch dimensions are merged into
/// one.
fn conv(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let (input, filter) = (cx.input(0)?, cx.input(1)?);
    let (sizes, filter_sizes) = (cx.sizes(input), cx.sizes(filter));
    let batch_dims = cx.attributes().int_or("batch_dims", 1)?;
    let spatial = filter_sizes.len().saturating_sub(2);
    let fits =
        filter_sizes.len() >= 2 && batch_dims >= 0 && sizes.len() as i64 == batch_dims + spatial as i64 + 1;
    cx.check(fits, || {
        format!(
            "the input {} with batch_dims {batch_dims} and the filter {} do not match: the filter must have two more dimensions \
             than the {spatial} spatial ones, and the input batch_dims plus one more",
            list(&sizes),
            list(&filter_sizes)
        )
    })?;
    let (batch, rest) = sizes.split_at(batch_dims as usize);
    let merged = cx.checked_product(batch)?;
    let input = cx.reshape(input, &[&[merged], rest].concat())?;
    let attributes = ConvAttributes::of_node(cx, spatial + 2)?;
    let groups = cx.attributes().int_or("groups", 1)?;
    let inferred_groups = attributes.groups(cx, &cx.sizes(input), &filter_sizes)?;
    cx.check(groups == inferred_groups || groups == 1, || {
        format!(
            "groups: expected {inferred_groups}, the input's features divided by the filter's, got {groups}"
        )
    })?;
    let result = grouped(cx, input, filter, &attributes, inferred_groups)?;
    let result_sizes = cx.sizes(result);
    cx.reshape(result, &[batch, &result_sizes[1..]].concat())
}
