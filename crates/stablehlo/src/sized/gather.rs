//! Gathers and convolutions of arrays whose sizes are only known at run time.

use super::shaping::{element, padded};
use super::slices::clamped_start;
use crate::ops::{Convert, convolution_of, gather_numbers};
use crate::walk::Context;
use crate::walk::emit::as_declared;
use bounded::Size;
use hlo::{GatherDimensionNumbers, InstructionId, Op};
use shape::PrimitiveType;
use support::{Error, Result};

pub(super) fn find(name: &str) -> Option<Convert> {
    Some(match name {
        "stablehlo.gather" | "stablehlo.dynamic_gather" => gather,
        "stablehlo.dynamic_conv" => dynamic_conv,
        _ => return None,
    })
}

fn gather(context: &mut Context<'_, '_>) -> Result<Vec<InstructionId>> {
    let numbers = gather_numbers(context)?;
    let (array, indices) = (context.operand(0)?, context.operand(1)?);
    let rank = context.array(array)?.rank();
    let slices: Vec<Size> = match context.view().find("slice_sizes") {
        Some(_) => context.view().integers("slice_sizes")?.into_iter().map(Size::known).collect(),
        None => {
            let vector = context.operand(2)?;
            (0..rank).map(|d| element(context, vector, d)).collect::<Result<_>>()?
        }
    };
    if slices.len() != rank {
        return Err(Error::invalid(format!("{} sizes of slices for {rank} dimensions", slices.len())));
    }
    let indices_are_sorted = context.view().flag("indices_are_sorted");
    context.stamp();
    if !context.importer.builder.is_bounded(array)
        && !context.importer.builder.is_bounded(indices)
        && slices.iter().all(|size| size.size.is_none())
    {
        let slice_sizes = slices.iter().map(|size| size.bound).collect();
        let op = Op::Gather { gather_dimension_numbers: numbers, slice_sizes, indices_are_sorted };
        return context.emit(op, &[array, indices]);
    }
    let b = &mut context.importer.builder;
    let own = b.all_sizes(array)?;
    let (array, places) = (b.split(array)?, b.split(indices)?);
    let indices = clamped(context, places.data, &own, &slices, &numbers)?;
    let b = &mut context.importer.builder;
    // The memory of a slice must lie within that of the array, wherever it starts.
    let mut padding = vec![(0, 0, 0); rank];
    let mut slice_sizes = Vec::with_capacity(rank);
    for d in 0..rank {
        let is_whole = b.known_difference(own[d], slices[d]) == Some(0);
        let bound = if is_whole { own[d].bound } else { slices[d].bound };
        let moves = numbers.start_index_map.contains(&d) && !is_whole && slices[d].size.is_some();
        padding[d].1 = if moves { bound } else { (bound - own[d].bound).max(0) };
        slice_sizes.push(bound);
    }
    let mut data = array.data;
    if padding.iter().any(|&(_, high, _)| high > 0) {
        let element_type = b.element_type(data);
        let zero = b.scalar(element_type, 0.0);
        data = b.pad(data, zero, &padding)?;
    }
    let sizes = result_sizes(&numbers, &slices, &places.sizes);
    let op = Op::Gather { gather_dimension_numbers: numbers, slice_sizes, indices_are_sorted };
    let result = b.static_op(op, &[data, indices], None)?;
    let result = b.bounded(result, &sizes)?;
    Ok(vec![as_declared(context, 0, result)?])
}

/// Moves slices into the array, as a gather does, where its true size is only known at run time.
fn clamped(
    context: &mut Context<'_, '_>,
    indices: InstructionId,
    own: &[Size],
    slices: &[Size],
    numbers: &GatherDimensionNumbers,
) -> Result<InstructionId> {
    let is_open = |&d: &usize| own[d].size.is_some() || slices[d].size.is_some();
    if numbers.start_index_map.iter().any(|&d| d >= own.len()) || !numbers.start_index_map.iter().any(is_open)
    {
        return Ok(indices);
    }
    let b = &mut context.importer.builder;
    let element_type = b.element_type(indices);
    let most = b.scalar(PrimitiveType::S32, f64::from(i32::MAX));
    let wide = if element_type.bit_width() < 32 { PrimitiveType::S32 } else { element_type };
    let indices = b.convert(indices, wide)?;
    let sizes = b.sizes(indices);
    let mut last = Vec::with_capacity(numbers.start_index_map.len());
    for &d in &numbers.start_index_map {
        // The largest start.
        let limit = clamped_start(b, most, own[d], slices[d])?;
        last.push(b.reshape(limit, &[1])?);
    }
    let last = b.concatenate(&last, 0)?;
    let last = b.convert(last, wide)?;
    let last = if numbers.index_vector_dim < sizes.len() {
        b.broadcast(last, &sizes, &[numbers.index_vector_dim])?
    } else {
        let last = b.reshape(last, &[])?;
        b.broadcast(last, &sizes, &[])?
    };
    let zero = b.splat_like(indices, 0.0)?;
    b.clamped(indices, zero, last)
}

/// Returns the sizes of the result: those of slices at offset dimensions, and of the indices at
/// others.
fn result_sizes(
    numbers: &GatherDimensionNumbers,
    slices: &[Size],
    places: &[Option<InstructionId>],
) -> Vec<Option<InstructionId>> {
    let is_dropped =
        |d: usize| numbers.collapsed_slice_dims.contains(&d) || numbers.operand_batching_dims.contains(&d);
    let mut offsets = (0..slices.len()).filter(|&d| !is_dropped(d)).map(|d| slices[d].size);
    let mut batch = (0..places.len()).filter(|&d| d != numbers.index_vector_dim).map(|d| places[d]);
    let batch_rank = places.len() - usize::from(numbers.index_vector_dim < places.len());
    (0..numbers.offset_dims.len() + batch_rank)
        .map(|d| if numbers.offset_dims.contains(&d) { offsets.next() } else { batch.next() }.flatten())
        .collect()
}

/// A convolution whose padding the program computes: the input is padded first.
fn dynamic_conv(context: &mut Context<'_, '_>) -> Result<Vec<InstructionId>> {
    let padding = context.operand(2)?;
    let (op, mut operands) = convolution_of(context)?;
    let Op::Convolution { mut window, dim_labels, feature_group_count, batch_group_count } = op else {
        return Err(Error::internal("expected a convolution"));
    };
    let spatial = dim_labels.input_spatial_dimensions.clone();
    let b = &mut context.importer.builder;
    let element_type = b.element_type(operands[0]);
    let zero = b.scalar(element_type, 0.0);
    let count = 2 * spatial.len() as i64;
    let flat = b.reshape(padding, &[count])?;
    for (k, &d) in spatial.iter().enumerate() {
        let b = &mut context.importer.builder;
        if let (Some(low), Some(high)) = (b.known_integer(flat, 2 * k), b.known_integer(flat, 2 * k + 1)) {
            (window.dimensions[k].padding_low, window.dimensions[k].padding_high) = (low, high);
            continue;
        }
        if window.dimensions[k].base_dilation != 1 {
            return Err(Error::unsupported("an open padding of a dilated input is not supported"));
        }
        // A vector with the width at the position of the dimension.
        let rank = context.array(operands[0])?.rank();
        let mut width = |position: usize| -> Result<InstructionId> {
            let b = &mut context.importer.builder;
            let one = b.slice_in(flat, 0, position as i64, position as i64 + 1)?;
            let scalar = b.reshape(one, &[])?;
            b.broadcast(scalar, &[rank as i64], &[])
        };
        let widths = [width(2 * k)?, width(2 * k + 1)?];
        operands[0] = padded(context, operands[0], zero, d, widths, bounded::Size::known(0))?;
    }
    let op = Op::Convolution { window, dim_labels, feature_group_count, batch_group_count };
    context.emit(op, &operands)
}
