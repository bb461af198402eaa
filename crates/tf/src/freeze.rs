//! Freezing: a graph whose variables are constants with the values of a checkpoint.

use crate::checkpoint::Checkpoint;
use crate::proto::{
    AttrValue, Dim, GraphDef, NodeDef, SaverDef, TensorProto, TensorShapeProto, attr_value::Value,
};
use crate::tensor::Tensor;
use crate::{DataType, PartialShape, source};
use prost::Message;
use shape::Literal;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use support::{Error, Result};

/// What to freeze, in the words of `freeze_graph`'s flags.
#[derive(Clone, Debug)]
pub struct FreezeOptions {
    /// A GraphDef; text or binary is told by its content.
    pub input_graph: PathBuf,
    /// A SaverDef. With it, values are restored as its restore op would; else by the variables' names.
    pub input_saver: Option<PathBuf>,
    /// The checkpoint; its version is told by its files.
    pub input_checkpoint: PathBuf,
    /// 1 or 2. Nothing depends on it, but other numbers are refused, as the original does.
    pub checkpoint_version: i64,
    /// The nodes to keep with all they need, separated by commas.
    pub output_node_names: String,
    /// Whether to drop the nodes' devices.
    pub clear_devices: bool,
}

/// Reads graph and checkpoint, and makes the bytes of the frozen GraphDef.
pub fn freeze(options: &FreezeOptions) -> Result<Vec<u8>> {
    let outputs: Vec<&str> =
        options.output_node_names.split(',').map(str::trim).filter(|name| !name.is_empty()).collect();
    if outputs.is_empty() {
        return Err(Error::invalid("You need to supply the name of a node to --output_node_names."));
    }
    if !matches!(options.checkpoint_version, 1 | 2) {
        return Err(Error::invalid(format!(
            "Invalid checkpoint version (must be '1' or '2'): {}",
            options.checkpoint_version
        )));
    }
    must_exist("Input graph file", &options.input_graph)?;
    let checkpoint = Checkpoint::open(&options.input_checkpoint)?;
    let graph = source::read_graph_def(&options.input_graph)?;
    let saver = match &options.input_saver {
        Some(path) => {
            must_exist("Input saver file", path)?;
            Some(source::read_saver_def(path)?)
        }
        None => None,
    };
    let mut frozen = freeze_graph(graph, saver.as_ref(), &checkpoint, &outputs)?;
    if options.clear_devices {
        let functions = frozen.library.iter_mut().flat_map(|l| &mut l.function);
        let nodes = functions.flat_map(|f| &mut f.node_def).chain(&mut frozen.node);
        nodes.for_each(|node| node.device.clear());
    }
    Ok(frozen.encode_to_vec())
}

fn must_exist(what: &str, path: &Path) -> Result<()> {
    if path.exists() {
        return Ok(());
    }
    Err(Error::invalid(format!("{what} '{}' does not exist!", path.display())))
}

/// Replaces the variables that the outputs need, and drops what they don't need.
pub fn freeze_graph(
    graph: GraphDef,
    saver: Option<&SaverDef>,
    checkpoint: &Checkpoint,
    outputs: &[&str],
) -> Result<GraphDef> {
    let nodes = Nodes::new(&graph.node)?;
    if !graph.node.iter().any(|node| is_variable(&node.op)) {
        return Err(Error::invalid(
            "No variables were found in this model. It is likely the model was frozen previously. You cannot freeze a \
             graph twice.",
        ));
    }
    let keys = match saver {
        Some(saver) => restored_keys(&nodes, saver)?,
        None => BTreeMap::new(),
    };
    let needed = nodes.needed(outputs)?;
    let mut frozen = Vec::with_capacity(needed.len());
    // What carries a variable's handle or reference, and the variable.
    let mut handles: BTreeMap<&str, &NodeDef> = BTreeMap::new();
    let order = nodes.in_order(&needed);
    for node in &order {
        if is_variable(&node.op) {
            handles.insert(&node.name, node);
        } else if matches!(node.op.as_str(), "Identity" | "RefIdentity")
            && let Some(variable) = node.input.first().and_then(|input| handles.get(base_name(input)))
            && variable.op == "VarHandleOp"
        {
            let variable = *variable;
            handles.insert(&node.name, variable);
        }
    }
    for node in graph.node.iter().filter(|node| needed.contains(node.name.as_str())) {
        if is_variable(&node.op) {
            frozen.push(constant(node, keys.get(node.name.as_str()).copied(), saver.is_some(), checkpoint)?);
        } else {
            frozen.extend(reader(node, &handles)?);
        }
    }
    Ok(GraphDef { node: frozen, versions: graph.versions.clone(), library: graph.library.clone() })
}

fn is_variable(op: &str) -> bool {
    matches!(op, "VariableV2" | "Variable" | "AutoReloadVariable" | "VarHandleOp")
}

/// The name of an input's node.
fn base_name(input: &str) -> &str {
    let input = input.strip_prefix('^').unwrap_or(input);
    input.split(':').next().unwrap_or(input)
}

/// The nodes of a graph by name.
struct Nodes<'a>(BTreeMap<&'a str, &'a NodeDef>);

impl<'a> Nodes<'a> {
    fn new(nodes: &'a [NodeDef]) -> Result<Self> {
        let mut all = BTreeMap::new();
        for node in nodes {
            if all.insert(node.name.as_str(), node).is_some() {
                return Err(Error::invalid(format!("two nodes have the name '{}'", node.name)));
            }
        }
        Ok(Self(all))
    }

    /// The names of the outputs and of all they need.
    fn needed(&self, outputs: &[&str]) -> Result<BTreeSet<&'a str>> {
        let mut needed = BTreeSet::new();
        let mut work = Vec::new();
        for output in outputs {
            let (name, _) = self.0.get_key_value(base_name(output)).ok_or_else(|| {
                Error::invalid(format!("{output} is not in graph: --output_node_names must name nodes of it"))
            })?;
            work.push(*name);
        }
        while let Some(name) = work.pop() {
            if !needed.insert(name) {
                continue;
            }
            for input in &self.0[name].input {
                let (input, _) = self
                    .0
                    .get_key_value(base_name(input))
                    .ok_or_else(|| Error::invalid(format!("node '{name}' input '{input}' names no node")))?;
                work.push(*input);
            }
        }
        Ok(needed)
    }

    /// Some nodes such that what they read comes first, as far as there is no cycle.
    fn in_order(&self, names: &BTreeSet<&'a str>) -> Vec<&'a NodeDef> {
        let mut order = Vec::new();
        let mut seen = BTreeSet::new();
        for &root in names {
            let mut work = vec![(root, false)];
            while let Some((name, done)) = work.pop() {
                if done {
                    order.push(self.0[name]);
                } else if seen.insert(name) {
                    work.push((name, true));
                    let inputs = self.0[name].input.iter().map(|input| base_name(input));
                    work.extend(
                        inputs.filter_map(|input| self.0.get_key_value(input)).map(|(n, _)| (*n, false)),
                    );
                }
            }
        }
        order
    }

    /// The node that an input's value comes from, looking through copies.
    fn origin(&self, input: &str) -> Option<(&'a NodeDef, usize)> {
        let mut input = input.to_owned();
        for _ in 0..=self.0.len() {
            let index = input.rsplit_once(':').map_or(Some(0), |(_, index)| index.parse().ok())?;
            let node = *self.0.get(base_name(&input))?;
            match node.op.as_str() {
                "Identity" | "RefIdentity" | "PlaceholderWithDefault" => input = node.input.first()?.clone(),
                _ => return Some((node, index)),
            }
        }
        None
    }
}

/// Which tensor of the checkpoint the saver's restore op gives each variable.
fn restored_keys<'a>(nodes: &Nodes<'a>, saver: &SaverDef) -> Result<BTreeMap<&'a str, &'a str>> {
    let restore = base_name(&saver.restore_op_name);
    if !nodes.0.contains_key(restore) {
        return Err(Error::invalid(format!(
            "The name '{restore}', the saver's restore_op_name, refers to an Operation not in the graph."
        )));
    }
    let mut keys = BTreeMap::new();
    for name in nodes.needed(&[restore])? {
        let assign = nodes.0[name];
        if !matches!(assign.op.as_str(), "Assign" | "AssignVariableOp") || assign.input.len() < 2 {
            continue;
        }
        let Some((variable, _)) = nodes.origin(&assign.input[0]) else { continue };
        let Some((source, index)) = nodes.origin(&assign.input[1]) else { continue };
        if !matches!(source.op.as_str(), "RestoreV2" | "Restore" | "RestoreSlice") {
            continue;
        }
        let key =
            source.input.get(1).and_then(|input| nodes.origin(input)).and_then(|(names, _)| {
                match names.attr.get("value")?.value.as_ref()? {
                    Value::Tensor(names) => std::str::from_utf8(names.string_val.get(index)?).ok(),
                    _ => None,
                }
            });
        let key = key.ok_or_else(|| {
            Error::invalid(format!(
                "node '{}' (op {}) does not say which tensor of the checkpoint variable '{}' has",
                source.name, source.op, variable.name
            ))
        })?;
        keys.insert(variable.name.as_str(), key);
    }
    Ok(keys)
}

/// The constant that a variable becomes.
fn constant(
    variable: &NodeDef,
    restored: Option<&str>,
    has_saver: bool,
    checkpoint: &Checkpoint,
) -> Result<NodeDef> {
    let name = &variable.name;
    let shared_name = match variable.attr.get("shared_name").and_then(|v| v.value.as_ref()) {
        Some(Value::S(shared)) => std::str::from_utf8(shared).ok().filter(|shared| !shared.is_empty()),
        _ => None,
    };
    let candidates = match restored {
        Some(key) => vec![key],
        None if has_saver => vec![],
        None => [Some(name.as_str()), shared_name].into_iter().flatten().collect(),
    };
    let mut found = None;
    for key in candidates {
        found = checkpoint.tensor(key)?;
        if found.is_some() {
            break;
        }
    }
    let (data_type, literal) = found.ok_or_else(|| {
        let stored: Vec<&str> = checkpoint.names().take(8).collect();
        Error::invalid(format!(
            "variable '{name}' (op {}) is needed, but the checkpoint has no value for it; it has: {}",
            variable.op,
            stored.join(", ")
        ))
    })?;
    check_variable(variable, data_type, &literal)?;
    let sizes = literal.array_shape().sizes();
    let tensor = TensorProto {
        dtype: data_type.number(),
        tensor_shape: Some(TensorShapeProto {
            dim: sizes.iter().map(|&size| Dim { size, name: String::new() }).collect(),
            unknown_rank: false,
        }),
        tensor_content: literal.bytes().clone(),
        ..TensorProto::default()
    };
    // An empty content would be read as zeros, which an empty tensor is too.
    debug_assert!(Tensor::new(&tensor).is_ok());
    let attr = BTreeMap::from([
        ("dtype".to_owned(), AttrValue::from(Value::Type(data_type.number()))),
        ("value".to_owned(), Value::Tensor(Box::new(tensor)).into()),
    ]);
    let input = variable.input.iter().filter(|input| input.starts_with('^')).cloned().collect();
    Ok(NodeDef { name: name.clone(), op: "Const".to_owned(), input, device: variable.device.clone(), attr })
}

fn check_variable(variable: &NodeDef, data_type: DataType, literal: &Literal) -> Result<()> {
    let name = &variable.name;
    let stated = |attr: &str| variable.attr.get(attr).and_then(|v| v.value.as_ref());
    if let Some(&Value::Type(number)) = stated("dtype")
        && number != data_type.number()
    {
        let stated = DataType::from_number(number).map_or("no type", |t| t.name());
        return Err(Error::invalid(format!(
            "variable '{name}' has type {stated} in the graph, but {data_type} in the checkpoint"
        )));
    }
    if let Some(Value::Shape(shape)) = stated("shape") {
        let shape = PartialShape::from_proto(shape).map_err(|e| e.context(format!("node '{name}'")))?;
        let sizes = literal.array_shape().sizes();
        if !shape.allows(&sizes) {
            let stored = PartialShape::known(&sizes);
            return Err(Error::invalid(format!(
                "variable '{name}' has shape {shape} in the graph, but {stored} in the checkpoint"
            )));
        }
    }
    Ok(())
}

/// A node that is no variable, and what it needs, with its variables read as the constants they became.
fn reader(node: &NodeDef, handles: &BTreeMap<&str, &NodeDef>) -> Result<Vec<NodeDef>> {
    let data = |i: usize| node.input.get(i).filter(|input| !input.starts_with('^'));
    let used: Vec<&NodeDef> = node
        .input
        .iter()
        .filter(|input| !input.starts_with('^'))
        .filter_map(|input| handles.get(base_name(input)).copied())
        .collect();
    let Some(variable) = used.first() else { return Ok(vec![node.clone()]) };
    let mut node = node.clone();
    let attr = |name: &str| variable.attr.get(name).cloned().unwrap_or_default();
    let dtype = attr("dtype");
    let is_handle = variable.op == "VarHandleOp";
    match node.op.as_str() {
        "ReadVariableOp" => {
            node.op = "Identity".to_owned();
            node.attr = BTreeMap::from([("T".to_owned(), dtype)]);
        }
        "Identity" if is_handle => {
            node.attr.insert("T".to_owned(), dtype);
        }
        "VariableShape" => {
            node.op = "Shape".to_owned();
            node.attr.insert("T".to_owned(), dtype);
        }
        "ResourceGather" if data(1).is_some() => {
            let axis = axis_of(&node);
            let params = node.attr.remove("dtype").unwrap_or(dtype);
            node.op = "GatherV2".to_owned();
            node.input.insert(2, axis.name.clone());
            node.attr.insert("Tparams".to_owned(), params);
            node.attr.insert("Taxis".to_owned(), Value::Type(DataType::Int32.number()).into());
            node.attr.remove("validate_indices");
            return Ok(vec![axis, node]);
        }
        "RefIdentity" | "RefSwitch" | "RefEnter" | "RefExit" | "RefMerge" | "RefNextIteration" => {
            node.op = node.op["Ref".len()..].to_owned();
        }
        op if is_handle
            || op.starts_with("Assign")
            || op.starts_with("Scatter")
            || op.starts_with("Apply") =>
        {
            return Err(Error::unsupported(format!(
                "node '{}' (op {op}) uses variable '{}' in a way that a constant cannot replace; choose \
                 --output_node_names that only read it",
                node.name, variable.name
            )));
        }
        _ => {}
    }
    Ok(vec![node])
}

/// The constant 0, the axis along which variables are gathered.
fn axis_of(node: &NodeDef) -> NodeDef {
    let tensor = TensorProto {
        dtype: DataType::Int32.number(),
        tensor_shape: Some(TensorShapeProto::default()),
        int_val: vec![0],
        ..TensorProto::default()
    };
    let attr = BTreeMap::from([
        ("dtype".to_owned(), AttrValue::from(Value::Type(DataType::Int32.number()))),
        ("value".to_owned(), Value::Tensor(Box::new(tensor)).into()),
    ]);
    NodeDef { name: format!("{}/axis", node.name), op: "Const".to_owned(), attr, ..NodeDef::default() }
}
