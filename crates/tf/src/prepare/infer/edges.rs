//! Edges of a graph, by the positions of its nodes.

use super::super::names::{Input, Names};
use crate::proto::NodeDef;

/// Maximum length of a followed chain of `Identity` nodes, which may be cyclic.
const MAX_CHAIN: usize = 100;

/// An output of a node.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Output {
    /// The position of the node.
    pub(super) node: usize,
    pub(super) index: i64,
}

/// Inputs and consumers of every node. Excludes inputs from missing nodes, which pruning rejects if
/// they are needed.
pub(super) struct Edges {
    /// Data inputs of each node.
    pub(super) data: Vec<Vec<Output>>,
    /// Control inputs of each node.
    pub(super) control: Vec<Vec<usize>>,
    /// Nodes that read an output of each node.
    pub(super) readers: Vec<Vec<usize>>,
    /// Nodes that have each node as a control input.
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

    /// Marks the given nodes and everything upstream of them.
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

    /// Marks the given nodes and everything downstream of them along data edges.
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
