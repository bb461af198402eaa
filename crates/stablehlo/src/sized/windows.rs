//! Reductions over windows whose sizes or paddings the program computes.

use super::shaping::padded;
use crate::walk::Context;
use crate::walk::emit::as_declared;
use bounded::{Builder, Size};
use hlo::{ComputationId, InstructionId, Op, Window, WindowDimension};
use shape::PrimitiveType;
use support::{Error, Result};

/// The operands of a reduction that state its windows: vectors, and a matrix of paddings.
#[derive(Clone, Copy)]
struct Windows {
    sizes: InstructionId,
    strides: InstructionId,
    base_dilations: InstructionId,
    dilations: InstructionId,
    padding: InstructionId,
}

/// The windows along a dimension.
enum Along {
    /// Those of an instruction.
    Known(WindowDimension),
    /// Windows of this size, which take every `stride`-th position, of elements `dilation` apart.
    Open { size: Size, stride: i64, dilation: i64 },
}

/// A reduction over windows. Their steps and dilations must be known.
pub(super) fn dynamic_reduce_window(context: &mut Context<'_, '_>) -> Result<Vec<InstructionId>> {
    let operands = context.operands()?;
    let Some(count) = operands.len().checked_sub(5).filter(|count| *count > 0 && count % 2 == 0) else {
        return Err(Error::invalid("expected arrays, initial values, and the sizes of windows"));
    };
    let &[sizes, strides, base_dilations, dilations, padding] = &operands[count..] else {
        return Err(Error::internal("expected the operands of the windows"));
    };
    let windows = Windows { sizes, strides, base_dilations, dilations, padding };
    let to_apply = context.called_computation()?;
    let rank = context.array(operands[0])?.rank();
    let mut arrays = operands[..count / 2].to_vec();
    let initial = &operands[count / 2..count];
    let mut dimensions = Vec::with_capacity(rank);
    for d in 0..rank {
        context.stamp();
        let b = &mut context.importer.builder;
        let (mut along, is_padded) = along(b, arrays[0], windows, d)?;
        if !is_padded {
            let flat = b.reshape(padding, &[2 * rank as i64])?;
            let mut widths = [flat; 2];
            for (side, width) in widths.iter_mut().enumerate() {
                let at = (2 * d + side) as i64;
                let one = b.slice_in(flat, 0, at, at + 1)?;
                let scalar = b.reshape(one, &[])?;
                *width = b.broadcast(scalar, &[rank as i64], &[])?;
            }
            for (array, &initial) in arrays.iter_mut().zip(initial) {
                let initial = context.importer.builder.identity_of(to_apply, initial);
                *array = padded(context, *array, initial, d, widths, Size::known(0))?;
            }
        }
        if let Along::Open { size, stride, dilation } = along {
            reduce_along(context, &mut arrays, initial, to_apply, d, [size, Size::known(stride)], dilation)?;
            along = Along::Known(WindowDimension::of_size(1));
        }
        if let Along::Known(dimension) = along {
            dimensions.push(dimension);
        }
    }
    if dimensions.iter().all(|dimension| *dimension == WindowDimension::of_size(1)) {
        let results = arrays.into_iter().enumerate();
        return results.map(|(k, array)| as_declared(context, k, array)).collect();
    }
    arrays.extend(initial);
    context.emit(Op::ReduceWindow { window: Window { dimensions }, to_apply }, &arrays)
}

/// Returns the windows along a dimension, and whether they include its padding.
fn along(b: &mut Builder, array: InstructionId, windows: Windows, d: usize) -> Result<(Along, bool)> {
    let mut steps = [0; 3];
    for (step, vector) in steps.iter_mut().zip([windows.strides, windows.base_dilations, windows.dilations]) {
        let known = b.known_integer(vector, d).filter(|&step| step > 0);
        *step =
            known.ok_or_else(|| Error::unsupported("the steps and dilations of windows must be known"))?;
    }
    let [stride, base_dilation, window_dilation] = steps;
    let mut dimension =
        WindowDimension { stride, base_dilation, window_dilation, ..WindowDimension::of_size(1) };
    let padding = windows.padding;
    let (low, high) = (b.known_integer(padding, 2 * d), b.known_integer(padding, 2 * d + 1));
    if let Some(size) = b.known_integer(windows.sizes, d) {
        dimension.size = size;
        if let (Some(low), Some(high)) = (low, high) {
            (dimension.padding_low, dimension.padding_high) = (low, high);
            return Ok((Along::Known(dimension), true));
        }
        if base_dilation != 1 {
            return Err(Error::unsupported("an open padding of dilated arrays is not supported"));
        }
        return Ok((Along::Known(dimension), false));
    }
    let size = b.size_element(windows.sizes, d)?;
    let size = size.ok_or_else(|| Error::unsupported("the size of a window has no upper bound"))?;
    // The padding of the open side is all of the window except for the element itself.
    let mut is_rest = |position: usize| -> Result<bool> {
        let Some(width) = b.size_element(padding, position)? else { return Ok(false) };
        let Some(rest) = b.size_sum(size, Size::known(1), -1)? else { return Ok(false) };
        Ok(b.known_difference(width, rest) == Some(0))
    };
    let from_start = high == Some(0) && is_rest(2 * d)?;
    let to_end = low == Some(0) && is_rest(2 * d + 1)?;
    let whole = b.all_sizes(array)?[d];
    let is_whole = b.known_difference(whole, size) == Some(0);
    if steps == [1; 3] && is_whole && (from_start || to_end) {
        // Each window reaches from the beginning of the array to its element, or from its element
        // to the end.
        dimension.size = whole.bound;
        if from_start {
            dimension.padding_low = whole.bound - 1;
        } else {
            dimension.padding_high = whole.bound - 1;
        }
        return Ok((Along::Known(dimension), true));
    }
    if base_dilation != 1 {
        return Err(Error::unsupported("windows of open sizes over dilated arrays are not supported"));
    }
    Ok((Along::Open { size, stride, dilation: window_dilation }, low == Some(0) && high == Some(0)))
}

/// Reduces windows of an open size: makes the elements of each a dimension of its own.
fn reduce_along(
    context: &mut Context<'_, '_>,
    arrays: &mut [InstructionId],
    initial: &[InstructionId],
    to_apply: ComputationId,
    d: usize,
    [size, stride]: [Size; 2],
    dilation: i64,
) -> Result<()> {
    let b = &mut context.importer.builder;
    let whole = b.all_sizes(arrays[0])?[d];
    let (own, window, step) = (b.size_value(whole)?, b.size_value(size)?, b.s32(stride.bound)?);
    let (one, gap, none) = (b.s32(1)?, b.s32(dilation)?, b.s32(0)?);
    let gaps = b.sub(window, one)?;
    let gaps = b.times(gaps, gap)?;
    let span = b.add(gaps, one)?;
    let last = b.sub(own, span)?;
    let last = b.add(last, step)?;
    let last = b.op(Op::Maximum {}, &[last, none])?;
    let count = b.div(last, step)?;
    let count = b.size_element(count, 0)?;
    let count = count.ok_or_else(|| Error::unsupported("the number of windows has no upper bound"))?;
    // Position `i * stride + j * dilation` for element `j` of window `i`.
    let sizes = [count.bound, size.bound];
    let (windows, elements) =
        (b.iota(PrimitiveType::S32, &sizes, 0)?, b.iota(PrimitiveType::S32, &sizes, 1)?);
    let first = b.mul_scalar(windows, stride.bound as f64)?;
    let offset = b.mul_scalar(elements, dilation as f64)?;
    let positions = b.add(first, offset)?;
    let positions = b.within(positions, whole.bound)?;
    let mut operands = Vec::with_capacity(2 * arrays.len());
    for &array in arrays.iter() {
        let part = b.split(array)?;
        let data = b.gather_along(part.data, positions, d as i64, 0)?;
        let mut sizes = part.sizes;
        sizes[d] = count.size;
        sizes.insert(d + 1, size.size);
        operands.push(b.bounded(data, &sizes)?);
    }
    operands.extend(initial);
    let result = context.op(Op::Reduce { dimensions: vec![d + 1], to_apply }, &operands)?;
    if arrays.len() == 1 {
        arrays[0] = result;
    } else {
        arrays.copy_from_slice(&context.elements_of(result)?);
    }
    Ok(())
}
