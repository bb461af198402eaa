//! State that a session keeps across runs: variables, random number generators, and kernel memory.

use crate::buffer::Buffer;
use crate::lock::lock;
use crate::value::Variable;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use support::{Error, Result};
use tf::{PartialShape, Resource};

/// All variables of a session, and the state of its nodes.
#[derive(Debug, Default)]
pub(crate) struct Resources {
    variables: Mutex<BTreeMap<Resource, Arc<Variable>>>,
    counters: Mutex<BTreeMap<String, Arc<Mutex<u128>>>>,
    /// State that kernels keep across runs, by node.
    states: Mutex<BTreeMap<String, Arc<Mutex<Buffer>>>>,
}

impl Resources {
    /// The variable that a node is a handle of, created on first request.
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
            if variable.data_type() != data_type {
                return Err(Error::invalid(format!(
                    "nodes '{}' and '{}' name the same variable with different types: {} and {data_type}",
                    variable.node(),
                    node.name,
                    variable.data_type()
                )));
            }
            return Ok(variable.clone());
        }
        let variable = Arc::new(Variable::new(resource.clone(), &node.name, data_type, shape));
        variables.insert(resource, variable.clone());
        Ok(variable)
    }

    /// All variables, sorted by resource.
    pub(crate) fn variables(&self) -> Vec<Arc<Variable>> {
        lock(&self.variables).values().cloned().collect()
    }

    /// Removes a temporary variable.
    pub(crate) fn remove(&self, variable: &Variable) {
        lock(&self.variables).remove(variable.resource());
    }

    /// Counter of a node that draws random numbers.
    pub(crate) fn counter(&self, node: &str, start: u128) -> Arc<Mutex<u128>> {
        lock(&self.counters).entry(node.to_owned()).or_insert_with(|| Arc::new(Mutex::new(start))).clone()
    }

    /// State that a node's kernel keeps across runs: `bytes` bytes, initially zero.
    pub(crate) fn state(&self, node: &str, bytes: usize) -> Result<Arc<Mutex<Buffer>>> {
        let mut states = lock(&self.states);
        let key = format!("{node}/{bytes}");
        if let Some(state) = states.get(&key) {
            return Ok(state.clone());
        }
        let state = Arc::new(Mutex::new(Buffer::zeroed(bytes)?));
        states.insert(key, state.clone());
        Ok(state)
    }
}
