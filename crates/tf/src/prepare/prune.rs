//! Finds the nodes that the fetches need.

use super::names::{Input, Names};
use super::{FedOutput, config};
use crate::proto::{Config, NodeDef};
use std::collections::BTreeMap;
use support::{Code, Error, Result};

/// Returns for each node of the graph whether a fetch needs it. Follows inputs and control inputs
/// upstream, except through fed outputs.
pub(super) fn needed(
    config: &Config,
    nodes: &[NodeDef],
    names: &Names<'_>,
    fed: &BTreeMap<FedOutput, usize>,
) -> Result<Vec<bool>> {
    let mut needed = vec![false; nodes.len()];
    let mut work = Vec::new();
    for fetch in &config.fetch {
        let id = config::id(&fetch.id);
        if fed.contains_key(&id) {
            continue;
        }
        let node = names.get(&id.0).ok_or_else(|| {
            Error::invalid(format!(
                "While pruning graph, node {} needed but not found in the graph: it is the node of fetch '{}:{}'",
                id.0, id.0, id.1
            ))
            .coded(Code::Fetch)
        })?;
        work.push(node);
    }
    while let Some(at) = work.pop() {
        if std::mem::replace(&mut needed[at], true) {
            continue;
        }
        let node = &nodes[at];
        for text in &node.input {
            let input = Input::parse(text, &node.name)?;
            if replaced_by(input, nodes, names, fed).is_some() {
                continue;
            }
            work.push(names.get(input.node()).ok_or_else(|| {
                Error::invalid(format!(
                    "While pruning graph, node {} needed but not found in the graph: it is input '{text}' of node \
                     '{}'",
                    input.node(),
                    node.name
                ))
            })?);
        }
    }
    Ok(needed)
}

/// Returns the feed that replaces an input. For a data input, this is the feed of the same output.
/// For a control input, it is the feed of a node that only supplies a value, because waiting for
/// such a node has no effect.
pub(super) fn replaced_by(
    input: Input<'_>,
    nodes: &[NodeDef],
    names: &Names<'_>,
    fed: &BTreeMap<FedOutput, usize>,
) -> Option<usize> {
    match input {
        Input::Data(name, index) => fed.get(&(name.to_owned(), index)).copied(),
        Input::Control(name) => {
            let node = &nodes[names.get(name)?];
            match node.op.as_str() {
                "Placeholder" | "PlaceholderV2" | "PlaceholderWithDefault" | "Const" => {
                    fed.get(&(name.to_owned(), 0)).copied()
                }
                op if op.starts_with("IteratorGetNext") || op.starts_with("QueueDequeue") => {
                    fed.get(&(name.to_owned(), 0)).copied()
                }
                _ => None,
            }
        }
    }
}
