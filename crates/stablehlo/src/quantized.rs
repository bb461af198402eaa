//! Quantized tensors. In HLO, they are the stored integers.
//!
//! An operation that computes does so on real numbers: its operands are dequantized and its results
//! quantized. An operation that moves elements, or that has regions whose operations compute, takes
//! the integers.

use crate::types::quantization;
use crate::walk::Context;
use hlo::{InstructionId, Op};
use mlir::{Quantization, ValueId};
use shape::{ArrayShape, Literal, Scalar, Shape};
use support::{Error, Result};

/// Operations that take the integers unchanged.
const MOVES: [&str; 34] = [
    "func.call",
    "interpreter.probe",
    "stablehlo.bitcast_convert",
    "stablehlo.broadcast",
    "stablehlo.broadcast_in_dim",
    "stablehlo.case",
    "stablehlo.composite",
    "stablehlo.concatenate",
    "stablehlo.constant",
    "stablehlo.custom_call",
    "stablehlo.dynamic_broadcast_in_dim",
    "stablehlo.dynamic_pad",
    "stablehlo.dynamic_reshape",
    "stablehlo.dynamic_slice",
    "stablehlo.dynamic_update_slice",
    "stablehlo.gather",
    "stablehlo.get_dimension_size",
    "stablehlo.get_tuple_element",
    "stablehlo.if",
    "stablehlo.map",
    "stablehlo.optimization_barrier",
    "stablehlo.pad",
    "stablehlo.reduce",
    "stablehlo.reduce_window",
    "stablehlo.reshape",
    "stablehlo.reverse",
    "stablehlo.scatter",
    "stablehlo.select",
    "stablehlo.select_and_scatter",
    "stablehlo.slice",
    "stablehlo.sort",
    "stablehlo.transpose",
    "stablehlo.tuple",
    "stablehlo.while",
];

/// True if an operation computes with quantized tensors.
pub(crate) fn computes(context: &Context<'_, '_>) -> bool {
    let operation = context.operation;
    let mut values = operation.operands.iter().chain(&operation.results);
    values.any(|&value| quantization(context.importer.source, value).is_some())
        && !MOVES.contains(&operation.name.as_str())
}

/// Broadcasts a scalar, or one number for each index of the quantized dimension, to a shape.
fn spread(
    context: &mut Context<'_, '_>,
    quantization: &Quantization,
    shape: &ArrayShape,
    numbers: Vec<f64>,
) -> Result<InstructionId> {
    let element_type = shape.element_type;
    let scalars = numbers.into_iter().map(Scalar::Float);
    let (sizes, dimensions) = match quantization.dimension {
        None => (Vec::new(), Vec::new()),
        Some(dimension) if dimension < shape.rank() => (vec![shape.size(dimension)], vec![dimension]),
        Some(dimension) => {
            return Err(Error::invalid(format!(
                "the quantized dimension {dimension} is out of range for {shape}"
            )));
        }
    };
    let array = ArrayShape::new(element_type, &sizes);
    if array.element_count() != scalars.len() as i64 {
        return Err(Error::invalid(format!("{} scales do not match {shape}", scalars.len())));
    }
    let literal = Literal::from_scalars(array, scalars);
    let constant = context.op(Op::Constant { literal }, &[])?;
    context.op_with_shape(Op::Broadcast { dimensions }, &[constant], Shape::Array(shape.clone()))
}

/// `(stored - zero point) * scale`.
pub(crate) fn dequantize(
    context: &mut Context<'_, '_>,
    stored: InstructionId,
    quantization: &Quantization,
) -> Result<InstructionId> {
    let shape = context.array(stored)?.with_element_type(quantization.expressed);
    let real = context.op_with_shape(Op::Convert {}, &[stored], Shape::Array(shape.clone()))?;
    let zero_points = quantization.zero_points.iter().map(|&point| point as f64).collect();
    let zero_points = spread(context, quantization, &shape, zero_points)?;
    let scales = spread(context, quantization, &shape, quantization.scales.clone())?;
    let centered = context.op(Op::Subtract {}, &[real, zero_points])?;
    context.op(Op::Multiply {}, &[centered, scales])
}

/// `real / scale`, rounded to even, plus the zero point, clamped to the storage range.
pub(crate) fn quantize(
    context: &mut Context<'_, '_>,
    real: InstructionId,
    quantization: &Quantization,
) -> Result<InstructionId> {
    let shape = context.array(real)?;
    if shape.element_type != quantization.expressed {
        return Err(Error::invalid(format!(
            "cannot quantize {shape}: its quantized type expresses {}",
            quantization.expressed
        )));
    }
    let scales = spread(context, quantization, &shape, quantization.scales.clone())?;
    let scaled = context.op(Op::Divide {}, &[real, scales])?;
    let rounded = context.op(Op::RoundNearestEven {}, &[scaled])?;
    let zero_points = quantization.zero_points.iter().map(|&point| point as f64).collect();
    let zero_points = spread(context, quantization, &shape, zero_points)?;
    let shifted = context.op(Op::Add {}, &[rounded, zero_points])?;
    let width = quantization.storage.bit_width().min(63);
    let (least, most) = quantization.storage_range.unwrap_or(if quantization.storage.is_signed_integer() {
        (-(1 << (width - 1)), (1 << (width - 1)) - 1)
    } else {
        (0, (1 << width) - 1)
    });
    let limits = [least, most].map(|limit| Scalar::Float(limit as f64));
    let mut operands = Vec::new();
    for limit in limits {
        let literal = Literal::from_scalars(ArrayShape::new(shape.element_type, &[]), [limit]);
        let constant = context.op(Op::Constant { literal }, &[])?;
        operands.push(context.spread(constant, &shape)?);
    }
    operands.insert(1, shifted);
    let clamped = context.op(Op::Clamp {}, &operands)?;
    let stored = shape.with_element_type(quantization.storage);
    context.op_with_shape(Op::Convert {}, &[clamped], Shape::Array(stored))
}

/// Quantizes the results of an operation whose types are quantized.
pub(crate) fn quantize_results(
    context: &mut Context<'_, '_>,
    results: Vec<InstructionId>,
) -> Result<Vec<InstructionId>> {
    let values = &context.operation.results;
    let source = context.importer.source;
    let quantize_one = |(result, &value): (InstructionId, &ValueId)| match quantization(source, value) {
        Some(quantization) => quantize(context, result, quantization),
        None => Ok(result),
    };
    results.into_iter().zip(values).map(quantize_one).collect()
}
