//! Prunes a graph to the part that the caller's fetches and targets need.

use crate::graph::definitions::Definitions;
use crate::options::Options;
use std::collections::{BTreeMap, BTreeSet};
use support::Result;
use tf::node_types;
use tf::proto::attr_value::Value;
use tf::proto::{GraphDef, NodeDef};

/// Removes all unneeded nodes, because a cluster runs as a whole. A fed node with one output
/// becomes a placeholder, since its inputs are not needed.
pub(crate) fn prune(graph: &GraphDef, options: &Options, definitions: &Definitions<'_>) -> Result<GraphDef> {
    let node_of = |text: &str| {
        let text = text.strip_prefix('^').unwrap_or(text);
        text.split(':').next().unwrap_or(text).to_owned()
    };
    let fed: BTreeSet<String> = options.feeds.iter().map(|feed| node_of(feed)).collect();
    let mut nodes: BTreeMap<&str, NodeDef> = BTreeMap::new();
    for node in &graph.node {
        let mut copy = node.clone();
        if fed.contains(&node.name)
            && !node.input.is_empty()
            && let Some(signature) = definitions.signature(&node.op)
            && let [data_type] = node_types(signature, &signature.output_arg, &node.attr)?.types[..]
        {
            "Placeholder".clone_into(&mut copy.op);
            copy.input.clear();
            copy.attr = BTreeMap::from([("dtype".to_owned(), Value::Type(data_type.base().number()).into())]);
        }
        nodes.insert(&node.name, copy);
    }
    let roots = options.fetches.iter().chain(&options.targets).chain(&options.feeds);
    let mut work: Vec<String> = roots.map(|root| node_of(root)).collect();
    let mut needed: BTreeSet<String> = BTreeSet::new();
    while let Some(name) = work.pop() {
        if let Some(node) = nodes.get(name.as_str())
            && needed.insert(name)
        {
            work.extend(node.input.iter().map(|input| node_of(input)));
        }
    }
    let remaining = graph.node.iter().filter(|node| needed.contains(&node.name));
    let node = remaining.filter_map(|node| nodes.remove(node.name.as_str())).collect();
    Ok(GraphDef { node, versions: graph.versions.clone(), library: graph.library.clone() })
}
