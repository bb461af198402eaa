//! Graphs whose inputs are resolved and whose types are checked.

use crate::proto::{NodeDef, attr_value::Value};
use crate::{Attributes, DataType, op_def};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};
use support::{Error, Id, IdVec, Result};

support::id_type!(
    /// A node of a graph.
    NodeId,
    "node"
);

/// An output of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OutputId {
    /// The node.
    pub node: NodeId,
    /// Index of the output.
    pub index: usize,
}

/// A node: an op applied to outputs of other nodes. Only this crate constructs nodes.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Node {
    /// Name, unique in its graph.
    pub name: String,
    /// A registered op, or a function of the library.
    pub op: String,
    /// Data inputs, which match the op's signature in number and type.
    pub inputs: Vec<OutputId>,
    /// Nodes that must run before this one.
    pub control_inputs: Vec<NodeId>,
    /// Attributes, including defaults.
    pub attributes: Attributes,
    /// Type of each output.
    pub output_types: Vec<DataType>,
}

impl Node {
    /// Creates a node without inputs.
    pub(crate) fn unconnected<'v>(
        name: impl Into<String>,
        op: &str,
        values: impl IntoIterator<Item = (&'v str, Value)>,
        output_types: Vec<DataType>,
    ) -> Self {
        let name = name.into();
        let values = values.into_iter().map(|(name, value)| (name.to_owned(), value.into())).collect();
        let attributes = Attributes::new(&name, op, values);
        Self {
            name,
            op: op.to_owned(),
            inputs: Vec::new(),
            control_inputs: Vec::new(),
            attributes,
            output_types,
        }
    }

    /// Converts a `NodeDef` to a node without inputs. Adds the default attributes of its op.
    pub fn of_def(def: &NodeDef, output_types: &[DataType]) -> Self {
        let mut attributes = Attributes::new(&def.name, &def.op, def.attr.clone());
        for attr in op_def::lookup(&def.op).iter().flat_map(|signature| &signature.attr) {
            if let Some(default) = attr.default_value.as_ref().and_then(|default| default.value.clone())
                && !attributes.has(&attr.name)
            {
                attributes.set(&attr.name, default);
            }
        }
        Self {
            name: def.name.clone(),
            op: def.op.clone(),
            inputs: Vec::new(),
            control_inputs: Vec::new(),
            attributes,
            output_types: output_types.to_vec(),
        }
    }

    /// Creates a node of another op with the same name and without inputs, to replace this node.
    pub fn replacement<'v>(
        &self,
        op: &str,
        values: impl IntoIterator<Item = (&'v str, Value)>,
        output_types: Vec<DataType>,
    ) -> Self {
        Self::unconnected(&self.name, op, values, output_types)
    }
}

/// The nodes of a program or of a function. Only this crate constructs graphs.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Graph {
    /// The nodes, in file order if the graph comes from a file.
    pub nodes: IdVec<NodeId, Node>,
}

impl Graph {
    /// Creates an empty graph.
    pub(crate) fn new() -> Self {
        Self { nodes: IdVec::new() }
    }

    /// Returns the node with the given name. Takes time linear in the size of the graph.
    pub fn find(&self, name: &str) -> Option<NodeId> {
        self.nodes.iter().find(|(_, node)| node.name == name).map(|(id, _)| id)
    }

    /// Adds an `_Arg` node.
    pub(crate) fn push_argument(&mut self, name: &str, index: usize, data_type: DataType) -> NodeId {
        let values = [("T", Value::Type(data_type.number())), ("index", Value::I(index as i64))];
        self.nodes.push(Node::unconnected(name, "_Arg", values, vec![data_type]))
    }

    /// Marks nodes and everything upstream of them.
    pub(crate) fn mark_needed(&self, mut work: Vec<NodeId>, marked: &mut [bool]) {
        while let Some(id) = work.pop() {
            if !std::mem::replace(&mut marked[id.index()], true) {
                let node = &self.nodes[id];
                work.extend(node.inputs.iter().map(|input| input.node));
                work.extend(&node.control_inputs);
            }
        }
    }

    /// Drops all unmarked nodes. Everything upstream of a marked node must be marked too. Returns
    /// the new id of each remaining node.
    pub(crate) fn keep_marked(&mut self, marked: &[bool]) -> BTreeMap<NodeId, NodeId> {
        let remaining = self.nodes.ids().filter(|id| marked[id.index()]);
        let new_ids: BTreeMap<NodeId, NodeId> =
            remaining.enumerate().map(|(i, id)| (id, NodeId::from_index(i))).collect();
        let nodes = std::mem::take(&mut self.nodes).into_values().zip(marked);
        for (mut node, _) in nodes.filter(|(_, is_marked)| **is_marked) {
            node.inputs.iter_mut().for_each(|input| input.node = new_ids[&input.node]);
            node.control_inputs.iter_mut().for_each(|id| *id = new_ids[id]);
            self.nodes.push(node);
        }
        new_ids
    }

    /// Returns the type of an output. Panics if the output does not exist.
    #[track_caller]
    pub fn output_type(&self, output: OutputId) -> DataType {
        self.nodes[output.node].output_types[output.index]
    }

    /// Returns all nodes in topological order: inputs and control inputs come first, and ready
    /// nodes are sorted by id. Edges from `NextIteration` to `Merge`, which close the loops of
    /// TensorFlow 1, are ignored. Any other cycle is an error that names its nodes.
    pub fn topological_order(&self) -> Result<Vec<NodeId>> {
        let mut waits = vec![0usize; self.nodes.len()];
        let mut users: Vec<Vec<NodeId>> = vec![Vec::new(); self.nodes.len()];
        for (id, _) in self.nodes.iter() {
            for input in self.forward_inputs(id) {
                users[input.index()].push(id);
                waits[id.index()] += 1;
            }
        }
        let mut ready: BinaryHeap<Reverse<NodeId>> =
            self.nodes.ids().filter(|id| waits[id.index()] == 0).map(Reverse).collect();
        let mut order = Vec::with_capacity(self.nodes.len());
        while let Some(Reverse(id)) = ready.pop() {
            order.push(id);
            for &user in &users[id.index()] {
                waits[user.index()] -= 1;
                if waits[user.index()] == 0 {
                    ready.push(Reverse(user));
                }
            }
        }
        if order.len() == self.nodes.len() { Ok(order) } else { Err(self.cycle_error(&waits)) }
    }

    /// Distinct inputs and control inputs, without the back edges of loops.
    fn forward_inputs(&self, id: NodeId) -> BTreeSet<NodeId> {
        let node = &self.nodes[id];
        let is_merge = matches!(node.op.as_str(), "Merge" | "RefMerge");
        let data = node.inputs.iter().map(|input| input.node);
        data.chain(node.control_inputs.iter().copied())
            .filter(|&input| {
                !(is_merge && matches!(self.nodes[input].op.as_str(), "NextIteration" | "RefNextIteration"))
            })
            .collect()
    }

    /// Creates an error that names the nodes of one cycle. Every node that still waits has an input
    /// that still waits, so following those inputs must lead into a cycle.
    fn cycle_error(&self, waits: &[usize]) -> Error {
        let waiting = |id: &NodeId| waits[id.index()] > 0;
        let mut path: Vec<NodeId> = Vec::new();
        let mut seen = vec![false; self.nodes.len()];
        let mut at = self.nodes.ids().find(waiting);
        while let Some(id) = at.filter(|id| !seen[id.index()]) {
            seen[id.index()] = true;
            path.push(id);
            at = self.forward_inputs(id).into_iter().find(waiting);
        }
        let start = path.iter().position(|&id| Some(id) == at).unwrap_or(0);
        let cycle = &path[start..];
        let mut names: Vec<String> =
            cycle.iter().rev().take(8).map(|&id| format!("'{}'", self.nodes[id].name)).collect();
        if cycle.len() > names.len() {
            names.push("...".to_owned());
        }
        Error::invalid(format!(
            "{} nodes in a cycle: {}; only while loops of Enter, Merge, Switch, NextIteration, and Exit nodes may \
             contain a cycle",
            cycle.len(),
            names.join(" -> ")
        ))
    }
}
