//! Convolutions of uniformly quantized tensors.

use crate::node::context::NodeContext;
use crate::node::rule::{Rule, rule};
use crate::ops::quantized::uniform_quantization::{
    Quantization, centered, check_factors, dynamic, requantized_product, spread,
};
use ::composite::{Expression, Function};
use bounded::list;
use hlo::{ConvolutionDimensionNumbers, InstructionId, Op, Window, WindowDimension};
use prost::Message;
use shape::PrimitiveType;
use support::Result;
use tf::DataType;

const FACTORS: &[DataType] = &[DataType::Qint8];

pub(crate) const RULES: &[Rule] = &[
    rule("UniformQuantizedConvolution", convolution).types("Tin", FACTORS).types("Tout", &[DataType::Qint32]),
    rule("UniformQuantizedConvolutionHybrid", convolution_hybrid)
        .types("Tlhs", &[DataType::Float])
        .types("Trhs", FACTORS),
];

/// `tensorflow.UniformQuantizedConvolutionDimensionNumbersAttr`.
#[derive(Clone, PartialEq, Message)]
struct DimensionNumbers {
    #[prost(int64, tag = "1")]
    input_batch_dimension: i64,
    #[prost(int64, tag = "2")]
    input_feature_dimension: i64,
    #[prost(int64, repeated, tag = "3")]
    input_spatial_dimensions: Vec<i64>,
    #[prost(int64, tag = "4")]
    kernel_input_feature_dimension: i64,
    #[prost(int64, tag = "5")]
    kernel_output_feature_dimension: i64,
    #[prost(int64, repeated, tag = "6")]
    kernel_spatial_dimensions: Vec<i64>,
    #[prost(int64, tag = "7")]
    output_batch_dimension: i64,
    #[prost(int64, tag = "8")]
    output_feature_dimension: i64,
    #[prost(int64, repeated, tag = "9")]
    output_spatial_dimensions: Vec<i64>,
}

/// The attributes of an HLO convolution.
struct Geometry {
    labels: ConvolutionDimensionNumbers,
    window: Window,
    feature_group_count: i64,
    batch_group_count: i64,
}

impl Geometry {
    /// Derives the geometry from the node's attributes, for operands of these sizes.
    fn of_node(cx: &NodeContext<'_, '_>, left: &[i64], right: &[i64]) -> Result<Self> {
        let rank = left.len();
        cx.check(rank > 2 && right.len() == rank, || {
            format!(
                "expected lhs and rhs of the same rank, at least 3, got shapes {} and {}",
                list(left),
                list(right)
            )
        })?;
        let labels = labels(cx, rank)?;
        let attributes = &cx.attributes();
        Ok(Self {
            window: window(cx, &labels, left, right)?,
            labels,
            feature_group_count: attributes.int_or("feature_group_count", 1)?,
            batch_group_count: attributes.int_or("batch_group_count", 1)?,
        })
    }

    fn op(&self) -> Op {
        Op::Convolution {
            window: self.window.clone(),
            dim_labels: self.labels.clone(),
            feature_group_count: self.feature_group_count,
            batch_group_count: self.batch_group_count,
        }
    }
}

/// Returns the dimension numbers of the attribute. By default, they are batch (or output features),
/// features, and spatial dimensions, in this order.
fn labels(cx: &NodeContext<'_, '_>, rank: usize) -> Result<ConvolutionDimensionNumbers> {
    let bytes = cx.attributes().string_or("dimension_numbers", Default::default())?;
    let numbers = DimensionNumbers::decode(bytes.as_ref()).map_err(|e| {
        cx.invalid(format!("dimension_numbers is not a UniformQuantizedConvolutionDimensionNumbersAttr: {e}"))
    })?;
    if numbers.input_spatial_dimensions.is_empty() {
        let spatial: Vec<usize> = (2..rank).collect();
        return Ok(ConvolutionDimensionNumbers {
            input_batch_dimension: 0,
            input_feature_dimension: 1,
            input_spatial_dimensions: spatial.clone(),
            kernel_output_feature_dimension: 0,
            kernel_input_feature_dimension: 1,
            kernel_spatial_dimensions: spatial.clone(),
            output_batch_dimension: 0,
            output_feature_dimension: 1,
            output_spatial_dimensions: spatial,
        });
    }
    let one = |number: i64| {
        let dimension = usize::try_from(number).ok().filter(|&d| d < rank);
        dimension.ok_or_else(|| {
            cx.invalid(format!(
                "dimension_numbers refers to dimension {number}, but there are {rank} dimensions"
            ))
        })
    };
    let all = |numbers: &[i64]| {
        cx.check(numbers.len() == rank - 2, || {
            format!("dimension_numbers: expected {} spatial dimensions, got {}", rank - 2, numbers.len())
        })?;
        numbers.iter().map(|&number| one(number)).collect::<Result<Vec<usize>>>()
    };
    Ok(ConvolutionDimensionNumbers {
        input_batch_dimension: one(numbers.input_batch_dimension)?,
        input_feature_dimension: one(numbers.input_feature_dimension)?,
        input_spatial_dimensions: all(&numbers.input_spatial_dimensions)?,
        kernel_input_feature_dimension: one(numbers.kernel_input_feature_dimension)?,
        kernel_output_feature_dimension: one(numbers.kernel_output_feature_dimension)?,
        kernel_spatial_dimensions: all(&numbers.kernel_spatial_dimensions)?,
        output_batch_dimension: one(numbers.output_batch_dimension)?,
        output_feature_dimension: one(numbers.output_feature_dimension)?,
        output_spatial_dimensions: all(&numbers.output_spatial_dimensions)?,
    })
}

/// Returns the span of `size` elements with gaps of `dilation - 1` between them.
fn dilated(cx: &NodeContext<'_, '_>, size: i64, dilation: i64) -> Result<i64> {
    let span = (size - 1).max(0).checked_mul(dilation).filter(|&span| span < 1 << 60);
    let span =
        span.ok_or_else(|| cx.invalid(format!("a dilation of {dilation} is too large for {size} elements")))?;
    Ok(if size == 0 { 0 } else { span + 1 })
}

/// Returns the motion of the kernel over the input.
fn window(
    cx: &NodeContext<'_, '_>,
    labels: &ConvolutionDimensionNumbers,
    left: &[i64],
    right: &[i64],
) -> Result<Window> {
    let spatial = left.len() - 2;
    let strides = cx.positive_ints("window_strides", spatial, Some(1))?;
    let left_dilations = cx.positive_ints("lhs_dilation", spatial, Some(1))?;
    let right_dilations = cx.positive_ints("rhs_dilation", spatial, Some(1))?;
    let explicit = cx.attributes().ints_or("explicit_padding", Vec::new())?;
    let mode = cx.attributes().text("padding")?;
    cx.check(["EXPLICIT", "SAME", "VALID"].contains(&mode), || {
        format!("padding: expected EXPLICIT, SAME, or VALID, got '{mode}'")
    })?;
    let expected = if mode == "EXPLICIT" { 2 * spatial } else { 0 };
    let fits = explicit.len() == expected && explicit.iter().all(|pad| (0..1 << 60).contains(pad));
    cx.check(fits, || {
        format!("explicit_padding: expected {expected} numbers >= 0, got {}", list(&explicit))
    })?;
    let mut dimensions = Vec::new();
    for d in 0..spatial {
        let kernel = right[labels.kernel_spatial_dimensions[d]];
        let input = dilated(cx, left[labels.input_spatial_dimensions[d]], left_dilations[d])?;
        let span = dilated(cx, kernel, right_dilations[d])?;
        let (low, high) = match mode {
            "EXPLICIT" => (explicit[2 * d], explicit[2 * d + 1]),
            "VALID" => (0, 0),
            _ => {
                // A stride beyond the input is equivalent to the input's size.
                let stride = strides[d].min(input.max(1));
                let positions = (input + stride - 1) / stride;
                let total = ((positions - 1) * stride + span - input).max(0);
                (total / 2, total - total / 2)
            }
        };
        dimensions.push(WindowDimension {
            stride: strides[d],
            padding_low: low,
            padding_high: high,
            window_dilation: right_dilations[d],
            base_dilation: left_dilations[d],
            ..WindowDimension::of_size(kernel)
        });
    }
    Ok(Window { dimensions })
}

/// `UniformQuantizedConvolution`. If rhs has a scale for each output feature, the result may have
/// them too. Padding has the value of the zero point.
fn convolution(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let (left, right) = (cx.input(0)?, cx.input(1)?);
    let (left_sizes, right_sizes) = (cx.sizes(left), cx.sizes(right));
    let geometry = Geometry::of_node(cx, &left_sizes, &right_sizes)?;
    let features = geometry.labels.output_feature_dimension;
    let kernel_features = geometry.labels.kernel_output_feature_dimension;
    let mut sizes = vec![0; left_sizes.len()];
    sizes[features] = right_sizes[kernel_features];
    requantized_product(cx, &sizes, [kernel_features, features], |function, left, right| {
        convolve(function, &geometry, left, right)
    })
}

fn convolve<'f>(
    function: &'f Function,
    geometry: &Geometry,
    left: Expression<'f>,
    right: Expression<'f>,
) -> Expression<'f> {
    function.op(geometry.op(), &[left, right], None)
}

/// `UniformQuantizedConvolutionHybrid(lhs, rhs, rhs_scales, rhs_zero_points)`. Quantizes lhs
/// separately for each batch element.
fn convolution_hybrid(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let (left, right) = (cx.input(0)?, cx.input(1)?);
    let (left_sizes, right_sizes) = (cx.sizes(left), cx.sizes(right));
    let geometry = Geometry::of_node(cx, &left_sizes, &right_sizes)?;
    let from_right = Quantization::of_inputs(cx, 2, "rhs_quantization_axis", &right_sizes)?;
    let labels = &geometry.labels;
    let (batch, features) = (labels.output_batch_dimension, labels.output_feature_dimension);
    check_factors(cx, None, from_right.axis, None, [labels.kernel_output_feature_dimension, features])?;
    cx.check(geometry.batch_group_count == 1, || {
        "batch_group_count must be 1, because each batch element has its own scale".to_owned()
    })?;
    let input_batch = labels.input_batch_dimension;
    cx.composite_one(&[left, right, from_right.scales, from_right.zero_points], |function, operands| {
        let left = dynamic(function, operands[0], input_batch);
        let right = centered(operands[1], operands[3], from_right.axis);
        let product = convolve(function, &geometry, left.centered, right).convert(PrimitiveType::F32);
        let sizes = product.sizes();
        let scales = spread(operands[2], &sizes, from_right.axis.map(|_| features));
        product * left.scales.broadcast(&sizes, &[batch]) * scales
    })
}
