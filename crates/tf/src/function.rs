//! Instantiated functions of a graph's library.

use crate::proto::NameAttrList;
use crate::proto::attr_value::Value;
use crate::{Graph, Node, NodeId, OutputId, op_def};
use prost::Message;
use std::collections::BTreeMap;
use support::Id;

/// A function: a graph with arguments and results.
#[derive(Clone, Debug, PartialEq)]
pub struct Function {
    /// Name that calls use.
    pub name: String,
    /// The body.
    pub graph: Graph,
    /// Arguments in order: `_Arg` nodes with the attributes `T` and `index`.
    pub arguments: Vec<NodeId>,
    /// Results in order.
    pub results: Vec<OutputId>,
    /// Nodes that must run whenever the function is called, even if no result needs them.
    pub control_results: Vec<NodeId>,
}

impl Function {
    /// Returns the nodes that run whenever the function is called, even if no result needs them:
    /// its control results or, in functions of TensorFlow 1, which have none, all nodes with
    /// effects.
    pub fn effects(&self) -> Vec<NodeId> {
        if !self.control_results.is_empty() {
            return self.control_results.clone();
        }
        let has_effects = |node: &Node| {
            node.op != "_Arg" && op_def::lookup(&node.op).is_some_and(|signature| signature.is_stateful)
        };
        self.graph.nodes.iter().filter(|(_, node)| has_effects(node)).map(|(id, _)| id).collect()
    }

    /// Encodes the function as bytes, which are equal only for equal functions. Lists and strings
    /// are preceded by their lengths.
    pub fn to_bytes(&self) -> Vec<u8> {
        let Self { name, graph, arguments, results, control_results } = self;
        let mut encoded = Vec::new();
        let mut bytes = |bytes: &[u8]| {
            encoded.extend((bytes.len() as u64).to_le_bytes());
            encoded.extend(bytes);
        };
        let mut numbers = Vec::new();
        let mut list = |list: &mut dyn ExactSizeIterator<Item = u64>| {
            numbers.extend((list.len() as u64).to_le_bytes());
            list.for_each(|number| numbers.extend(number.to_le_bytes()));
        };
        let output = |output: &OutputId| (output.node.index() as u64) << 32 | output.index as u64;
        let node = |id: &NodeId| id.index() as u64;
        bytes(name.as_bytes());
        list(&mut arguments.iter().map(node));
        list(&mut results.iter().map(output));
        list(&mut control_results.iter().map(node));
        for Node { name, op, inputs, control_inputs, attributes, output_types } in graph.nodes.values() {
            let attr = attributes.values().clone();
            bytes(name.as_bytes());
            bytes(&NameAttrList { name: op.clone(), attr }.encode_to_vec());
            list(&mut inputs.iter().map(output));
            list(&mut control_inputs.iter().map(node));
            list(&mut output_types.iter().map(|t| t.number() as u64));
        }
        bytes(&numbers);
        encoded
    }
}

/// The functions that a program calls, directly or through other functions.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FunctionLibrary {
    functions: BTreeMap<String, Function>,
    gradients: BTreeMap<String, String>,
}

impl FunctionLibrary {
    /// Returns the function with the given name.
    pub fn get(&self, name: &str) -> Option<&Function> {
        self.functions.get(name)
    }

    /// Returns the name of the function that computes the gradient of `function`.
    pub fn gradient(&self, function: &str) -> Option<&str> {
        self.gradients.get(function).map(String::as_str)
    }

    /// Returns the functions that a node calls, directly or through other functions.
    pub fn called_by(&self, node: &Node) -> Self {
        let mut called = Self::default();
        let mut work = vec![node];
        while let Some(node) = work.pop() {
            let mut names = vec![node.op.as_str()];
            for value in node.attributes.values().values() {
                match &value.value {
                    Some(Value::Func(func)) => names.push(&func.name),
                    Some(Value::List(list)) => names.extend(list.func.iter().map(|func| func.name.as_str())),
                    _ => {}
                }
            }
            for name in names {
                if called.get(name).is_none()
                    && let Some(function) = self.get(name)
                {
                    called.insert(function.clone());
                    work.extend(function.graph.nodes.values());
                }
            }
        }
        called
    }

    /// Iterates over all functions, sorted by name.
    pub fn functions(&self) -> impl Iterator<Item = &Function> {
        self.functions.values()
    }

    /// Adds a function. Replaces a function with the same name.
    pub fn insert(&mut self, function: Function) {
        self.functions.insert(function.name.clone(), function);
    }

    /// Records `gradient` as the function that computes the gradient of `function`.
    pub(crate) fn insert_gradient(&mut self, function: &str, gradient: &str) {
        self.gradients.insert(function.to_owned(), gradient.to_owned());
    }

    /// Returns a name derived from `base` that no function has.
    pub(crate) fn unused_name(&self, base: &str) -> String {
        let mut name = base.to_owned();
        let mut number = 0;
        while self.functions.contains_key(&name) {
            number += 1;
            name = format!("{base}_{number}");
        }
        name
    }
}
