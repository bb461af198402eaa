//! Uniform quantization: integers with a scale and a zero point, for the whole tensor or for each
//! index of a dimension.
//!
//! Rounding is that of TensorFlow's kernels: a ratio of scales is a multiplier of 31 bits and a
//! shift, and products are rounded once. Values that overflow in TensorFlow saturate, as in XLA.

use crate::node::context::NodeContext;
use crate::node::rule::{Rule, rule};
use ::composite::{Expression, Function};
use bounded::list;
use hlo::{InstructionId, Op};
use shape::PrimitiveType;
use support::Result;
use tf::DataType;

const INTEGERS: &[DataType] = &[DataType::Qint8, DataType::Quint8, DataType::Qint32];
const REQUANTIZABLE: &[DataType] = &[DataType::Qint8, DataType::Qint32];
const SUMS: &[DataType] = &[DataType::Qint32];
const FACTORS: &[DataType] = &[DataType::Qint8];
const FLOAT: &[DataType] = &[DataType::Float];

pub(crate) const RULES: &[Rule] = &[
    rule("UniformQuantize", quantize).types("Tin", FLOAT).types("Tout", INTEGERS),
    rule("UniformDequantize", dequantize).types("Tin", INTEGERS).types("Tout", FLOAT),
    rule("UniformRequantize", requantize).types("Tin", REQUANTIZABLE).types("Tout", REQUANTIZABLE),
    rule("UniformQuantizedAdd", add).types("T", SUMS),
    rule("UniformQuantizedClipByValue", clip_by_value).types("T", SUMS),
    rule("UniformQuantizedDot", dot).types("Tin", FACTORS).types("Tout", SUMS),
    rule("UniformQuantizedDotHybrid", dot_hybrid).types("Trhs", FACTORS).types("Tlhs", FLOAT),
];

/// Scales and zero points of a tensor: scalars, or one for each index of a dimension.
#[derive(Clone, Copy)]
pub(crate) struct Quantization {
    pub(crate) scales: InstructionId,
    pub(crate) zero_points: InstructionId,
    pub(crate) axis: Option<usize>,
}

impl Quantization {
    /// Reads the quantization of a tensor of these sizes from the inputs `first` and `first + 1`.
    /// `axis` names the attribute of the axis.
    pub(crate) fn of_inputs(
        cx: &mut NodeContext<'_, '_>,
        first: usize,
        axis: &str,
        sizes: &[i64],
    ) -> Result<Self> {
        let number = cx.attributes().int_or(axis, -1)?;
        let rank = sizes.len() as i64;
        cx.check((-1..rank).contains(&number), || {
            format!("{axis}: expected -1 or one of the {rank} dimensions, got {number}")
        })?;
        let (scales, zero_points) = (cx.input(first)?, cx.input(first + 1)?);
        let axis = usize::try_from(number).ok();
        check_parameters(cx, &[scales, zero_points], sizes, axis)?;
        Ok(Self { scales, zero_points, axis })
    }

    fn of_scalars(self) -> bool {
        self.axis.is_none()
    }
}

/// Checks that parameters are scalars if there is no axis, or vectors of the size of that
/// dimension.
fn check_parameters(
    cx: &NodeContext<'_, '_>,
    parameters: &[InstructionId],
    sizes: &[i64],
    axis: Option<usize>,
) -> Result<()> {
    let expected: Vec<i64> = axis.map(|axis| sizes[axis]).into_iter().collect();
    for &parameter in parameters {
        let actual = cx.sizes(parameter);
        cx.check(actual == expected, || {
            format!(
                "expected scales, zero points, and bounds of shape {}, got {}",
                list(&expected),
                list(&actual)
            )
        })?;
    }
    Ok(())
}

/// Returns the least and the largest value of a quantized number, from attributes of the node.
fn bounds(cx: &NodeContext<'_, '_>, prefix: &str) -> Result<[f64; 2]> {
    let attributes = &cx.attributes();
    let mut ends = [0.0; 2];
    for (end, name) in ends.iter_mut().zip(["min_val", "max_val"]) {
        let name = format!("{prefix}quantization_{name}");
        let value = attributes.int(&name)?;
        let value = i32::try_from(value)
            .map_err(|_| cx.invalid(format!("{name}: expected an int32, got {value}")))?;
        *end = f64::from(value);
    }
    Ok(ends)
}

/// Broadcasts a scalar, or a vector along an axis.
pub(crate) fn spread<'f>(parameter: Expression<'f>, sizes: &[i64], axis: Option<usize>) -> Expression<'f> {
    let dimensions: Vec<usize> = axis.into_iter().collect();
    parameter.broadcast(sizes, if parameter.rank() == 0 { &[] } else { &dimensions })
}

/// Clamps 64-bit integers to two bounds and converts them.
fn clamped(x: Expression<'_>, [least, most]: [f64; 2], element_type: PrimitiveType) -> Expression<'_> {
    x.min(most).max(least).convert(element_type)
}

/// `floor(x / scale + 0.5) + zero_point`, clamped to two bounds.
fn quantize(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let x = cx.input(0)?;
    let sizes = cx.sizes(x);
    let quantization = Quantization::of_inputs(cx, 1, "quantization_axis", &sizes)?;
    let bounds = bounds(cx, "")?;
    let output = cx.output_type(0)?;
    cx.composite_one(&[x, quantization.scales, quantization.zero_points], |_, operands| {
        let inverse = operands[1].splat(1.0) / operands[1];
        let inverse = spread(inverse, &sizes, quantization.axis);
        let zero_points = spread(operands[2], &sizes, quantization.axis);
        affine(operands[0], inverse, zero_points, bounds, output)
    })
}

/// `floor(x * inverse + 0.5) + zero_point`, clamped to two bounds.
fn affine<'f>(
    x: Expression<'f>,
    inverse: Expression<'f>,
    zero_points: Expression<'f>,
    bounds: [f64; 2],
    output: PrimitiveType,
) -> Expression<'f> {
    let steps = (x * inverse + 0.5).floor().convert(PrimitiveType::S32).convert(PrimitiveType::S64);
    clamped(steps + zero_points.convert(PrimitiveType::S64), bounds, output)
}

/// `(x - zero_point) * scale`.
fn dequantize(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let x = cx.input(0)?;
    let sizes = cx.sizes(x);
    let quantization = Quantization::of_inputs(cx, 1, "quantization_axis", &sizes)?;
    cx.composite_one(&[x, quantization.scales, quantization.zero_points], |_, operands| {
        let zero_points = spread(operands[2], &sizes, quantization.axis);
        let steps = operands[0].convert(PrimitiveType::S32) - zero_points;
        steps.convert(PrimitiveType::F32) * spread(operands[1], &sizes, quantization.axis)
    })
}

/// Converts a ratio of scales, a positive `f64`, to a multiplier in `[2^30, 2^31)` and a right
/// shift of its product, both `s64`. Ratios below `2^-31` become 0, and those from `2^30` on the
/// largest multiplier.
fn multiplier(ratio: Expression<'_>) -> (Expression<'_>, Expression<'_>) {
    let bits = ratio.bitcast_convert(PrimitiveType::S64);
    let exponent = (bits >> 52.0) - 1022.0;
    let mantissa = (bits & (2f64.powi(52) - 1.0)) | 2f64.powi(52);
    // Round 53 bits to 31. This may carry into another bit.
    let rounded = (mantissa + 2f64.powi(21)) >> 22.0;
    let carried = rounded.equal(2f64.powi(31));
    let rounded = carried.select(rounded.splat(2f64.powi(30)), rounded);
    let exponent = carried.select(exponent + 1.0, exponent);
    let (is_small, is_large) = (exponent.lt(-31.0), exponent.gt(30.0));
    let rounded = is_small.select(rounded.splat(0.0), rounded);
    let rounded = is_large.select(rounded.splat(2f64.powi(31) - 1.0), rounded);
    let exponent = is_small.select(exponent.splat(0.0), exponent).min(30.0);
    (rounded, 31.0 - exponent)
}

/// The parameters of a requantization: scalars, or vectors along one axis.
struct Requantization<'f> {
    /// Scale of the numbers divided by that of the results, `f64`.
    ratio: Expression<'f>,
    /// Zero points of the results.
    zero_points: Expression<'f>,
    /// The axis of those that are vectors.
    axis: Option<usize>,
    bounds: [f64; 2],
    output: PrimitiveType,
}

impl<'f> Requantization<'f> {
    /// `x * ratio + zero_point`, clamped to two bounds. `x` is `s32` with the zero point 0.
    fn apply(&self, x: Expression<'f>) -> Expression<'f> {
        let sizes = x.sizes();
        let (multiplier, shift) = multiplier(self.ratio);
        let half = shift.splat(1.0) << (shift - 1.0);
        let [multiplier, shift, half] = [multiplier, shift, half].map(|e| spread(e, &sizes, self.axis));
        let product = x.convert(PrimitiveType::S64) * multiplier + half;
        let moved = x.function().op(Op::ShiftRightArithmetic {}, &[product, shift], None);
        let moved = moved.min(f64::from(i32::MAX)).max(f64::from(i32::MIN));
        let zero_points = spread(self.zero_points, &sizes, self.axis).convert(PrimitiveType::S64);
        clamped(moved + zero_points, self.bounds, self.output)
    }
}

/// Returns the scale of factors divided by that of the result, computed in `f64` from left to
/// right.
fn ratio<'f>(factors: &[Expression<'f>], result: Expression<'f>) -> Expression<'f> {
    let wide = |e: Expression<'f>| e.convert(PrimitiveType::F64);
    let like = factors.iter().chain([&result]).copied().find(|e| e.rank() > 0).unwrap_or(result);
    let same = |e: Expression<'f>| if e.rank() == like.rank() { e } else { e.spread_like(like) };
    let product = factors.iter().map(|&e| wide(same(e))).reduce(|a, b| a * b);
    let result = wide(same(result));
    product.map_or(result, |product| product / result)
}

/// Converts from one scale and zero point to another.
fn requantize(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let x = cx.input(0)?;
    let sizes = cx.sizes(x);
    let from = Quantization::of_inputs(cx, 1, "input_quantization_axis", &sizes)?;
    let to = Quantization::of_inputs(cx, 3, "output_quantization_axis", &sizes)?;
    cx.check(from.of_scalars() || to.of_scalars() || from.axis == to.axis, || {
        "input_quantization_axis and output_quantization_axis differ".to_owned()
    })?;
    let bounds = bounds(cx, "output_")?;
    let output = cx.output_type(0)?;
    let operands = [x, from.scales, from.zero_points, to.scales, to.zero_points];
    cx.composite_one(&operands, |_, operands| {
        let &[x, scales, zero_points, new_scales, new_zero_points] = operands else { return operands[0] };
        let zero_points = spread(zero_points, &sizes, from.axis);
        let ratio = ratio(&[scales], new_scales);
        let axis = from.axis.or(to.axis);
        let requantization = Requantization { ratio, zero_points: new_zero_points, axis, bounds, output };
        requantization.apply(x.convert(PrimitiveType::S32) - zero_points)
    })
}

/// `UniformQuantizedAdd`: requantizes both operands to the scale of the result, then adds them.
fn add(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let operands = [cx.input(0)?, cx.input(1)?];
    let shapes = operands.map(|id| cx.sizes(id));
    let sizes = cx.broadcast_sizes(&shapes[0], &shapes[1])?;
    let left = Quantization::of_inputs(cx, 2, "lhs_quantization_axis", &shapes[0])?;
    let right = Quantization::of_inputs(cx, 4, "rhs_quantization_axis", &shapes[1])?;
    let to = Quantization::of_inputs(cx, 6, "output_quantization_axis", &sizes)?;
    let bounds = bounds(cx, "output_")?;
    let mut inputs = vec![to.scales, to.zero_points];
    let mut axes = Vec::new();
    for ((id, shape), from) in operands.into_iter().zip(&shapes).zip([left, right]) {
        let axis = from.axis.map(|axis| axis + sizes.len() - shape.len());
        cx.check(axis.is_none() || to.of_scalars() || axis == to.axis, || {
            "the quantization axes of an operand and of the result differ".to_owned()
        })?;
        inputs.push(cx.broadcast_to(id, &sizes)?);
        // A broadcast dimension of size 1 has one scale for all indices.
        let repeated = from.axis.is_some_and(|a| shape[a] == 1);
        for parameter in [from.scales, from.zero_points] {
            inputs.push(if repeated { cx.reshape(parameter, &[])? } else { parameter });
        }
        axes.push(if repeated { None } else { axis });
    }
    cx.composite_one(&inputs, |_, inputs| {
        let limits = [f64::from(i32::MIN), f64::from(i32::MAX)];
        let side = |first: usize, axis: Option<usize>| {
            let (x, scales) = (inputs[first], inputs[first + 1]);
            let zero_points = spread(inputs[first + 2], &sizes, axis);
            let requantization = Requantization {
                ratio: ratio(&[scales], inputs[0]),
                zero_points: inputs[1].splat(0.0),
                axis: axis.or(to.axis),
                bounds: limits,
                output: PrimitiveType::S64,
            };
            requantization.apply(x - zero_points)
        };
        let zero_points = spread(inputs[1], &sizes, to.axis).convert(PrimitiveType::S64);
        clamped(side(2, axes[0]) + side(5, axes[1]) + zero_points, bounds, PrimitiveType::S32)
    })
}

/// `UniformQuantizedClipByValue(x, min, max, scales, zero_points)`. The bounds are quantized like
/// `x`.
fn clip_by_value(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let x = cx.input(0)?;
    let sizes = cx.sizes(x);
    let axis = Quantization::of_inputs(cx, 3, "quantization_axis", &sizes)?.axis;
    let (low, high) = (cx.input(1)?, cx.input(2)?);
    check_parameters(cx, &[low, high], &sizes, axis)?;
    cx.composite_one(&[x, low, high], |_, operands| {
        let [low, high] = [1, 2].map(|k| spread(operands[k], &sizes, axis));
        operands[0].max(low).min(high)
    })
}

/// Returns the sizes of two matrices that can be multiplied.
fn dot_sizes(cx: &NodeContext<'_, '_>, left: InstructionId, right: InstructionId) -> Result<[i64; 3]> {
    match (cx.sizes(left).as_slice(), cx.sizes(right).as_slice()) {
        (&[rows, inner], &[same, columns]) if inner == same => Ok([rows, inner, columns]),
        (left, right) => {
            Err(cx.invalid(format!("cannot multiply matrices of shapes {} and {}", list(left), list(right))))
        }
    }
}

/// Subtracts zero points from integers, as `s32`.
pub(crate) fn centered<'f>(
    x: Expression<'f>,
    zero_points: Expression<'f>,
    axis: Option<usize>,
) -> Expression<'f> {
    let sizes = x.sizes();
    x.convert(PrimitiveType::S32) - spread(zero_points, &sizes, axis)
}

/// `UniformQuantizedDot`. If the right operand has a scale for each column, the result may have
/// them too.
fn dot(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let (left, right) = (cx.input(0)?, cx.input(1)?);
    let [rows, _, columns] = dot_sizes(cx, left, right)?;
    requantized_product(cx, &[rows, columns], [1, 1], |_, left, right| left.dot(right, 0))
}

/// Returns the product of inputs 0 and 1, of these sizes, requantized as inputs 2 to 7 specify.
/// `axes` are the dimensions of the features in the right operand and in the product.
pub(crate) fn requantized_product(
    cx: &mut NodeContext<'_, '_>,
    sizes: &[i64],
    axes: [usize; 2],
    product: impl for<'f> FnOnce(&'f Function, Expression<'f>, Expression<'f>) -> Expression<'f>,
) -> Result<InstructionId> {
    let (left, right) = (cx.input(0)?, cx.input(1)?);
    let (left_sizes, right_sizes) = (cx.sizes(left), cx.sizes(right));
    let from_left = Quantization::of_inputs(cx, 2, "lhs_quantization_axis", &left_sizes)?;
    let from_right = Quantization::of_inputs(cx, 4, "rhs_quantization_axis", &right_sizes)?;
    let to = Quantization::of_inputs(cx, 6, "output_quantization_axis", sizes)?;
    check_factors(cx, from_left.axis, from_right.axis, to.axis, axes)?;
    let bounds = bounds(cx, "output_")?;
    let operands = [
        left,
        right,
        from_left.scales,
        from_left.zero_points,
        from_right.scales,
        from_right.zero_points,
        to.scales,
        to.zero_points,
    ];
    cx.composite_one(&operands, |function, operands| {
        let left = centered(operands[0], operands[3], None);
        let right = centered(operands[1], operands[5], from_right.axis);
        let requantization = Requantization {
            ratio: ratio(&[operands[2], operands[4]], operands[6]),
            zero_points: operands[7],
            axis: from_right.axis.map(|_| axes[1]),
            bounds,
            output: PrimitiveType::S32,
        };
        requantization.apply(product(function, left, right))
    })
}

/// Checks the quantization axes of the factors of a product and of its result. Only the right
/// operand and the result may have one, that of the features.
pub(crate) fn check_factors(
    cx: &NodeContext<'_, '_>,
    left: Option<usize>,
    right: Option<usize>,
    to: Option<usize>,
    [right_features, features]: [usize; 2],
) -> Result<()> {
    cx.check(left.is_none(), || "lhs_quantization_axis: expected -1".to_owned())?;
    cx.check(right.is_none_or(|axis| axis == right_features), || {
        format!(
            "rhs_quantization_axis: expected -1 or {right_features}, the dimension of the output's features"
        )
    })?;
    cx.check(to.is_none_or(|axis| axis == features && right.is_some()), || {
        format!(
            "output_quantization_axis: expected -1, or {features}, the dimension of the features, if rhs has scales \
             for them"
        )
    })
}

/// A batch of numbers, quantized by the range of each batch element.
pub(crate) struct Dynamic<'f> {
    /// `s32`, with zero points subtracted.
    pub(crate) centered: Expression<'f>,
    /// `f32`, one for each batch element.
    pub(crate) scales: Expression<'f>,
}

/// Quantizes numbers to 8 bits. Each index of the dimension `batch` has a scale for the range of
/// its numbers and 0.
pub(crate) fn dynamic<'f>(function: &'f Function, x: Expression<'f>, batch: usize) -> Dynamic<'f> {
    const ENDS: [f64; 2] = [-128.0, 127.0];
    let sizes = x.sizes();
    let others: Vec<usize> = (0..sizes.len()).filter(|&d| d != batch).collect();
    let wide = |e: Expression<'f>| e.convert(PrimitiveType::F64);
    let least = -wide((-x).max(0.0).largest_magnitude(&others));
    let most = wide(x.max(0.0).largest_magnitude(&others));
    let width = most - least;
    let scale = (width / (ENDS[1] - ENDS[0])).convert(PrimitiveType::F32);
    let inverse = (width.splat(ENDS[1] - ENDS[0]) / width).convert(PrimitiveType::F32);
    let usable = scale.not_equal(0.0) & inverse.is_finite();
    let (from_least, from_most) = (least / wide(scale), most / wide(scale));
    let by_least = (from_least.abs() + 128.0).lt(from_most.abs() + 127.0);
    let zero_point = by_least.select(ENDS[0] - from_least, ENDS[1] - from_most);
    let zero_point = function.op(Op::RoundNearestAfz {}, &[zero_point], None);
    let zero_point = zero_point.max(ENDS[0]).min(ENDS[1]).convert(PrimitiveType::S32);
    let zero_point = usable.select(zero_point, 0.0);
    let along = |e: Expression<'f>| e.broadcast(&sizes, &[batch]);
    let inverse = usable.select(inverse, 0.0);
    let quantized = affine(x, along(inverse), along(zero_point), ENDS, PrimitiveType::S32);
    Dynamic { centered: quantized - along(zero_point), scales: usable.select(scale, 1.0) }
}

/// `UniformQuantizedDotHybrid(lhs, rhs, rhs_scales, rhs_zero_points)`. Quantizes each row of the
/// left operand.
fn dot_hybrid(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let (left, right) = (cx.input(0)?, cx.input(1)?);
    let [rows, _, columns] = dot_sizes(cx, left, right)?;
    let right_sizes = cx.sizes(right);
    let from_right = Quantization::of_inputs(cx, 2, "rhs_quantization_axis", &right_sizes)?;
    check_factors(cx, None, from_right.axis, None, [1, 1])?;
    cx.composite_one(&[left, right, from_right.scales, from_right.zero_points], |function, operands| {
        let left = dynamic(function, operands[0], 0);
        let right = centered(operands[1], operands[3], from_right.axis);
        let product = left.centered.dot(right, 0).convert(PrimitiveType::F32);
        let sizes = [rows, columns];
        product * left.scales.broadcast(&sizes, &[0]) * spread(operands[2], &sizes, from_right.axis)
    })
}
