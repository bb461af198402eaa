//! State that outlives a node's execution: variables, tensor arrays, stacks, generators of random numbers.

use crate::buffer::Buffer;
use crate::list::List;
use crate::value::{Tensor, Value};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use support::{Code, Error, Result};
use tf::{DataType, PartialShape, Resource};

/// A lock whose data is whole whoever panicked with it.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

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
#[derive(Debug, Default)]
pub(crate) struct TensorArrayState {
    pub(crate) places: Vec<Place>,
    pub(crate) element_shape: PartialShape,
    pub(crate) is_closed: bool,
    /// Gradients, by their source.
    pub(crate) gradients: BTreeMap<String, Arc<TensorArray>>,
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

/// All variables of a session, and the state of its nodes.
#[derive(Debug, Default)]
pub(crate) struct Resources {
    variables: Mutex<BTreeMap<Resource, Arc<Variable>>>,
    counters: Mutex<BTreeMap<String, Arc<Mutex<u128>>>>,
    /// What kernels keep from run to run, by their nodes.
    states: Mutex<BTreeMap<String, Arc<Mutex<Buffer>>>>,
}

impl Resources {
    /// The variable that a node is a handle of; it is made when it is first asked for.
    pub(crate) fn variable(&self, node: &tf::Node) -> Result<Arc<Variable>> {
        let resource = Resource::of_node(node);
        let data_type = node.attributes.ty("dtype")?.base();
        let shape = if node.attributes.bool_or("_unknown_shape", false)? {
            PartialShape::UNKNOWN
        } else {
            node.attributes.shape_or("shape", PartialShape::UNKNOWN)?
        };
        let mut variables = lock(&self.variables);
        if let Some(variable) = variables.get(&resource) {
            if variable.data_type != data_type {
                return Err(Error::invalid(format!(
                    "the nodes '{}' and '{}' are the same variable, but of types {} and {data_type}",
                    variable.node, node.name, variable.data_type
                )));
            }
            return Ok(variable.clone());
        }
        let made = Arc::new(Variable {
            resource: resource.clone(),
            node: node.name.clone(),
            data_type,
            shape,
            value: Mutex::default(),
        });
        variables.insert(resource, made.clone());
        Ok(made)
    }

    /// All variables, by name.
    pub(crate) fn variables(&self) -> Vec<Arc<Variable>> {
        lock(&self.variables).values().cloned().collect()
    }

    /// Forgets a temporary variable.
    pub(crate) fn remove(&self, variable: &Variable) {
        lock(&self.variables).remove(&variable.resource);
    }

    /// The counter of a node that draws random numbers.
    pub(crate) fn counter(&self, node: &str, start: u128) -> Arc<Mutex<u128>> {
        lock(&self.counters).entry(node.to_owned()).or_insert_with(|| Arc::new(Mutex::new(start))).clone()
    }

    /// What a node's kernel keeps from run to run: so many bytes, zero at first.
    pub(crate) fn state(&self, node: &str, bytes: usize) -> Result<Arc<Mutex<Buffer>>> {
        let mut states = lock(&self.states);
        let key = format!("{node}/{bytes}");
        if let Some(state) = states.get(&key) {
            return Ok(state.clone());
        }
        let made = Arc::new(Mutex::new(Buffer::zeroed(bytes)?));
        states.insert(key, made.clone());
        Ok(made)
    }
}

/// The list of a value.
pub(crate) fn list_of(value: &Value) -> Result<&Arc<List>> {
    match value {
        Value::List(list) => Ok(list),
        other => Err(Error::invalid(format!("a tensor list is wanted, not {}", other.kind()))),
    }
}
