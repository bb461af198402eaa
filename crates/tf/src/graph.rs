//! Graphs whose inputs are resolved and whose types are checked.

use crate::proto::attr_value::Value;
use crate::{Attributes, DataType};
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
    /// Which of its outputs.
    pub index: usize,
}

/// A node: an op applied to outputs of other nodes.
#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    /// Unique in its graph.
    pub name: String,
    /// A registered op, or a function of the library.
    pub op: String,
    /// The data inputs, as many as the op has, of the types it wants.
    pub inputs: Vec<OutputId>,
    /// Nodes that must run before this one.
    pub control_inputs: Vec<NodeId>,
    /// The attributes, defaults filled in.
    pub attributes: Attributes,
    /// The type of each output.
    pub output_types: Vec<DataType>,
}

/// The nodes of a program or of a function.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Graph {
    /// The nodes; in the order of the file where the graph comes from one.
    pub nodes: IdVec<NodeId, Node>,
}

impl Graph {
    /// The node of a name; takes time in proportion to the graph.
    pub fn find(&self, name: &str) -> Option<NodeId> {
        self.nodes.iter().find(|(_, node)| node.name == name).map(|(id, _)| id)
    }

    /// Adds a node `_Arg`.
    pub(crate) fn push_argument(&mut self, name: &str, index: usize, data_type: DataType) -> NodeId {
        let values = BTreeMap::from([
            ("T".to_owned(), Value::Type(data_type.number()).into()),
            ("index".to_owned(), Value::I(index as i64).into()),
        ]);
        self.nodes.push(Node {
            name: name.to_owned(),
            op: "_Arg".to_owned(),
            inputs: Vec::new(),
            control_inputs: Vec::new(),
            attributes: Attributes::new(name, "_Arg", values),
            output_types: vec![data_type],
        })
    }

    /// The type of an output. Panics if there is no such output.
    #[track_caller]
    pub fn output_type(&self, output: OutputId) -> DataType {
        self.nodes[output.node].output_types[output.index]
    }

    /// All nodes such that inputs and control inputs come first; among nodes that are ready, in order of their ids. A
    /// cycle is an error that names the nodes on it; the edge from `NextIteration` to `Merge`, which closes a loop of
    /// TensorFlow 1, is none.
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

    /// Inputs and control inputs, each once, without the back edges of loops.
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

    /// Names the nodes of one cycle. Every node that still waits has an input that still waits, so walking along those
    /// inputs must come back.
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
            "{} nodes in a cycle: {}; only loops made of Enter, Merge, Switch, NextIteration and Exit may lead back",
            cycle.len(),
            names.join(" -> ")
        ))
    }
}
