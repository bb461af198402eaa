//! Which nodes and arguments must be constant when a graph is compiled: the values that shapes and the like depend on,
//! followed back to where they come from.

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

/// What must be constant.
#[derive(Debug, Default)]
pub(crate) struct Constants {
    /// By node.
    pub(crate) nodes: IdVec<NodeId, bool>,
    /// The indices of arguments.
    pub(crate) arguments: BTreeSet<usize>,
}

/// Finds what must be constant; remembers what it found for functions.
pub(crate) struct Analysis<'a> {
    library: &'a Library<'a>,
    kernels: &'a dyn Kernels,
    functions: RefCell<BTreeMap<Vec<u8>, BTreeSet<usize>>>,
}

impl<'a> Analysis<'a> {
    pub(crate) fn new(library: &'a Library<'a>, kernels: &'a dyn Kernels) -> Self {
        Self { library, kernels, functions: RefCell::default() }
    }

    /// What must be constant in a graph, as seen along the edges for which `follows` answers yes.
    pub(crate) fn of_graph(&self, graph: &Graph, follows: &dyn Fn(&Edge) -> bool) -> Result<Constants> {
        self.backwards(graph, follows, 0)
    }

    /// The arguments of a function that must be constant.
    pub(crate) fn of_function(
        &self,
        name: &str,
        given: &BTreeMap<String, AttrValue>,
    ) -> Result<BTreeSet<usize>> {
        self.arguments(name, given, 0)
    }

    fn arguments(
        &self,
        name: &str,
        given: &BTreeMap<String, AttrValue>,
        depth: usize,
    ) -> Result<BTreeSet<usize>> {
        if depth > MAX_DEPTH {
            return Ok(BTreeSet::new());
        }
        let key = NameAttrList { name: name.to_owned(), attr: given.clone() }.encode_to_vec();
        if let Some(found) = self.functions.borrow().get(&key) {
            return Ok(found.clone());
        }
        let body = self.library.body(name, given)?;
        // A function that calls itself is asked again meanwhile.
        self.functions.borrow_mut().insert(key.clone(), BTreeSet::new());
        let found = self.backwards(&body.graph, &|_| true, depth + 1)?.arguments;
        self.functions.borrow_mut().insert(key, found.clone());
        Ok(found)
    }

    fn backwards(&self, graph: &Graph, follows: &dyn Fn(&Edge) -> bool, depth: usize) -> Result<Constants> {
        let mut constants = Constants { nodes: graph.node_table(false), arguments: BTreeSet::new() };
        for id in graph.forward_order().into_iter().rev() {
            let node = &graph[id];
            if is_metadata_op(node.op()) {
                continue;
            }
            let wanted: Option<BTreeSet<usize>> = if constants.nodes[id] {
                if node.op() == "_Arg" {
                    if let Some(&Value::I(index)) = attribute(&node.def.attr, "index") {
                        constants.arguments.extend(usize::try_from(index));
                    }
                    continue;
                }
                None
            } else if let Some((inputs, lengths)) = self.begins_anywhere(graph, id, follows) {
                lengths.into_iter().for_each(|node| constants.nodes[node] = true);
                Some(inputs)
            } else {
                Some(self.inputs(node, depth)?)
            };
            if wanted.as_ref().is_some_and(BTreeSet::is_empty) {
                continue;
            }
            for edge in graph.in_edges(id).filter(|e| !e.is_control()) {
                let counts = wanted
                    .as_ref()
                    .is_none_or(|inputs| edge.input().is_some_and(|input| inputs.contains(&input)));
                if counts && let Some(source) = origin(graph, edge, follows) {
                    constants.nodes[source] = true;
                }
            }
        }
        Ok(constants)
    }

    /// The inputs of a node that must be constant by themselves.
    fn inputs(&self, node: &Node, depth: usize) -> Result<BTreeSet<usize>> {
        let attributes = &node.def.attr;
        let of = |func: &NameAttrList| self.arguments(&func.name, &func.attr, depth);
        let behind_first = |found: BTreeSet<usize>| found.into_iter().map(|input| input + 1).collect();
        match node.op() {
            "While" | "StatelessWhile" => {
                let (Some(condition), Some(body)) =
                    (function_attribute(attributes, "cond"), function_attribute(attributes, "body"))
                else {
                    return Ok(BTreeSet::new());
                };
                let mut found = of(condition)?;
                found.extend(of(body)?);
                if !found.is_empty() {
                    let body = self.library.body(&body.name, &body.attr)?;
                    found.retain(|&index| self.is_invariant(&body, index, depth));
                }
                Ok(found)
            }
            "If" | "StatelessIf" => {
                let mut found = BTreeSet::new();
                for name in ["then_branch", "else_branch"] {
                    if let Some(branch) = function_attribute(attributes, name) {
                        found.extend(of(branch)?);
                    }
                }
                Ok(behind_first(found))
            }
            "Case" | "StatelessCase" => {
                let mut found = BTreeSet::new();
                for branch in function_list(attributes, "branches") {
                    found.extend(of(branch)?);
                }
                Ok(behind_first(found))
            }
            "PartitionedCall" | "StatefulPartitionedCall" => match function_attribute(attributes, "f") {
                Some(callee) => of(callee),
                None => Ok(BTreeSet::new()),
            },
            op if self.library.definitions.function(op).is_some() => self.arguments(op, attributes, depth),
            op => self.registered(op, attributes),
        }
    }

    /// For a slice that may begin anywhere: the inputs that must be constant all the same, and the nodes that its length
    /// depends on.
    fn begins_anywhere(
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

    /// The inputs that an op's own kernel wants constant.
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
        let mut found = BTreeSet::new();
        for (arg, bounds) in signature.input_arg.iter().zip(types.starts.windows(2)) {
            if listed.contains(&arg.name) {
                found.extend(bounds[0]..bounds[1]);
            }
        }
        Ok(found)
    }

    /// Whether a loop's body returns an argument unchanged.
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
        // Each step goes to an earlier node, but for back edges.
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

/// The node from which a value comes, behind nodes that only hand on what they get, output by output.
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
