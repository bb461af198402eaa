//! Roots of the computation, the nodes upstream of them, and redirects to replacement nodes.

use super::nodes::{is_merge, is_stateful};
use crate::{Graph, NodeId, OutputId};
use std::collections::{BTreeMap, BTreeSet};
use support::{Id, Result};

/// Results and effects that must be computed.
pub(super) struct Roots {
    pub(super) results: Vec<OutputId>,
    /// Nodes that run for their effect.
    pub(super) effects: Vec<NodeId>,
    /// Name of a result in messages.
    pub(super) name: &'static str,
}

impl Roots {
    pub(super) fn nodes(&self) -> impl Iterator<Item = NodeId> + '_ {
        self.results.iter().map(|output| output.node).chain(self.effects.iter().copied())
    }

    /// Removes effects that are upstream of results or of other effects.
    pub(super) fn reduce(&mut self, graph: &Graph) -> Result<()> {
        if self.effects.len() < 2 && self.results.is_empty() {
            return Ok(());
        }
        let mut seen = vec![false; graph.nodes.len()];
        graph.mark_needed(self.results.iter().map(|o| o.node).collect(), &mut seen);
        let effects: BTreeSet<NodeId> = self.effects.iter().copied().collect();
        let mut remaining = BTreeSet::new();
        for id in graph.topological_order()?.into_iter().rev().filter(|id| effects.contains(id)) {
            if !seen[id.index()] {
                remaining.insert(id);
                graph.mark_needed(vec![id], &mut seen);
            }
        }
        self.effects = remaining.into_iter().collect();
        Ok(())
    }
}

/// The nodes that the roots need, inputs first.
pub(super) fn reachable(graph: &Graph, roots: &Roots) -> Result<Vec<NodeId>> {
    let mut seen = vec![false; graph.nodes.len()];
    graph.mark_needed(roots.nodes().collect(), &mut seen);
    let order = graph.topological_order()?;
    Ok(order.into_iter().filter(|id| seen[id.index()]).collect())
}

/// Replacements of nodes.
#[derive(Default)]
pub(super) struct Redirects {
    pub(super) outputs: BTreeMap<OutputId, OutputId>,
    /// Replacements in control inputs and effects.
    pub(super) nodes: BTreeMap<NodeId, NodeId>,
}

impl Redirects {
    /// Extends redirects of outputs: control inputs from a `Merge` whose first output moved to
    /// another node are redirected to that node.
    pub(super) fn of_merges(graph: &Graph, outputs: BTreeMap<OutputId, OutputId>) -> Self {
        let mut redirects = Self { outputs, nodes: BTreeMap::new() };
        redirects.nodes = redirects
            .outputs
            .iter()
            .filter(|(from, to)| {
                from.index == 0 && is_merge(&graph.nodes[from.node].op) && from.node != to.node
            })
            .map(|(from, _)| (from.node, redirects.follow(*from).node))
            .collect();
        redirects
    }

    fn follow(&self, mut output: OutputId) -> OutputId {
        // Replacements may be replaced too. A chain is never longer than the number of redirects.
        for _ in 0..self.outputs.len() {
            match self.outputs.get(&output) {
                Some(&next) => output = next,
                None => break,
            }
        }
        output
    }

    /// Redirects every use of a replaced node or output to its replacement.
    pub(super) fn apply(&self, graph: &mut Graph, roots: &mut Roots) {
        for node in graph.nodes.values_mut() {
            node.inputs.iter_mut().for_each(|input| *input = self.follow(*input));
            self.apply_controls(&mut node.control_inputs);
        }
        roots.results.iter_mut().for_each(|output| *output = self.follow(*output));
        self.apply_controls(&mut roots.effects);
    }

    /// Redirects a list of control inputs or effects.
    pub(super) fn apply_controls(&self, controls: &mut Vec<NodeId>) {
        if controls.iter().any(|id| self.nodes.contains_key(id)) {
            controls.iter_mut().for_each(|id| *id = self.nodes.get(id).copied().unwrap_or(*id));
            controls.sort_unstable();
            controls.dedup();
        }
    }
}

/// Drops nodes that are not upstream of a root or an argument. Returns the new id of each remaining
/// node.
pub(super) fn compact(graph: &mut Graph, roots: &Roots, arguments: &[NodeId]) -> BTreeMap<NodeId, NodeId> {
    let mut needed = vec![false; graph.nodes.len()];
    graph.mark_needed(roots.nodes().chain(arguments.iter().copied()).collect(), &mut needed);
    graph.keep_marked(&needed)
}

/// The nodes that must run whenever a function without TensorFlow 1 control flow is called.
pub(super) fn effects_of(graph: &Graph) -> Vec<NodeId> {
    graph.nodes.ids().filter(|&id| is_stateful(&graph.nodes[id].op)).collect()
}
