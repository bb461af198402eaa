//! Prepares a program from files: validation, feeds, pruning, types, functions, and control flow.

mod config;
pub(crate) mod constant_feeds;
mod feeds;
mod gradient;
mod infer;
mod library;
mod main_graph;
mod names;
mod nodes;
mod problems;
mod prune;
mod quantization;
mod resolve;
mod signatures;
mod variables;

pub use constant_feeds::without as without_constant_feeds;
pub use infer::{BATCH_RANGE, DimSize, InferOptions, Inferred, infer};
pub(crate) use infer::{Ends, Reached, complete, reach};
pub use problems::{Examined, examine, is_prepared};
pub use quantization::config_quantization;
pub use resolve::{Resolved, RunRequest, resolve};

use crate::proto::attr_value::Value;
use crate::proto::{Config, GraphDef};
use crate::versions::check_versions;
use crate::{Fetch, Node, NodeId, OutputId, Program, functionalize};
use names::Names;
use signatures::Signatures;
use std::collections::{BTreeMap, BTreeSet};
use support::{Code, Coded as _, Error, Result};

/// Node name and index of an output, as the config names it.
type FedOutput = (String, i64);

/// Validates a config, applies it to a graph, and returns the program that it describes.
///
/// Every message names the offending node, feed, fetch, or variable.
pub fn prepare(mut graph: GraphDef, mut config: Config) -> Result<Program> {
    check_versions(graph.versions.as_ref())?;
    constant_feeds::take(&mut graph, &mut config).coded(Code::Feed)?;
    config::validate(&config).coded(Code::Config)?;
    let names = Names::new(&graph.node).coded(Code::Graph)?;
    let empty = Vec::new();
    let functions = graph.library.as_ref().map_or(&empty, |l| &l.function);
    let signatures = Signatures::new(functions).coded(Code::FunctionLibrary)?;

    let dimensions = config::dimensions(&config).coded(Code::Config)?;
    let arguments = feeds::resolve(&config, &graph.node, &names, &signatures).coded(Code::Feed)?;
    let fed: BTreeMap<FedOutput, usize> =
        arguments.iter().enumerate().map(|(i, argument)| (argument.id.clone(), i)).collect();
    let needed = prune::needed(&config, &graph.node, &names, &fed).coded(Code::Graph)?;
    let (mut program, outputs) =
        main_graph::main_graph(&graph.node, &names, &needed, arguments, &fed, &signatures)
            .coded(Code::NodeSignature)?;

    program.dimensions = dimensions;

    let mut targets = Vec::new();
    for fetch in &config.fetch {
        let id = config::id(&fetch.id);
        if let Some(target) = outputs.target(&id, &program.graph) {
            targets.push(target);
            continue;
        }
        let tensor = outputs.fetch(&id, &program.graph).coded(Code::Fetch)?;
        check_fetch_type(&id, &program, tensor).coded(Code::Fetch)?;
        let data_type = program.graph.output_type(tensor);
        let node = names.get(&id.0).map(|at| &graph.node[at]);
        let quantization = node.and_then(|node| quantization::quantization(node, id.1, data_type));
        program.fetches.push(Fetch { tensor, id, name: fetch.name.clone(), quantization });
    }
    wait_for(&mut program, targets).coded(Code::Fetch)?;
    program.variables =
        variables::resolve(&config, &graph.node, &names, &program.graph).coded(Code::Variable)?;
    program.graph.topological_order().coded(Code::Graph)?;
    library::instantiate(&mut program, &signatures, graph.library.as_ref()).coded(Code::FunctionLibrary)?;
    gradient::expand(&mut program, &signatures).coded(Code::FunctionLibrary)?;
    nodes::check_fills(&program).coded(Code::TooLarge)?;
    functionalize::functionalize(&mut program).coded(Code::ControlFlow)?;
    Ok(program)
}

/// Makes the first fetch wait for fetched nodes that have no outputs and are run only for their
/// effects.
fn wait_for(program: &mut Program, targets: Vec<NodeId>) -> Result<()> {
    let Some(&first) = targets.first() else { return Ok(()) };
    let Some(fetch) = program.fetches.first_mut() else {
        let node = &program.graph.nodes[first];
        return Err(Error::invalid(format!(
            "Invalid fetch id: {}:0, output index should be < 0: op {} has no outputs, so it runs only for its \
             effects; fetch a tensor as well",
            node.name, node.op
        )));
    };
    let data_type = program.graph.output_type(fetch.tensor).base();
    let mut name = format!("{}/after_updates", fetch.id.0);
    while program.graph.find(&name).is_some() {
        name.push('_');
    }
    let values = [("T", Value::Type(data_type.number()))];
    let identity = Node::unconnected(name, "Identity", values, vec![data_type]);
    let node = Node { inputs: vec![fetch.tensor], control_inputs: targets, ..identity };
    let node = program.graph.nodes.push(node);
    fetch.tensor = OutputId { node, index: 0 };
    Ok(())
}

/// Validates a config by itself. Returns the distinct names of the nodes that it fetches, sorted.
pub fn fetch_nodes(config: &Config) -> Result<Vec<String>> {
    config::validate(config).coded(Code::Config)?;
    let names: BTreeSet<String> = config.fetch.iter().map(|fetch| config::id(&fetch.id).0).collect();
    Ok(names.into_iter().collect())
}

fn check_fetch_type(id: &FedOutput, program: &Program, tensor: crate::OutputId) -> Result<()> {
    let data_type = program.graph.output_type(tensor);
    match data_type.base().primitive_type() {
        Some(_) => Ok(()),
        None => Err(Error::unsupported(format!(
            "fetch '{}:{}' has type {data_type}, which cannot be a result: fetch a tensor of numbers or bools",
            id.0, id.1
        ))),
    }
}
