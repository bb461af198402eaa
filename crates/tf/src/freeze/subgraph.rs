//! Computes the part of a graph that the outputs depend on.

use super::base_name;
use crate::proto::{GraphDef, NodeDef, attr_value::Value};
use std::collections::{BTreeMap, BTreeSet};
use support::{Error, Result};

/// Names of the outputs and of everything upstream of them: inputs, control inputs, and the nodes
/// that they are colocated with.
pub(super) fn extract<'a>(graph: &'a GraphDef, outputs: &[String]) -> Result<BTreeSet<&'a str>> {
    let nodes: BTreeMap<&str, &NodeDef> = graph.node.iter().map(|node| (node.name.as_str(), node)).collect();
    let mut needed = BTreeSet::new();
    let mut work = Vec::new();
    for output in outputs {
        let node = nodes.get(output.as_str()).ok_or_else(|| {
            Error::invalid(format!(
                "{output} is not in graph; expected names of nodes in --output_node_names"
            ))
        })?;
        work.push(*node);
    }
    while let Some(node) = work.pop() {
        if !needed.insert(node.name.as_str()) {
            continue;
        }
        for input in &node.input {
            let producer = nodes.get(base_name(input));
            work.push(producer.ok_or_else(|| {
                Error::invalid(format!("node '{}' has the input '{input}', which does not exist", node.name))
            })?);
        }
        work.extend(colocated_with(node).filter_map(|name| nodes.get(name)));
    }
    Ok(needed)
}

/// Nodes that the attribute `_class` names.
fn colocated_with(node: &NodeDef) -> impl Iterator<Item = &str> {
    let classes = match node.attr.get("_class").and_then(|attr| attr.value.as_ref()) {
        Some(Value::List(list)) => list.s.as_slice(),
        _ => &[],
    };
    classes.iter().filter_map(|class| std::str::from_utf8(class).ok()).filter_map(|c| c.strip_prefix("loc:@"))
}
