//! The graph in which cycles are looked for: each loop of TensorFlow 1 is cut out of the graph around it, and open.

use crate::analysis::cycles::{Cycles, Vertex};
use crate::graph::frames::frames;
use crate::graph::{Graph, NodeId};
use std::collections::BTreeMap;
use support::{Error, Id, Result};

/// Steps that the searches for cycles may take for each node and edge.
const WORK_EACH: u64 = 2_000;

/// Steps that the searches may take in the smallest graph.
const MIN_WORK: u64 = 20_000_000;

/// The most steps, whatever the size. As many may be taken to find the order in which TensorFlow would go over the nodes; beyond,
/// they are in some order that fits.
const MAX_WORK: u64 = 400_000_000;

/// One node for each of the graph, of the same number, and one for each loop, which stands for it in the graph around.
/// `None` if that has a cycle: a loop that is entered again behind its end.
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
                "the edge from '{}' to '{}' closes a cycle that is no loop",
                graph[edge.src].name(),
                graph[edge.dst].name()
            )));
        }
    }
    let is_ordered = cycles.finish((size * WORK_EACH).clamp(MIN_WORK, MAX_WORK));
    if is_ordered || !loops.is_empty() {
        Ok(is_ordered.then_some(cycles))
    } else {
        Err(Error::invalid("the graph has a cycle that is no loop"))
    }
}

/// The vertex of a node.
pub(crate) fn vertex(node: NodeId) -> Vertex {
    Vertex::from_index(node.index())
}

/// The node of a vertex that stands for no loop.
pub(crate) fn node_of(vertex: Vertex, graph: &Graph) -> Option<NodeId> {
    (vertex.index() < graph.nodes.len()).then(|| NodeId::from_index(vertex.index()))
}
