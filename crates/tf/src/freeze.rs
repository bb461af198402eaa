//! Freezes a graph: variables become constants with the values of a checkpoint.
//!
//! Implements `freeze_graph` as a function of files. It restores the values (`session`), removes
//! nodes that the outputs do not need, and replaces variables and their readers by constants
//! (`convert`), also within functions. The output is deterministic.

mod constant;
mod convert;
mod functions;
mod session;
mod subgraph;

pub(crate) use constant::node as constant_node;

use crate::checkpoint::{Checkpoint, Value};
use crate::proto::{GraphDef, MetaGraphDef, NodeDef, SaverDef, attr_value};
use crate::{PartialShape, op_def, saved_model, source};
use prost::Message;
use session::Session;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use support::{Code, Coded as _, Error, Result};

/// Upper bound for the bytes of a GraphDef. No reader accepts larger protocol buffers.
const MAX_GRAPH: usize = i32::MAX as usize;

/// Options of a freeze, named after the flags of `freeze_graph`.
#[derive(Clone, Debug, Default)]
pub struct FreezeOptions {
    /// A GraphDef. Text or binary format is detected from the content.
    pub input_graph: Option<PathBuf>,
    /// A SaverDef, whose restore op defines the values of variables. Without it and without a saver
    /// in the MetaGraph, values are restored by the variables' names.
    pub input_saver: Option<PathBuf>,
    /// A MetaGraphDef, used instead of the graph. Its saver restores the variables.
    pub input_meta_graph: Option<PathBuf>,
    /// Directory of a SavedModel, used instead of graph and checkpoint.
    pub input_saved_model_dir: Option<PathBuf>,
    /// Tags of the SavedModel's MetaGraph, separated by commas.
    pub saved_model_tags: String,
    /// Prefix of the checkpoint's files, which also show its version.
    pub input_checkpoint: PathBuf,
    /// 1 or 2. Has no effect, but other numbers are rejected, as `freeze_graph` rejects them.
    pub checkpoint_version: i64,
    /// Output nodes, separated by commas. They are kept with everything upstream of them.
    pub output_node_names: String,
    /// Removes the devices of nodes.
    pub clear_devices: bool,
    /// Nodes to run after the checkpoint is restored, which assign variables. Ignored with an
    /// `input_saver` or a SavedModel.
    pub initializer_nodes: String,
    /// Variables that become constants, or empty for all variables.
    pub variable_names_whitelist: String,
    /// Variables that remain variables.
    pub variable_names_denylist: String,
}

/// Items of a comma-separated list, without spaces and empty items.
fn list(text: &str) -> Vec<String> {
    let text: String = text.chars().filter(|c| *c != ' ').collect();
    text.split(',').filter(|part| !part.is_empty()).map(str::to_owned).collect()
}

/// Reads the graph and the checkpoint. Returns the bytes of the frozen GraphDef.
pub fn freeze(options: &FreezeOptions) -> Result<Vec<u8>> {
    frozen_bytes(options).coded(Code::Freeze)
}

fn frozen_bytes(options: &FreezeOptions) -> Result<Vec<u8>> {
    if !matches!(options.checkpoint_version, 1 | 2) {
        return Err(Error::invalid(format!(
            "Invalid checkpoint version (must be '1' or '2'): {}",
            options.checkpoint_version
        )));
    }
    let source = read_source(options)?;
    let saver = match &options.input_saver {
        Some(path) => {
            must_exist("Input saver file", path)?;
            Some(source::read_saver_def(path)?)
        }
        None => None,
    };
    let path = match (&source.saved_model, &saver) {
        (Some(saved_model), None) => saved_model,
        _ => &options.input_checkpoint,
    };
    if source.saved_model.is_none() && !Checkpoint::exists(&options.input_checkpoint) {
        return Err(missing(&options.input_checkpoint));
    }
    let outputs = list(&options.output_node_names);
    if outputs.is_empty() {
        return Err(Error::invalid("You need to supply the name of a node to --output_node_names."));
    }
    let checkpoint = Checkpoint::open(path)?;
    let restore = match (&saver, &source.saver) {
        (Some(saver), _) => Restore::Saver(saver),
        (None, Some(saver)) if source.saved_model.is_some() => Restore::SavedModel(saver),
        (None, Some(saver)) => Restore::Saver(saver),
        (None, None) => Restore::Names,
    };
    let runs_initializers = saver.is_none() && source.saved_model.is_none();
    let choice = Choice {
        outputs,
        whitelist: list(&options.variable_names_whitelist).into_iter().collect(),
        denylist: list(&options.variable_names_denylist).into_iter().collect(),
        clear_devices: options.clear_devices,
        initializer_nodes: if runs_initializers { list(&options.initializer_nodes) } else { Vec::new() },
    };
    let frozen = freeze_graph(source.graph, restore, &checkpoint, &choice)?;
    if frozen.encoded_len() > MAX_GRAPH {
        return Err(Error::invalid(
            "the frozen graph exceeds 2 GiB, the limit of a GraphDef; exclude variables with \
             --variable_names_denylist",
        ));
    }
    Ok(frozen.encode_to_vec())
}

/// The graph to freeze, with the saver and the checkpoint that its file names.
struct Source {
    graph: GraphDef,
    saver: Option<SaverDef>,
    /// Checkpoint of a SavedModel.
    saved_model: Option<PathBuf>,
}

/// Reads the graph from the MetaGraph, else the SavedModel, else the GraphDef.
fn read_source(options: &FreezeOptions) -> Result<Source> {
    let from_meta = |meta: MetaGraphDef, saved_model| Source {
        graph: meta.graph_def.unwrap_or_default(),
        saver: meta.saver_def.filter(|saver| !saver.restore_op_name.is_empty()),
        saved_model,
    };
    let mut source = None;
    if let Some(directory) = &options.input_saved_model_dir {
        let meta = read_saved_model(directory, &options.saved_model_tags)?;
        source = Some(from_meta(meta, Some(directory.join("variables").join("variables"))));
    } else if let Some(path) = &options.input_graph {
        must_exist("Input graph file", path)?;
        source = Some(Source { graph: source::read_graph_def(path)?, saver: None, saved_model: None });
    }
    if let Some(path) = &options.input_meta_graph {
        must_exist("Input meta graph file", path)?;
        let name = path.display().to_string();
        source = Some(from_meta(saved_model::parse_meta_graph(source::read_bytes(path)?, &name)?, None));
    }
    source.ok_or_else(|| {
        Error::invalid("Must specify --input_graph, --input_meta_graph or --input_saved_model_dir")
    })
}

/// Reads the MetaGraph with exactly these tags from a SavedModel.
fn read_saved_model(directory: &Path, tags: &str) -> Result<MetaGraphDef> {
    let file = if directory.is_dir() { saved_model::file(directory).ok().flatten() } else { None };
    let file = file.ok_or_else(|| {
        Error::invalid(format!(
            "SavedModel file does not exist at: {}/{{saved_model.pbtxt|saved_model.pb}}",
            directory.display()
        ))
    })?;
    saved_model::meta_graph(source::read_bytes(&file)?, &file.display().to_string(), Some(tags))
}

fn must_exist(what: &str, path: &Path) -> Result<()> {
    if path.exists() {
        return Ok(());
    }
    Err(Error::invalid(format!("{what} '{}' does not exist!", path.display())))
}

fn missing(checkpoint: &Path) -> Error {
    Error::invalid(format!("Input checkpoint '{}' doesn't exist!", checkpoint.display()))
}

/// Ways to restore variables from a checkpoint.
#[derive(Clone, Copy, Debug)]
pub enum Restore<'a> {
    /// Restores like the restore op of a saver.
    Saver(&'a SaverDef),
    /// Like `Saver`, but the restore op may be in a function. Variables that it does not restore
    /// are restored by name.
    SavedModel(&'a SaverDef),
    /// Restores by the variables' names, which are keys of the checkpoint or names in its object
    /// graph.
    Names,
}

/// Nodes to keep and variables to freeze.
#[derive(Clone, Debug, Default)]
pub struct Choice {
    /// Output nodes. They are kept with everything upstream of them.
    pub outputs: Vec<String>,
    /// If not empty, the only variables that become constants.
    pub whitelist: BTreeSet<String>,
    /// Variables that remain variables.
    pub denylist: BTreeSet<String>,
    /// Removes the devices of nodes.
    pub clear_devices: bool,
    /// Nodes to run after the checkpoint is restored.
    pub initializer_nodes: Vec<String>,
}

impl Choice {
    fn freezes(&self, variable: &str) -> bool {
        (self.whitelist.is_empty() || self.whitelist.contains(variable)) && !self.denylist.contains(variable)
    }
}

/// Replaces the variables that the outputs need by constants, and removes nodes that the outputs do
/// not need.
pub fn freeze_graph(
    mut graph: GraphDef,
    restore: Restore<'_>,
    checkpoint: &Checkpoint,
    choice: &Choice,
) -> Result<GraphDef> {
    for node in &mut graph.node {
        if choice.clear_devices {
            node.device.clear();
        }
        // SavedModels omit default values. A missing attribute without a default is reported when
        // the graph is loaded.
        if let Some(op) = op_def::lookup(&node.op) {
            let _ = op_def::fill_defaults(op, &mut node.attr);
        }
    }
    let mut session = Session::new(&graph.node, checkpoint)?;
    match restore {
        Restore::Saver(saver) => {
            session.run(&saver.restore_op_name).map_err(|e| e.context("the saver's restore op"))?
        }
        Restore::SavedModel(saver) => session.restore_saved_model(&graph, saver)?,
        Restore::Names => {
            check_names(&graph, &session, checkpoint)?;
            session.restore_by_name()?;
        }
    }
    for node in &choice.initializer_nodes {
        session.run(node).map_err(|e| e.context(format!("initializer node '{node}'")))?;
    }
    let variables = Variables::new(&graph, session, checkpoint);
    let needed = subgraph::extract(&graph, &choice.outputs)?;
    convert::convert(&graph, &needed, &variables, choice)
}

/// Checks that variables can be restored by name, with the original's error messages.
fn check_names(graph: &GraphDef, session: &Session<'_>, checkpoint: &Checkpoint) -> Result<()> {
    // Keys that name nodes of the graph.
    let keys: Vec<&str> = checkpoint.names().filter(|name| session.node(name).is_some()).collect();
    let other = keys.iter().any(|key| session.node(key).is_some_and(|node| !is_variable(&node.op)));
    let is_part = |name: &str| {
        name.split_once("/part_").is_some_and(|(_, rest)| {
            let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
            digits > 0 && rest[digits..].is_empty()
        })
    };
    let parts = || graph.node.iter().filter(|node| is_variable(&node.op) && is_part(&node.name));
    if other && keys.iter().any(|key| parts().any(|part| part.name.contains(key))) {
        return Err(Error::invalid(
            "Models containing partition variables cannot be converted from checkpoint files. Please pass in a SavedModel \
             using the flag --input_saved_model_dir.",
        ));
    }
    let functions = graph.library.iter().flat_map(|library| &library.function);
    let mut nodes = graph.node.iter().chain(functions.flat_map(|function| &function.node_def));
    if nodes.any(|node| is_variable(&node.op)) {
        return Ok(());
    }
    Err(Error::invalid(
        "No variables were found in this model. It is likely the model was frozen previously. You cannot freeze a graph \
         twice.",
    ))
}

fn is_variable(op: &str) -> bool {
    matches!(op, "VariableV2" | "Variable" | "AutoReloadVariable" | "VarHandleOp")
}

/// Name of the node that an input refers to.
fn base_name(input: &str) -> &str {
    let input = input.strip_prefix('^').unwrap_or(input);
    input.split(':').next().unwrap_or(input)
}

/// Values of variables after the checkpoint is restored and the initializers have run.
struct Variables<'a> {
    session: Session<'a>,
    checkpoint: &'a Checkpoint,
    /// The graph's variables by node name and by shared name.
    shared: BTreeMap<&'a str, &'a str>,
}

impl<'a> Variables<'a> {
    fn new(graph: &'a GraphDef, session: Session<'a>, checkpoint: &'a Checkpoint) -> Self {
        let variables = graph.node.iter().filter(|node| is_variable(&node.op));
        let names =
            variables.flat_map(|node| names_of(node).into_iter().map(|name| (name, node.name.as_str())));
        Self { session, checkpoint, shared: names.collect() }
    }

    /// Value of a variable. A handle within a function denotes the graph's variable with the same
    /// shared name.
    fn value(&self, node: &NodeDef, in_function: bool) -> Result<Value> {
        let names = names_of(node);
        let variable = if in_function {
            names.iter().rev().find_map(|name| self.shared.get(name)).copied()
        } else {
            Some(node.name.as_str())
        };
        let mut value = match variable {
            Some(name) => self.session.value(name)?,
            None => None,
        };
        if value.is_none() {
            value = self.session.value_by_name(&names)?;
        }
        let value = value.ok_or_else(|| {
            let stored: Vec<&str> = self.checkpoint.names().take(8).collect();
            Error::invalid(format!(
                "Attempting to use uninitialized value {}: the outputs need this variable (op {}), but the checkpoint has \
                 no value for it; it contains: {}",
                node.name,
                node.op,
                stored.join(", ")
            ))
        })?;
        check_variable(node, &value)?;
        Ok(value)
    }
}

/// Names of a variable: its node's name, followed by its shared name if that is different.
fn names_of(variable: &NodeDef) -> Vec<&str> {
    let shared = match variable.attr.get("shared_name").and_then(|v| v.value.as_ref()) {
        Some(attr_value::Value::S(shared)) => {
            std::str::from_utf8(shared).ok().filter(|name| !name.is_empty())
        }
        _ => None,
    };
    let mut names = vec![variable.name.as_str()];
    names.extend(shared.filter(|shared| *shared != variable.name));
    names
}

/// Checks that a value has the type and shape that the graph states for the variable.
fn check_variable(variable: &NodeDef, value: &Value) -> Result<()> {
    let name = &variable.name;
    let stated = |attr: &str| variable.attr.get(attr).and_then(|v| v.value.as_ref());
    let data_type = value.data_type();
    if let Some(&attr_value::Value::Type(number)) = stated("dtype")
        && number != data_type.number()
    {
        let stated = crate::DataType::from_number(number).map_or("an unknown type", |t| t.name());
        return Err(Error::invalid(format!(
            "variable '{name}' has type {stated} in the graph, but {data_type} in the checkpoint"
        )));
    }
    if let Some(attr_value::Value::Shape(shape)) = stated("shape") {
        let shape = PartialShape::from_proto(shape).map_err(|e| e.context(format!("node '{name}'")))?;
        let sizes = value.sizes();
        if !shape.allows(&sizes) {
            let stored = PartialShape::known(&sizes);
            return Err(Error::invalid(format!(
                "variable '{name}' has shape {shape} in the graph, but {stored} in the checkpoint"
            )));
        }
    }
    Ok(())
}
