//! Quantized tensors. In HLO, they are the stored integers.
//!
//! An operation that computes does so on real numbers: its operands are dequantized and its results
//! quantized. An operation that moves elements, or that has regions whose operations compute, takes
//! the integers.

use crate::types::quantization;
use crate::walk::Context;
use hlo::InstructionId;
use hlo::analysis::ChannelConstant;
use hlo::quantization::integer_range;
use mlir::{Quantization, ValueId};
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

/// Returns the meaning of stored integers.
fn meaning(from: &Quantization) -> hlo::quantization::Quantization {
    let range = from.storage_range.map(|(least, most)| [least, most]);
    let constant = |values| ChannelConstant { dimension: from.dimension, values };
    hlo::quantization::Quantization {
        storage: from.storage,
        range: range.unwrap_or_else(|| integer_range(from.storage)),
        expressed: from.expressed,
        scale: constant(from.scales.clone()),
        zero_point: constant(from.zero_points.iter().map(|&point| point as f64).collect()),
    }
}

/// `(stored - zero point) * scale`.
pub(crate) fn dequantize(
    context: &mut Context<'_, '_>,
    stored: InstructionId,
    quantization: &Quantization,
) -> Result<InstructionId> {
    let shape = context.array(stored)?;
    let add = &mut |op, shape, operands: &[_]| context.op_with_shape(op, operands, shape);
    meaning(quantization).dequantize(stored, &shape, add)
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
    let add = &mut |op, shape, operands: &[_]| context.op_with_shape(op, operands, shape);
    meaning(quantization).quantize(real, &shape, add)
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
