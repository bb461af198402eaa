//! Instructions that move elements without interpreting them.

use crate::array::{View, array, check_array, dot, for_each_index, from_bytes, from_scalars, move_elements};
use crate::float::round_float;
use crate::integer::wrap;
use hlo::{PaddingConfig, SliceDimension};
use shape::index::{element_count, row_major_strides};
use shape::{ArrayShape, Literal, Scalar, Shape};
use support::{Error, Result};

/// Evaluates `broadcast`: operand dimension `d` becomes result dimension `dimensions[d]`.
pub(crate) fn broadcast(shape: &Shape, operand: &Literal, dimensions: &[usize]) -> Result<Literal> {
    let (result, view) = (array(shape)?, View::new(operand)?);
    for (d, &r) in dimensions.iter().enumerate() {
        if result.dimensions.get(r).map(|r| r.size) != view.sizes.get(d).copied() {
            return Err(Error::invalid(format!("dimension {d} does not match dimension {r} of {result}")));
        }
    }
    let mut strides = vec![0; result.rank()];
    dimensions.iter().zip(&view.strides).for_each(|(&r, &stride)| strides[r] = stride);
    move_elements(&result, |index| view.at(dot(index, &strides)))
}

/// Evaluates `reshape` and `bitcast`: the same elements in row-major order.
pub(crate) fn reshape(shape: &Shape, operand: &Literal) -> Result<Literal> {
    check_array(operand)?;
    from_bytes(&array(shape)?, operand.bytes().clone())
}

/// Evaluates a bitcast of memory: reads dimensions in the order of the operand's layout and writes
/// them in the order of the result's.
pub(crate) fn bitcast(from: &Shape, to: &Shape, operand: &Literal) -> Result<Literal> {
    check_array(operand)?;
    let from = from.as_array();
    let to = to.as_array().ok_or_else(|| Error::invalid("expected an array result of the bitcast"))?;
    let in_memory = match from.filter(|from| !from.is_row_major()) {
        Some(from) => transpose(operand, &major_to_minor(from))?,
        None => operand.clone(),
    };
    let order = major_to_minor(to);
    let sizes: Vec<i64> = order.iter().map(|&dimension| to.size(dimension)).collect();
    let reinterpreted = from_bytes(&ArrayShape::new(to.element_type, &sizes), in_memory.bytes().clone())?;
    let place = |dimension| order.iter().position(|&d| d == dimension).unwrap_or_default();
    let inverse: Vec<usize> = (0..to.rank()).map(place).collect();
    from_bytes(
        &ArrayShape::new(to.element_type, &to.sizes()),
        reinterpreted.transpose(&inverse).bytes().clone(),
    )
}

/// Returns the dimensions from slowest to fastest varying.
fn major_to_minor(array: &ArrayShape) -> Vec<usize> {
    match &array.layout {
        Some(layout) => layout.minor_to_major.iter().rev().copied().collect(),
        None => (0..array.rank()).collect(),
    }
}

/// Evaluates `transpose`: result dimension `d` is operand dimension `dimensions[d]`.
pub(crate) fn transpose(operand: &Literal, dimensions: &[usize]) -> Result<Literal> {
    check_array(operand)?;
    let rank = operand.array_shape().rank();
    if dimensions.len() != rank || (0..rank).any(|d| !dimensions.contains(&d)) {
        return Err(Error::invalid(format!("{dimensions:?} is not a permutation of {rank} dimensions")));
    }
    Ok(operand.transpose(dimensions))
}

/// Evaluates `reverse` along some dimensions.
pub(crate) fn reverse(shape: &Shape, operand: &Literal, dimensions: &[usize]) -> Result<Literal> {
    let (result, view) = (array(shape)?, View::new(operand)?);
    let mut source = vec![0; view.sizes.len()];
    move_elements(&result, |index| {
        for (d, (from, &to)) in source.iter_mut().zip(index).enumerate() {
            *from = if dimensions.contains(&d) { view.sizes[d] - 1 - to } else { to };
        }
        view.get(&source)
    })
}

/// Evaluates `slice`: every `stride`-th element from `start` on.
pub(crate) fn slice(shape: &Shape, operand: &Literal, dimensions: &[SliceDimension]) -> Result<Literal> {
    let (result, view) = (array(shape)?, View::new(operand)?);
    for (d, (dimension, size)) in dimensions.iter().zip(result.sizes()).enumerate() {
        let last = dimension.start + (size - 1).max(0) * dimension.stride;
        if size > 0 && !(0..view.sizes[d]).contains(&last) {
            return Err(Error::invalid(format!("the slice exceeds dimension {d} of size {}", view.sizes[d])));
        }
    }
    let start: i64 = dimensions.iter().zip(&view.strides).map(|(d, stride)| d.start * stride).sum();
    let steps: Vec<i64> = dimensions.iter().zip(&view.strides).map(|(d, stride)| d.stride * stride).collect();
    move_elements(&result, |index| view.at(start + dot(index, &steps)))
}

/// Evaluates `pad`: padding at the edges (negative: cropping) and between elements.
pub(crate) fn pad(
    shape: &Shape,
    operand: &Literal,
    value: &Literal,
    padding: &PaddingConfig,
) -> Result<Literal> {
    let (result, view, value) = (array(shape)?, View::new(operand)?, View::new(value)?);
    move_elements(&result, |index| {
        let mut linear = 0;
        for (d, (p, &i)) in padding.dimensions.iter().zip(index).enumerate() {
            let (position, step) = (i - p.edge_padding_low, p.interior_padding + 1);
            if position % step != 0 || !(0..view.sizes[d]).contains(&(position / step)) {
                return value.at(0);
            }
            linear += position / step * view.strides[d];
        }
        view.at(linear)
    })
}

/// Evaluates `concatenate` along a dimension.
pub(crate) fn concatenate(shape: &Shape, operands: &[&Literal], dimension: usize) -> Result<Literal> {
    let result = array(shape)?;
    let views: Vec<View<'_>> = operands.iter().map(|o| View::new(o)).collect::<Result<_>>()?;
    let total: i64 = views.iter().map(|v| v.sizes[dimension]).sum();
    if total != result.size(dimension) {
        return Err(Error::invalid(format!(
            "the operands' sizes add up to {total}, but the result is {result}"
        )));
    }
    let mut source = vec![0; result.rank()];
    move_elements(&result, |index| {
        source.copy_from_slice(index);
        let mut rest = views.iter();
        let mut view = rest.next().expect("an index exists, so an operand does");
        while source[dimension] >= view.sizes[dimension] {
            source[dimension] -= view.sizes[dimension];
            view = rest.next().expect("the sizes add up to the result's");
        }
        view.get(&source)
    })
}

/// Evaluates `iota`: each element is its index along a dimension.
pub(crate) fn iota(shape: &Shape, dimension: usize) -> Result<Literal> {
    let result = array(shape)?;
    let sizes = result.sizes();
    let element_type = result.element_type;
    let stride = row_major_strides(&sizes)[dimension].max(1);
    let count = element_count(&sizes).unwrap_or(0);
    let scalars = (0..count).map(|linear| {
        let index = linear / stride % sizes[dimension];
        if element_type.is_integer() {
            wrap(element_type, index.into())
        } else if element_type.is_complex() {
            Scalar::Complex(round_float(element_type.real_part(), index as f64), 0.0)
        } else {
            Scalar::Float(index as f64)
        }
    });
    Ok(from_scalars(&result, scalars))
}

/// Evaluates `dynamic-slice`: a window of the operand, with its start clamped so that it fits.
pub(crate) fn dynamic_slice(shape: &Shape, operand: &Literal, start: &[i64]) -> Result<Literal> {
    let (result, view) = (array(shape)?, View::new(operand)?);
    let first = clamped_start(&view.sizes, &result.sizes(), start)?;
    let offset = dot(&first, &view.strides);
    move_elements(&result, |index| view.at(offset + dot(index, &view.strides)))
}

/// Evaluates `dynamic-update-slice`: the operand with a window overwritten, with its start clamped
/// so that it fits.
pub(crate) fn dynamic_update_slice(operand: &Literal, update: &Literal, start: &[i64]) -> Result<Literal> {
    let (view, update) = (View::new(operand)?, View::new(update)?);
    let first = clamped_start(&view.sizes, &update.sizes, start)?;
    let offset = dot(&first, &view.strides);
    let mut data = operand.bytes().to_vec();
    for_each_index(&update.sizes, |index| {
        let value = update.get(index);
        let at = (offset + dot(index, &view.strides)) as usize * value.len();
        data[at..at + value.len()].copy_from_slice(value);
        Ok(())
    })?;
    from_bytes(operand.array_shape(), data)
}

fn clamped_start(sizes: &[i64], window: &[i64], start: &[i64]) -> Result<Vec<i64>> {
    if sizes.len() != start.len()
        || sizes.len() != window.len()
        || sizes.iter().zip(window).any(|(s, w)| w > s)
    {
        return Err(Error::invalid(format!("a window of {window:?} at {start:?} does not fit {sizes:?}")));
    }
    Ok(sizes.iter().zip(window).zip(start).map(|((s, w), &i)| i.clamp(0, s - w)).collect())
}
