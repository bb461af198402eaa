//! Tensor lists as values.

use super::Value;
use std::sync::Arc;
use support::{Error, Result};
use tf::{DataType, PartialShape};

/// A list of tensors, some of which may not be set yet.
#[derive(Clone, Debug)]
pub struct List {
    /// Type of the elements; `variant` for lists of lists.
    pub(crate) data_type: DataType,
    /// Known part of the elements' shapes.
    pub(crate) element_shape: PartialShape,
    /// Maximum number of elements; negative means unlimited.
    pub(crate) max_elements: i64,
    /// Nesting depth: 0 if no element is a list.
    pub(crate) depth: usize,
    /// Elements of the list.
    pub(crate) elements: Vec<Option<Value>>,
}

/// The list in a value.
pub(crate) fn list_of(value: &Value) -> Result<&Arc<List>> {
    match value {
        Value::List(list) => Ok(list),
        other => Err(Error::invalid(format!("expected a tensor list, got {}", other.kind()))),
    }
}
