//! Operations that read or write at given indices.

use super::Convert;
use crate::walk::Context;
use hlo::{GatherDimensionNumbers, InstructionId, Op, ScatterDimensionNumbers};
use shape::Shape;
use support::{Error, Result};

pub(super) fn find(name: &str) -> Option<Convert> {
    Some(match name {
        "stablehlo.dynamic_slice" => dynamic_slice,
        "stablehlo.dynamic_update_slice" => dynamic_update_slice,
        "stablehlo.gather" | "stablehlo.dynamic_gather" => gather,
        "stablehlo.scatter" => scatter,
        "stablehlo.torch_index_select" => torch_index_select,
        _ => return None,
    })
}

fn dynamic_slice(context: &mut Context<'_, '_>) -> Result<Vec<InstructionId>> {
    let dynamic_slice_sizes = context.view().integers("slice_sizes")?;
    let operands = context.operands()?;
    context.emit(Op::DynamicSlice { dynamic_slice_sizes }, &operands)
}

fn dynamic_update_slice(context: &mut Context<'_, '_>) -> Result<Vec<InstructionId>> {
    let operands = context.operands()?;
    context.emit(Op::DynamicUpdateSlice {}, &operands)
}

/// Returns the dimension numbers of a gather.
pub(crate) fn gather_numbers(context: &Context<'_, '_>) -> Result<GatherDimensionNumbers> {
    let view = context.view();
    Ok(GatherDimensionNumbers {
        offset_dims: view.dimensions_or_none("offset_dims")?,
        collapsed_slice_dims: view.dimensions_or_none("collapsed_slice_dims")?,
        start_index_map: view.dimensions_or_none("start_index_map")?,
        operand_batching_dims: view.dimensions_or_none("operand_batching_dims")?,
        start_indices_batching_dims: view.dimensions_or_none("start_indices_batching_dims")?,
        index_vector_dim: view.integer_or("index_vector_dim", 0)? as usize,
    })
}

fn gather(context: &mut Context<'_, '_>) -> Result<Vec<InstructionId>> {
    let view = context.view();
    let gather_dimension_numbers = gather_numbers(context)?;
    let slice_sizes = match view.find("slice_sizes") {
        Some(_) => view.integers("slice_sizes")?,
        None => context.constant_integers(2)?,
    };
    let indices_are_sorted = view.flag("indices_are_sorted");
    let operands = [context.operand(0)?, context.operand(1)?];
    context.emit(Op::Gather { gather_dimension_numbers, slice_sizes, indices_are_sorted }, &operands)
}

fn scatter(context: &mut Context<'_, '_>) -> Result<Vec<InstructionId>> {
    let view = context.view();
    let scatter_dimension_numbers = ScatterDimensionNumbers {
        update_window_dims: view.dimensions_or_none("update_window_dims")?,
        inserted_window_dims: view.dimensions_or_none("inserted_window_dims")?,
        scatter_dims_to_operand_dims: view.dimensions_or_none("scatter_dims_to_operand_dims")?,
        input_batching_dims: view.dimensions_or_none("input_batching_dims")?,
        scatter_indices_batching_dims: view.dimensions_or_none("scatter_indices_batching_dims")?,
        index_vector_dim: view.integer_or("index_vector_dim", 0)? as usize,
    };
    let indices_are_sorted = view.flag("indices_are_sorted");
    let unique_indices = view.flag("unique_indices");
    let to_apply = context.reducer(0)?;
    let operands = context.operands()?;
    context.emit(
        Op::Scatter { scatter_dimension_numbers, indices_are_sorted, unique_indices, to_apply },
        &operands,
    )
}

/// `result[batch, indices, rest] = operand[batch, index, rest]`, as a gather.
fn torch_index_select(context: &mut Context<'_, '_>) -> Result<Vec<InstructionId>> {
    let view = context.view();
    let dimension = view.dimension("dim").or_else(|_| view.dimension("dimension"))?;
    let batch_dims = view.integer_or("batch_dims", 0)?;
    if batch_dims != 0 {
        return Err(Error::unsupported("torch_index_select with batch dimensions is not supported"));
    }
    let operands = context.operands()?;
    let [operand, indices] = operands[..] else { return Err(Error::invalid("expected two operands")) };
    let (array, index_array) = (context.array(operand)?, context.array(indices)?);
    if dimension >= array.rank() {
        return Err(Error::invalid(format!("dimension {dimension} is out of range for {array}")));
    }
    let count = index_array.rank();
    let mut slice_sizes = array.sizes();
    slice_sizes[dimension] = 1;
    let offset_dims = (0..dimension).chain(dimension + count..array.rank() - 1 + count).collect();
    let gather_dimension_numbers = GatherDimensionNumbers {
        offset_dims,
        collapsed_slice_dims: vec![dimension],
        start_index_map: vec![dimension],
        index_vector_dim: count,
        ..GatherDimensionNumbers::default()
    };
    let shape: Shape = context.result_shape(0)?;
    let op = Op::Gather { gather_dimension_numbers, slice_sizes, indices_are_sorted: false };
    Ok(vec![context.op_with_shape(op, &[operand, indices], shape)?])
}
