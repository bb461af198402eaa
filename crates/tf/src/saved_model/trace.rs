//! Traces initializers and restore ops without running them: lists their nodes, including those in
//! functions, and finds the origins of inputs.

use crate::proto::{FunctionDef, GraphDef, NodeDef, attr_value::Value};
use crate::tensor::Tensor;
use bytes::Bytes;
use std::collections::{BTreeMap, BTreeSet};
use support::{Error, Result};

/// Limit for the number of function calls.
const MAX_FRAMES: usize = 100_000;

/// Limit for the depth of nested function calls.
const MAX_DEPTH: usize = 100;

/// A node that would run, with the number of the call it belongs to.
pub(crate) type Step<'a> = (usize, &'a NodeDef);

/// A graph and its traced function calls. Call 0 is the graph itself.
pub(crate) struct Trace<'a> {
    functions: BTreeMap<&'a str, &'a FunctionDef>,
    frames: Vec<Frame<'a>>,
    /// Input that the graph itself assigns to each variable. `None` if there are several
    /// assignments.
    assigned: BTreeMap<&'a str, Option<&'a str>>,
}

/// The graph, or a call of a function.
struct Frame<'a> {
    nodes: BTreeMap<&'a str, &'a NodeDef>,
    /// Inputs of the calling node by the names of the arguments.
    arguments: BTreeMap<&'a str, &'a str>,
    /// Number of the call that contains the calling node.
    caller: usize,
    depth: usize,
}

impl<'a> Trace<'a> {
    /// Creates a trace of a graph.
    pub(crate) fn new(graph: &'a GraphDef) -> Self {
        let library = graph.library.iter().flat_map(|library| &library.function);
        let functions = library.filter_map(|f| Some((f.signature.as_ref()?.name.as_str(), f))).collect();
        let nodes = by_name(&graph.node);
        let frame = Frame { nodes, arguments: BTreeMap::new(), caller: 0, depth: 0 };
        let mut assigned = BTreeMap::new();
        for node in graph.node.iter().filter(|node| node.op == "AssignVariableOp") {
            if let [variable, value, ..] = node.input.as_slice() {
                let first = !assigned.contains_key(base_name(variable));
                assigned.insert(base_name(variable), first.then_some(value.as_str()));
            }
        }
        Self { functions, frames: vec![frame], assigned }
    }

    /// Lists all nodes that would run if the given nodes of the graph were run. The order is
    /// unspecified.
    pub(crate) fn steps(&mut self, roots: &[&str]) -> Result<Vec<Step<'a>>> {
        let mut steps = Vec::new();
        let mut work: Vec<&str> = roots.iter().map(|root| base_name(root)).collect();
        let mut seen = BTreeSet::new();
        while let Some(name) = work.pop() {
            let Some(&node) = self.frames[0].nodes.get(name) else { continue };
            if seen.insert(node.name.as_str()) {
                steps.push((0, node));
                work.extend(node.input.iter().map(|input| base_name(input)));
            }
        }
        let mut next = 0;
        while let Some(&(frame, node)) = steps.get(next) {
            next += 1;
            let Some(function) = self.called(node) else { continue };
            let depth = self.frames[frame].depth + 1;
            if self.frames.len() > MAX_FRAMES || depth > MAX_DEPTH {
                return Err(Error::invalid(format!(
                    "node '{}' calls functions more than {MAX_DEPTH} levels deep or more than {MAX_FRAMES} of them",
                    node.name
                )));
            }
            let data = node.input.iter().filter(|input| !input.starts_with('^')).map(String::as_str);
            let names = function.signature.iter().flat_map(|s| &s.input_arg).map(|arg| arg.name.as_str());
            let (nodes, arguments) = (by_name(&function.node_def), names.zip(data).collect());
            self.frames.push(Frame { nodes, arguments, caller: frame, depth });
            let frame = self.frames.len() - 1;
            steps.extend(function.node_def.iter().map(|node| (frame, node)));
        }
        Ok(steps)
    }

    /// Returns the function that a node calls.
    fn called(&self, node: &NodeDef) -> Option<&'a FunctionDef> {
        let name = match node.op.as_str() {
            "PartitionedCall" | "StatefulPartitionedCall" => match node.attr.get("f")?.value.as_ref()? {
                Value::Func(func) => func.name.as_str(),
                _ => return None,
            },
            op => op,
        };
        self.functions.get(name).copied()
    }

    /// Returns the node that produces an input of a step, and the number of the output. Looks
    /// through copies, function arguments, and variables that are assigned once.
    pub(crate) fn origin(&self, frame: usize, input: &'a str) -> Option<(Step<'a>, usize)> {
        self.origin_within(frame, input, 0)
    }

    fn origin_within(&self, frame: usize, input: &'a str, depth: usize) -> Option<(Step<'a>, usize)> {
        if depth > MAX_DEPTH {
            return None;
        }
        let (mut frame, mut input) = (frame, input);
        // The bound ends cycles.
        for _ in 0..100_000 {
            let here = &self.frames[frame];
            let name = base_name(input);
            if let Some(outer) = here.arguments.get(name) {
                (frame, input) = (here.caller, outer);
                continue;
            }
            let node = *here.nodes.get(name)?;
            match node.op.as_str() {
                "Identity" | "RefIdentity" | "PlaceholderWithDefault" | "StopGradient" | "EnsureShape" => {
                    input = node.input.first().filter(|input| !input.starts_with('^'))?;
                }
                // The name of an asset is stored in a variable that is assigned once.
                "ReadVariableOp" => {
                    let ((at, variable), _) = self.origin_within(frame, node.input.first()?, depth + 1)?;
                    let value = self.assigned.get(variable.name.as_str()).filter(|_| at == 0);
                    (frame, input) = (0, (*value?)?);
                }
                _ => {
                    let index = input
                        .split_once(':')
                        .map_or(Some(0), |(_, rest)| rest.rsplit(':').next()?.parse().ok())?;
                    return Some(((frame, node), index));
                }
            }
        }
        None
    }

    /// Returns the tensor of a constant node.
    pub(crate) fn constant(&self, node: &'a NodeDef) -> Option<Tensor<'a>> {
        match node.attr.get("value").filter(|_| node.op == "Const")?.value.as_ref()? {
            Value::Tensor(tensor) => Tensor::new(tensor).ok(),
            _ => None,
        }
    }

    /// Returns the strings of an input that is constant.
    pub(crate) fn strings(&self, frame: usize, input: &'a str) -> Option<Vec<Bytes>> {
        let ((_, node), _) = self.origin(frame, input)?;
        self.constant(node)?.strings().ok()
    }
}

fn by_name(nodes: &[NodeDef]) -> BTreeMap<&str, &NodeDef> {
    nodes.iter().map(|node| (node.name.as_str(), node)).collect()
}

/// Name of the node or argument that an input refers to.
pub(crate) fn base_name(input: &str) -> &str {
    let input = input.strip_prefix('^').unwrap_or(input);
    input.split(':').next().unwrap_or(input)
}
