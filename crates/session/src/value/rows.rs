//! Splits arrays into rows and builds arrays from rows, for tensor lists and tensor arrays.

use crate::buffer::Buffer;
use crate::value::Tensor;
use shape::{ArrayShape, PrimitiveType};
use std::sync::Arc;
use support::{Error, Result};

/// Memory in bytes that the smallest row occupies.
const MIN_ROW: usize = 128;

/// Rows of an array: its slices along the first dimension.
pub(crate) fn unstack(tensor: &Tensor) -> Result<Vec<Tensor>> {
    let sizes = tensor.shape().sizes();
    let Some((&count, row)) = sizes.split_first() else {
        return Err(Error::invalid("a scalar has no rows"));
    };
    let shape = Arc::new(ArrayShape::new(tensor.shape().element_type, row));
    let bytes = shape.byte_size() as usize;
    // Rows without elements occupy memory, too.
    let each = (size_of::<Tensor>() + bytes.max(MIN_ROW)) as u64;
    support::check_memory(each.saturating_mul(count as u64), format_args!("{count} rows"))?;
    let rows = (0..count as usize).map(|k| {
        let data = Buffer::from_bytes(&tensor.bytes()[k * bytes..(k + 1) * bytes])?;
        Ok(Tensor::new(shape.clone(), data))
    });
    rows.collect()
}

/// Stacks rows of equal sizes into an array.
pub(crate) fn stack(element_type: PrimitiveType, row: &[i64], rows: &[Tensor]) -> Result<Tensor> {
    let mut sizes = vec![rows.len() as i64];
    sizes.extend(row);
    if let Some(other) =
        rows.iter().find(|r| r.shape().sizes() != row || r.shape().element_type != element_type)
    {
        return Err(Error::invalid(format!(
            "cannot stack elements of different shapes: {} and {}",
            ArrayShape::new(element_type, row),
            other.shape()
        )));
    }
    concatenated(element_type, &sizes, rows)
}

/// Concatenates the elements of `parts` into an array of these sizes.
pub(crate) fn concatenated(element_type: PrimitiveType, sizes: &[i64], parts: &[Tensor]) -> Result<Tensor> {
    let count = shape::index::element_count(sizes);
    let count = count.ok_or_else(|| Error::invalid(format!("the shape {sizes:?} is too large")))?;
    let bytes =
        count.checked_mul(element_type.byte_size() as i64).and_then(|bytes| u64::try_from(bytes).ok());
    let bytes = bytes.ok_or_else(|| Error::invalid(format!("the shape {sizes:?} is too large")))?;
    support::check_memory(bytes, format_args!("an array of sizes {sizes:?}"))?;
    let mut data = Buffer::uninitialized(bytes as usize)?;
    let mut at = 0;
    for part in parts {
        let end = at + part.bytes().len();
        let place = data.get_mut(at..end);
        place
            .ok_or_else(|| Error::internal("the parts are larger than the array"))?
            .copy_from_slice(part.bytes());
        at = end;
    }
    if at as u64 != bytes {
        return Err(Error::invalid(format!(
            "the elements have {at} bytes, which does not match the sizes {sizes:?}"
        )));
    }
    Ok(Tensor::new(Arc::new(ArrayShape::new(element_type, sizes)), data))
}

/// An array of zeros.
pub(crate) fn zeros(element_type: PrimitiveType, sizes: &[i64]) -> Result<Tensor> {
    let wrong = || Error::invalid(format!("the shape {sizes:?} is invalid or too large"));
    if sizes.iter().any(|&size| size < 0) || shape::index::element_count(sizes).is_none() {
        return Err(wrong());
    }
    let shape = ArrayShape::new(element_type, sizes);
    support::check_memory(shape.byte_size(), format_args!("zeros of shape {shape}"))?;
    let bytes = usize::try_from(shape.byte_size()).map_err(|_| wrong())?;
    Ok(Tensor::new(Arc::new(shape), Buffer::zeroed(bytes)?))
}
