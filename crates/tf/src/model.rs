//! Models as files: the one place that knows what a path given as a model may be.

mod function;
mod resources;

use crate::bind::bind;
use crate::checkpoint::Checkpoint;
use crate::prepare::{Ends, complete, reach};
use crate::proto::{Config, GraphDef, MetaGraphDef};
use crate::saved_model;
use crate::substitutions::Substitutions;
use crate::{InferOptions, Inferred, infer, source};
use bytes::Bytes;
use shape::Literal;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use support::{Code, Coded as _, Error, Result};

/// Selection of the variables that remain variables of the program.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum VariablesToFeed {
    /// Variables that the program writes.
    #[default]
    Written,
    /// All of them.
    All,
    /// Those of these nodes, and those that the program writes.
    Named(Vec<String>),
}

/// Selection of the part of a file to read.
#[derive(Clone, Debug, Default)]
pub struct LoadOptions {
    /// The tags of a SavedModel's MetaGraph, joined by commas.
    pub tags: Option<String>,
    /// The signature whose inputs and outputs are fed and fetched.
    pub signature: Option<String>,
    /// The values of variables, instead of those that come with the model.
    pub checkpoint: Option<PathBuf>,
    /// Variables that do not become constants.
    pub variables_to_feed: VariablesToFeed,
    /// Feeds, fetches and variables, if the user gives them; its variables do not become constants.
    pub config: Option<Config>,
    /// User-supplied hints, in the absence of a config.
    pub infer: InferOptions,
    /// A function of the graph's library that is the program, instead of nodes of the graph. Its
    /// arguments are fed, what it returns is fetched.
    pub function: Option<String>,
    /// User-supplied substitutions for nodes of some ops.
    pub substitutions: Substitutions,
}

/// A model that is read.
#[derive(Clone, Debug, Default)]
pub struct Model {
    /// The path as the user gave it.
    pub name: String,
    /// Computation of the model.
    pub graph: GraphDef,
    /// Feeds and fetches that the model itself declares. Sizes may be unknown.
    pub config: Option<Config>,
    /// The values of variables before the first run, by the name of the variable's node.
    pub initial: BTreeMap<String, Literal>,
    /// Choices that the user may want to know of.
    pub notes: Vec<String>,
    /// The files that it was read from: a word for what each is, and its contents.
    pub files: Vec<(String, Bytes)>,
    /// The feeds and fetches that follow from the graph, if neither the model nor the user states
    /// them.
    ends: Option<Ends>,
    /// The options that help to infer a config.
    options: InferOptions,
}

impl Model {
    /// The config of the model, if the user gave none: what it says itself, or else what follows
    /// from its graph.
    pub fn infer(&self) -> Result<Inferred> {
        let mut inferred = match (&self.config, &self.ends) {
            (Some(config), _) => complete(&self.graph, config, &self.options),
            (None, Some(ends)) => ends.clone().finish(&self.graph),
            (None, None) => infer(&self.graph, &self.options),
        }
        .coded(Code::NotInferred)?;
        inferred.notes.splice(0..0, self.notes.iter().cloned());
        Ok(inferred)
    }
}

/// Content of a file.
struct Contents {
    /// A graph, or a graph and more.
    meta: MetaGraphDef,
    /// Location of a SavedModel's other files.
    directory: Option<PathBuf>,
    /// Where the values of the variables are, if they come with the model.
    checkpoint: Option<PathBuf>,
    file: (String, Bytes),
}

/// Reads a model: a SavedModel (its directory or file), a MetaGraph, or a GraphDef, binary or text.
///
/// Variables that have values become constants unless the options or the program want them as
/// variables, and static tables lookups in constants.
pub fn load(path: &Path, options: &LoadOptions) -> Result<Model> {
    let name = path.display().to_string();
    let mut contents = read(path, &name, options)?;
    if let Some(graph) = &mut contents.meta.graph_def {
        options.substitutions.apply(graph).coded(Code::CustomCall)?;
    }
    let mut model = Model { name, files: vec![contents.file.clone()], ..Model::default() };
    let mut with_function = None;
    if let Some(function) = &options.function {
        let fetches = function::call(contents.meta.graph_def.get_or_insert_default(), function)
            .coded(Code::FunctionLibrary)?;
        let infer = InferOptions { fetches, ..options.infer.clone() };
        with_function = Some(LoadOptions { infer, ..options.clone() });
    }
    let options = with_function.as_ref().unwrap_or(options);
    model.options.clone_from(&options.infer);
    let meta = &contents.meta;
    let empty = GraphDef::default();
    let graph = meta.graph_def.as_ref().unwrap_or(&empty);
    let chosen = if options.config.is_none() && options.infer.fetches.is_empty() {
        let has_signatures = meta.signature_def.keys().any(|key| key != saved_model::INIT);
        if has_signatures || options.signature.is_some() || contents.directory.is_some() {
            Some(saved_model::interface(meta, options.signature.as_deref()).coded(Code::SavedModel)?.1)
        } else {
            None
        }
    } else {
        None
    };
    model.config.clone_from(&chosen);
    // The compiled nodes decide which variables and tables matter.
    let asked = match chosen.or_else(|| options.config.clone()) {
        Some(config) => config,
        None => {
            let ends = Ends::find(graph, &options.infer).coded(Code::NotInferred)?;
            model.ends.insert(ends).config().clone()
        }
    };
    if asked.fetch.is_empty() {
        model.graph = contents.meta.graph_def.unwrap_or_default();
        return Ok(model);
    }
    let reached = reach(graph, &asked).coded(Code::Graph)?;
    let bindings =
        resources::bindings(&contents, graph, &reached, options, &mut model).coded(Code::SavedModel)?;
    model.graph = contents.meta.graph_def.unwrap_or_default();
    if !bindings.nodes.is_empty() {
        model.graph =
            bind(std::mem::take(&mut model.graph), &reached.needed, &bindings).coded(Code::Variable)?;
    }
    Ok(model)
}

fn read(path: &Path, name: &str, options: &LoadOptions) -> Result<Contents> {
    let graph = |graph| MetaGraphDef { graph_def: Some(graph), ..MetaGraphDef::default() };
    let named = saved_model::file(path).coded(Code::ReadFile)?;
    let file = named.as_deref().unwrap_or(path);
    let name = if named.is_some() { file.display().to_string() } else { name.to_owned() };
    let bytes = source::read_bytes(file)?;
    if named.is_some() || source::other_model(&bytes) == Some(source::SAVED_MODEL) {
        let meta =
            saved_model::meta_graph(bytes.clone(), &name, options.tags.as_deref()).coded(Code::SavedModel)?;
        let parent = file.parent().filter(|parent| !parent.as_os_str().is_empty());
        let directory = parent.unwrap_or(Path::new(".")).to_owned();
        let variables = directory.join("variables").join("variables");
        let checkpoint = Checkpoint::exists(&variables).then_some(variables);
        let file = ("saved_model".to_owned(), bytes);
        return Ok(Contents { meta, directory: Some(directory), checkpoint, file });
    }
    if options.tags.is_some() {
        let error = Error::invalid(format!("{name} is not a SavedModel; leave out --tag-set"));
        return Err(error.coded(Code::SavedModel));
    }
    if saved_model::is_meta_graph(path, &bytes) {
        let meta = saved_model::parse_meta_graph(bytes.clone(), &name).coded(Code::ParseFile)?;
        let prefix = path.with_extension("");
        let checkpoint = Checkpoint::exists(&prefix).then_some(prefix);
        return Ok(Contents { meta, directory: None, checkpoint, file: ("meta_graph".to_owned(), bytes) });
    }
    if options.signature.is_some() {
        let error =
            Error::invalid(format!("{name} is a GraphDef, which has no signatures: leave out --signature"));
        return Err(error.coded(Code::SavedModel));
    }
    let meta = graph(source::parse_graph_def(bytes.clone(), &name)?);
    Ok(Contents { meta, directory: None, checkpoint: None, file: ("graph".to_owned(), bytes) })
}
