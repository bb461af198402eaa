//! Control inputs that order only.
//!
//! A node does not run when what it waits for does not run. Two kinds of nodes run all the same:
//! `ControlTrigger`, and a
//! `Merge`, for which only its data counts. So what they wait for has no say in their
//! [state](super::state), but must run where it would have run by itself.

use super::nodes::is_merge;
use super::roots::{Redirects, Roots};
use crate::{Graph, NodeId};
use std::collections::BTreeSet;
use support::{Error, Result};

/// The most control inputs that nodes may get in place of `ControlTrigger` nodes.
const MAX_EDGES: usize = 5_000_000;

/// Each node that waits, with the one it waits for.
#[derive(Default)]
pub(super) struct WeakEdges(BTreeSet<(NodeId, NodeId)>);

impl WeakEdges {
    /// Finds them. What waits for a `ControlTrigger` waits for its control inputs instead.
    pub(super) fn new(graph: &mut Graph, order: &[NodeId], roots: &mut Roots) -> Result<Self> {
        let mut weak = Self::default();
        let mut edges = 0usize;
        let is_trigger = |graph: &Graph, id: NodeId| graph.nodes[id].op == "ControlTrigger";
        for &id in order {
            let is_weak = is_merge(&graph.nodes[id].op) || is_trigger(graph, id);
            let controls = std::mem::take(&mut graph.nodes[id].control_inputs);
            let mut kept: BTreeSet<NodeId> =
                controls.iter().copied().filter(|&control| !is_trigger(graph, control)).collect();
            if is_weak {
                weak.0.extend(kept.iter().map(|&control| (id, control)));
            }
            for &trigger in controls.iter().filter(|&&control| is_trigger(graph, control)) {
                let triggers = graph.nodes[trigger].control_inputs.clone();
                edges = edges.saturating_add(triggers.len());
                // Direct control dependencies remain strong edges.
                weak.0.extend(triggers.iter().filter(|t| !kept.contains(t)).map(|&t| (id, t)));
                kept.extend(triggers);
            }
            if edges > MAX_EDGES {
                return Err(Error::unsupported(format!(
                    "node '{}' (op {}) and others wait for more than {MAX_EDGES} nodes by way of ControlTrigger",
                    graph.nodes[id].name, graph.nodes[id].op
                )));
            }
            graph.nodes[id].control_inputs = kept.into_iter().collect();
        }
        let (triggers, mut effects): (Vec<NodeId>, Vec<NodeId>) =
            roots.effects.iter().partition(|&&id| is_trigger(graph, id));
        effects.extend(triggers.iter().flat_map(|&id| graph.nodes[id].control_inputs.iter().copied()));
        effects.sort_unstable();
        effects.dedup();
        roots.effects = effects;
        Ok(weak)
    }

    /// True if `user` waits for `control` but also runs if `control` is dead.
    pub(super) fn contains(&self, user: NodeId, control: NodeId) -> bool {
        self.0.contains(&(user, control))
    }

    /// All of them.
    pub(super) fn iter(&self) -> impl Iterator<Item = (NodeId, NodeId)> + '_ {
        self.0.iter().copied()
    }

    /// Makes an edge one that orders only.
    pub(super) fn insert(&mut self, user: NodeId, control: NodeId) {
        self.0.insert((user, control));
    }

    /// Follows what was waited for to where it stands now.
    pub(super) fn redirect(&mut self, redirects: &Redirects) {
        let moved: Vec<(NodeId, NodeId)> =
            self.0.iter().filter(|(_, control)| redirects.nodes.contains_key(control)).copied().collect();
        for (user, control) in moved {
            self.0.remove(&(user, control));
            self.0.insert((user, redirects.nodes[&control]));
        }
    }
}
