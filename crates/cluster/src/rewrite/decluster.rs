//! Removes nodes from their clusters if they would cause frequent recompilation or only read
//! shapes.

use crate::candidates::Context;
use crate::devices::{DeviceName, Policy};
use crate::graph::attributes::string_attribute;
use crate::graph::{Edge, Graph, Node};
use crate::report::Report;
use crate::rewrite::mark::CLUSTER;
use std::collections::{BTreeMap, BTreeSet};
use support::Result;

fn cluster(node: &Node) -> Option<&str> {
    Some(string_attribute(&node.def.attr, CLUSTER)).filter(|name| !name.is_empty())
}

/// First removes nodes whose values must be compile-time constants, starting at the inputs of their
/// cluster: computed outside, they present fewer distinct values to the cluster. Then removes nodes
/// that only read shapes of external inputs.
pub(crate) fn decluster(graph: &mut Graph, context: &Context<'_>, report: &mut Report) -> Result<()> {
    let is_within =
        |e: &Edge| cluster(&graph[e.src]).is_some_and(|name| cluster(&graph[e.dst]) == Some(name));
    let must_be_constant = context.constants.of_graph(graph, &is_within)?.nodes;
    let order = graph.forward_order();
    let mut removed: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for &id in &order {
        let Some(own) = cluster(&graph[id]).map(str::to_owned) else { continue };
        let comes_from_inside = graph.in_edges(id).any(|e| cluster(&graph[e.src]) == Some(&own));
        if !must_be_constant[id] || comes_from_inside || must_compile(&graph[id], context) {
            continue;
        }
        // A constant may stay unless it waits for another device, as in loops that span several
        // devices.
        let waits_elsewhere = || {
            graph.in_edges(id).any(|e| {
                let device = &graph[e.src].def.device;
                !device.is_empty() && *device != graph[id].def.device
            })
        };
        if !graph[id].is_constant() || waits_elsewhere() {
            graph[id].def.attr.remove(CLUSTER);
            removed.entry(own).or_default().insert(graph[id].name().to_owned());
        }
    }
    for &id in &order {
        let Some(own) = cluster(&graph[id]).map(str::to_owned) else { continue };
        let is_root = !graph.in_edges(id).any(|e| cluster(&graph[e.src]) == Some(&own));
        if graph[id].is_shape_consumer() && is_root {
            graph[id].def.attr.remove(CLUSTER);
            removed.entry(own).or_default().insert(graph[id].name().to_owned());
        }
    }
    for cluster in &mut report.clusters {
        if let Some(names) = removed.get(&cluster.name) {
            cluster.nodes.retain(|node| !names.contains(node));
        }
    }
    report.clusters.retain(|cluster| !cluster.nodes.is_empty());
    Ok(())
}

fn must_compile(node: &Node, context: &Context<'_>) -> bool {
    let kind = DeviceName::parse(&node.def.device).ok().and_then(|name| name.kind).unwrap_or_default();
    context.registration(&kind).is_some_and(|registration| registration.policy == Policy::Always)
}
