//! Library functions by name, and op signatures.

use super::attributes::attribute;
use std::collections::BTreeMap;
use support::{Error, Result};
use tf::op_signature;
use tf::proto::attr_value::Value;
use tf::proto::{AttrValue, FunctionDef, GraphDef, NodeDef, OpDef};

/// Functions of a graph's library. Lookups of signatures also find registered ops.
#[derive(Debug)]
pub(crate) struct Definitions<'a> {
    functions: BTreeMap<&'a str, &'a FunctionDef>,
}

impl<'a> Definitions<'a> {
    /// Collects the functions of a graph.
    pub(crate) fn new(graph: &'a GraphDef) -> Result<Self> {
        let mut functions = BTreeMap::new();
        for function in graph.library.iter().flat_map(|library| &library.function) {
            let name = function.signature.as_ref().map_or("", |signature| signature.name.as_str());
            if name.is_empty() || functions.insert(name, function).is_some() {
                return Err(Error::invalid(format!(
                    "the name '{name}' of a library function is empty or not unique"
                )));
            }
        }
        Ok(Self { functions })
    }

    pub(crate) fn function(&self, name: &str) -> Option<&'a FunctionDef> {
        self.functions.get(name).copied()
    }

    /// The signature of a function or a registered op.
    pub(crate) fn signature(&self, op: &str) -> Option<&'a OpDef> {
        self.function(op).and_then(|f| f.signature.as_ref()).or_else(|| op_signature(op))
    }

    /// An attribute of the function that a node calls, by its op or, for `PartitionedCall`, by `f`.
    pub(crate) fn callee_attribute(&self, node: &NodeDef, name: &str) -> Option<&'a Value> {
        let callee = match (node.op.as_str(), attribute(&node.attr, "f")) {
            ("PartitionedCall" | "StatefulPartitionedCall", Some(Value::Func(func))) => func.name.as_str(),
            _ => node.op.as_str(),
        };
        attribute(&self.function(callee)?.attr, name)
    }

    /// True if a node may call functions: its op is one, or an attribute names one.
    pub(crate) fn may_call(&self, node: &NodeDef) -> bool {
        let names = |value: &AttrValue| matches!(value.value, Some(Value::Func(_)));
        self.function(&node.op).is_some() || node.attr.values().any(names)
    }
}
