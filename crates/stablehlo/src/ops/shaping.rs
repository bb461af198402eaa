//! Operations that move or create elements: constants, broadcasts, slices, tuples.

use super::Convert;
use crate::walk::Context;
use hlo::{InstructionId, Op, PaddingConfig, PaddingDimension, SliceDimension};
use mlir::Attribute;
use shape::Shape;
use support::{Error, Result};

pub(super) fn find(name: &str) -> Option<Convert> {
    Some(match name {
        "stablehlo.constant" | "chlo.constant" => constant,
        "stablehlo.iota" | "stablehlo.dynamic_iota" => iota,
        "stablehlo.broadcast" => broadcast,
        "stablehlo.broadcast_in_dim" | "stablehlo.dynamic_broadcast_in_dim" => broadcast_in_dim,
        "stablehlo.reshape" | "stablehlo.dynamic_reshape" => reshape,
        "stablehlo.transpose" => transpose,
        "stablehlo.reverse" => reverse,
        "stablehlo.concatenate" => concatenate,
        "stablehlo.slice" => slice,
        "stablehlo.real_dynamic_slice" => real_dynamic_slice,
        "stablehlo.pad" => pad,
        "stablehlo.dynamic_pad" => dynamic_pad,
        "stablehlo.tuple" => tuple,
        "stablehlo.get_tuple_element" => get_tuple_element,
        "stablehlo.optimization_barrier" => optimization_barrier,
        "stablehlo.create_token" | "stablehlo.after_all" => after_all,
        "stablehlo.get_dimension_size" => get_dimension_size,
        "stablehlo.set_dimension_size" => set_dimension_size,
        "stablehlo.replica_id" | "stablehlo.partition_id" => zero,
        _ => return None,
    })
}

fn constant(context: &mut Context<'_, '_>) -> Result<Vec<InstructionId>> {
    match context.view().find("value") {
        Some(Attribute::Elements(elements)) => Ok(vec![context.elements(elements)?]),
        _ => Err(Error::unsupported("expected a constant of numbers")),
    }
}

fn iota(context: &mut Context<'_, '_>) -> Result<Vec<InstructionId>> {
    let iota_dimension = context.view().dimension("iota_dimension")?;
    context.emit(Op::Iota { iota_dimension }, &[])
}

/// Adds dimensions before those of the operand.
fn broadcast(context: &mut Context<'_, '_>) -> Result<Vec<InstructionId>> {
    let added = context.view().integers("broadcast_sizes")?.len();
    let operand = context.operand(0)?;
    let rank = context.array(operand)?.rank();
    context.emit(Op::Broadcast { dimensions: (added..added + rank).collect() }, &[operand])
}

fn broadcast_in_dim(context: &mut Context<'_, '_>) -> Result<Vec<InstructionId>> {
    let dimensions = context.view().dimensions("broadcast_dimensions")?;
    let operand = context.operand(0)?;
    let target = context.result_array(0)?;
    Ok(vec![expand(context, operand, &dimensions, &target)?])
}

/// Broadcasts to a shape: dimension k of the operand becomes `dimensions[k]`; dimensions of size 1
/// are repeated.
pub(super) fn expand(
    context: &mut Context<'_, '_>,
    operand: InstructionId,
    dimensions: &[usize],
    target: &shape::ArrayShape,
) -> Result<InstructionId> {
    let array = context.array(operand)?;
    if dimensions.len() != array.rank() || dimensions.iter().any(|&dimension| dimension >= target.rank()) {
        return Err(Error::invalid(format!(
            "broadcast dimensions {dimensions:?} do not fit {array} and {target}"
        )));
    }
    let target = target.with_element_type(array.element_type);
    let is_full = |k: &usize| array.size(*k) == target.size(dimensions[*k]);
    let full: Vec<usize> = (0..array.rank()).filter(is_full).collect();
    let mut operand = operand;
    if full.len() < array.rank() {
        let repeated = (0..array.rank()).filter(|k| !full.contains(k));
        if repeated.into_iter().any(|k| array.size(k) != 1) {
            return Err(Error::invalid(format!("{array} cannot be broadcast to {target}")));
        }
        let sizes: Vec<i64> = full.iter().map(|&k| array.size(k)).collect();
        operand =
            context.op_with_shape(Op::Reshape {}, &[operand], Shape::array(array.element_type, &sizes))?;
    }
    let full: Vec<usize> = full.into_iter().map(|k| dimensions[k]).collect();
    if full.len() == target.rank() && full.is_sorted() {
        return Ok(operand);
    }
    context.op_with_shape(Op::Broadcast { dimensions: full }, &[operand], target.into())
}

/// A shape operand is redundant with the result's type.
fn reshape(context: &mut Context<'_, '_>) -> Result<Vec<InstructionId>> {
    let operand = context.operand(0)?;
    context.emit(Op::Reshape {}, &[operand])
}

fn transpose(context: &mut Context<'_, '_>) -> Result<Vec<InstructionId>> {
    let dimensions = context.view().dimensions("permutation")?;
    let operands = context.operands()?;
    context.emit(Op::Transpose { dimensions }, &operands)
}

fn reverse(context: &mut Context<'_, '_>) -> Result<Vec<InstructionId>> {
    let dimensions = context.view().dimensions("dimensions")?;
    let operands = context.operands()?;
    context.emit(Op::Reverse { dimensions }, &operands)
}

fn concatenate(context: &mut Context<'_, '_>) -> Result<Vec<InstructionId>> {
    let dimension = context.view().dimension("dimension")?;
    let operands = context.operands()?;
    context.emit(Op::Concatenate { dimension }, &operands)
}

fn slice(context: &mut Context<'_, '_>) -> Result<Vec<InstructionId>> {
    let view = context.view();
    let starts = view.integers("start_indices")?;
    let limits = view.integers_or("limit_indices", starts.len(), 0)?;
    let strides = view.integers_or("strides", starts.len(), 1)?;
    emit_slice(context, &starts, &limits, &strides)
}

fn emit_slice(
    context: &mut Context<'_, '_>,
    starts: &[i64],
    limits: &[i64],
    strides: &[i64],
) -> Result<Vec<InstructionId>> {
    if limits.len() != starts.len() || strides.len() != starts.len() {
        return Err(Error::invalid("starts, limits, and strides differ in number"));
    }
    let dimension = |k: usize| SliceDimension { start: starts[k], limit: limits[k], stride: strides[k] };
    let slice = (0..starts.len()).map(dimension).collect();
    let operand = context.operand(0)?;
    context.emit(Op::Slice { slice }, &[operand])
}

/// A slice whose bounds are constants.
fn real_dynamic_slice(context: &mut Context<'_, '_>) -> Result<Vec<InstructionId>> {
    let starts = context.constant_integers(1)?;
    let limits = context.constant_integers(2)?;
    let strides = context.constant_integers(3)?;
    emit_slice(context, &starts, &limits, &strides)
}

fn pad(context: &mut Context<'_, '_>) -> Result<Vec<InstructionId>> {
    let view = context.view();
    let low = view.integers("edge_padding_low")?;
    let high = view.integers_or("edge_padding_high", low.len(), 0)?;
    let interior = view.integers_or("interior_padding", low.len(), 0)?;
    emit_pad(context, &low, &high, &interior)
}

fn emit_pad(
    context: &mut Context<'_, '_>,
    low: &[i64],
    high: &[i64],
    interior: &[i64],
) -> Result<Vec<InstructionId>> {
    if high.len() != low.len() || interior.len() != low.len() {
        return Err(Error::invalid("low, high, and interior paddings differ in number"));
    }
    let dimension = |k: usize| PaddingDimension {
        edge_padding_low: low[k],
        edge_padding_high: high[k],
        interior_padding: interior[k],
    };
    let padding = PaddingConfig { dimensions: (0..low.len()).map(dimension).collect() };
    let operands = [context.operand(0)?, context.operand(1)?];
    context.emit(Op::Pad { padding }, &operands)
}

/// A pad whose widths are constants.
fn dynamic_pad(context: &mut Context<'_, '_>) -> Result<Vec<InstructionId>> {
    let low = context.constant_integers(2)?;
    let high = context.constant_integers(3)?;
    let interior = context.constant_integers(4)?;
    emit_pad(context, &low, &high, &interior)
}

fn tuple(context: &mut Context<'_, '_>) -> Result<Vec<InstructionId>> {
    let operands = context.operands()?;
    context.emit(Op::Tuple {}, &operands)
}

fn get_tuple_element(context: &mut Context<'_, '_>) -> Result<Vec<InstructionId>> {
    let index = context.view().dimension("index")?;
    let operands = context.operands()?;
    context.emit(Op::GetTupleElement { index }, &operands)
}

/// HLO's barrier takes one operand, so several operands are packed into a tuple.
fn optimization_barrier(context: &mut Context<'_, '_>) -> Result<Vec<InstructionId>> {
    let operands = context.operands()?;
    let tuple = context.op(Op::Tuple {}, &operands)?;
    let barrier = context.op(Op::OptimizationBarrier {}, &[tuple])?;
    context.elements_of(barrier)
}

fn after_all(context: &mut Context<'_, '_>) -> Result<Vec<InstructionId>> {
    let operands = context.operands()?;
    context.emit(Op::AfterAll {}, &operands)
}

fn get_dimension_size(context: &mut Context<'_, '_>) -> Result<Vec<InstructionId>> {
    let dimension = context.view().dimension("dimension")?;
    let operands = context.operands()?;
    context.emit(Op::GetDimensionSize { dimension }, &operands)
}

fn set_dimension_size(context: &mut Context<'_, '_>) -> Result<Vec<InstructionId>> {
    let dimension = context.view().dimension("dimension")?;
    let operands = context.operands()?;
    context.emit(Op::SetDimensionSize { dimension }, &operands)
}

/// The ID of this device; there is only one.
fn zero(context: &mut Context<'_, '_>) -> Result<Vec<InstructionId>> {
    let element_type = context.result_array(0)?.element_type;
    Ok(vec![context.number(element_type, 0)])
}
