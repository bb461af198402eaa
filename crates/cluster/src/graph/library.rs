//! Library functions as graphs.

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

/// Maximum depth to which nested function calls are followed, as in TensorFlow.
pub(crate) const MAX_DEPTH: usize = 50;

/// Maximum total number of nodes in all instantiated bodies.
const MAX_NODES: usize = 4_000_000;

/// An instantiated function. Its arguments and results are nodes `_Arg` and `_Retval`.
#[derive(Debug)]
pub(crate) struct Body {
    pub(crate) graph: Graph,
}

/// Functions of a graph by name.
#[derive(Debug)]
pub(crate) struct Library<'a> {
    pub(crate) definitions: Definitions<'a>,
    bodies: RefCell<BTreeMap<Vec<u8>, Rc<Body>>>,
    nodes_left: Cell<usize>,
    default_device: &'a str,
}

impl<'a> Library<'a> {
    /// Creates the library of a graph. Nodes of bodies without a device are placed on
    /// `default_device`.
    pub(crate) fn new(graph: &'a GraphDef, default_device: &'a str) -> Result<Self> {
        let definitions = Definitions::new(graph)?;
        let nodes_left = Cell::new(MAX_NODES);
        Ok(Self { definitions, bodies: RefCell::default(), nodes_left, default_device })
    }

    /// The body of a function for these attribute values, created on first use.
    pub(crate) fn body(&self, name: &str, attributes: &BTreeMap<String, AttrValue>) -> Result<Rc<Body>> {
        let function = self
            .definitions
            .function(name)
            .ok_or_else(|| Error::invalid(format!("the library has no function '{name}'")))?;
        let signature = function.signature.as_ref().expect("a library function has no signature");
        let mut values = BTreeMap::new();
        for attr in &signature.attr {
            let value =
                attributes.get(&attr.name).filter(|v| v.value.is_some()).or(attr.default_value.as_ref());
            if let Some(value) = value {
                values.insert(attr.name.clone(), value.clone());
            }
        }
        let key = NameAttrList { name: name.to_owned(), attr: values.clone() }.encode_to_vec();
        if let Some(body) = self.bodies.borrow().get(&key) {
            return Ok(body.clone());
        }
        // Arguments and results are nodes, too.
        let arity = node_types(signature, &signature.input_arg, &values)?.types.len();
        let left = self.nodes_left.get().checked_sub(function.node_def.len() + arity);
        self.nodes_left.set(left.ok_or_else(|| {
            Error::invalid(format!(
                "the instances of all functions have more than {MAX_NODES} nodes in total, reached at '{name}'"
            ))
        })?);
        let graph = instantiate(function, &values, &self.definitions, self.default_device)
            .map_err(|e| e.context(format!("function '{name}'")))?;
        let body = Rc::new(Body { graph });
        self.bodies.borrow_mut().insert(key, body.clone());
        Ok(body)
    }
}
