//! Models as files: the one place that knows what a path given as a model may be.

use crate::proto::{Config, GraphDef};
use crate::{InferOptions, Inferred, infer, source};
use bytes::Bytes;
use shape::Literal;
use std::collections::BTreeMap;
use std::path::Path;
use support::Result;

/// What of a file is wanted, where there is a choice.
#[derive(Clone, Debug, Default)]
pub struct LoadOptions {}

/// A model that is read.
#[derive(Clone, Debug, Default)]
pub struct Model {
    /// The path as the user gave it.
    pub name: String,
    /// What it computes.
    pub graph: GraphDef,
    /// What the model itself says of its feeds and fetches.
    pub config: Option<Config>,
    /// The values of variables before the first run, by the name of the variable's node.
    pub initial: BTreeMap<String, Literal>,
    /// Choices that the user may want to know of.
    pub notes: Vec<String>,
    /// The files that it was read from: a word for what each is, and its contents.
    pub files: Vec<(String, Bytes)>,
}

impl Model {
    /// The config of the model, if none is given: what it says itself, or else what follows from its graph.
    pub fn infer(&self, options: &InferOptions) -> Result<Inferred> {
        let mut inferred = infer(&self.graph, options)?;
        inferred.notes.splice(0..0, self.notes.iter().cloned());
        Ok(inferred)
    }
}

/// Reads a model: a GraphDef, binary or text.
pub fn load(path: &Path, _options: &LoadOptions) -> Result<Model> {
    let name = path.display().to_string();
    let bytes = source::read_bytes(path)?;
    let graph = source::parse_graph_def(bytes.clone(), &name)?;
    Ok(Model { name, graph, files: vec![("graph".to_owned(), bytes)], ..Model::default() })
}
