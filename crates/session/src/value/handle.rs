//! Handles of state that outlives a node's execution: variables, tensor arrays, and stacks.

use super::{Tensor, Value};
use crate::lock::lock;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};
use support::{Code, Error, Result};
use tf::{DataType, PartialShape, Resource};

/// Target of a handle.
#[derive(Clone, Debug)]
pub enum Handle {
    /// A variable.
    Variable(Arc<Variable>),
    /// A TensorFlow 1 tensor array.
    TensorArray(Arc<TensorArray>),
    /// A TensorFlow 1 stack.
    Stack(Arc<Stack>),
}

/// A variable of a session.
#[derive(Debug)]
pub struct Variable {
    /// Identity of the variable.
    resource: Resource,
    /// First node that named the variable.
    node: String,
    data_type: DataType,
    /// Shape that the node declares.
    shape: PartialShape,
    value: Mutex<Option<Value>>,
}

impl Variable {
    /// Creates a variable without a value. `node` is the first node that names it and declares its
    /// shape.
    pub(crate) fn new(resource: Resource, node: &str, data_type: DataType, shape: PartialShape) -> Self {
        Self { resource, node: node.to_owned(), data_type, shape, value: Mutex::default() }
    }

    pub(crate) fn resource(&self) -> &Resource {
        &self.resource
    }

    /// Name of the variable's node.
    pub fn node(&self) -> &str {
        &self.node
    }

    /// Element type, never a reference type.
    pub fn data_type(&self) -> DataType {
        self.data_type
    }

    /// The current value. Fails if the variable is uninitialized.
    pub(crate) fn read(&self) -> Result<Value> {
        lock(&self.value).clone().ok_or_else(|| self.uninitialized())
    }

    /// The value, if there is one.
    pub(crate) fn get(&self) -> Option<Value> {
        lock(&self.value).clone()
    }

    /// Locks the value.
    pub(crate) fn hold(&self) -> MutexGuard<'_, Option<Value>> {
        lock(&self.value)
    }

    pub(crate) fn uninitialized(&self) -> Error {
        Error::invalid(format!(
            "Attempting to use uninitialized value {}: run its initializer first, or restore it from a checkpoint",
            self.node
        )).coded(Code::Uninitialized)
    }

    /// Assigns a value. With `check`, its type and shape must match the node's declaration.
    pub(crate) fn assign(&self, value: Value, check: bool) -> Result<()> {
        if check {
            self.check(&value)?;
        }
        *self.hold() = Some(value);
        Ok(())
    }

    /// Fails if a value's type or shape does not match the node's declaration.
    pub(crate) fn check(&self, value: &Value) -> Result<()> {
        if let Value::Tensor(tensor) = value {
            let sizes = tensor.shape().sizes();
            if !self.shape.allows(&sizes) {
                return Err(Error::invalid(format!(
                    "variable '{}': expected a value of shape {}, got shape {}",
                    self.node,
                    self.shape,
                    PartialShape::known(&sizes)
                )));
            }
            if self.data_type.primitive_type() != Some(tensor.shape().element_type) {
                return Err(Error::invalid(format!(
                    "variable '{}': expected {}, got {}",
                    self.node,
                    self.data_type,
                    tensor.shape()
                )));
            }
        }
        Ok(())
    }

    /// True if the declared shape carries information. TensorFlow 1 declares [] for unknown shapes.
    pub(crate) fn states_shape(&self) -> bool {
        self.shape.rank() != Some(0)
    }

    /// Removes the value. Returns true if there was one.
    pub(crate) fn destroy(&self) -> bool {
        self.hold().take().is_some()
    }
}

/// A tensor array. Each element is written once, or accumulated if the array is a gradient.
#[derive(Debug)]
pub struct TensorArray {
    pub(crate) name: String,
    pub(crate) data_type: DataType,
    pub(crate) is_dynamic: bool,
    pub(crate) clear_after_read: bool,
    /// True if all elements have the shape of the first one written.
    pub(crate) is_uniform: bool,
    /// True if a write adds to the existing element.
    pub(crate) sums: bool,
    pub(crate) state: Mutex<TensorArrayState>,
}

/// Mutable part of a tensor array.
#[derive(Debug)]
pub(crate) struct TensorArrayState {
    pub(crate) places: Vec<Place>,
    pub(crate) element_shape: PartialShape,
    pub(crate) is_closed: bool,
    /// Gradients by source.
    pub(crate) gradients: BTreeMap<String, Arc<TensorArray>>,
}

impl TensorArrayState {
    /// State of an open array without gradients.
    pub(crate) fn new(places: Vec<Place>, element_shape: PartialShape) -> Self {
        Self { places, element_shape, is_closed: false, gradients: BTreeMap::new() }
    }
}

/// An element of a tensor array.
#[derive(Clone, Debug, Default)]
pub(crate) struct Place {
    pub(crate) value: Option<Tensor>,
    /// True if the element was cleared after a read.
    pub(crate) cleared: bool,
    /// Sizes of the element, once it has been written.
    pub(crate) sizes: Option<Vec<i64>>,
}

/// A stack.
#[derive(Debug, Default)]
pub struct Stack {
    pub(crate) name: String,
    /// Maximum number of elements; negative means unlimited.
    pub(crate) max_size: i64,
    /// Elements of the stack; `None` once it is closed.
    pub(crate) elements: Mutex<Option<Vec<Value>>>,
}
