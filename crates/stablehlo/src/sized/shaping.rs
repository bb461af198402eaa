//! Operations whose result has a size that the program computes: broadcasts, reshapes, sequences,
//! paddings; and queries of sizes.

use crate::ops::Convert;
use crate::walk::Context;
use crate::walk::emit::{as_declared, declared_sizes};
use bounded::{Builder, Size, bounds, run_time};
use hlo::{ComparisonDirection, InstructionId, Op, PaddingConfig, PaddingDimension};
use shape::{ArrayShape, PrimitiveType, Shape};
use support::{Error, Result};

pub(super) fn find(name: &str) -> Option<Convert> {
    Some(match name {
        "stablehlo.dynamic_broadcast_in_dim" | "stablehlo.broadcast_in_dim" => broadcast_in_dim,
        "stablehlo.dynamic_reshape" | "stablehlo.reshape" => reshape,
        "stablehlo.dynamic_iota" | "stablehlo.iota" => iota,
        "stablehlo.dynamic_pad" => dynamic_pad,
        "stablehlo.get_dimension_size" => get_dimension_size,
        "stablehlo.set_dimension_size" => set_dimension_size,
        "stablehlo.select" => select,
        "stablehlo.clamp" => clamp,
        "stablehlo.bitcast_convert" => bitcast_convert,
        // Values are computed once anyway.
        "stablehlo.optimization_barrier" => |context| context.operands(),
        _ => return None,
    })
}

/// Returns the sizes of the result from its type and from an operand that contains all of them.
pub(super) fn sizes_of(context: &mut Context<'_, '_>, vector: InstructionId) -> Result<Vec<Size>> {
    sizes_of_result(context, 0, vector)
}

/// Like [`sizes_of`], for one of several results.
pub(super) fn sizes_of_result(
    context: &mut Context<'_, '_>,
    k: usize,
    vector: InstructionId,
) -> Result<Vec<Size>> {
    let Some(declared) = declared_sizes(context, k) else {
        return Err(Error::invalid("expected an array as result"));
    };
    let mut sizes = Vec::with_capacity(declared.len());
    for (d, size) in declared.into_iter().enumerate() {
        sizes.push(match size {
            Some(size) => Size::known(size),
            None => element(context, vector, d)?,
        });
    }
    Ok(sizes)
}

/// Returns the sizes of a result whose type states all of them.
fn known_sizes(context: &Context<'_, '_>) -> Result<Vec<Size>> {
    let declared = declared_sizes(context, 0).unwrap_or_default();
    let known = |(d, size): (usize, Option<i64>)| {
        let size = size.map(Size::known);
        size.ok_or_else(|| {
            Error::invalid(format!("dimension {d} of the result has neither a size nor a bound"))
        })
    };
    declared.into_iter().enumerate().map(known).collect()
}

/// Returns an element of a vector of sizes.
pub(super) fn element(context: &mut Context<'_, '_>, vector: InstructionId, position: usize) -> Result<Size> {
    let size = context.importer.builder.size_element(vector, position)?;
    size.ok_or_else(|| {
        Error::unsupported(format!(
            "size {position} of the operand has no upper bound: it must follow from the sizes of arguments"
        ))
    })
}

/// Repeats an array along new dimensions and along those of size 1.
fn broadcast_in_dim(context: &mut Context<'_, '_>) -> Result<Vec<InstructionId>> {
    let dimensions = context.view().dimensions("broadcast_dimensions")?;
    let operand = context.operand(0)?;
    let target = match context.operation.operands.len() {
        1 => known_sizes(context)?,
        _ => {
            let vector = context.operand(1)?;
            sizes_of(context, vector)?
        }
    };
    Ok(vec![expand(context, operand, &dimensions, &target)?])
}

/// Broadcasts to sizes: dimension `k` of the operand becomes `dimensions[k]`.
fn expand(
    context: &mut Context<'_, '_>,
    operand: InstructionId,
    dimensions: &[usize],
    target: &[Size],
) -> Result<InstructionId> {
    let array = context.array(operand)?;
    if dimensions.len() != array.rank() || dimensions.iter().any(|&dimension| dimension >= target.len()) {
        return Err(Error::invalid(format!("broadcast dimensions {dimensions:?} do not fit {array}")));
    }
    let what = context.described();
    context.stamp();
    let builder = &mut context.importer.builder;
    let mut operand = operand;
    let mut full = Vec::new();
    for (k, &d) in dimensions.iter().enumerate() {
        let own = builder.all_sizes(operand)?[k];
        // A known size of 1 is repeated, unless the result has the same size.
        if own.size.is_none() && own.bound == 1 && builder.known_difference(own, target[d]) != Some(0) {
            continue;
        }
        let message = format!(
            "dimension {k} of the operand of {what} does not have the size of dimension {d} of the result"
        );
        operand = builder.with_size(operand, k, target[d], &message)?;
        full.push(k);
    }
    let data = builder.split(operand)?.data;
    let sizes: Vec<i64> = full.iter().map(|&k| builder.sizes(data)[k]).collect();
    let data = builder.reshape(data, &sizes)?;
    let places: Vec<usize> = full.iter().map(|&k| dimensions[k]).collect();
    let data = builder.broadcast(data, &bounds(target), &places)?;
    builder.bounded(data, &run_time(target))
}

fn reshape(context: &mut Context<'_, '_>) -> Result<Vec<InstructionId>> {
    let operand = context.operand(0)?;
    let sizes: Vec<Size> = match context.operation.operands.len() {
        1 => known_sizes(context)?,
        _ => {
            let vector = context.operand(1)?;
            sizes_of(context, vector)?
        }
    };
    context.stamp();
    let builder = &mut context.importer.builder;
    if !builder.is_bounded(operand) && sizes.iter().all(|size| size.size.is_none()) {
        return Ok(vec![builder.reshape(operand, &bounds(&sizes))?]);
    }
    Ok(vec![builder.reshape_to(operand, &sizes)?])
}

fn iota(context: &mut Context<'_, '_>) -> Result<Vec<InstructionId>> {
    let dimension = context.view().dimension("iota_dimension")?;
    let element_type = context.result_element_type()?;
    let sizes: Vec<Size> = match context.operation.operands.len() {
        0 => known_sizes(context)?,
        _ => {
            let vector = context.operand(0)?;
            sizes_of(context, vector)?
        }
    };
    context.stamp();
    let builder = &mut context.importer.builder;
    let data = builder.iota(element_type, &bounds(&sizes), dimension)?;
    Ok(vec![builder.bounded(data, &run_time(&sizes))?])
}

/// A pad whose widths the program computes.
fn dynamic_pad(context: &mut Context<'_, '_>) -> Result<Vec<InstructionId>> {
    let operands = context.operands()?;
    let &[array, value, low, high, interior] = &operands[..] else {
        return Err(Error::invalid("expected five operands"));
    };
    let rank = context.array(array)?.rank();
    let builder = &mut context.importer.builder;
    let mut widths = Vec::with_capacity(rank);
    for d in 0..rank {
        let known = |builder: &mut Builder, id| builder.known_integer(id, d);
        widths.push((known(builder, low), known(builder, high), known(builder, interior)));
    }
    let known: Option<Vec<PaddingDimension>> = widths
        .iter()
        .map(|&(low, high, between)| {
            Some(PaddingDimension {
                edge_padding_low: low?,
                edge_padding_high: high?,
                interior_padding: between?,
            })
        })
        .collect();
    if let Some(dimensions) = known {
        return context.emit(Op::Pad { padding: PaddingConfig { dimensions } }, &[array, value]);
    }
    let mut result = array;
    for (d, (.., between)) in widths.into_iter().enumerate() {
        let between = match between {
            Some(between) => Size::known(between),
            None => element(context, interior, d)?,
        };
        result = padded(context, result, value, d, [low, high], between)?;
    }
    Ok(vec![as_declared(context, 0, result)?])
}

/// Pads one dimension by widths that are elements of vectors.
pub(super) fn padded(
    context: &mut Context<'_, '_>,
    array: InstructionId,
    value: InstructionId,
    dimension: usize,
    [low, high]: [InstructionId; 2],
    between: Size,
) -> Result<InstructionId> {
    context.stamp();
    let rank = context.array(array)?.rank();
    let builder = &mut context.importer.builder;
    let inner = if between.size.is_some() {
        spread_apart(builder, array, value, dimension, between)?
    } else {
        let mut padding = vec![(0, 0, 0); rank];
        padding[dimension].2 = between.bound;
        builder.pad(array, value, &padding)?
    };
    // Everything beyond the true elements becomes padding.
    let part = builder.split(inner)?;
    let inner_size = builder.all_sizes(inner)?[dimension];
    let low_size = builder.s32_element(low, dimension as i64)?;
    let high_size = builder.s32_element(high, dimension as i64)?;
    let most = |builder: &mut Builder, width| builder.size_range(Size { bound: 0, size: Some(width) }).high;
    let (Some(begin), Some(end)) = (most(builder, low_size), most(builder, high_size)) else {
        return Err(Error::unsupported("the width of a padding has no upper bound"));
    };
    let (begin, end) = (begin.max(0), end.max(0));
    let mut padding = vec![(0, 0, 0); rank];
    padding[dimension] = (begin, begin + end, 0);
    let wide = builder.pad(inner, value, &padding)?;
    // The array begins `begin - low` elements after the memory.
    let most = builder.s32(begin)?;
    let skipped = builder.sub(most, low_size)?;
    let own = builder.size_value(inner_size)?;
    let sum = builder.add(own, low_size)?;
    let sum = builder.add(sum, high_size)?;
    let none = builder.s32(0)?;
    let sum = builder.op(Op::Maximum {}, &[sum, none])?;
    let length = builder.size_element(sum, 0)?;
    let length = length.ok_or_else(|| Error::unsupported("the padded size has no upper bound"))?;
    let mut sizes = part.sizes;
    sizes[dimension] = None;
    let data = builder.split(wide)?.data;
    let data = builder.bounded(data, &sizes)?;
    builder.take(data, dimension, skipped, 1, length)
}

/// Puts `between` copies of a value between the elements of a dimension.
fn spread_apart(
    builder: &mut Builder,
    array: InstructionId,
    value: InstructionId,
    dimension: usize,
    between: Size,
) -> Result<InstructionId> {
    let own = builder.all_sizes(array)?[dimension];
    let (one, none) = (builder.s32(1)?, builder.s32(0)?);
    let gap = builder.size_value(between)?;
    let distance = builder.add(gap, one)?;
    let size = builder.size_value(own)?;
    let gaps = builder.sub(size, one)?;
    let gaps = builder.op(Op::Maximum {}, &[gaps, none])?;
    let more = builder.times(gaps, gap)?;
    let length = builder.add(size, more)?;
    let length = builder.size_element(length, 0)?;
    let length = length.ok_or_else(|| Error::unsupported("the padded size has no upper bound"))?;
    let mut part = builder.split(array)?;
    let positions = builder.iota(PrimitiveType::S32, &[length.bound], 0)?;
    let distance = builder.broadcast(distance, &[length.bound], &[])?;
    let sources = builder.div(positions, distance)?;
    let sources = builder.within(sources, own.bound)?;
    let data = builder.gather_along(part.data, sources, dimension as i64, 0)?;
    let sizes = builder.sizes(data);
    let rest = builder.op(Op::Remainder {}, &[positions, distance])?;
    let is_element = builder.compare_scalar(ComparisonDirection::Eq, rest, 0.0)?;
    let is_element = builder.broadcast(is_element, &sizes, &[dimension])?;
    let value = builder.broadcast(value, &sizes, &[])?;
    part.sizes[dimension] = length.size;
    let data = builder.select(is_element, data, value)?;
    builder.bounded(data, &part.sizes)
}

fn get_dimension_size(context: &mut Context<'_, '_>) -> Result<Vec<InstructionId>> {
    let dimension = context.view().dimension("dimension")?;
    let operand = context.operand(0)?;
    if dimension >= context.array(operand)?.rank() {
        return Err(Error::invalid(format!("dimension {dimension} is out of range")));
    }
    let builder = &mut context.importer.builder;
    Ok(vec![builder.true_size(operand, dimension)?])
}

fn set_dimension_size(context: &mut Context<'_, '_>) -> Result<Vec<InstructionId>> {
    let dimension = context.view().dimension("dimension")?;
    let (operand, size) = (context.operand(0)?, context.operand(1)?);
    let builder = &mut context.importer.builder;
    let mut part = builder.split(operand)?;
    if dimension >= part.sizes.len() {
        return Err(Error::invalid(format!("dimension {dimension} is out of range")));
    }
    let size = builder.convert(size, PrimitiveType::S32)?;
    part.sizes[dimension] = Some(builder.reshape(size, &[])?);
    Ok(vec![builder.bounded(part.data, &part.sizes)?])
}

/// The condition can be a scalar.
fn select(context: &mut Context<'_, '_>) -> Result<Vec<InstructionId>> {
    let mut operands = context.operands()?;
    if let [condition, like, _] = &mut operands[..] {
        let shape = context.array(*like)?.with_element_type(PrimitiveType::Pred);
        *condition = context.spread(*condition, &shape)?;
    }
    context.emit(Op::Select {}, &operands)
}

/// The limits can be scalars.
fn clamp(context: &mut Context<'_, '_>) -> Result<Vec<InstructionId>> {
    let mut operands = context.operands()?;
    if let [low, like, high] = &mut operands[..] {
        let shape = context.array(*like)?;
        *low = context.spread(*low, &shape)?;
        *high = context.spread(*high, &shape)?;
    }
    context.emit(Op::Clamp {}, &operands)
}

fn bitcast_convert(context: &mut Context<'_, '_>) -> Result<Vec<InstructionId>> {
    let operand = context.operand(0)?;
    let element_type = context.result_element_type()?;
    let declared = declared_sizes(context, 0).unwrap_or_default();
    context.stamp();
    let builder = &mut context.importer.builder;
    let part = builder.split(operand)?;
    let own: ArrayShape = builder.array(part.data);
    // Only the last dimension may be added or removed.
    let mut sizes: Vec<i64> = own.sizes();
    let mut of_result = part.sizes.clone();
    sizes.truncate(declared.len());
    of_result.truncate(declared.len());
    if let (true, Some(Some(last))) = (declared.len() > sizes.len(), declared.last()) {
        sizes.push(*last);
        of_result.push(None);
    }
    if part.sizes.len() > declared.len() && part.sizes.last().is_some_and(Option::is_some) {
        return Err(Error::unsupported("the bytes of an element must have a known number"));
    }
    let shape = Shape::array(element_type, &sizes);
    let data = builder.static_op(Op::BitcastConvert {}, &[part.data], Some(&shape))?;
    Ok(vec![builder.bounded(data, &of_result)?])
}
