//! From graph and config to HLO.

use crate::Observer;
use bytes::Bytes;
use hlo::Module;
use import::ImportResult;
use support::Result;

/// A file's bytes, and its name for messages.
#[derive(Clone, Debug)]
pub struct Input {
    /// The path as the user gave it.
    pub name: String,
    /// The contents, often a mapped file.
    pub bytes: Bytes,
}

/// An imported program.
#[derive(Debug)]
pub struct Front {
    /// Feeds, fetches and variables.
    pub program: tf::Program,
    /// The HLO and what its parameters and results are.
    pub import: ImportResult,
}

impl Front {
    /// The unoptimised HLO.
    pub fn module(&self) -> &Module {
        &self.import.module
    }
}

/// Reads and checks a config alone; the names of the fetched nodes, sorted, each once.
pub fn check_config(config: &Input) -> Result<Vec<String>> {
    let config = tf::source::parse_config(config.bytes.clone(), &config.name)?;
    tf::fetch_nodes(&config)
}

/// Reads a graph and a config (binary or text, told by name and content) and imports what the fetches need.
pub fn import(graph: &Input, config: &Input, observer: &mut dyn Observer) -> Result<Front> {
    let config = tf::source::parse_config(config.bytes.clone(), &config.name)?;
    let graph = tf::source::parse_graph_def(graph.bytes.clone(), &graph.name)?;
    observer.ended("read", &String::new);
    import_program(tf::prepare(graph, config)?, observer)
}

/// Imports a program that is prepared.
pub(crate) fn import_program(program: tf::Program, observer: &mut dyn Observer) -> Result<Front> {
    observer.ended("prepare", &|| format!("{} nodes", program.graph.nodes.len()));
    let import = import::import_program(&program)?;
    hlo::verify(&import.module)?;
    observer.ended("import", &|| import.module.to_text());
    Ok(Front { program, import })
}
