//! Builds the main graph: nodes of the file with resolved inputs and checked types.

use super::FedOutput;
use super::feeds::Argument;
use super::names::{Input, Names};
use super::nodes::{check_inputs, push_node};
use super::prune;
use super::signatures::{Signatures, unregistered};
use crate::proto::NodeDef;
use crate::{Feed, FunctionLibrary, Graph, NodeId, OutputId, Program};
use std::collections::BTreeMap;
use support::{Code, Error, Id, Result};

/// Maps outputs of the original graph to outputs of the finished graph.
pub(super) struct Outputs<'a> {
    fed: &'a BTreeMap<FedOutput, usize>,
    nodes: BTreeMap<&'a str, NodeId>,
}

impl Outputs<'_> {
    /// Returns the node with the given name, unless it was pruned.
    pub(super) fn node(&self, name: &str) -> Option<NodeId> {
        self.nodes.get(name).copied()
    }

    /// Returns the node of a fetch if it has no outputs, so that it runs only for its effects.
    pub(super) fn target(&self, id: &FedOutput, graph: &Graph) -> Option<NodeId> {
        let node = *self.nodes.get(id.0.as_str()).filter(|_| id.1 == 0)?;
        graph.nodes[node].output_types.is_empty().then_some(node)
    }

    /// Returns the output that a fetch names.
    pub(super) fn fetch(&self, id: &FedOutput, graph: &Graph) -> Result<OutputId> {
        if let Some(&feed) = self.fed.get(id) {
            return Ok(OutputId { node: NodeId::from_index(feed), index: 0 });
        }
        let node = *self
            .nodes
            .get(id.0.as_str())
            .ok_or_else(|| Error::internal(format!("fetched node '{}' was pruned", id.0)))?;
        let outputs = graph.nodes[node].output_types.len();
        match usize::try_from(id.1) {
            Ok(index) if index < outputs => Ok(OutputId { node, index }),
            _ => Err(Error::invalid(format!(
                "Invalid fetch id: {}:{}, output index should be < {outputs}: op {} has {outputs} outputs here",
                id.0, id.1, graph.nodes[node].op
            ))),
        }
    }
}

/// Builds the graph of the needed nodes, arguments first. The program has no fetches, variables, or
/// functions yet.
pub(super) fn main_graph<'a>(
    nodes: &'a [NodeDef],
    names: &Names<'_>,
    needed: &[bool],
    arguments: Vec<Argument>,
    fed: &'a BTreeMap<FedOutput, usize>,
    signatures: &Signatures<'_>,
) -> Result<(Program, Outputs<'a>)> {
    let needed_nodes: Vec<&NodeDef> =
        nodes.iter().zip(needed).filter(|(_, needed)| **needed).map(|(n, _)| n).collect();
    let unknown: Vec<(&str, &str)> = needed_nodes
        .iter()
        .filter(|n| signatures.get(&n.op).is_none())
        .map(|n| (n.op.as_str(), n.name.as_str()))
        .collect();
    if !unknown.is_empty() {
        return Err(unregistered(&unknown));
    }
    check_placeholders(&needed_nodes)?;

    let mut graph = Graph::new();
    let feeds = add_arguments(&mut graph, arguments, &needed_nodes);
    let ids: BTreeMap<&str, NodeId> = needed_nodes
        .iter()
        .enumerate()
        .map(|(i, node)| (node.name.as_str(), NodeId::from_index(feeds.len() + i)))
        .collect();
    let mut input_types = Vec::with_capacity(needed_nodes.len());
    for node in &needed_nodes {
        let mut node = std::borrow::Cow::Borrowed(*node);
        if node.op == "PlaceholderWithDefault" {
            node.to_mut().op = "Identity".to_owned();
            let dtype = node.attr.get("dtype").cloned().unwrap_or_default();
            node.to_mut().attr.insert("T".to_owned(), dtype);
        }
        let typed = signatures.apply(&node, node.attr.clone())?;
        let mut inputs = Vec::new();
        let mut control_inputs = Vec::new();
        for text in &node.input {
            let input = Input::parse(text, &node.name)?;
            let feed = prune::replaced_by(input, nodes, names, fed).map(NodeId::from_index);
            let at = feed.or_else(|| ids.get(input.node()).copied()).ok_or_else(|| {
                Error::internal(format!("input '{text}' of node '{}' was pruned", node.name))
            })?;
            match (input, feed) {
                (Input::Control(_), Some(_)) => {}
                (Input::Control(_), None) => control_inputs.push(at),
                (Input::Data(..), Some(_)) => inputs.push(OutputId { node: at, index: 0 }),
                (Input::Data(_, index), None) => inputs.push(OutputId { node: at, index: index as usize }),
            }
        }
        push_node(&mut graph, &node, typed.values, inputs, control_inputs, typed.output_types);
        input_types.push(typed.input_types);
    }
    for (i, types) in input_types.iter().enumerate() {
        check_inputs(&graph, NodeId::from_index(feeds.len() + i), types)?;
    }
    let program = Program {
        graph,
        library: FunctionLibrary::default(),
        feeds,
        dimensions: Vec::new(),
        fetches: Vec::new(),
        variables: Vec::new(),
        loop_bounds: BTreeMap::new(),
        form_rows: None,
    };
    Ok((program, Outputs { fed, nodes: ids }))
}

/// Rejects placeholders that are needed but not fed. The error lists all of them, each with a node
/// that needs it.
fn check_placeholders(nodes: &[&NodeDef]) -> Result<()> {
    let is_placeholder = |node: &&&NodeDef| matches!(node.op.as_str(), "Placeholder" | "PlaceholderV2");
    let mut users: BTreeMap<&str, Option<&str>> =
        nodes.iter().filter(is_placeholder).map(|node| (node.name.as_str(), None)).collect();
    if users.is_empty() {
        return Ok(());
    }
    for node in nodes {
        for input in &node.input {
            if let Some(user) = users.get_mut(Input::parse(input, &node.name)?.node()) {
                user.get_or_insert(&node.name);
            }
        }
    }
    let unfed: Vec<String> = nodes
        .iter()
        .filter(is_placeholder)
        .map(|placeholder| match users[placeholder.name.as_str()] {
            Some(user) => format!("'{}' (needed by '{user}')", placeholder.name),
            None => format!("'{}' (fetched)", placeholder.name),
        })
        .collect();
    Err(Error::invalid(format!(
        "placeholders that are needed but not fed: {}; give each a feed in the config: feed {{ id {{ node_name: \
         \"...\" }} shape {{ ... }} }}",
        unfed.join(", ")
    ))
    .coded(Code::Feed))
}

/// Adds an `_Arg` node for each feed. It has the name of the node that it replaces, unless that
/// node remains in the graph.
fn add_arguments(graph: &mut Graph, arguments: Vec<Argument>, nodes: &[&NodeDef]) -> Vec<Feed> {
    let mut names: std::collections::BTreeSet<String> = nodes.iter().map(|n| n.name.clone()).collect();
    let mut feeds = Vec::new();
    for (index, argument) in arguments.into_iter().enumerate() {
        let mut name = match argument.id.1 {
            0 => argument.id.0.clone(),
            output => format!("aot_feed_{output}/{}", argument.id.0),
        };
        while !names.insert(name.clone()) {
            name = format!("aot_feed_{}/{name}", argument.id.1);
        }
        let node = graph.push_argument(&name, index, argument.data_type);
        feeds.push(Feed {
            tensor: OutputId { node, index: 0 },
            id: argument.id,
            name: argument.name,
            shape: argument.shape,
            dimensions: argument.dimensions,
            data_type: argument.data_type,
            quantization: argument.quantization,
        });
    }
    feeds
}
