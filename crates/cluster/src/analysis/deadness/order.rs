//! A topological order in which the nodes of an outermost loop are consecutive.

use super::is_op;
use crate::graph::frames::Frame;
use crate::graph::{Graph, NodeId, SOURCE};
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;
use support::{Error, IdVec, Result};

/// Maximum nesting depth of loops.
const MAX_DEPTH: usize = 5000;

/// Name of the outermost loop that contains a node; empty for nodes outside loops.
pub(super) fn root_frame(frames: &IdVec<NodeId, Frame>, id: NodeId) -> Rc<str> {
    let mut at = id;
    for _ in 0..MAX_DEPTH {
        if frames[at].parent == SOURCE {
            break;
        }
        at = frames[at].parent;
    }
    frames[at].name.clone()
}

/// Names of all loops that contain a node, innermost first.
pub(super) fn full_frame(frames: &IdVec<NodeId, Frame>, id: NodeId) -> Vec<Rc<str>> {
    let mut names = Vec::new();
    let mut at = id;
    while at != SOURCE && names.len() < MAX_DEPTH {
        names.push(frames[at].name.clone());
        at = frames[at].parent;
    }
    names
}

/// Computes the order. A loop is visited completely before any of its users.
pub(super) fn by_root_frame(graph: &Graph, frames: &IdVec<NodeId, Frame>) -> Result<Vec<NodeId>> {
    let is_root = |id: NodeId| frames[id].parent == SOURCE;
    let mut enters: BTreeMap<&str, usize> = BTreeMap::new();
    let mut waits = graph.node_table(0usize);
    for id in graph.ids() {
        let node = &graph[id];
        waits[id] = node.in_edges.len();
        if node.is_enter() && is_root(id) {
            *enters.entry(&frames[id].name).or_default() += 1;
        }
        if node.is_merge() {
            waits[id] -= graph.in_edges(id).filter(|e| graph[e.src].is_next_iteration()).count();
        }
    }
    let mut order = Vec::with_capacity(graph.nodes.len());
    let mut ready = VecDeque::from([SOURCE]);
    let mut ready_enters: BTreeMap<&str, Vec<NodeId>> = BTreeMap::new();
    let mut ready_exits: Vec<NodeId> = Vec::new();
    // Frames whose entries are all ready, in the order in which they became ready.
    let mut complete: VecDeque<&str> = VecDeque::new();
    loop {
        while let Some(id) = ready.pop_front() {
            order.push(id);
            for edge in graph.out_edges(id) {
                let next = edge.dst;
                if !is_op(next) || (graph[id].is_next_iteration() && graph[next].is_merge()) {
                    continue;
                }
                waits[next] -= 1;
                if waits[next] > 0 {
                    continue;
                }
                if graph[next].is_enter() && is_root(next) {
                    let name = &*frames[next].name;
                    let list = ready_enters.entry(name).or_default();
                    list.push(next);
                    if list.len() == enters[name] {
                        complete.push_back(name);
                    }
                } else if graph[next].is_exit() && is_root(next) {
                    ready_exits.push(next);
                } else {
                    ready.push_back(next);
                }
            }
        }
        if !ready_exits.is_empty() {
            ready.extend(ready_exits.drain(..));
        } else if let Some(name) = complete.pop_front() {
            ready.extend(ready_enters.remove(name).unwrap_or_default());
        } else {
            break;
        }
    }
    if ready_enters.is_empty() {
        return Ok(order);
    }
    let names: Vec<&str> = ready_enters.into_keys().take(5).collect();
    Err(Error::invalid(format!(
        "loops are entered again after their own end, or enter each other in turn: {}",
        names.join(", ")
    )))
}
