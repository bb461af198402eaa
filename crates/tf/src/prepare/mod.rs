//! From files to a program: validation, feeds, pruning, types, functions, control flow.

mod build;
mod config;
mod feeds;
mod infer;
mod library;
mod names;
mod problems;
mod prune;
mod variables;

pub(crate) use build::push_argument;
pub use infer::{InferOptions, Inferred, infer};
pub use problems::{Examined, examine, is_prepared};

use crate::proto::{Config, GraphDef};
use crate::{Fetch, Program, functionalize};
use build::Signatures;
use names::Names;
use std::collections::{BTreeMap, BTreeSet};
use support::{Error, Result};

/// An output as the config names it.
type FedOutput = (String, i64);

/// Validates a config, applies it to a graph, and makes the program that it describes.
///
/// Every message names the node, feed, fetch or variable that is wrong.
pub fn prepare(graph: GraphDef, config: Config) -> Result<Program> {
    config::validate(&config)?;
    let names = Names::new(&graph.node)?;
    let empty = Vec::new();
    let functions = graph.library.as_ref().map_or(&empty, |l| &l.function);
    let signatures = Signatures::new(functions)?;

    let arguments = feeds::resolve(&config, &graph.node, &names, &signatures)?;
    let fed: BTreeMap<FedOutput, usize> =
        arguments.iter().enumerate().map(|(i, argument)| (argument.id.clone(), i)).collect();
    let needed = prune::needed(&config, &graph.node, &names, &fed)?;
    let (mut program, outputs) = build::main_graph(&graph.node, &needed, arguments, &fed, &signatures)?;

    for fetch in &config.fetch {
        let id = config::id(&fetch.id);
        let tensor = outputs.fetch(&id, &program.graph)?;
        check_fetch_type(&id, &program, tensor)?;
        program.fetches.push(Fetch { tensor, id, name: fetch.name.clone() });
    }
    program.variables = variables::resolve(&config, &graph.node, &names, &program.graph)?;
    program.graph.topological_order()?;
    library::instantiate(&mut program, &signatures, graph.library.as_ref())?;
    build::check_fills(&program)?;
    functionalize::functionalize(&mut program)?;
    Ok(program)
}

/// Validates a config by itself. The answer is the names of the nodes it fetches: sorted, each once.
pub fn fetch_nodes(config: &Config) -> Result<Vec<String>> {
    config::validate(config)?;
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
