//! Replacement of a model's variables and tables.

use super::{Contents, LoadOptions, Model, VariablesToFeed};
use crate::bind::{Bindings, Bound, constant};
use crate::checkpoint::Checkpoint;
use crate::prepare::Reached;
use crate::proto::{AssetFileDef, GraphDef, NodeDef, SaverDef, Variable};
use crate::saved_model::{self, Assets, Trace, restore};
use crate::{Attributes, DataType, PartialShape, source};
use bytes::Bytes;
use shape::Literal;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use support::{Code, Coded as _, Error, Result};

/// Replacements of the needed variables and tables.
pub(super) fn bindings(
    contents: &Contents,
    graph: &GraphDef,
    reached: &Reached,
    options: &LoadOptions,
    model: &mut Model,
) -> Result<Bindings> {
    let mut bindings = Bindings::default();
    let path = options.checkpoint.as_ref().or(contents.checkpoint.as_ref());
    let has_values = path.is_some() || contents.directory.is_some() || contents.foreign.is_some();
    let stays = remaining_variables(graph, reached, options, has_values).coded(Code::Variable)?;
    if let Some((_, initial)) = &contents.foreign {
        variables(graph, &Values::Foreign(initial), reached, &stays, &mut bindings, model)
            .coded(Code::Variable)?;
    } else if let Some(path) = path {
        let checkpoint = Checkpoint::open(path)?;
        let saver = contents.meta.saver_def.as_ref();
        let values = Values::of_checkpoint(graph, saver, &checkpoint).coded(Code::Checkpoint)?;
        variables(graph, &values, reached, &stays, &mut bindings, model).coded(Code::Checkpoint)?;
        let mut index = path.as_os_str().to_owned();
        index.push(".index");
        // Version 1 has none.
        if Path::new(&index).is_file() {
            model.files.push(("variables".to_owned(), source::read_bytes(Path::new(&index))?));
        }
    } else if let Some((variable, _)) =
        reached.variables.iter().find(|(_, handles)| !is_among(&stays, handles))
    {
        return Err(Error::invalid(format!(
            "variable '{}' has no value, because there is no checkpoint next to the model; give one with --checkpoint, or \
             let the caller supply the variables with --variables-to-feed=all",
            variable.node_name
        ))
        .coded(Code::Variable));
    }
    tables(contents, graph, reached, &mut bindings)?;
    Ok(bindings)
}

/// Nodes of the variables that remain variables. Without values, these are all variables.
fn remaining_variables<'a>(
    graph: &GraphDef,
    reached: &'a Reached,
    options: &'a LoadOptions,
    has_values: bool,
) -> Result<BTreeSet<&'a str>> {
    let configured = options.config.iter().flat_map(|config| &config.variable);
    let all = reached.variables.iter().map(|(variable, _)| variable);
    let written = all.clone().filter(|variable| !variable.readonly).chain(configured);
    let mut stays: BTreeSet<&str> = written.map(|variable| variable.node_name.as_str()).collect();
    match &options.variables_to_feed {
        VariablesToFeed::Written if has_values => {}
        VariablesToFeed::Written | VariablesToFeed::All => {
            stays.extend(all.map(|variable| variable.node_name.as_str()));
        }
        VariablesToFeed::Named(names) => {
            let known: BTreeSet<&str> =
                graph.node.iter().filter(|node| is_variable(node)).map(|node| node.name.as_str()).collect();
            let listed = |names: Vec<&str>| {
                names.into_iter().map(|name| format!("'{name}'")).collect::<Vec<_>>().join(", ")
            };
            let unknown: Vec<&str> =
                names.iter().map(String::as_str).filter(|name| !known.contains(name)).collect();
            if !unknown.is_empty() {
                return Err(Error::invalid(format!(
                    "Asked to feed variables that were not found in graph: {{{}}}. Variables contained in the graph: [{}]",
                    listed(unknown),
                    listed(known.into_iter().collect())
                )));
            }
            stays.extend(names.iter().map(String::as_str));
        }
    }
    Ok(stays)
}

/// True if one of a variable's handles is among the nodes that remain variables.
fn is_among(stays: &BTreeSet<&str>, handles: &[String]) -> bool {
    handles.iter().any(|handle| stays.contains(handle.as_str()))
}

fn is_variable(node: &NodeDef) -> bool {
    matches!(node.op.as_str(), "VarHandleOp" | "VariableV2" | "Variable" | "AutoReloadVariable")
}

/// Where the values of variables are.
enum Values<'a> {
    /// In a checkpoint, by the saver's source or else by name.
    Checkpoint {
        checkpoint: &'a Checkpoint,
        sources: BTreeMap<String, restore::Source>,
        keys: BTreeMap<String, String>,
    },
    /// In a model of another format, by shared name.
    Foreign(&'a BTreeMap<String, Literal>),
}

impl<'a> Values<'a> {
    fn of_checkpoint(graph: &GraphDef, saver: Option<&SaverDef>, checkpoint: &'a Checkpoint) -> Result<Self> {
        let sources = saver.map(|saver| restore::sources(graph, saver)).transpose()?.unwrap_or_default();
        Ok(Self::Checkpoint { checkpoint, sources, keys: checkpoint.variable_keys()? })
    }

    /// The value of a variable; `None` if there is none.
    fn get(&self, node: &NodeDef, handles: &[String]) -> Result<Option<(DataType, Literal)>> {
        match self {
            Self::Checkpoint { checkpoint, sources, keys } => {
                let source = handles.iter().find_map(|handle| sources.get(handle));
                restore::value(node, source, keys, checkpoint)
            }
            Self::Foreign(initial) => {
                let attributes = Attributes::new(&node.name, &node.op, node.attr.clone());
                let value = initial.get(attributes.text("shared_name")?);
                value.map(|value| Ok((attributes.ty("dtype")?, value.clone()))).transpose()
            }
        }
    }

    /// Where the values are, for messages.
    fn place(&self) -> &'static str {
        match self {
            Self::Checkpoint { .. } => "checkpoint",
            Self::Foreign(_) => "model",
        }
    }

    /// The names of some values.
    fn names(&self) -> Vec<&str> {
        match self {
            Self::Checkpoint { checkpoint, .. } => checkpoint.names().take(8).collect(),
            Self::Foreign(initial) => initial.keys().take(8).map(String::as_str).collect(),
        }
    }
}

/// Reads the values of the needed variables. They become constants, or initial values of the
/// variables in `stays`.
fn variables(
    graph: &GraphDef,
    values: &Values<'_>,
    reached: &Reached,
    stays: &BTreeSet<&str>,
    bindings: &mut Bindings,
    model: &mut Model,
) -> Result<()> {
    let place = values.place();
    let nodes: BTreeMap<&str, &NodeDef> = graph.node.iter().map(|node| (node.name.as_str(), node)).collect();
    let mut written = Vec::new();
    for (Variable { node_name, readonly, .. }, handles) in &reached.variables {
        let node = nodes[node_name.as_str()];
        let value = values.get(node, handles)?;
        let stays = is_among(stays, handles);
        let Some((data_type, literal)) = value else {
            if stays {
                continue;
            }
            return Err(Error::invalid(format!(
                "variable '{node_name}' (op {}) is needed, but the {place} has no value for it; it contains: {}",
                node.op,
                values.names().join(", ")
            )));
        };
        check(node, data_type, &literal, place)?;
        if stays {
            model.initial.insert(node_name.clone(), literal);
            if !readonly {
                written.push(node_name.as_str());
            }
            continue;
        }
        let sizes = literal.array_shape().sizes();
        for handle in handles {
            let node = nodes[handle.as_str()];
            let input = node.input.iter().filter(|input| input.starts_with('^')).cloned().collect();
            let constant = constant(handle, data_type, &sizes, literal.bytes().clone());
            let bound = Bound::Value { data_type, reference: node.op != "VarHandleOp" };
            bindings.nodes.insert(handle.clone(), (bound, NodeDef { input, ..constant }));
        }
    }
    if let [first, rest @ ..] = written.as_slice() {
        model.notes.push(match rest.len() {
            0 => format!(
                "variable '{first}' remains a variable because the program writes it; its initial value is in the \
                 {place}"
            ),
            more => format!(
                "{} variables remain variables because the program writes them: '{first}' and {more} more; their \
                 initial values are in the {place}",
                more + 1
            ),
        });
    }
    Ok(())
}

/// Checks that a value has the type and shape that the graph states for its variable.
fn check(node: &NodeDef, data_type: DataType, literal: &Literal, place: &str) -> Result<()> {
    use crate::proto::attr_value::Value;
    let stated = |attribute: &str| node.attr.get(attribute).and_then(|value| value.value.as_ref());
    let name = &node.name;
    if let Some(Value::Type(number)) = stated("dtype")
        && DataType::from_number(*number).map(DataType::base) != Some(data_type)
    {
        let stated = DataType::from_number(*number).map_or("an unknown type", DataType::name);
        return Err(Error::invalid(format!(
            "variable '{name}' has type {stated} in the graph, but {data_type} in the {place}"
        )));
    }
    if let Some(Value::Shape(shape)) = stated("shape") {
        let shape = PartialShape::from_proto(shape).map_err(|e| e.context(format!("node '{name}'")))?;
        let sizes = literal.array_shape().sizes();
        if !shape.allows(&sizes) {
            let stored = PartialShape::known(&sizes);
            return Err(Error::invalid(format!(
                "variable '{name}' has shape {shape} in the graph, but {stored} in the {place}"
            )));
        }
    }
    Ok(())
}

/// Creates lookup functions for the needed tables.
fn tables(contents: &Contents, graph: &GraphDef, reached: &Reached, bindings: &mut Bindings) -> Result<()> {
    let needed = graph.node.iter().zip(&reached.needed).filter(|(_, needed)| **needed).map(|(node, _)| node);
    let tables: BTreeMap<&str, &NodeDef> =
        needed.filter(|node| saved_model::is_table(node)).map(|node| (node.name.as_str(), node)).collect();
    if tables.is_empty() {
        return Ok(());
    }
    let mut trace = Trace::new(graph);
    // A GraphDef does not name its initializers, so all nodes are searched.
    let roots = match saved_model::initializers(&contents.meta) {
        roots if roots.is_empty() => graph.node.iter().map(|node| node.name.clone()).collect(),
        roots => roots,
    };
    let steps = trace.steps(&roots.iter().map(String::as_str).collect::<Vec<_>>())?;
    let files: &[AssetFileDef] = &contents.meta.asset_file_def;
    let assets = Assets::new(contents.directory.as_deref(), files);
    let mut taken: BTreeSet<String> = graph
        .library
        .iter()
        .flat_map(|library| &library.function)
        .filter_map(|function| Some(function.signature.as_ref()?.name.clone()))
        .collect();
    for (name, table) in saved_model::tables(&trace, &steps, &tables, &assets)? {
        let mut unused = |base: String| {
            let mut unused = base;
            while !taken.insert(unused.clone()) {
                unused.push('_');
            }
            unused
        };
        let (find, size) = (unused(format!("{name}__find")), unused(format!("{name}__size")));
        bindings.functions.extend(saved_model::table_functions(&find, &size, &table));
        let handle = constant(&name, DataType::Int32, &[], Bytes::from_static(&[0; 4]));
        bindings.nodes.insert(name, (Bound::Table { find, size }, handle));
    }
    Ok(())
}
