//! Handles of state that outlives a node's execution: variables, tensor arrays, stacks.

use super::{Tensor, Value};
use crate::lock::lock;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};
use support::{Code, Error, Result};
use tf::{DataType, PartialShape, Resource};

/// What a handle leads to.
#[derive(Clone, Debug)]
pub enum Handle {
    /// A variable.
    Variable(Arc<Variable>),
    /// A tensor array of TensorFlow 1.
    TensorArray(Arc<TensorArray>),
    /// A stack of TensorFlow 1.
    Stack(Arc<Stack>),
}

/// A variable of a session.
#[derive(Debug)]
pub struct Variable {
    /// Which one it is.
    resource: Resource,
    /// The node that was met first.
    node: String,
    data_type: DataType,
    /// What its node states.
    shape: PartialShape,
    value: Mutex<Option<Value>>,
}

impl Variable {
    /// A variable without a value. `node` is the first node that names it, and states its shape.
    pub(crate) fn new(resource: Resource, node: &str, data_type: DataType, shape: PartialShape) -> Self {
        Self { resource, node: node.to_owned(), data_type, shape, value: Mutex::default() }
    }

    pub(crate) fn resource(&self) -> &Resource {
        &self.resource
    }

    /// The name of its node.
    pub fn node(&self) -> &str {
        &self.node
    }

    /// The type of its elements; no reference.
    pub fn data_type(&self) -> DataType {
        self.data_type
    }

    /// Its value now; an error before it has one.
    pub(crate) fn read(&self) -> Result<Value> {
        lock(&self.value).clone().ok_or_else(|| self.uninitialized())
    }

    /// Its value, if it has one.
    pub(crate) fn get(&self) -> Option<Value> {
        lock(&self.value).clone()
    }

    /// Its value, locked against others.
    pub(crate) fn hold(&self) -> MutexGuard<'_, Option<Value>> {
        lock(&self.value)
    }

    pub(crate) fn uninitialized(&self) -> Error {
        Error::invalid(format!(
            "Attempting to use uninitialized value {}: run its initialiser first, or restore it from a checkpoint",
            self.node
        )).coded(Code::Uninitialized)
    }

    /// Gives it a value. With `check`, of the shape that its node states.
    pub(crate) fn assign(&self, value: Value, check: bool) -> Result<()> {
        if check {
            self.check(&value)?;
        }
        *self.hold() = Some(value);
        Ok(())
    }

    /// An error for a value that is not of the type and shape that its node states.
    pub(crate) fn check(&self, value: &Value) -> Result<()> {
        if let Value::Tensor(tensor) = value {
            let sizes = tensor.shape().sizes();
            if !self.shape.allows(&sizes) {
                return Err(Error::invalid(format!(
                    "variable '{}' of shape {} is assigned a value of shape {}",
                    self.node,
                    self.shape,
                    PartialShape::known(&sizes)
                )));
            }
            if self.data_type.primitive_type() != Some(tensor.shape().element_type) {
                return Err(Error::invalid(format!(
                    "variable '{}' of {} is assigned {}",
                    self.node,
                    self.data_type,
                    tensor.shape()
                )));
            }
        }
        Ok(())
    }

    /// Whether what its node states of its shape says anything: TensorFlow 1 states [] where it knows nothing.
    pub(crate) fn states_shape(&self) -> bool {
        self.shape.rank() != Some(0)
    }

    /// Takes its value away.
    pub(crate) fn destroy(&self) -> bool {
        self.hold().take().is_some()
    }
}

/// A tensor array: places that are written once each, or summed up if it is a gradient.
#[derive(Debug)]
pub struct TensorArray {
    pub(crate) name: String,
    pub(crate) data_type: DataType,
    pub(crate) is_dynamic: bool,
    pub(crate) clear_after_read: bool,
    /// Whether all elements have the shape of the one that is written first.
    pub(crate) is_uniform: bool,
    /// Whether writing adds to what is there.
    pub(crate) sums: bool,
    pub(crate) state: Mutex<TensorArrayState>,
}

/// What changes of a tensor array.
#[derive(Debug)]
pub(crate) struct TensorArrayState {
    pub(crate) places: Vec<Place>,
    pub(crate) element_shape: PartialShape,
    pub(crate) is_closed: bool,
    /// Gradients, by their source.
    pub(crate) gradients: BTreeMap<String, Arc<TensorArray>>,
}

impl TensorArrayState {
    /// The state of an array that is open and has no gradients yet.
    pub(crate) fn new(places: Vec<Place>, element_shape: PartialShape) -> Self {
        Self { places, element_shape, is_closed: false, gradients: BTreeMap::new() }
    }
}

/// A place of a tensor array.
#[derive(Clone, Debug, Default)]
pub(crate) struct Place {
    pub(crate) value: Option<Tensor>,
    /// The sizes of what was cleared after it was read.
    pub(crate) cleared: bool,
    /// Its shape, once it was written.
    pub(crate) sizes: Option<Vec<i64>>,
}

/// A stack.
#[derive(Debug, Default)]
pub struct Stack {
    pub(crate) name: String,
    /// The most elements; negative is any number.
    pub(crate) max_size: i64,
    /// The elements; `None` once it is closed.
    pub(crate) elements: Mutex<Option<Vec<Value>>>,
}
