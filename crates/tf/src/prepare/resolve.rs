//! Resolves a graph for node-by-node execution: pruned and typed, with unchanged control flow.

use super::feeds::Argument;
use super::main_graph;
use super::names::Names;
use super::signatures::Signatures;
use super::{FedOutput, gradient, library, prune};
use crate::proto::{Config, Fetch, GraphDef, NodeDef, TensorId};
use crate::{FunctionLibrary, Graph, NodeId, OutputId};
use std::collections::BTreeMap;
use support::{Error, Result};

/// Requested inputs and outputs of an execution, by their names in the graph.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct RunRequest {
    /// Node and output index of each fed value.
    pub feeds: Vec<(String, i64)>,
    /// Node and output index of each returned value.
    pub fetches: Vec<(String, i64)>,
    /// Nodes that run for their effects.
    pub targets: Vec<String>,
}

/// The part of a graph that an execution needs, with checked inputs and types and with calls
/// resolved to the library's functions.
#[derive(Clone, Debug)]
pub struct Resolved {
    /// The nodes, starting with an `_Arg` node for each feed.
    pub graph: Graph,
    /// The functions that the nodes call.
    pub library: FunctionLibrary,
    /// The values to return, in the requested order.
    pub fetches: Vec<OutputId>,
    /// The target nodes, in the requested order.
    pub targets: Vec<NodeId>,
}

/// Prunes a graph to the requested outputs, then checks the rest and infers its types. Unlike
/// [`prepare`](super::prepare()), it needs no shapes, accepts values of every type, and leaves
/// control flow and variables unchanged.
pub fn resolve(graph: &GraphDef, request: &RunRequest) -> Result<Resolved> {
    let nodes = &graph.node;
    let names = Names::new(nodes)?;
    let empty = Vec::new();
    let functions = graph.library.as_ref().map_or(&empty, |library| &library.function);
    let signatures = Signatures::new(functions)?;
    let mut fed: BTreeMap<FedOutput, usize> = BTreeMap::new();
    let mut arguments = Vec::new();
    for (index, id) in request.feeds.iter().enumerate() {
        if fed.insert(id.clone(), index).is_some() {
            return Err(Error::invalid(format!("'{}:{}' is fed twice: feed it once", id.0, id.1)));
        }
        arguments.push(argument(id, nodes, &names, &signatures)?);
    }
    let id = |node: &str, output: i64| Some(TensorId { node_name: node.to_owned(), output_index: output });
    let fetches = request.fetches.iter().map(|(node, output)| id(node, *output));
    let targets = request.targets.iter().map(|node| id(node, 0));
    let config = Config {
        fetch: fetches.chain(targets).map(|id| Fetch { id, ..Fetch::default() }).collect(),
        ..Config::default()
    };
    let mut needed = prune::needed(&config, nodes, &names, &fed)?;
    // A target is run even if its output is fed.
    for target in &request.targets {
        if let Some(at) = names.get(target) {
            needed[at] = true;
        }
    }
    check_placeholders(nodes, &needed)?;
    let (mut program, outputs) =
        main_graph::main_graph(nodes, &names, &needed, arguments, &fed, &signatures)?;
    let fetches = request.fetches.iter().map(|id| {
        outputs.fetch(id, &program.graph).map_err(|error| match outputs.node(&id.0) {
            Some(node) if program.graph.nodes[node].output_types.is_empty() => Error::invalid(format!(
                "fetch '{}:{}': op {} has no outputs; run the node as a target instead",
                id.0, id.1, program.graph.nodes[node].op
            )),
            _ => error,
        })
    });
    let fetches = fetches.collect::<Result<Vec<_>>>()?;
    let targets = request
        .targets
        .iter()
        .map(|name| outputs.node(name).ok_or_else(|| Error::internal(format!("target '{name}' was pruned"))));
    let targets = targets.collect::<Result<Vec<_>>>()?;
    library::instantiate(&mut program, &signatures, graph.library.as_ref())?;
    gradient::expand(&mut program, &signatures)?;
    program.graph.topological_order()?;
    Ok(Resolved { graph: program.graph, library: program.library, fetches, targets })
}

/// Returns a fed output with its type.
fn argument(
    id: &FedOutput,
    nodes: &[NodeDef],
    names: &Names<'_>,
    signatures: &Signatures<'_>,
) -> Result<Argument> {
    let node = names.get(&id.0).map(|at| &nodes[at]).ok_or_else(|| {
        Error::invalid(format!("feed '{}:{}': no node of the graph has this name", id.0, id.1))
    })?;
    let (_, types) = signatures.output_types(node)?;
    let data_type = usize::try_from(id.1).ok().and_then(|index| types.get(index)).ok_or_else(|| {
        Error::invalid(format!(
            "feed '{}:{}': the node (op {}) has only {} outputs",
            id.0,
            id.1,
            node.op,
            types.len()
        ))
    })?;
    Ok(Argument {
        id: id.clone(),
        name: String::new(),
        shape: Vec::new(),
        dimensions: BTreeMap::new(),
        data_type: data_type.base(),
        quantization: None,
    })
}

/// Rejects placeholders that are needed but not fed.
fn check_placeholders(nodes: &[NodeDef], needed: &[bool]) -> Result<()> {
    let is_placeholder = |node: &&NodeDef| matches!(node.op.as_str(), "Placeholder" | "PlaceholderV2");
    let needed_nodes = nodes.iter().zip(needed).filter(|(_, needed)| **needed).map(|(node, _)| node);
    let unfed: Vec<String> =
        needed_nodes.filter(is_placeholder).take(8).map(|node| format!("'{}'", node.name)).collect();
    if unfed.is_empty() {
        return Ok(());
    }
    Err(Error::invalid(format!(
        "You must feed a value for placeholder {}: the fetches depend on it",
        unfed.join(", ")
    )))
}
