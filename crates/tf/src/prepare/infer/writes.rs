//! Finds the variables that a program writes, by following handles and references to the ops that
//! use them.

use super::super::signatures::Signatures;
use crate::DataType;
use crate::proto::{FunctionDef, GraphDef, NodeDef, attr_value::Value};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

/// Ops with a handle as input that do not write through it.
const READERS: [&str; 6] = [
    "ReadVariableOp",
    "ResourceGather",
    "ResourceGatherNd",
    "VarIsInitializedOp",
    "VariableShape",
    "_ReadVariablesOp",
];

/// Ops that forward an input, which may be a handle or reference.
const FORWARDERS: [&str; 16] = [
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

/// Maximum depth of analyzed calls. Beyond it, a variable counts as written.
const MAX_DEPTH: usize = 100;

/// Maximum number of steps over all variables. After that, variables count as written.
const MAX_STEPS: usize = 1_000_000;

/// Consumers of each node, with the position among the consumer's data inputs.
type Readers<'a> = BTreeMap<&'a str, Vec<(&'a NodeDef, usize)>>;

/// Finds the written variables. Caches the consumers and the results for functions.
pub(super) struct Writes<'a> {
    signatures: &'a Signatures<'a>,
    /// Consumers among the needed nodes of the graph.
    readers: Rc<Readers<'a>>,
    /// Consumers in each function.
    bodies: BTreeMap<&'a str, Rc<Readers<'a>>>,
    steps: usize,
    /// For each analyzed function and argument, true if the function writes through the argument.
    functions: BTreeMap<(&'a str, usize), bool>,
}

impl<'a> Writes<'a> {
    pub(super) fn new(graph: &'a GraphDef, needed: &[bool], signatures: &'a Signatures<'a>) -> Self {
        let nodes = graph.node.iter().zip(needed).filter(|(_, needed)| **needed).map(|(node, _)| node);
        let (readers, bodies) = (Rc::new(readers(nodes)), BTreeMap::new());
        Self { signatures, readers, bodies, steps: 0, functions: BTreeMap::new() }
    }

    /// True if a needed node may write through the handle or reference that a variable's node
    /// returns.
    pub(super) fn writes(&mut self, variable: &'a NodeDef) -> bool {
        let readers = Rc::clone(&self.readers);
        self.follow(&variable.name, &readers, 0)
    }

    /// True if a consumer, direct or through forwarding nodes, may write through the handle of a
    /// node or argument.
    fn follow(&mut self, name: &'a str, readers: &Readers<'a>, depth: usize) -> bool {
        let mut seen = BTreeSet::from([name]);
        let mut work = vec![name];
        while let Some(from) = work.pop() {
            for &(node, position) in readers.get(from).into_iter().flatten() {
                self.steps += 1;
                if self.steps > MAX_STEPS {
                    return true;
                }
                if forwards_handle(node) {
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

    /// True if a node may write through the data input at a position.
    fn node_writes(&mut self, node: &'a NodeDef, position: usize, depth: usize) -> bool {
        let op = node.op.as_str();
        if READERS.contains(&op) || FORWARDERS.contains(&op) {
            return false;
        }
        if let Some((function, _)) = self.signatures.function(op) {
            return self.function_writes(function, position, depth);
        }
        let called = called_functions(node);
        if !called.is_empty() {
            return called.iter().any(|name| match self.signatures.function(name) {
                Some((function, signature)) => {
                    // The first input of `If` and `Case` selects the function and is not passed to
                    // it.
                    let data = node.input.iter().filter(|input| !input.starts_with('^')).count();
                    let first = data.saturating_sub(signature.input_arg.len());
                    position >= first && self.function_writes(function, position - first, depth)
                }
                None => true,
            });
        }
        // If the op expects a value, it only reads the reference. An op that expects a reference or
        // handle may write through it.
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
        // Assume that recursive calls don't write: other nodes of the body decide.
        self.functions.insert(key, false);
        let body = self.bodies.entry(key.0).or_insert_with(|| Rc::new(readers(&function.node_def)));
        let body = Rc::clone(body);
        let writes = self.follow(name, &body, depth + 1);
        self.functions.insert(key, writes);
        writes
    }
}

/// True if a node forwards a handle or reference rather than a value.
fn forwards_handle(node: &NodeDef) -> bool {
    let is_handle = |number: i32| DataType::from_number(number).is_some_and(|t| t.primitive_type().is_none());
    let op = node.op.as_str();
    FORWARDERS.contains(&op)
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

/// Returns the functions among a node's attributes.
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
