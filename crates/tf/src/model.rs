//! Reads models. This module decides which kind of model a path denotes.

mod function;
mod resources;

use crate::bind::bind;
use crate::checkpoint::Checkpoint;
use crate::prepare::{Ends, complete, constant_feeds, reach};
use crate::proto::{Config, Feed, GraphDef, MetaGraphDef};
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
    /// Only variables that the program writes.
    #[default]
    Written,
    /// All variables.
    All,
    /// Variables of these nodes, and variables that the program writes.
    Named(Vec<String>),
}

/// Selection of the part of a file to read.
#[derive(Clone, Debug, Default)]
pub struct LoadOptions {
    /// Tags of a SavedModel's MetaGraph, separated by commas.
    pub tags: Option<String>,
    /// Key of the signature whose inputs are fed and whose outputs are fetched.
    pub signature: Option<String>,
    /// Checkpoint with the values of variables. Overrides the model's own checkpoint.
    pub checkpoint: Option<PathBuf>,
    /// Variables that do not become constants.
    pub variables_to_feed: VariablesToFeed,
    /// User-supplied feeds, fetches, and variables. These variables do not become constants.
    pub config: Option<Config>,
    /// User-supplied hints to infer a config.
    pub infer: InferOptions,
    /// Function of the graph's library to compile instead of nodes of the graph. Its arguments are
    /// fed and its results are fetched.
    pub function: Option<String>,
    /// User-supplied substitutions for nodes of certain ops.
    pub substitutions: Substitutions,
}

/// A model, with variables and tables replaced as the options say.
#[derive(Clone, Debug, Default)]
pub struct Model {
    /// Path as given by the user.
    pub name: String,
    /// Graph of the model.
    pub graph: GraphDef,
    /// Feeds and fetches of the selected signature. Sizes may be unknown.
    pub config: Option<Config>,
    /// Initial values of variables by the names of their nodes.
    pub initial: BTreeMap<String, Literal>,
    /// Decisions to report to the user.
    pub notes: Vec<String>,
    /// Files that the model was read from: a name for the kind of each, and its contents.
    pub files: Vec<(String, Bytes)>,
    /// Feeds and fetches inferred from the graph, if neither the model nor the user states them.
    ends: Option<Ends>,
    /// Hints to infer a config.
    options: InferOptions,
    /// Feeds that flags made constants.
    constants: Vec<Feed>,
}

impl Model {
    /// Infers a config from the model's signature, or else from its graph.
    pub fn infer(&self) -> Result<Inferred> {
        let mut inferred = match (&self.config, &self.ends) {
            (Some(config), _) => complete(&self.graph, config, &self.options),
            (None, Some(ends)) => ends.clone().finish(&self.graph),
            (None, None) => infer(&self.graph, &self.options),
        }
        .coded(Code::NotInferred)?;
        inferred.config.feed.extend(self.constants.iter().cloned());
        inferred.notes.splice(0..0, self.notes.iter().cloned());
        Ok(inferred)
    }
}

/// A model that was read from a format other than TensorFlow's own, as a graph of TensorFlow's ops.
#[derive(Clone, Debug, Default)]
pub struct Foreign {
    /// Name for the kind of the file.
    pub kind: String,
    /// The graph.
    pub graph: GraphDef,
    /// Feeds and fetches in the order of the file.
    pub config: Config,
    /// Values of variables before the first run, by the names that the variables share.
    pub initial: BTreeMap<String, Literal>,
    /// Decisions to report to the user.
    pub notes: Vec<String>,
}

/// Contents of a model file.
#[derive(Default)]
struct Contents {
    /// MetaGraph, which for a GraphDef consists of the graph only.
    meta: MetaGraphDef,
    /// The interface of a model in another format, and the values of its variables.
    foreign: Option<(Config, BTreeMap<String, Literal>)>,
    /// Directory of a SavedModel.
    directory: Option<PathBuf>,
    /// Checkpoint next to the model, if there is one.
    checkpoint: Option<PathBuf>,
    /// Name for the kind of the file, and its contents.
    file: (String, Bytes),
}

/// Reads a model: a SavedModel (directory or file), a MetaGraph, or a GraphDef, in binary or text
/// format.
///
/// Variables with values become constants, except those that the options name or that the program
/// writes. Static tables become lookups in constant arrays.
pub fn load(path: &Path, options: &LoadOptions) -> Result<Model> {
    let name = path.display().to_string();
    let contents = read(path, &name, options)?;
    finish(name, contents, options, Vec::new())
}

/// Replaces the variables of a model that was read from another format, as [`load`] does. `bytes`
/// are the contents of its file.
pub fn load_foreign(path: &Path, bytes: Bytes, foreign: Foreign, options: &LoadOptions) -> Result<Model> {
    let Foreign { kind, graph, config, initial, notes } = foreign;
    let contents = Contents {
        meta: MetaGraphDef { graph_def: Some(graph), ..MetaGraphDef::default() },
        foreign: Some((config, initial)),
        file: (kind, bytes),
        ..Contents::default()
    };
    finish(path.display().to_string(), contents, options, notes)
}

/// Replaces the variables of a graph with signatures that was read from another format, as [`load`]
/// does. `file` is the kind of its file, and its contents.
pub fn load_meta_graph(
    path: &Path,
    file: (String, Bytes),
    meta: MetaGraphDef,
    options: &LoadOptions,
) -> Result<Model> {
    finish(path.display().to_string(), Contents { meta, file, ..Contents::default() }, options, Vec::new())
}

fn finish(name: String, mut contents: Contents, options: &LoadOptions, notes: Vec<String>) -> Result<Model> {
    if let Some(graph) = &mut contents.meta.graph_def {
        options.substitutions.apply(graph).coded(Code::CustomCall)?;
    }
    let mut model = Model { name, files: vec![contents.file.clone()], notes, ..Model::default() };
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
    let mut declared = if options.config.is_none() && options.infer.fetches.is_empty() {
        let has_signatures = meta.signature_def.keys().any(|key| key != saved_model::INIT);
        if let Some((config, _)) = &contents.foreign {
            Some(config.clone())
        } else if has_signatures || options.signature.is_some() || contents.directory.is_some() {
            Some(saved_model::interface(meta, options.signature.as_deref()).coded(Code::SavedModel)?.1)
        } else {
            None
        }
    } else {
        None
    };
    let mut given = options.config.clone();
    model.constants = constant_feeds::of_flags(&options.infer.constants, declared.as_mut());
    let graph = contents.meta.graph_def.get_or_insert_default();
    constant_feeds::replace(graph, &model.constants).coded(Code::Feed)?;
    if let Some(config) = &mut given {
        constant_feeds::take(graph, config).coded(Code::Feed)?;
    }
    let empty = GraphDef::default();
    let graph = contents.meta.graph_def.as_ref().unwrap_or(&empty);
    model.config.clone_from(&declared);
    // Only variables and tables that the fetches need are replaced.
    let config = match declared.or(given) {
        Some(config) => config,
        None => {
            let ends = Ends::find(graph, &options.infer).coded(Code::NotInferred)?;
            model.ends.insert(ends).config().clone()
        }
    };
    if config.fetch.is_empty() {
        model.graph = contents.meta.graph_def.unwrap_or_default();
        return Ok(model);
    }
    let reached = reach(graph, &config).coded(Code::Graph)?;
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
    let saved_model = saved_model::file(path).coded(Code::ReadFile)?;
    let file = saved_model.as_deref().unwrap_or(path);
    let name = if saved_model.is_some() { file.display().to_string() } else { name.to_owned() };
    let bytes = source::read_bytes(file)?;
    if saved_model.is_some() || source::other_model(&bytes) == Some(source::SAVED_MODEL) {
        let meta =
            saved_model::meta_graph(bytes.clone(), &name, options.tags.as_deref()).coded(Code::SavedModel)?;
        let parent = file.parent().filter(|parent| !parent.as_os_str().is_empty());
        let directory = parent.unwrap_or(Path::new(".")).to_owned();
        let variables = directory.join("variables").join("variables");
        let checkpoint = Checkpoint::exists(&variables).then_some(variables);
        let file = ("saved_model".to_owned(), bytes);
        return Ok(Contents { meta, directory: Some(directory), checkpoint, file, ..Contents::default() });
    }
    if options.tags.is_some() {
        let error = Error::invalid(format!("{name} is not a SavedModel: omit --tag-set"));
        return Err(error.coded(Code::SavedModel));
    }
    if saved_model::is_meta_graph(path, &bytes) {
        let meta = saved_model::parse_meta_graph(bytes.clone(), &name).coded(Code::ParseFile)?;
        let prefix = path.with_extension("");
        let checkpoint = Checkpoint::exists(&prefix).then_some(prefix);
        return Ok(Contents {
            meta,
            checkpoint,
            file: ("meta_graph".to_owned(), bytes),
            ..Contents::default()
        });
    }
    if options.signature.is_some() {
        let error =
            Error::invalid(format!("{name} is a GraphDef, which has no signatures: omit --signature"));
        return Err(error.coded(Code::SavedModel));
    }
    let meta = graph(source::parse_graph_def(bytes.clone(), &name)?);
    Ok(Contents { meta, file: ("graph".to_owned(), bytes), ..Contents::default() })
}
