//! Edges of a graph, by the positions of its nodes.

use super::super::names::{Input, Names};
use crate::proto::NodeDef;

/// The most copies of a value that are looked through; a circle has no end.
const MAX_CHAIN: usize = 100;

/// An output of a node.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Output {
    /// The position of the node.
    pub(super) node: usize,
    pub(super) index: i64,
}

/// The inputs and readers of every node. Inputs that name no node are left out: pruning refuses
/// them where they matter.
pub(super) struct Edges {
    /// The data inputs of each node.
    pub(super) data: Vec<Vec<Output>>,
    /// The control inputs of each node.
    pub(super) control: Vec<Vec<usize>>,
    /// The nodes that read an output of each node.
    pub(super) readers: Vec<Vec<usize>>,
    /// The nodes that wait for each node.
    pub(super) waiting: Vec<Vec<usize>>,
}

impl Edges {
    pub(super) fn new(nodes: &[NodeDef], names: &Names<'_>) -> Self {
        let empty = || vec![Vec::new(); nodes.len()];
        let mut edges = Self {
            data: vec![Vec::new(); nodes.len()],
            control: empty(),
            readers: empty(),
            waiting: empty(),
        };
        for (at, node) in nodes.iter().enumerate() {
            for text in &node.input {
                match Input::parse(text, &node.name) {
                    Ok(Input::Data(name, index)) => {
                        if let Some(from) = names.get(name) {
                            edges.data[at].push(Output { node: from, index });
                            edges.readers[from].push(at);
                        }
                    }
                    Ok(Input::Control(name)) => {
                        if let Some(from) = names.get(name) {
                            edges.control[at].push(from);
                            edges.waiting[from].push(at);
                        }
                    }
                    Err(_) => {}
                }
            }
        }
        edges
    }

    /// The nodes that some nodes need, these included.
    pub(super) fn cone(&self, roots: impl IntoIterator<Item = usize>) -> Vec<bool> {
        let mut reached = vec![false; self.data.len()];
        let mut work: Vec<usize> = roots.into_iter().collect();
        while let Some(at) = work.pop() {
            if !std::mem::replace(&mut reached[at], true) {
                work.extend(self.data[at].iter().map(|input| input.node));
                work.extend(&self.control[at]);
            }
        }
        reached
    }

    /// The nodes that get at values computed from some nodes, these included.
    pub(super) fn computed_from(&self, roots: impl IntoIterator<Item = usize>) -> Vec<bool> {
        let mut reached = vec![false; self.data.len()];
        let mut work: Vec<usize> = roots.into_iter().collect();
        while let Some(at) = work.pop() {
            if !std::mem::replace(&mut reached[at], true) {
                work.extend(&self.readers[at]);
            }
        }
        reached
    }

    /// Follows a chain of `Identity` from its end to the node at its start.
    pub(super) fn origin(&self, nodes: &[NodeDef], mut at: usize) -> usize {
        for _ in 0..MAX_CHAIN {
            match (nodes[at].op.as_str(), self.data[at].first()) {
                ("Identity" | "RefIdentity", Some(input)) => at = input.node,
                _ => break,
            }
        }
        at
    }
}
