//! Slices and updates of arrays whose sizes are only known at run time.

use super::shaping::element;
use crate::ops::Convert;
use crate::walk::Context;
use crate::walk::emit::{as_declared, declared_sizes};
use bounded::{Builder, Size, bounds, run_time};
use hlo::{ComparisonDirection, InstructionId, Op};
use shape::PrimitiveType;
use support::{Error, Result};

pub(super) fn find(name: &str) -> Option<Convert> {
    Some(match name {
        "stablehlo.real_dynamic_slice" => real_dynamic_slice,
        "stablehlo.dynamic_slice" => dynamic_slice,
        "stablehlo.dynamic_update_slice" => dynamic_update_slice,
        _ => return None,
    })
}

/// A slice whose ends and steps the program computes.
fn real_dynamic_slice(context: &mut Context<'_, '_>) -> Result<Vec<InstructionId>> {
    let operands = context.operands()?;
    let &[array, starts, limits, strides] = &operands[..] else {
        return Err(Error::invalid("expected four operands"));
    };
    let declared = declared_sizes(context, 0).unwrap_or_default();
    let mut result = array;
    for d in 0..context.array(array)?.rank() {
        context.stamp();
        let builder = &mut context.importer.builder;
        let stride = builder.size_element(strides, d)?;
        let range = stride.map(|stride| builder.size_range(stride));
        let Some(stride) = stride.filter(|_| range.is_some_and(|range| range.low.is_some_and(|low| low > 0)))
        else {
            return Err(Error::unsupported("the steps of a slice must be positive and have an upper bound"));
        };
        let (start, limit) = (builder.s32_element(starts, d as i64)?, builder.s32_element(limits, d as i64)?);
        let steps = builder.size_value(stride)?;
        let length = match declared.get(d) {
            Some(Some(size)) => Size::known(*size),
            _ => {
                let (none, one) = (builder.s32(0)?, builder.s32(1)?);
                let length = builder.sub(limit, start)?;
                let length = builder.op(Op::Maximum {}, &[length, none])?;
                let rest = builder.sub(steps, one)?;
                let length = builder.add(length, rest)?;
                let length = builder.div(length, steps)?;
                let length = builder.size_element(length, 0)?;
                length.ok_or_else(|| Error::unsupported("the size of a slice has no upper bound"))?
            }
        };
        result = match stride.size {
            None => taken(builder, result, d, start, stride.bound, length)?,
            Some(_) => builder.take_steps(result, d, start, steps, length)?,
        };
    }
    Ok(vec![as_declared(context, 0, result)?])
}

/// Takes a part of a dimension; all of it costs nothing.
fn taken(
    b: &mut Builder,
    array: InstructionId,
    dimension: usize,
    start: InstructionId,
    stride: i64,
    length: Size,
) -> Result<InstructionId> {
    let own = b.all_sizes(array)?[dimension];
    let from_start = b.known_integer(start, 0) == Some(0);
    if from_start && stride == 1 && b.known_difference(own, length) == Some(0) {
        return Ok(array);
    }
    if let (Some(start), None, true) = (b.known_integer(start, 0), length.size, stride == 1)
        && start >= 0
        && start + length.bound <= own.bound
    {
        let mut part = b.split(array)?;
        part.data = b.slice_in(part.data, dimension, start, start + length.bound)?;
        part.sizes[dimension] = None;
        return b.bounded(part.data, &part.sizes);
    }
    // A start whose part ends within the memory needs no elements beyond it.
    let last = b.size_range(Size { bound: own.bound, size: Some(start) });
    let fits = last.low.is_some_and(|low| low >= 0)
        && last.high.is_some_and(|high| high.saturating_add(length.bound) <= own.bound);
    if fits && stride == 1 && length.bound > 0 {
        let mut part = b.split(array)?;
        let mut dynamic_slice_sizes = b.sizes(part.data);
        dynamic_slice_sizes[dimension] = length.bound;
        let origin = b.s32(0)?;
        let mut operands = vec![part.data];
        operands.extend((0..dynamic_slice_sizes.len()).map(|d| if d == dimension { start } else { origin }));
        part.data = b.static_op(Op::DynamicSlice { dynamic_slice_sizes }, &operands, None)?;
        part.sizes[dimension] = length.size;
        return b.bounded(part.data, &part.sizes);
    }
    b.take(array, dimension, start, stride, length)
}

/// Returns the index of the first element of a part, moved so that the part is within the array.
pub(super) fn clamped_start(
    b: &mut Builder,
    start: InstructionId,
    array: Size,
    part: Size,
) -> Result<InstructionId> {
    if b.known_difference(array, part) == Some(0) {
        return b.s32(0);
    }
    let element_type = b.element_type(start);
    let (whole, part) = (b.size_value(array)?, b.size_value(part)?);
    let last = b.sub(whole, part)?;
    let none = b.s32(0)?;
    let last = b.op(Op::Maximum {}, &[last, none])?;
    // The last index as the type of the start, which may be wider or narrower, or unsigned.
    let is_wide = element_type.bit_width() >= 32;
    if is_wide {
        let none = b.scalar(element_type, 0.0);
        let last = b.convert(last, element_type)?;
        let start = b.clamped(start, none, last)?;
        return b.convert(start, PrimitiveType::S32);
    }
    let start = b.convert(start, PrimitiveType::S32)?;
    b.clamped(start, none, last)
}

/// A slice of known sizes.
fn dynamic_slice(context: &mut Context<'_, '_>) -> Result<Vec<InstructionId>> {
    let dynamic_slice_sizes = context.view().integers("slice_sizes")?;
    let operands = context.operands()?;
    let Some((&array, starts)) = operands.split_first() else {
        return Err(Error::invalid("expected an operand"));
    };
    if !context.importer.builder.is_bounded(array) {
        return context.emit(Op::DynamicSlice { dynamic_slice_sizes }, &operands);
    }
    context.stamp();
    if starts.len() != dynamic_slice_sizes.len() || starts.len() != context.array(array)?.rank() {
        return Err(Error::invalid("expected a start and a size for each dimension"));
    }
    let b = &mut context.importer.builder;
    let mut result = array;
    for (d, (&start, &size)) in starts.iter().zip(&dynamic_slice_sizes).enumerate() {
        let whole = b.all_sizes(array)?[d];
        let start = clamped_start(b, start, whole, Size::known(size))?;
        result = taken(b, result, d, start, 1, Size::known(size))?;
    }
    Ok(vec![as_declared(context, 0, result)?])
}

/// Replaces a part of an array.
fn dynamic_update_slice(context: &mut Context<'_, '_>) -> Result<Vec<InstructionId>> {
    let operands = context.operands()?;
    let [array, update, starts @ ..] = &operands[..] else {
        return Err(Error::invalid("expected an array and an update"));
    };
    context.stamp();
    let b = &mut context.importer.builder;
    if !b.is_bounded(*array) && !b.is_bounded(*update) {
        return context.emit(Op::DynamicUpdateSlice {}, &operands);
    }
    let (own, of_update) = (b.all_sizes(*array)?, b.all_sizes(*update)?);
    if own.len() != of_update.len() || own.len() != starts.len() {
        return Err(Error::invalid("expected a start for each dimension"));
    }
    let mut places = Vec::with_capacity(starts.len());
    let mut is_part = false;
    for (d, &start) in starts.iter().enumerate() {
        places.push(clamped_start(b, start, own[d], of_update[d])?);
        is_part |= of_update[d].size.is_some() && b.known_difference(own[d], of_update[d]) != Some(0);
    }
    let whole = b.split(*array)?;
    let part = b.split(*update)?;
    let limits: Vec<i64> = bounds(&own);
    let data = if is_part {
        // The memory of the update may be larger than the rest of the array, and elements beyond
        // its true size replace nothing.
        let sizes = b.sizes(part.data);
        let padding: Vec<(i64, i64, i64)> = sizes.iter().map(|&size| (0, size, 0)).collect();
        let element_type = b.element_type(whole.data);
        let zero = b.scalar(element_type, 0.0);
        let wide = b.pad(whole.data, zero, &padding)?;
        let mut operands = vec![wide];
        operands.extend(&places);
        let before = b.static_op(Op::DynamicSlice { dynamic_slice_sizes: sizes.clone() }, &operands, None)?;
        let mut update = part.data;
        for (d, size) in part.sizes.iter().enumerate() {
            let Some(size) = *size else { continue };
            let position = b.iota(PrimitiveType::S32, &sizes, d)?;
            let size = b.broadcast(size, &sizes, &[])?;
            let is_inside = b.compare(ComparisonDirection::Lt, position, size)?;
            update = b.select(is_inside, update, before)?;
        }
        operands.insert(1, update);
        let mut result = b.static_op(Op::DynamicUpdateSlice {}, &operands, None)?;
        for (d, &limit) in limits.iter().enumerate() {
            result = b.slice_in(result, d, 0, limit)?;
        }
        result
    } else {
        let sizes: Vec<i64> = (0..limits.len())
            .map(|d| if part.sizes[d].is_some() { limits[d] } else { of_update[d].bound })
            .collect();
        let update = b.resized_to(part.data, &sizes)?;
        let mut operands = vec![whole.data, update];
        operands.extend(&places);
        b.static_op(Op::DynamicUpdateSlice {}, &operands, None)?
    };
    let result = b.bounded(data, &whole.sizes)?;
    Ok(vec![as_declared(context, 0, result)?])
}

/// The largest elements of each row, whose number the program computes.
pub(super) fn dynamic_top_k(context: &mut Context<'_, '_>) -> Result<Vec<InstructionId>> {
    let (array, count) = (context.operand(0)?, context.operand(1)?);
    let k = element(context, count, 0)?;
    let rank = context.array(array)?.rank();
    let Some(last) = rank.checked_sub(1) else {
        return Err(Error::invalid("expected an array with a dimension"));
    };
    context.stamp();
    let whole = context.importer.builder.all_sizes(array)?[last];
    let bound = k.bound.min(whole.bound);
    let tuple = context.op(Op::TopK { k: bound, largest: true }, &[array])?;
    let results = context.elements_of(tuple)?;
    let b = &mut context.importer.builder;
    let with_size = |id: InstructionId| {
        let mut part = b.split(id)?;
        part.sizes[last] = run_time(&[k])[0];
        b.bounded(part.data, &part.sizes)
    };
    results.into_iter().map(with_size).collect()
}
