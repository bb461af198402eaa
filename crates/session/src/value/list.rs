//! Tensor lists as values.

use super::Value;
use std::sync::Arc;
use support::{Error, Result};
use tf::{DataType, PartialShape};

/// A list of tensors, of which some may not be set yet.
#[derive(Clone, Debug)]
pub struct List {
    /// The type of its elements; `variant` for lists of lists.
    pub(crate) data_type: DataType,
    /// What is known of their shapes.
    pub(crate) element_shape: PartialShape,
    /// The most elements; negative is any number.
    pub(crate) max_elements: i64,
    /// How deep lists lie in it: 0 if no element is a list.
    pub(crate) depth: usize,
    /// The elements.
    pub(crate) elements: Vec<Option<Value>>,
}

/// The list of a value.
pub(crate) fn list_of(value: &Value) -> Result<&Arc<List>> {
    match value {
        Value::List(list) => Ok(list),
        other => Err(Error::invalid(format!("a tensor list is wanted, not {}", other.kind()))),
    }
}
