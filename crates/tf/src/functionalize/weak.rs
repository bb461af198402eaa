//! Weak control edges, which only order nodes.
//!
//! A node normally does not run if one of its control inputs is dead. Two kinds of nodes run
//! anyway: `ControlTrigger`, and `Merge`, which depends only on its data inputs. Their control
//! inputs therefore do not affect their [state](super::state), but must still run wherever they
//! would run by themselves.

use super::nodes::is_merge;
use super::roots::{Redirects, Roots};
use crate::{Graph, NodeId};
use std::collections::BTreeSet;
use support::{Error, Result};

/// Maximum number of control inputs that replace `ControlTrigger` nodes.
const MAX_EDGES: usize = 5_000_000;

/// Weak edges: each waiting node with the node that it waits for.
#[derive(Default)]
pub(super) struct WeakEdges(BTreeSet<(NodeId, NodeId)>);

impl WeakEdges {
    /// Finds the weak edges. Replaces control inputs from a `ControlTrigger` by the control inputs
    /// of the `ControlTrigger`.
    pub(super) fn new(graph: &mut Graph, order: &[NodeId], roots: &mut Roots) -> Result<Self> {
        let mut weak = Self::default();
        let mut edges = 0usize;
        let is_trigger = |graph: &Graph, id: NodeId| graph.nodes[id].op == "ControlTrigger";
        for &id in order {
            let is_weak = is_merge(&graph.nodes[id].op) || is_trigger(graph, id);
            let controls = std::mem::take(&mut graph.nodes[id].control_inputs);
            let mut direct: BTreeSet<NodeId> =
                controls.iter().copied().filter(|&control| !is_trigger(graph, control)).collect();
            if is_weak {
                weak.0.extend(direct.iter().map(|&control| (id, control)));
            }
            for &trigger in controls.iter().filter(|&&control| is_trigger(graph, control)) {
                let triggers = graph.nodes[trigger].control_inputs.clone();
                edges = edges.saturating_add(triggers.len());
                // Direct control dependencies remain strong edges.
                weak.0.extend(triggers.iter().filter(|t| !direct.contains(t)).map(|&t| (id, t)));
                direct.extend(triggers);
            }
            if edges > MAX_EDGES {
                return Err(Error::unsupported(format!(
                    "node '{}' (op {}) and others wait for more than {MAX_EDGES} nodes through ControlTrigger",
                    graph.nodes[id].name, graph.nodes[id].op
                )));
            }
            graph.nodes[id].control_inputs = direct.into_iter().collect();
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

    /// All weak edges.
    pub(super) fn iter(&self) -> impl Iterator<Item = (NodeId, NodeId)> + '_ {
        self.0.iter().copied()
    }

    /// Marks a control edge as weak.
    pub(super) fn insert(&mut self, user: NodeId, control: NodeId) {
        self.0.insert((user, control));
    }

    /// Redirects the edges to the replacements of the nodes that are waited for.
    pub(super) fn redirect(&mut self, redirects: &Redirects) {
        let moved: Vec<(NodeId, NodeId)> =
            self.0.iter().filter(|(_, control)| redirects.nodes.contains_key(control)).copied().collect();
        for (user, control) in moved {
            self.0.remove(&(user, control));
            self.0.insert((user, redirects.nodes[&control]));
        }
    }
}
