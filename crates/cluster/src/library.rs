//! The functions of a graph's library, and signatures.

use crate::graph::Graph;
use prost::Message;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use support::{Error, Result};
use tf::proto::attr_value::Value;
use tf::proto::{AttrValue, FunctionDef, GraphDef, NameAttrList, NodeDef, OpDef};
use tf::{node_types, op_signature};

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
    functions: BTreeMap<&'a str, &'a FunctionDef>,
    bodies: RefCell<BTreeMap<Vec<u8>, Rc<Body>>>,
    nodes_left: Cell<usize>,
    default_device: &'a str,
}

impl<'a> Library<'a> {
    /// The library of a graph. Nodes of bodies that have no device are on `default_device`.
    pub(crate) fn new(graph: &'a GraphDef, default_device: &'a str) -> Result<Self> {
        let mut functions = BTreeMap::new();
        for function in graph.library.iter().flat_map(|library| &library.function) {
            let name = function.signature.as_ref().map_or("", |signature| signature.name.as_str());
            if name.is_empty() || functions.insert(name, function).is_some() {
                return Err(Error::invalid(format!(
                    "the name '{name}' of a function of the library is empty or not unique"
                )));
            }
        }
        Ok(Self { functions, bodies: RefCell::default(), nodes_left: Cell::new(MAX_NODES), default_device })
    }

    pub(crate) fn function(&self, name: &str) -> Option<&'a FunctionDef> {
        self.functions.get(name).copied()
    }

    /// The signature of a function or a registered op.
    pub(crate) fn signature(&self, op: &str) -> Option<&'a OpDef> {
        self.function(op).and_then(|f| f.signature.as_ref()).or_else(|| op_signature(op))
    }

    /// An attribute of the function that a node calls by its op or, for a call through `PartitionedCall`, by `f`.
    pub(crate) fn callee_attribute(&self, node: &NodeDef, name: &str) -> Option<&'a Value> {
        let callee = match (node.op.as_str(), attribute(&node.attr, "f")) {
            ("PartitionedCall" | "StatefulPartitionedCall", Some(Value::Func(func))) => func.name.as_str(),
            _ => node.op.as_str(),
        };
        attribute(&self.function(callee)?.attr, name)
    }

    /// Whether a node may call functions: its op is one, or an attribute names one.
    pub(crate) fn may_call(&self, node: &NodeDef) -> bool {
        let names = |value: &AttrValue| matches!(value.value, Some(Value::Func(_)));
        self.function(&node.op).is_some() || node.attr.values().any(names)
    }

    /// The body of a function for values of its attributes; made on first use.
    pub(crate) fn body(&self, name: &str, given: &BTreeMap<String, AttrValue>) -> Result<Rc<Body>> {
        let function = self
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
        let graph = crate::body::instantiate(function, &values, self, self.default_device)
            .map_err(|e| e.context(format!("function '{name}'")))?;
        let body = Rc::new(Body { graph });
        self.bodies.borrow_mut().insert(key, body.clone());
        Ok(body)
    }
}

/// The value of an attribute that is set.
pub(crate) fn attribute<'v>(attributes: &'v BTreeMap<String, AttrValue>, name: &str) -> Option<&'v Value> {
    attributes.get(name)?.value.as_ref()
}

/// A bool attribute; `None` if absent or of another kind.
pub(crate) fn bool_attribute(attributes: &BTreeMap<String, AttrValue>, name: &str) -> Option<bool> {
    match attribute(attributes, name)? {
        Value::B(value) => Some(*value),
        _ => None,
    }
}

/// A string attribute; empty if absent, of another kind or no UTF-8.
pub(crate) fn string_attribute<'v>(attributes: &'v BTreeMap<String, AttrValue>, name: &str) -> &'v str {
    match attribute(attributes, name) {
        Some(Value::S(bytes)) => std::str::from_utf8(bytes).unwrap_or(""),
        _ => "",
    }
}

/// A function attribute.
pub(crate) fn function_attribute<'v>(
    attributes: &'v BTreeMap<String, AttrValue>,
    name: &str,
) -> Option<&'v NameAttrList> {
    match attribute(attributes, name)? {
        Value::Func(func) => Some(func),
        _ => None,
    }
}

/// A list of functions; empty if absent or of another kind.
pub(crate) fn function_list<'v>(
    attributes: &'v BTreeMap<String, AttrValue>,
    name: &str,
) -> &'v [NameAttrList] {
    match attribute(attributes, name) {
        Some(Value::List(list)) => &list.func,
        _ => &[],
    }
}
