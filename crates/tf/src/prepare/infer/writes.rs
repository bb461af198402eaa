//! Finds the variables that a program writes, by following handles and references to the ops that
//! use them.

use super::super::signatures::Signatures;
use crate::DataType;
use crate::proto::{FunctionDef, GraphDef, NodeDef, attr_value::Value};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

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
const PASSERS: [&str; 16] = [
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
    "_SwitchN",
];

/// Limit for the depth of analyzed calls. Beyond it, a variable counts as written.
const MAX_DEPTH: usize = 100;

/// The most steps of following handles, over all variables; after that, variables count as written.
const MAX_STEPS: usize = 1_000_000;

/// The nodes that read each node, with the position among their data inputs.
type Readers<'a> = BTreeMap<&'a str, Vec<(&'a NodeDef, usize)>>;

/// Consumers of each value, and known facts about functions.
pub(super) struct Writes<'a> {
    signatures: &'a Signatures<'a>,
    /// Needed nodes of the graph.
    readers: Rc<Readers<'a>>,
    /// Consumers in each function.
    bodies: BTreeMap<&'a str, Rc<Readers<'a>>>,
    steps: usize,
    /// True if a function writes through an argument.
    functions: BTreeMap<(&'a str, usize), bool>,
}

impl<'a> Writes<'a> {
    pub(super) fn new(graph: &'a GraphDef, needed: &[bool], signatures: &'a Signatures<'a>) -> Self {
        let nodes = graph.node.iter().zip(needed).filter(|(_, needed)| **needed).map(|(node, _)| node);
        let (readers, bodies) = (Rc::new(readers(nodes)), BTreeMap::new());
        Self { signatures, readers, bodies, steps: 0, functions: BTreeMap::new() }
    }

    /// True if a needed node writes the variable of this node.
    pub(super) fn writes(&mut self, variable: &'a NodeDef) -> bool {
        let readers = Rc::clone(&self.readers);
        self.follow(&variable.name, &readers, 0)
    }

    /// True if a consumer writes through the handle of a node or argument.
    fn follow(&mut self, name: &'a str, readers: &Readers<'a>, depth: usize) -> bool {
        let mut seen = BTreeSet::from([name]);
        let mut work = vec![name];
        while let Some(from) = work.pop() {
            for &(node, position) in readers.get(from).into_iter().flatten() {
                self.steps += 1;
                if self.steps > MAX_STEPS {
                    return true;
                }
                if is_passed_on(node) {
                    if seen.insert(&node.name) {
                        work.push(&node.name);
                    }
                } else if self.node_writes(node, position, depth) {
                    return true;
                }
            }
        }
        false
    }

    /// True if a node writes through the input at a position.
    fn node_writes(&mut self, node: &'a NodeDef, position: usize, depth: usize) -> bool {
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

    fn function_writes(&mut self, function: &'a FunctionDef, argument: usize, depth: usize) -> bool {
        let Some(signature) = &function.signature else { return true };
        let Some(name) = signature.input_arg.get(argument).map(|a| a.name.as_str()) else { return true };
        let key = (signature.name.as_str(), argument);
        if let Some(&known) = self.functions.get(&key) {
            return known;
        }
        if depth >= MAX_DEPTH {
            return true;
        }
        // Assumption for recursive calls: they write only if another node does.
        self.functions.insert(key, false);
        let body = self.bodies.entry(key.0).or_insert_with(|| Rc::new(readers(&function.node_def)));
        let body = Rc::clone(body);
        let writes = self.follow(name, &body, depth + 1);
        self.functions.insert(key, writes);
        writes
    }
}

/// True if a node returns the handle or reference of its input rather than a value.
fn is_passed_on(node: &NodeDef) -> bool {
    let is_handle = |number: i32| DataType::from_number(number).is_some_and(|t| t.primitive_type().is_none());
    let op = node.op.as_str();
    PASSERS.contains(&op)
        && match node.attr.get("T").and_then(|value| value.value.as_ref()) {
            _ if op.starts_with("Ref") => true,
            Some(Value::Type(number)) => is_handle(*number),
            Some(Value::List(list)) => list.r#type.iter().any(|number| is_handle(*number)),
            _ => false,
        }
}

/// Consumers of each node. An input in a function body is `argument`, `node:output`, or
/// `node:output:index`.
fn readers<'a>(nodes: impl IntoIterator<Item = &'a NodeDef>) -> Readers<'a> {
    let mut readers = Readers::new();
    for node in nodes {
        let data = node.input.iter().filter(|input| !input.starts_with('^'));
        for (position, input) in data.enumerate() {
            let from = input.split(':').next().unwrap_or_default();
            readers.entry(from).or_default().push((node, position));
        }
    }
    readers
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
