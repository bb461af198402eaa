//! Which variables a program writes: handles and references followed forward to the ops that take them.

use super::super::build::Signatures;
use super::super::names::{Input, Names};
use crate::proto::{FunctionDef, GraphDef, NodeDef, attr_value::Value};
use std::collections::{BTreeMap, BTreeSet};
use support::Result;

/// Ops that take a handle and do not write through it.
const READERS: [&str; 6] = [
    "ReadVariableOp",
    "ResourceGather",
    "ResourceGatherNd",
    "VarIsInitializedOp",
    "VariableShape",
    "_ReadVariablesOp",
];

/// Ops that pass on what they get: what they return may be the handle.
const PASSERS: [&str; 15] = [
    "Enter",
    "Exit",
    "Identity",
    "IdentityN",
    "LoopCond",
    "Merge",
    "NextIteration",
    "RefEnter",
    "RefExit",
    "RefIdentity",
    "RefMerge",
    "RefNextIteration",
    "RefSelect",
    "RefSwitch",
    "Switch",
];

/// How deep functions are followed; deeper, a variable counts as written.
const MAX_DEPTH: usize = 100;

/// Who reads what, and what is known of functions.
pub(super) struct Writes<'a> {
    graph: &'a GraphDef,
    signatures: &'a Signatures<'a>,
    /// For each node the needed nodes that read it, with the position among their data inputs.
    readers: Vec<Vec<(usize, usize)>>,
    /// Whether a function writes through an argument.
    functions: BTreeMap<(String, usize), bool>,
}

impl<'a> Writes<'a> {
    pub(super) fn new(
        graph: &'a GraphDef,
        needed: &[bool],
        names: &Names<'_>,
        signatures: &'a Signatures<'a>,
    ) -> Result<Self> {
        let mut readers = vec![Vec::new(); graph.node.len()];
        for (at, node) in graph.node.iter().enumerate().filter(|(at, _)| needed[*at]) {
            let mut position = 0;
            for text in &node.input {
                if let Input::Data(name, _) = Input::parse(text, &node.name)? {
                    if let Some(from) = names.get(name) {
                        readers[from].push((at, position));
                    }
                    position += 1;
                }
            }
        }
        Ok(Self { graph, signatures, readers, functions: BTreeMap::new() })
    }

    /// Whether anything that is needed writes the variable whose node this is.
    pub(super) fn writes(&mut self, variable: usize) -> bool {
        let mut seen = BTreeSet::from([variable]);
        let mut work = vec![variable];
        while let Some(from) = work.pop() {
            for (at, position) in self.readers[from].clone() {
                let node = &self.graph.node[at];
                if self.is_passed_on(node) {
                    if seen.insert(at) {
                        work.push(at);
                    }
                } else if self.node_writes(node, position, 0) {
                    return true;
                }
            }
        }
        false
    }

    /// Whether a node returns the handle or reference that it gets, rather than a value.
    fn is_passed_on(&self, node: &NodeDef) -> bool {
        if !PASSERS.contains(&node.op.as_str()) {
            return false;
        }
        let types = self.signatures.output_types(node).map(|(_, types)| types).unwrap_or_default();
        types.iter().any(|t| t.is_ref() || t.primitive_type().is_none())
    }

    /// Whether a node writes through what it gets at a position.
    fn node_writes(&mut self, node: &NodeDef, position: usize, depth: usize) -> bool {
        let op = node.op.as_str();
        if READERS.contains(&op) || PASSERS.contains(&op) {
            return false;
        }
        if let Some((function, _)) = self.signatures.function(op) {
            return self.function_writes(function, position, depth);
        }
        let called = called_functions(node);
        if !called.is_empty() {
            return called.iter().any(|name| match self.signatures.function(name) {
                Some((function, signature)) => {
                    // `If` and `Case` take the choice first, which no function gets.
                    let data = node.input.iter().filter(|input| !input.starts_with('^')).count();
                    let first = data.saturating_sub(signature.input_arg.len());
                    position >= first && self.function_writes(function, position - first, depth)
                }
                None => true,
            });
        }
        // A value may be read from a reference; a reference or handle that is asked for is written.
        match self.signatures.apply(node, node.attr.clone()) {
            Ok(typed) => typed.input_types.get(position).is_none_or(|t| t.primitive_type().is_none()),
            Err(_) => true,
        }
    }

    fn function_writes(&mut self, function: &FunctionDef, argument: usize, depth: usize) -> bool {
        let Some(signature) = &function.signature else { return true };
        let Some(name) = signature.input_arg.get(argument).map(|a| a.name.clone()) else { return true };
        let key = (signature.name.clone(), argument);
        if let Some(&known) = self.functions.get(&key) {
            return known;
        }
        if depth >= MAX_DEPTH {
            return true;
        }
        // For calls of itself: they write only if something else does.
        self.functions.insert(key.clone(), false);
        let mut seen = BTreeSet::from([name.clone()]);
        let mut work = vec![name];
        let mut writes = false;
        while let Some(from) = work.pop() {
            for node in &function.node_def {
                let data = node.input.iter().filter(|input| !input.starts_with('^')).enumerate();
                let positions: Vec<usize> = data
                    .filter(|(_, input)| input.split(':').next() == Some(from.as_str()))
                    .map(|(position, _)| position)
                    .collect();
                for position in positions {
                    if self.is_passed_on(node) {
                        if seen.insert(node.name.clone()) {
                            work.push(node.name.clone());
                        }
                    } else {
                        writes |= self.node_writes(node, position, depth + 1);
                    }
                }
            }
        }
        self.functions.insert(key, writes);
        writes
    }
}

/// The functions among a node's attributes.
fn called_functions(node: &NodeDef) -> Vec<String> {
    let mut names = Vec::new();
    for value in node.attr.values() {
        match &value.value {
            Some(Value::Func(func)) => names.push(func.name.clone()),
            Some(Value::List(list)) => names.extend(list.func.iter().map(|func| func.name.clone())),
            _ => {}
        }
    }
    names
}
