//! The graph for cycle detection. Each TensorFlow 1 loop becomes a single vertex of the enclosing
//! graph, and its back edges are removed.

use crate::analysis::cycles::{Cycles, Vertex};
use crate::graph::frames::frames;
use crate::graph::{Graph, NodeId};
use std::collections::BTreeMap;
use support::{Error, Id, Result};

/// Search steps allowed per node and edge.
const WORK_EACH: u64 = 2_000;

/// Minimum search budget in steps, for small graphs.
const MIN_WORK: u64 = 20_000_000;

/// Maximum search budget in steps. Computing TensorFlow's visiting order has the same budget.
/// Beyond it, nodes get some other topological order.
const MAX_WORK: u64 = 400_000_000;

/// Builds a graph with one vertex for each node, with the same number, and one vertex for each
/// loop, which represents the loop in the enclosing graph. `None` if the enclosing graph has a
/// cycle, because a loop is entered again after its end.
pub(crate) fn cycle_graph(graph: &Graph) -> Result<Option<Cycles>> {
    let frames = frames(graph)?;
    let size = (graph.nodes.len() + graph.edges.len()) as u64;
    let mut cycles = Cycles::new(graph.nodes.len(), MAX_WORK);
    let mut loops: BTreeMap<&str, Vertex> = BTreeMap::new();
    for edge in graph.edges.values().flatten() {
        let (mut src, mut dst) = (vertex(edge.src), vertex(edge.dst));
        if graph[edge.dst].is_enter() || graph[edge.src].is_exit() {
            if graph[edge.dst].is_enter() {
                dst = *loops.entry(&frames[edge.dst].name).or_insert_with(|| cycles.add_node());
            }
            if graph[edge.src].is_exit() {
                src = *loops.entry(&frames[edge.src].name).or_insert_with(|| cycles.add_node());
            }
            if !cycles.insert_edge(src, dst) {
                return Ok(None);
            }
        } else if !graph[edge.src].is_next_iteration() && !cycles.insert_edge(src, dst) {
            return Err(Error::invalid(format!(
                "the edge from '{}' to '{}' closes a cycle that is not a loop",
                graph[edge.src].name(),
                graph[edge.dst].name()
            )));
        }
    }
    let is_ordered = cycles.finish((size * WORK_EACH).clamp(MIN_WORK, MAX_WORK));
    if is_ordered || !loops.is_empty() {
        Ok(is_ordered.then_some(cycles))
    } else {
        Err(Error::invalid("the graph has a cycle that is not a loop"))
    }
}

/// The vertex of a node.
pub(crate) fn vertex(node: NodeId) -> Vertex {
    Vertex::from_index(node.index())
}

/// The node of a vertex, unless it represents a loop.
pub(crate) fn node_of(vertex: Vertex, graph: &Graph) -> Option<NodeId> {
    (vertex.index() < graph.nodes.len()).then(|| NodeId::from_index(vertex.index()))
}
