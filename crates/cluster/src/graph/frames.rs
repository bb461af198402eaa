//! Assigns each node to its TensorFlow 1 loop.

use crate::graph::attributes::string_attribute;
use crate::graph::{Graph, NodeId, SINK, SOURCE};
use std::collections::{BTreeMap, VecDeque};
use support::{Error, IdVec, Result};

/// Loop that a node is in.
#[derive(Clone, Debug)]
pub(crate) struct Frame {
    /// The `Enter` through which the loop was first reached; the source for nodes outside loops.
    pub(crate) frame: NodeId,
    /// The `Enter` of the enclosing loop.
    pub(crate) parent: NodeId,
    /// Name of the loop; empty for nodes outside loops.
    pub(crate) name: std::rc::Rc<str>,
    is_visited: bool,
}

/// The frame of each node. Fails if a node has inputs from different frames.
pub(crate) fn frames(graph: &Graph) -> Result<IdVec<NodeId, Frame>> {
    let outside = Frame { frame: SOURCE, parent: SOURCE, name: "".into(), is_visited: false };
    let mut frames = graph.node_table(outside);
    let mut first_input = graph.node_table(SOURCE);
    frames[SOURCE].is_visited = true;
    let mut queue = VecDeque::from([SOURCE]);
    while let Some(at) = queue.pop_front() {
        let mut current = frames[at].clone();
        if graph[at].is_exit() {
            current = frames[current.parent].clone();
        }
        for edge in graph.out_edges(at) {
            let next = edge.dst;
            if next == SINK {
                continue;
            }
            let frame = if graph[next].is_enter() {
                let name = string_attribute(&graph[next].def.attr, "frame_name");
                if name.is_empty() {
                    return Err(Error::invalid(format!(
                        "node '{}' (op Enter) has an empty frame name",
                        graph[next].name()
                    )));
                }
                let parent = current.frame;
                if frames[next].is_visited && frames[frames[next].parent].name != current.name {
                    return Err(mixed(graph, next, at, first_input[next]));
                }
                Frame { frame: next, parent, name: name.into(), is_visited: true }
            } else {
                if frames[next].is_visited && frames[next].name != current.name {
                    return Err(mixed(graph, next, at, first_input[next]));
                }
                Frame { is_visited: true, ..current.clone() }
            };
            if !frames[next].is_visited {
                frames[next] = frame;
                first_input[next] = at;
                queue.push_back(next);
            }
        }
    }
    if let Some(id) = graph.ids().find(|&id| !frames[id].is_visited) {
        return Err(Error::invalid(format!(
            "node '{}' (op {}) can never run: no path leads to it from a node without inputs",
            graph[id].name(),
            graph[id].op()
        )));
    }
    check_parents(graph, &frames)?;
    Ok(frames)
}

fn mixed(graph: &Graph, node: NodeId, one: NodeId, other: NodeId) -> Error {
    Error::invalid(format!(
        "node '{}' (op {}) has inputs from different frames: '{}' and '{}'",
        graph[node].name(),
        graph[node].op(),
        graph[one].name(),
        graph[other].name()
    ))
}

/// Checks that every frame has a single parent and a single condition.
fn check_parents(graph: &Graph, frames: &IdVec<NodeId, Frame>) -> Result<()> {
    let mut parents: BTreeMap<&str, &str> = BTreeMap::new();
    let mut conditions: BTreeMap<&str, NodeId> = BTreeMap::new();
    for id in graph.ids() {
        let (name, parent) = (&*frames[id].name, &*frames[frames[id].parent].name);
        if *parents.entry(name).or_insert(parent) != parent {
            return Err(Error::invalid(format!(
                "node '{}' (op {}): the loop '{name}' is nested in both '{}' and '{parent}'",
                graph[id].name(),
                graph[id].op(),
                parents[name]
            )));
        }
        if graph[id].op() == "LoopCond" {
            // Gradients add counters that run in the frame of the loop they count.
            let counts = |id: NodeId| graph[id].name().contains("LoopCounter");
            if let Some(&other) = conditions.get(name)
                && !counts(id)
                && !counts(other)
            {
                return Err(Error::invalid(format!(
                    "the loop '{name}' has more than one LoopCond: '{}' and '{}'",
                    graph[other].name(),
                    graph[id].name()
                )));
            }
            conditions.insert(name, id);
        }
    }
    Ok(())
}
