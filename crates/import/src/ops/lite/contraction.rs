//! Sums of products of an input and weights, for every type of both: the arithmetic that
//! convolutions and products of matrices share. The operators differ in the sum itself.
//!
//! Output features are the last dimension of every result.

use crate::node::context::NodeContext;
use crate::ops::lite::dynamic;
use crate::ops::lite::fixed_point::{self, Multiplier};
use crate::ops::lite::operands::{Operands, Quantization, full_limits};
use hlo::{InstructionId, Op};
use shape::{Literal, PrimitiveType, Shape};
use support::{Error, Result};

/// Arithmetic that turns sums into stored results.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scaling {
    /// A multiplier of 31 bits for scales multiplied in double precision.
    Fixed,
    /// The same for scales multiplied in single precision.
    FixedOfSingle,
    /// A product in double precision, rounded once.
    Double,
}

/// Treatment of a float input to integer weights.
#[derive(Clone, Debug)]
pub(crate) struct Hybrid {
    /// Number of leading dimensions of the input. Each of their indices has its own scale.
    pub(crate) rows: usize,
    /// True if the input gets zero points, too.
    pub(crate) is_asymmetric: bool,
    /// True if sums are multiplied by the scale of the weights, then by that of the input. If not,
    /// they are multiplied by the product of both.
    pub(crate) is_stepwise: bool,
    /// For each row, the row whose scale and zero point it has, if that is not always itself.
    pub(crate) order: Option<Vec<i64>>,
    /// True if hyperbolic tangent is a possible activation. Otherwise it has no effect.
    pub(crate) has_tanh: bool,
}

/// An operator whose result is a sum of products.
#[derive(Clone, Debug)]
pub(crate) struct Contraction {
    /// Positions of the input, the weights, and the bias among the operator's inputs.
    pub(crate) positions: [usize; 3],
    pub(crate) scaling: Scaling,
    pub(crate) hybrid: Hybrid,
}

/// Sums products of two operands in the given type.
type Sum<'s> = &'s mut dyn FnMut(
    &mut NodeContext<'_, '_>,
    InstructionId,
    InstructionId,
    PrimitiveType,
) -> Result<InstructionId>;

impl Contraction {
    /// Builds the operator.
    pub(crate) fn build(
        &self,
        cx: &mut NodeContext<'_, '_>,
        operands: &Operands,
        sum: Sum<'_>,
    ) -> Result<InstructionId> {
        let [input, weights, bias] = self.positions;
        let (x, from_x) = operands.input(cx, input)?;
        let (w, from_w) = operands.input(cx, weights)?;
        let bias = if operands.has(bias) { Some(operands.input(cx, bias)?.0) } else { None };
        if !from_w.is_quantized() {
            return Err(cx.invalid("the weights have no scale"));
        }
        match from_x.element_type {
            PrimitiveType::F32 => self.hybrid(cx, x, (w, &from_w), bias, sum),
            PrimitiveType::U8 | PrimitiveType::S8 | PrimitiveType::S16 => {
                let to = operands.output(cx, 0)?;
                let sum_type = sum_type(cx, from_x.element_type, bias);
                let [x, w] = factors(cx, (x, from_x.zero_point()), (w, from_w.zero_point()), sum_type)?;
                let sums = sum(cx, x, w, sum_type)?;
                let sums = with_bias(cx, sums, bias)?;
                self.requantized(cx, sums, [&from_x, &from_w, &to])
            }
            other => Err(Error::unsupported(format!(
                "an input of type {other} to integer weights is not supported"
            ))),
        }
    }

    /// Stored results for sums of the scale of the input times that of the weights.
    fn requantized(
        &self,
        cx: &mut NodeContext<'_, '_>,
        sums: InstructionId,
        [input, weights, output]: [&Quantization; 3],
    ) -> Result<InstructionId> {
        if !input.is_quantized() || !output.is_quantized() {
            return Err(cx.invalid("the input or the output has no scale"));
        }
        check_scales(cx, sums, weights)?;
        let to_real = |&scale: &f32| match self.scaling {
            Scaling::FixedOfSingle => f64::from(input.scale() as f32 * scale) / output.scale(),
            _ => input.scale() * f64::from(scale) / output.scale(),
        };
        let reals: Vec<f64> = weights.scales.iter().map(to_real).collect();
        let features = cx.rank(sums) - 1;
        let scaled = match self.scaling {
            Scaling::Double => {
                let sums = cx.convert(sums, PrimitiveType::F64)?;
                let scales = vector(cx, &reals, sums)?;
                let product = cx.mul(sums, scales)?;
                let rounded = cx.op(Op::RoundNearestAfz {}, &[product])?;
                cx.convert(rounded, PrimitiveType::S32)?
            }
            _ => {
                let multipliers: Vec<Multiplier> = reals.into_iter().map(Multiplier::of).collect();
                fixed_point::multiply(cx, sums, &multipliers, features)?
            }
        };
        stored(cx, scaled, output)
    }

    /// Quantizes a float input at run time.
    fn hybrid(
        &self,
        cx: &mut NodeContext<'_, '_>,
        x: InstructionId,
        (w, from_w): (InstructionId, &Quantization),
        bias: Option<InstructionId>,
        sum: Sum<'_>,
    ) -> Result<InstructionId> {
        let Hybrid { rows, is_asymmetric, is_stepwise, has_tanh, .. } = self.hybrid;
        let mut quantized = dynamic::quantize(cx, x, rows, is_asymmetric)?;
        if let Some(order) = &self.hybrid.order {
            quantized.scales = reordered(cx, quantized.scales, order)?;
            if let Some(zero_points) = &mut quantized.zero_points {
                *zero_points = reordered(cx, *zero_points, order)?;
            }
        }
        // The reference reads unsigned weights as signed ones, and ignores their zero points.
        let w = match from_w.element_type {
            PrimitiveType::U8 => {
                let shape = Shape::array(PrimitiveType::S8, &cx.sizes(w));
                cx.op_shaped(&shape, Op::BitcastConvert {}, &[w])?
            }
            _ => w,
        };
        let [mut x, mut w] = factors(cx, (quantized.values, 0), (w, 0), PrimitiveType::S32)?;
        if let Some(zero_points) = quantized.zero_points {
            let sizes = cx.sizes(x);
            let zero_points = cx.broadcast(zero_points, &sizes, &(0..rows).collect::<Vec<usize>>())?;
            (x, w) = (cx.convert(x, PrimitiveType::S32)?, cx.convert(w, PrimitiveType::S32)?);
            x = cx.sub(x, zero_points)?;
        }
        let sums = sum(cx, x, w, PrimitiveType::S32)?;
        check_scales(cx, sums, from_w)?;
        let sums = cx.convert(sums, PrimitiveType::F32)?;
        let weights_scales = vector(cx, &from_w.scales, sums)?;
        let sizes = cx.sizes(sums);
        let row_sizes = [cx.sizes(quantized.scales), vec![1; sizes.len() - rows]].concat();
        let row_scales = cx.reshape(quantized.scales, &row_sizes)?;
        let row_scales = cx.broadcast_to(row_scales, &sizes)?;
        let mut y = if is_stepwise {
            let y = cx.mul(sums, weights_scales)?;
            cx.mul(y, row_scales)?
        } else {
            let scales = cx.mul(row_scales, weights_scales)?;
            cx.mul(sums, scales)?
        };
        y = with_bias(cx, y, bias)?;
        let activation = cx.attributes().int_or("activation", 0)?;
        activated(cx, y, activation, has_tanh)
    }
}

/// An array whose elements, in order of their positions, are those at the given positions.
fn reordered(cx: &mut NodeContext<'_, '_>, x: InstructionId, order: &[i64]) -> Result<InstructionId> {
    let sizes = cx.sizes(x);
    let flat = cx.reshape(x, &[order.len() as i64])?;
    let indices = cx.integers(PrimitiveType::S32, order)?;
    let taken = cx.gather_along(flat, indices, 0, 0)?;
    cx.reshape(taken, &sizes)
}

/// Type of sums: 64 bits for inputs of 16 bits, unless the bias has 32.
fn sum_type(cx: &NodeContext<'_, '_>, input: PrimitiveType, bias: Option<InstructionId>) -> PrimitiveType {
    let is_narrow = bias.is_some_and(|bias| cx.element_type(bias) == PrimitiveType::S32);
    if input == PrimitiveType::S16 && !is_narrow { PrimitiveType::S64 } else { PrimitiveType::S32 }
}

/// Both operands without their zero points: unchanged if they are of eight bits and have none.
pub(crate) fn factors(
    cx: &mut NodeContext<'_, '_>,
    (x, x_zero): (InstructionId, i64),
    (w, w_zero): (InstructionId, i64),
    sum_type: PrimitiveType,
) -> Result<[InstructionId; 2]> {
    let types = [cx.element_type(x), cx.element_type(w)];
    if x_zero == 0 && w_zero == 0 && types == [PrimitiveType::S8; 2] && sum_type == PrimitiveType::S32 {
        return Ok([x, w]);
    }
    Ok([centered(cx, x, x_zero, sum_type)?, centered(cx, w, w_zero, sum_type)?])
}

/// Stored numbers in a wider type, less the zero point.
pub(crate) fn centered(
    cx: &mut NodeContext<'_, '_>,
    x: InstructionId,
    zero_point: i64,
    wide: PrimitiveType,
) -> Result<InstructionId> {
    let x = cx.convert(x, wide)?;
    if zero_point == 0 {
        return Ok(x);
    }
    let zero_point = cx.splat_like(x, zero_point as f64)?;
    cx.sub(x, zero_point)
}

/// Adds the zero point to scaled numbers, applies the activation that the node names, and converts
/// to the type of the output.
pub(crate) fn stored(
    cx: &mut NodeContext<'_, '_>,
    mut scaled: InstructionId,
    output: &Quantization,
) -> Result<InstructionId> {
    if output.zero_point() != 0 {
        scaled = cx.add_scalar(scaled, output.zero_point() as f64)?;
    }
    let activation = cx.attributes().int_or("activation", 0)?;
    let limits = output.activation_limits(activation);
    let limits = limits.ok_or_else(|| unknown_activation(activation))?;
    let clamped = clamped(cx, scaled, limits)?;
    cx.convert(clamped, output.element_type)
}

/// Clamps to two numbers, unless they are the limits of the type.
pub(crate) fn clamped(
    cx: &mut NodeContext<'_, '_>,
    x: InstructionId,
    [least, largest]: [i64; 2],
) -> Result<InstructionId> {
    let element_type = cx.element_type(x);
    if element_type.is_integer() && [least, largest] == full_limits(element_type) {
        return Ok(x);
    }
    let (least, largest) = (cx.scalar(element_type, least as f64), cx.scalar(element_type, largest as f64));
    cx.op(Op::Clamp {}, &[least, x, largest])
}

fn unknown_activation(activation: i64) -> Error {
    Error::unsupported(format!("fused activation {activation} is not supported"))
}

/// Applies a fused activation to float numbers.
pub(crate) fn activated(
    cx: &mut NodeContext<'_, '_>,
    x: InstructionId,
    activation: i64,
    has_tanh: bool,
) -> Result<InstructionId> {
    match activation {
        0 => Ok(x),
        1 => {
            let zero = cx.splat_like(x, 0.0)?;
            cx.op(Op::Maximum {}, &[x, zero])
        }
        2 => clamped(cx, x, [-1, 1]),
        3 => clamped(cx, x, [0, 6]),
        4 if has_tanh => cx.op(Op::Tanh {}, &[x]),
        4 => Ok(x),
        other => Err(unknown_activation(other)),
    }
}

/// Adds a bias for each feature.
pub(crate) fn with_bias(
    cx: &mut NodeContext<'_, '_>,
    sums: InstructionId,
    bias: Option<InstructionId>,
) -> Result<InstructionId> {
    let Some(bias) = bias else { return Ok(sums) };
    let sizes = cx.sizes(sums);
    let features = sizes.len() - 1;
    let bias_sizes = cx.sizes(bias);
    let count = cx.checked_product(&bias_sizes)?;
    cx.check(count == sizes[features], || {
        format!("the bias has {count} elements for {} features", sizes[features])
    })?;
    let bias = cx.reshape(bias, &[count])?;
    let element_type = cx.element_type(sums);
    let bias = cx.convert(bias, element_type)?;
    let bias = cx.broadcast(bias, &sizes, &[features])?;
    cx.add(sums, bias)
}

/// Checks that the weights have one scale, or one for each feature.
fn check_scales(cx: &NodeContext<'_, '_>, sums: InstructionId, weights: &Quantization) -> Result<()> {
    let sizes = cx.sizes(sums);
    let (count, features) = (weights.scales.len() as i64, sizes[sizes.len() - 1]);
    cx.check(count == 1 || count == features, || {
        format!("the weights have {count} scales for {features} features")
    })
}

/// One number, or one for each feature, broadcast to the shape of an array.
fn vector<T: shape::NativeType>(
    cx: &mut NodeContext<'_, '_>,
    values: &[T],
    like: InstructionId,
) -> Result<InstructionId> {
    let sizes = cx.sizes(like);
    match values {
        [only] => {
            let scalar = cx.literal(Literal::scalar(*only));
            cx.broadcast(scalar, &sizes, &[])
        }
        many => {
            let literal = cx.literal(Literal::from_elements(&[many.len() as i64], many));
            cx.broadcast(literal, &sizes, &[sizes.len() - 1])
        }
    }
}
