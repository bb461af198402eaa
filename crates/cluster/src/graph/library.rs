//! The functions of a graph's library as graphs.

use super::body::instantiate;
use super::definitions::Definitions;
use crate::graph::Graph;
use prost::Message;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use support::{Error, Result};
use tf::node_types;
use tf::proto::{AttrValue, GraphDef, NameAttrList};

/// The depth to which functions are followed into each other, as in TensorFlow.
pub(crate) const MAX_DEPTH: usize = 50;

/// The most nodes that all instantiated bodies together may have.
const MAX_NODES: usize = 4_000_000;

/// A function with values for its attributes, as a graph whose arguments and results are nodes `_Arg` and `_Retval`.
#[derive(Debug)]
pub(crate) struct Body {
    pub(crate) graph: Graph,
}

/// A graph's functions by name.
#[derive(Debug)]
pub(crate) struct Library<'a> {
    pub(crate) definitions: Definitions<'a>,
    bodies: RefCell<BTreeMap<Vec<u8>, Rc<Body>>>,
    nodes_left: Cell<usize>,
    default_device: &'a str,
}

impl<'a> Library<'a> {
    /// The library of a graph. Nodes of bodies that have no device are on `default_device`.
    pub(crate) fn new(graph: &'a GraphDef, default_device: &'a str) -> Result<Self> {
        let definitions = Definitions::new(graph)?;
        let nodes_left = Cell::new(MAX_NODES);
        Ok(Self { definitions, bodies: RefCell::default(), nodes_left, default_device })
    }

    /// The body of a function for values of its attributes; made on first use.
    pub(crate) fn body(&self, name: &str, given: &BTreeMap<String, AttrValue>) -> Result<Rc<Body>> {
        let function = self
            .definitions
            .function(name)
            .ok_or_else(|| Error::invalid(format!("the library has no function '{name}'")))?;
        let signature = function.signature.as_ref().expect("the library holds functions that have names");
        let mut values = BTreeMap::new();
        for attr in &signature.attr {
            let value = given.get(&attr.name).filter(|v| v.value.is_some()).or(attr.default_value.as_ref());
            if let Some(value) = value {
                values.insert(attr.name.clone(), value.clone());
            }
        }
        let key = NameAttrList { name: name.to_owned(), attr: values.clone() }.encode_to_vec();
        if let Some(body) = self.bodies.borrow().get(&key) {
            return Ok(body.clone());
        }
        // Arguments and results are nodes too.
        let arity = node_types(signature, &signature.input_arg, &values)?.types.len();
        let left = self.nodes_left.get().checked_sub(function.node_def.len() + arity);
        self.nodes_left.set(left.ok_or_else(|| {
            Error::invalid(format!(
                "the functions have more than {MAX_NODES} nodes in all their instances, at '{name}'"
            ))
        })?);
        let graph = instantiate(function, &values, &self.definitions, self.default_device)
            .map_err(|e| e.context(format!("function '{name}'")))?;
        let body = Rc::new(Body { graph });
        self.bodies.borrow_mut().insert(key, body.clone());
        Ok(body)
    }
}
