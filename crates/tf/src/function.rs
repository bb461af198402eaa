//! The functions of a graph's library, instantiated.

use crate::{Graph, NodeId, OutputId};
use std::collections::BTreeMap;

/// A function: a graph with arguments and results.
#[derive(Clone, Debug, PartialEq)]
pub struct Function {
    /// The name that calls use.
    pub name: String,
    /// The body.
    pub graph: Graph,
    /// The arguments in order: nodes of op `_Arg` with attributes `T` and `index`.
    pub arguments: Vec<NodeId>,
    /// The results in order.
    pub results: Vec<OutputId>,
    /// Nodes that must run whenever the function is called, although no result needs them.
    pub control_results: Vec<NodeId>,
}

/// The functions that a program calls, directly or through other functions.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FunctionLibrary {
    functions: BTreeMap<String, Function>,
    gradients: BTreeMap<String, String>,
}

impl FunctionLibrary {
    /// The function of a name.
    pub fn get(&self, name: &str) -> Option<&Function> {
        self.functions.get(name)
    }

    /// The function that computes the gradient of another.
    pub fn gradient(&self, function: &str) -> Option<&str> {
        self.gradients.get(function).map(String::as_str)
    }

    /// All functions, by name.
    pub fn functions(&self) -> impl Iterator<Item = &Function> {
        self.functions.values()
    }

    /// Adds a function, in place of one of the same name.
    pub fn insert(&mut self, function: Function) {
        self.functions.insert(function.name.clone(), function);
    }

    /// States which function computes the gradient of another.
    pub(crate) fn insert_gradient(&mut self, function: &str, gradient: &str) {
        self.gradients.insert(function.to_owned(), gradient.to_owned());
    }

    /// A name that no function has, made from `base`.
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
