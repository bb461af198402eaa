//! Values of scalar constants.

use crate::graph::attributes::attribute;
use tf::proto::attr_value::Value;
use tf::proto::{NodeDef, TensorProto};

fn tensor(node: &NodeDef) -> Option<&TensorProto> {
    match attribute(&node.attr, "value")? {
        Value::Tensor(tensor) => Some(tensor),
        _ => None,
    }
}

/// Number of elements of a `Const`'s value; `None` if unknown.
pub(crate) fn elements(node: &NodeDef) -> Option<i64> {
    let shape = tensor(node)?.tensor_shape.as_ref()?;
    if shape.unknown_rank {
        return None;
    }
    shape.dim.iter().try_fold(1i64, |elements, dim| elements.checked_mul(dim.size))
}

/// True if a `Const`'s value is a scalar.
pub(crate) fn is_scalar(node: &NodeDef) -> bool {
    tensor(node).is_some_and(|tensor| {
        tensor.tensor_shape.as_ref().is_none_or(|shape| shape.dim.is_empty() && !shape.unknown_rank)
    })
}

/// Value of a bool scalar.
pub(crate) fn bool_of(node: &NodeDef) -> Option<bool> {
    const BOOL: i32 = 10;
    let tensor = tensor(node).filter(|tensor| tensor.dtype == BOOL)?;
    if let Some(&value) = tensor.bool_val.first() {
        return Some(value);
    }
    // A missing value means zero.
    Some(tensor.tensor_content.first().is_some_and(|&byte| byte != 0))
}

/// Maximum number of elements that [`ints_of`] returns.
const MAX_INTS: i64 = 64;

/// Elements of a small `Const` of type `int32` or `int64`.
pub(crate) fn ints_of(node: &NodeDef) -> Option<Vec<i64>> {
    const INT32: i32 = 3;
    const INT64: i32 = 9;
    if node.op != "Const" {
        return None;
    }
    let count = elements(node).filter(|count| (0..=MAX_INTS).contains(count))? as usize;
    let tensor = tensor(node)?;
    let (stored, width): (Vec<i64>, usize) = match tensor.dtype {
        INT32 => (tensor.int_val.iter().map(|&value| i64::from(value)).collect(), 4),
        INT64 => (tensor.int64_val.clone(), 8),
        _ => return None,
    };
    let read = |bytes: &[u8]| match *bytes {
        [a, b, c, d] => i64::from(i32::from_le_bytes([a, b, c, d])),
        _ => i64::from_le_bytes(bytes.try_into().unwrap_or_default()),
    };
    let stored = if stored.is_empty() {
        tensor.tensor_content.chunks_exact(width).map(read).collect()
    } else {
        stored
    };
    // The last stored value also stands for all remaining elements. If none is stored, they are
    // zero.
    let last = stored.last().copied().unwrap_or_default();
    Some((0..count).map(|k| stored.get(k).copied().unwrap_or(last)).collect())
}

/// Value of an `int32` scalar.
pub(crate) fn int_of(node: &NodeDef) -> Option<i32> {
    const INT32: i32 = 3;
    let tensor = tensor(node).filter(|tensor| tensor.dtype == INT32)?;
    if let Some(&value) = tensor.int_val.first() {
        return Some(value);
    }
    Some(tensor.tensor_content.get(..4).map_or(0, |b| i32::from_le_bytes([b[0], b[1], b[2], b[3]])))
}
