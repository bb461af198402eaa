//! Prepares a graph for clustering: clones small constants and scopes pipeline stages.

use crate::graph::attributes::string_attribute;
use crate::graph::scalars;
use crate::graph::{Edge, Graph, NodeId};
use support::Result;
use tf::proto::attr_value::Value;

/// Constants with fewer elements are cloned.
const SMALL_CONSTANT: i64 = 16;

/// Attribute that keeps nodes of different scopes in different clusters.
const INTERNAL_SCOPE: &str = "_XlaInternalScope";

/// Gives every user of a small constant its own copy, so that shared constants do not connect
/// clusters.
pub(crate) fn clone_small_constants(graph: &mut Graph) -> Result<()> {
    let nodes: Vec<NodeId> = graph.ids().collect();
    let in_place = |op: &str| matches!(op, "InplaceUpdate" | "InplaceAdd" | "InplaceSub");
    if nodes.iter().any(|&id| in_place(graph[id].op())) {
        // In-place ops would modify the shared constants.
        return Ok(());
    }
    let mut names = graph.names();
    let mut number = 0u64;
    for id in nodes {
        for edge_id in graph[id].in_edges.clone() {
            let edge = graph.edge(edge_id);
            let source = &graph[edge.src];
            let is_small = source.is_constant()
                && scalars::elements(&source.def).is_some_and(|n| (0..SMALL_CONSTANT).contains(&n));
            if !is_small || source.out_edges.len() == 1 {
                continue;
            }
            let mut copy = source.without_edges();
            loop {
                copy.def.name = format!("{}/clone_{number}", source.name());
                number += 1;
                if names.insert(copy.def.name.clone()) {
                    break;
                }
            }
            let inputs: Vec<Edge> = graph.in_edges(edge.src).collect();
            let new = graph.add(copy);
            for input in inputs {
                graph.connect_control(input.src, new);
            }
            if edge.is_control() {
                graph.connect_control(new, id);
            } else {
                graph.disconnect(edge_id);
                graph.connect(Edge { src: new, ..edge })?;
            }
        }
    }
    // A constant whose users all have copies remains without users, because the session may fetch
    // it.
    graph.fix_source_and_sink();
    Ok(())
}

/// Maximum number of scope assignments over all stages.
const MAX_SCOPED: usize = 2_000_000;

/// Keeps pipeline stages apart: assigns scopes to the nodes upstream of a `Stage` and downstream of
/// an `Unstage`.
pub(crate) fn scope_pipeline_stages(graph: &mut Graph) {
    let mut number = 0;
    let mut remaining = MAX_SCOPED;
    for id in graph.ids().collect::<Vec<_>>() {
        let is_forward = match graph[id].op() {
            "Unstage" => true,
            "Stage" => false,
            _ => continue,
        };
        let suffix = format!("_{number}");
        number += 1;
        let mut seen = graph.node_table(false);
        let mut stack = vec![id];
        while let Some(at) = stack.pop() {
            if std::mem::replace(&mut seen[at], true) || remaining == 0 {
                continue;
            }
            remaining -= 1;
            let scope = match string_attribute(&graph[at].def.attr, INTERNAL_SCOPE) {
                "" => suffix.clone(),
                scope => format!("{scope}&{suffix}"),
            };
            graph[at].def.attr.insert(INTERNAL_SCOPE.to_owned(), Value::S(scope.into()).into());
            if is_forward {
                stack.extend(graph.out_edges(at).map(|e| e.dst));
            } else {
                stack.extend(graph.in_edges(at).map(|e| e.src));
            }
        }
    }
}
