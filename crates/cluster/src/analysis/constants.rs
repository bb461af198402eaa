//! Finds the nodes and arguments that must be constant when a graph is compiled: values that shapes
//! and similar properties depend on, traced back to their sources.

use crate::analysis::slices;
use crate::graph::attributes::{attribute, function_attribute, function_list};
use crate::graph::library::{Body, Library, MAX_DEPTH};
use crate::graph::{Edge, Graph, Node, NodeId};
use crate::kernels::{Kernels, is_metadata_op};
use prost::Message;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use support::{IdVec, Result};
use tf::node_types;
use tf::proto::attr_value::Value;
use tf::proto::{AttrValue, NameAttrList};

/// Nodes and arguments that must be constant.
#[derive(Debug, Default)]
pub(crate) struct Constants {
    /// For each node, true if it must be constant.
    pub(crate) nodes: IdVec<NodeId, bool>,
    /// Indices of the arguments.
    pub(crate) arguments: BTreeSet<usize>,
}

/// Finds required constants. Caches the results for functions.
pub(crate) struct Analysis<'a> {
    library: &'a Library<'a>,
    kernels: &'a dyn Kernels,
    functions: RefCell<BTreeMap<Vec<u8>, BTreeSet<usize>>>,
}

impl<'a> Analysis<'a> {
    pub(crate) fn new(library: &'a Library<'a>, kernels: &'a dyn Kernels) -> Self {
        Self { library, kernels, functions: RefCell::default() }
    }

    /// The required constants of a graph. Only edges accepted by `follows` are traced.
    pub(crate) fn of_graph(&self, graph: &Graph, follows: &dyn Fn(&Edge) -> bool) -> Result<Constants> {
        self.trace_backward(graph, follows, 0)
    }

    /// The arguments of a function that must be constant.
    pub(crate) fn of_function(
        &self,
        name: &str,
        attributes: &BTreeMap<String, AttrValue>,
    ) -> Result<BTreeSet<usize>> {
        self.arguments(name, attributes, 0)
    }

    fn arguments(
        &self,
        name: &str,
        attributes: &BTreeMap<String, AttrValue>,
        depth: usize,
    ) -> Result<BTreeSet<usize>> {
        if depth > MAX_DEPTH {
            return Ok(BTreeSet::new());
        }
        let key = NameAttrList { name: name.to_owned(), attr: attributes.clone() }.encode_to_vec();
        if let Some(inputs) = self.functions.borrow().get(&key) {
            return Ok(inputs.clone());
        }
        let body = self.library.body(name, attributes)?;
        // A recursive function looks itself up before its result is known.
        self.functions.borrow_mut().insert(key.clone(), BTreeSet::new());
        let inputs = self.trace_backward(&body.graph, &|_| true, depth + 1)?.arguments;
        self.functions.borrow_mut().insert(key, inputs.clone());
        Ok(inputs)
    }

    fn trace_backward(
        &self,
        graph: &Graph,
        follows: &dyn Fn(&Edge) -> bool,
        depth: usize,
    ) -> Result<Constants> {
        let mut constants = Constants { nodes: graph.node_table(false), arguments: BTreeSet::new() };
        for id in graph.forward_order().into_iter().rev() {
            let node = &graph[id];
            if is_metadata_op(node.op()) {
                continue;
            }
            let required_inputs: Option<BTreeSet<usize>> = if constants.nodes[id] {
                if node.op() == "_Arg" {
                    if let Some(&Value::I(index)) = attribute(&node.def.attr, "index") {
                        constants.arguments.extend(usize::try_from(index));
                    }
                    continue;
                }
                None
            } else if let Some((inputs, lengths)) = self.dynamic_start(graph, id, follows) {
                lengths.into_iter().for_each(|node| constants.nodes[node] = true);
                Some(inputs)
            } else {
                Some(self.inputs(node, depth)?)
            };
            if required_inputs.as_ref().is_some_and(BTreeSet::is_empty) {
                continue;
            }
            for edge in graph.in_edges(id).filter(|e| !e.is_control()) {
                let is_required = required_inputs
                    .as_ref()
                    .is_none_or(|inputs| edge.input().is_some_and(|input| inputs.contains(&input)));
                if is_required && let Some(source) = origin(graph, edge, follows) {
                    constants.nodes[source] = true;
                }
            }
        }
        Ok(constants)
    }

    /// The inputs of a node that must be constant because of the node itself.
    fn inputs(&self, node: &Node, depth: usize) -> Result<BTreeSet<usize>> {
        let attributes = &node.def.attr;
        let of_callee = |func: &NameAttrList| self.arguments(&func.name, &func.attr, depth);
        let after_first = |inputs: BTreeSet<usize>| inputs.into_iter().map(|input| input + 1).collect();
        match node.op() {
            "While" | "StatelessWhile" => {
                let (Some(condition), Some(body)) =
                    (function_attribute(attributes, "cond"), function_attribute(attributes, "body"))
                else {
                    return Ok(BTreeSet::new());
                };
                let mut inputs = of_callee(condition)?;
                inputs.extend(of_callee(body)?);
                if !inputs.is_empty() {
                    let body = self.library.body(&body.name, &body.attr)?;
                    inputs.retain(|&index| self.is_invariant(&body, index, depth));
                }
                Ok(inputs)
            }
            "If" | "StatelessIf" => {
                let mut inputs = BTreeSet::new();
                for name in ["then_branch", "else_branch"] {
                    if let Some(branch) = function_attribute(attributes, name) {
                        inputs.extend(of_callee(branch)?);
                    }
                }
                Ok(after_first(inputs))
            }
            "Case" | "StatelessCase" => {
                let mut inputs = BTreeSet::new();
                for branch in function_list(attributes, "branches") {
                    inputs.extend(of_callee(branch)?);
                }
                Ok(after_first(inputs))
            }
            "PartitionedCall" | "StatefulPartitionedCall" => match function_attribute(attributes, "f") {
                Some(callee) => of_callee(callee),
                None => Ok(BTreeSet::new()),
            },
            op if self.library.definitions.function(op).is_some() => self.arguments(op, attributes, depth),
            op => self.registered(op, attributes),
        }
    }

    /// For a slice whose start can be dynamic: the inputs that still must be constant, and the
    /// nodes that its length depends on.
    fn dynamic_start(
        &self,
        graph: &Graph,
        id: NodeId,
        follows: &dyn Fn(&Edge) -> bool,
    ) -> Option<(BTreeSet<usize>, Vec<NodeId>)> {
        let inputs = match graph[id].op() {
            "StridedSlice" => BTreeSet::from([3]),
            "StridedSliceGrad" => BTreeSet::from([0, 3]),
            _ => return None,
        };
        let lengths =
            if self.kernels.slices_from_run_time() { slices::known_length(graph, id, follows) } else { None };
        Some((inputs, lengths?))
    }

    /// The inputs that an op's own kernel requires to be constant.
    fn registered(&self, op: &str, attributes: &BTreeMap<String, AttrValue>) -> Result<BTreeSet<usize>> {
        let listed: Vec<String> = match attribute(attributes, "_XlaCompileTimeConstantInputs") {
            Some(Value::List(list)) => {
                list.s.iter().map(|s| String::from_utf8_lossy(s).into_owned()).collect()
            }
            _ => self.kernels.compile_time_constant_inputs(op).iter().map(|&s| s.to_owned()).collect(),
        };
        let Some(signature) = self.library.definitions.signature(op).filter(|_| !listed.is_empty()) else {
            return Ok(BTreeSet::new());
        };
        let types = node_types(signature, &signature.input_arg, attributes)?;
        let mut inputs = BTreeSet::new();
        for (arg, bounds) in signature.input_arg.iter().zip(types.starts.windows(2)) {
            if listed.contains(&arg.name) {
                inputs.extend(bounds[0]..bounds[1]);
            }
        }
        Ok(inputs)
    }

    /// True if a loop's body returns an argument unchanged.
    fn is_invariant(&self, body: &Body, index: usize, depth: usize) -> bool {
        if depth > MAX_DEPTH {
            return false;
        }
        let graph = &body.graph;
        let is_result = |id: &NodeId| {
            graph[*id].op() == "_Retval"
                && attribute(&graph[*id].def.attr, "index") == Some(&Value::I(index as i64))
        };
        let Some(mut tensor) = graph.ids().find(is_result).and_then(|id| graph.input(id, 0)) else {
            return false;
        };
        // Each step leads to an earlier node, except across back edges.
        for _ in 0..graph.nodes.len() {
            let node = &graph[tensor.node];
            let is_passed_on = match node.op() {
                "Identity" | "IdentityN" => true,
                "While" | "StatelessWhile" => {
                    let inner = function_attribute(&node.def.attr, "body");
                    let inner = inner.and_then(|body| self.library.body(&body.name, &body.attr).ok());
                    inner.is_some_and(|inner| self.is_invariant(&inner, tensor.output, depth + 1))
                }
                _ => false,
            };
            match graph.input(tensor.node, tensor.output).filter(|_| is_passed_on) {
                Some(next) => tensor = next,
                None => break,
            }
        }
        let node = &graph[tensor.node];
        node.op() == "_Arg" && attribute(&node.def.attr, "index") == Some(&Value::I(index as i64))
    }
}

/// The node that produces a value, looking through nodes that forward their inputs output by
/// output.
fn origin(graph: &Graph, edge: Edge, follows: &dyn Fn(&Edge) -> bool) -> Option<NodeId> {
    let mut edge = Some(edge).filter(follows)?;
    for _ in 0..graph.nodes.len() {
        if !matches!(graph[edge.src].op(), "Identity" | "IdentityN" | "While" | "StatelessWhile") {
            return Some(edge.src);
        }
        edge = graph.input_edge(edge.src, edge.tensor()?.output).filter(follows)?;
    }
    None
}
