//! What a graph computes: the outputs that nothing in it reads.

use super::super::build::Signatures;
use super::super::names::{Input, Names};
use super::super::{FedOutput, variables};
use super::{InferOptions, Inferred};
use crate::proto::{GraphDef, NodeDef};
use std::collections::BTreeSet;

/// Ops that are run for what they do or hold, not for their output.
const NO_RESULTS: [&str; 17] = [
    "Assert",
    "Assign",
    "AssignAdd",
    "AssignSub",
    "CheckNumerics",
    "Const",
    "IsVariableInitialized",
    "NoOp",
    "Placeholder",
    "PlaceholderV2",
    "PlaceholderWithDefault",
    "Print",
    "ReadVariableOp",
    "Restore",
    "RestoreV2",
    "VarIsInitializedOp",
    "VariableShape",
];

/// How many inferred fetches there are at most, before the user is asked to choose.
const MAX_FETCHES: usize = 64;

/// The fetches that the user names, or those that the graph suggests.
pub(super) fn fetches(
    graph: &GraphDef,
    names: &Names<'_>,
    signatures: &Signatures<'_>,
    options: &InferOptions,
    inferred: &mut Inferred,
) -> Vec<FedOutput> {
    if !options.fetches.is_empty() {
        return named(graph, names, signatures, &options.fetches, inferred);
    }
    let read = nodes_read(graph);
    let mut found = Vec::new();
    for node in &graph.node {
        if read.contains(node.name.as_str()) || !is_result(node) {
            continue;
        }
        let Ok((_, types)) = signatures.output_types(node) else {
            inferred.notes.push(format!(
                "not fetching '{}': nothing is known of the outputs of its op {}",
                node.name, node.op
            ));
            continue;
        };
        let numeric = |k: &usize| types[*k].primitive_type().is_some();
        found.extend((0..types.len()).filter(numeric).map(|k| (node.name.clone(), k as i64)));
    }
    if found.is_empty() {
        inferred.problems.push(
            "the graph has no output of numbers or bools that is left unused: say what to compute with --fetch NODE"
                .to_owned(),
        );
    } else if found.len() > MAX_FETCHES {
        inferred.problems.push(format!(
            "the graph has {} outputs that it does not use, such as '{}': say what to compute with --fetch NODE",
            found.len(),
            found[0].0
        ));
        found.clear();
    } else if found.len() > 1 {
        let list: Vec<String> = found.iter().take(8).map(|id| format!("{}:{}", id.0, id.1)).collect();
        let more = if found.len() > list.len() { ", ..." } else { "" };
        inferred.notes.push(format!(
            "fetching all {} outputs that the graph does not use ({}{more}); --fetch NODE chooses",
            found.len(),
            list.join(", ")
        ));
    }
    found
}

/// The fetches of the user, each once, without those that cannot be.
fn named(
    graph: &GraphDef,
    names: &Names<'_>,
    signatures: &Signatures<'_>,
    fetches: &[FedOutput],
    inferred: &mut Inferred,
) -> Vec<FedOutput> {
    let mut found: Vec<FedOutput> = Vec::new();
    for id in fetches {
        let Some(node) = names.get(&id.0).map(|at| &graph.node[at]) else {
            inferred.problems.push(format!(
                "the graph has no node '{}' to fetch{}",
                id.0,
                similar(graph, &id.0)
            ));
            continue;
        };
        if let Ok((_, types)) = signatures.output_types(node)
            && !usize::try_from(id.1).is_ok_and(|k| k < types.len())
        {
            inferred.problems.push(format!(
                "cannot fetch '{}:{}': node '{}' (op {}) has {} outputs",
                id.0,
                id.1,
                id.0,
                node.op,
                types.len()
            ));
            continue;
        }
        if !found.contains(id) {
            found.push(id.clone());
        }
    }
    found
}

/// A hint at a node whose name ends alike.
fn similar(graph: &GraphDef, name: &str) -> String {
    let last = |text: &str| text.rsplit('/').next().unwrap_or(text).to_ascii_lowercase();
    let wanted = last(name);
    match graph.node.iter().find(|node| last(&node.name) == wanted) {
        Some(node) => format!("; there is '{}'", node.name),
        None => String::new(),
    }
}

fn is_result(node: &NodeDef) -> bool {
    let op = node.op.as_str();
    !NO_RESULTS.contains(&op) && !variables::is_variable(op) && !op.starts_with("Apply")
}

/// The nodes of which some output is read.
fn nodes_read(graph: &GraphDef) -> BTreeSet<&str> {
    let inputs = graph.node.iter().flat_map(|node| node.input.iter().map(move |input| (node, input)));
    let data = inputs.filter_map(|(node, input)| match Input::parse(input, &node.name) {
        Ok(Input::Data(name, _)) => Some(name),
        _ => None,
    });
    data.collect()
}
