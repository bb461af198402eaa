//! Variables to constants in the body of a graph or function, and whatever takes their handles to
//! what takes their values.

use super::functions::{Functions, flat_output, function_attributes};
use super::{Choice, Variables, constant, is_variable};
use crate::proto::{AttrValue, GraphDef, NodeDef, TensorShapeProto, attr_value::Value};
use crate::{DataType, op_def};
use std::collections::{BTreeMap, BTreeSet};
use support::{Error, Result};

/// Kinds of outputs after variables have become constants.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Frozen {
    pub(super) kind: Kind,
    /// The type of the value.
    pub(super) data_type: i32,
    pub(super) sizes: Vec<i64>,
    /// The variable, for messages.
    pub(super) variable: String,
}

/// Original kind of an output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    /// A handle: its value takes its place.
    Handle,
    /// A reference to a mutable tensor.
    Reference,
    /// The value itself, from a reference.
    Plain,
}

/// Which outputs are frozen, by name of node and number of output.
pub(super) type FrozenOutputs = BTreeMap<(String, usize), Frozen>;

/// The nodes of a graph or function, and the arguments of the latter.
pub(super) struct Body<'a> {
    pub(super) nodes: Vec<&'a NodeDef>,
    /// `None` for the graph itself.
    pub(super) function: Option<&'a str>,
    pub(super) arguments: FrozenOutputs,
}

/// Replaces variables in the needed part of a graph, and in the functions that it calls.
pub(super) fn convert(
    graph: &GraphDef,
    needed: &BTreeSet<&str>,
    variables: &Variables<'_>,
    choice: &Choice,
) -> Result<GraphDef> {
    let mut functions = Functions::new(graph, variables, choice);
    let nodes = graph.node.iter().filter(|node| needed.contains(node.name.as_str())).collect();
    let body = Body { nodes, function: None, arguments: FrozenOutputs::new() };
    let frozen = frozen_outputs(&body, &mut functions)?;
    let (mut nodes, added) = emit(&body, &frozen, &mut functions)?;
    nodes.extend(added);
    // An empty library is written, as the original writes it.
    let library = Some(functions.finish(&nodes));
    Ok(GraphDef { node: nodes, versions: graph.versions.clone(), library })
}

/// Follows handles and references from variables and arguments to all that they reach.
pub(super) fn frozen_outputs(body: &Body<'_>, functions: &mut Functions<'_>) -> Result<FrozenOutputs> {
    functions.count(body.nodes.len())?;
    let by_name: BTreeMap<&str, &NodeDef> =
        body.nodes.iter().map(|node| (node.name.as_str(), *node)).collect();
    let mut users: BTreeMap<&str, Vec<&NodeDef>> = BTreeMap::new();
    for node in &body.nodes {
        let inputs: BTreeSet<&str> =
            node.input.iter().filter(|i| !i.starts_with('^')).map(|i| super::base_name(i)).collect();
        inputs.into_iter().for_each(|input| users.entry(input).or_default().push(node));
    }
    let mut frozen = body.arguments.clone();
    let mut work: Vec<&NodeDef> = Vec::new();
    for (name, _) in body.arguments.keys() {
        work.extend(users.get(name.as_str()).into_iter().flatten());
    }
    for node in &body.nodes {
        if is_variable(&node.op) && functions.freezes(node) {
            let value = functions.value(node, body.function.is_some())?;
            let kind = if node.op == "VarHandleOp" { Kind::Handle } else { Kind::Reference };
            let variable = node.name.clone();
            let (data_type, sizes) = (value.data_type().number(), value.sizes());
            frozen.insert((node.name.clone(), 0), Frozen { kind, data_type, sizes, variable });
            work.extend(users.get(node.name.as_str()).into_iter().flatten());
        }
    }
    while let Some(node) = work.pop() {
        let inputs = inputs_of(node, &by_name, &frozen, functions);
        let mut grown = false;
        for (output, value) in results(node, &inputs, functions)? {
            grown |= frozen.insert((node.name.clone(), output), value.clone()).is_none_or(|old| old != value);
        }
        if grown {
            work.extend(users.get(node.name.as_str()).into_iter().flatten());
        }
    }
    Ok(frozen)
}

/// The data inputs of a node: what is frozen of them.
pub(super) fn inputs_of(
    node: &NodeDef,
    nodes: &BTreeMap<&str, &NodeDef>,
    frozen: &FrozenOutputs,
    functions: &Functions<'_>,
) -> Vec<Option<Frozen>> {
    let data = node.input.iter().filter(|input| !input.starts_with('^'));
    data.map(|input| {
        let name = super::base_name(input);
        let output = flat_output(input, nodes.get(name).copied(), functions);
        frozen.get(&(name.to_owned(), output)).cloned()
    })
    .collect()
}

/// The outputs that pass a frozen input on.
fn results(
    node: &NodeDef,
    inputs: &[Option<Frozen>],
    functions: &mut Functions<'_>,
) -> Result<Vec<(usize, Frozen)>> {
    let first = || inputs.iter().flatten().next().cloned();
    let all = |count: usize, value: Option<Frozen>| {
        value.map_or(vec![], |v| (0..count).map(|i| (i, v.clone())).collect())
    };
    // A reference that is copied is a value.
    let copied = first().map(|mut value| {
        if value.kind == Kind::Reference {
            value.kind = Kind::Plain;
        }
        value
    });
    Ok(match node.op.as_str() {
        "Identity" | "Enter" | "Exit" | "NextIteration" => all(1, copied),
        "Merge" => all(1, copied),
        "Switch" => all(2, inputs.first().cloned().flatten().and(copied)),
        "_SwitchN" => {
            let count = match node.attr.get("num_outs").and_then(|attr| attr.value.as_ref()) {
                Some(&Value::I(count)) => usize::try_from(count).unwrap_or(0).min(inputs_limit()),
                _ => 0,
            };
            all(count, inputs.first().cloned().flatten().and(copied))
        }
        "RefIdentity" | "RefEnter" | "RefExit" | "RefNextIteration" | "RefMerge" => all(1, first()),
        "RefSwitch" => all(2, inputs.first().cloned().flatten()),
        "IdentityN" => inputs.iter().enumerate().filter_map(|(i, v)| Some((i, v.clone()?))).collect(),
        _ if inputs.iter().flatten().any(|input| input.kind == Kind::Handle) => {
            functions.results(node, inputs)?
        }
        _ => vec![],
    })
}

/// Upper bound for the number of outputs of any node.
fn inputs_limit() -> usize {
    1 << 16
}

/// The nodes with variables frozen, and nodes that are added for them.
pub(super) fn emit(
    body: &Body<'_>,
    frozen: &FrozenOutputs,
    functions: &mut Functions<'_>,
) -> Result<(Vec<NodeDef>, Vec<NodeDef>)> {
    let by_name: BTreeMap<&str, &NodeDef> =
        body.nodes.iter().map(|node| (node.name.as_str(), *node)).collect();
    let mut added = Vec::new();
    let mut nodes = Vec::with_capacity(body.nodes.len());
    for node in &body.nodes {
        if is_variable(&node.op) && frozen.contains_key(&(node.name.clone(), 0)) {
            nodes.push(constant::node(&node.name, &functions.value(node, body.function.is_some())?)?);
            continue;
        }
        let inputs = inputs_of(node, &by_name, frozen, functions);
        let mut node = match inputs.iter().flatten().next() {
            Some(_) => {
                reader(node, &inputs, body.function.is_some(), &mut added, functions).map_err(|e| {
                    body.function.map_or(e.clone(), |name| e.context(format!("function '{name}'")))
                })?
            }
            None => functions.caller(node, &inputs)?,
        };
        if body.function.is_some() {
            node.input.iter_mut().for_each(|input| rename_port(input, &by_name, frozen));
        }
        nodes.push(node);
    }
    Ok((nodes, added))
}

/// Within functions outputs go by names, which differ between the ops of variables and what takes
/// their place.
pub(super) fn rename_port(input: &mut String, nodes: &BTreeMap<&str, &NodeDef>, frozen: &FrozenOutputs) {
    let Some((name, port)) = input.split_once(':') else { return };
    let Some(node) = nodes.get(name) else { return };
    let reads_frozen = || {
        let handle = node.input.first().map(|input| (super::base_name(input).to_owned(), 0));
        handle.is_some_and(|handle| frozen.contains_key(&handle))
    };
    let renamed = match (node.op.as_str(), port.split(':').next().unwrap_or(port)) {
        ("ReadVariableOp", "value") | ("VarIsInitializedOp", "is_initialized") => reads_frozen(),
        (op, "resource" | "ref") if is_variable(op) => frozen.contains_key(&(name.to_owned(), 0)),
        _ => false,
    };
    if renamed {
        *input = format!("{name}:output:0");
    }
}

/// A node that takes what is frozen, as it takes the value.
fn reader(
    node: &NodeDef,
    inputs: &[Option<Frozen>],
    in_function: bool,
    added: &mut Vec<NodeDef>,
    functions: &mut Functions<'_>,
) -> Result<NodeDef> {
    let is_handle =
        |i: usize| inputs.get(i).is_some_and(|v| v.as_ref().is_some_and(|v| v.kind == Kind::Handle));
    let types: Vec<Option<i32>> = inputs.iter().map(|v| v.as_ref().map(|v| v.data_type)).collect();
    let first = types.iter().flatten().next().copied().unwrap_or_default();
    match node.op.as_str() {
        "Identity" | "Enter" | "Exit" | "NextIteration" | "Switch" | "_SwitchN" if types[0].is_some() => {
            let mut node = node.clone();
            node.attr.insert("T".to_owned(), Value::Type(first).into());
            node.attr.remove("_output_shapes");
            Ok(node)
        }
        "Merge" => {
            let handles = (0..inputs.len()).filter(|&i| is_handle(i)).count();
            if handles > 0 && handles < inputs.len() {
                return Err(unsupported(node, inputs, "joins it with a variable that stays"));
            }
            let mut node = node.clone();
            node.attr.insert("T".to_owned(), Value::Type(first).into());
            node.attr.remove("_output_shapes");
            Ok(node)
        }
        "RefIdentity" | "RefSwitch" | "RefEnter" | "RefExit" | "RefMerge" | "RefNextIteration" => {
            Ok(NodeDef { op: node.op["Ref".len()..].to_owned(), ..node.clone() })
        }
        "IdentityN" => {
            let mut node = node.clone();
            set_types(&mut node, "T", 0, &types);
            node.attr.remove("_output_shapes");
            Ok(node)
        }
        "ReadVariableOp" if is_handle(0) => {
            let data_type = node.attr.get("dtype").cloned().unwrap_or(Value::Type(first).into());
            Ok(replaced(node, "Identity", &node.input[..1], [("T", data_type)]))
        }
        "VariableShape" if is_handle(0) => {
            let mut node = NodeDef { op: "Shape".to_owned(), ..node.clone() };
            node.attr.insert("T".to_owned(), Value::Type(first).into());
            Ok(node)
        }
        "ResourceGather" | "ResourceGatherNd" if is_handle(0) && inputs.len() == 2 => {
            gather(node, first, in_function, added)
        }
        "VarIsInitializedOp" | "IsVariableInitialized" if types[0].is_some() => {
            let literal = shape::Literal::scalar(true);
            constant::node(&node.name, &crate::checkpoint::Value::Array(DataType::Bool, literal))
        }
        op if inputs.iter().flatten().any(|v| v.kind == Kind::Handle) => {
            match function_attributes(op, functions) {
                Some(_) => functions.caller(node, inputs),
                None => Err(unsupported(node, inputs, "uses it in a way that a constant cannot replace")),
            }
        }
        op => {
            let by_reference = |i: usize| {
                let arguments = op_def::lookup(op).map_or(&[][..], |op| &op.input_arg);
                arguments.get(i).is_some_and(|argument| argument.is_ref)
            };
            let changes = |(i, v): (usize, &Option<Frozen>)| {
                v.as_ref().is_some_and(|v| v.kind == Kind::Reference) && by_reference(i)
            };
            if inputs.iter().enumerate().any(changes) {
                return Err(unsupported(node, inputs, "uses it in a way that a constant cannot replace"));
            }
            functions.caller(node, inputs)
        }
    }
}

fn unsupported(node: &NodeDef, inputs: &[Option<Frozen>], what: &str) -> Error {
    let variable = inputs.iter().flatten().next().map_or("", |v| v.variable.as_str());
    Error::unsupported(format!(
        "node '{}' (op {}) takes variable '{variable}' and {what}; choose --output_node_names that only read it, or keep it \
         with --variable_names_denylist={variable}",
        node.name, node.op
    ))
}

/// Creates the replacement of a node. It keeps the node's name, but not its device.
fn replaced<const N: usize>(
    node: &NodeDef,
    op: &str,
    input: &[String],
    attributes: [(&str, AttrValue); N],
) -> NodeDef {
    let mut attr: BTreeMap<String, AttrValue> =
        attributes.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
    if let Some(class) = node.attr.get("_class") {
        attr.insert("_class".to_owned(), class.clone());
    }
    NodeDef { name: node.name.clone(), op: op.to_owned(), input: input.to_vec(), attr, ..NodeDef::default() }
}

/// Replaces a gather from a variable by a gather from its value. The axis follows the batch
/// dimensions.
fn gather(node: &NodeDef, data_type: i32, in_function: bool, added: &mut Vec<NodeDef>) -> Result<NodeDef> {
    let params = node.attr.get("dtype").cloned().unwrap_or(Value::Type(data_type).into());
    let indices = node.attr.get("Tindices").cloned().unwrap_or_default();
    if node.op == "ResourceGatherNd" {
        return Ok(replaced(
            node,
            "GatherNd",
            &node.input[..2],
            [("Tparams", params), ("Tindices", indices)],
        ));
    }
    let batch = match node.attr.get("batch_dims").and_then(|attr| attr.value.as_ref()) {
        Some(&Value::I(batch)) => batch,
        _ => 0,
    };
    let wide = indices.value == Some(Value::Type(DataType::Int64.number()));
    let (axis_type, axis) = match (wide, i32::try_from(batch)) {
        (false, Ok(batch)) => (DataType::Int32, shape::Literal::scalar(batch)),
        _ => (DataType::Int64, shape::Literal::scalar(batch)),
    };
    let axis =
        constant::node(&format!("{}/axis", node.name), &crate::checkpoint::Value::Array(axis_type, axis))?;
    let port = if in_function { ":output:0" } else { "" };
    let input = [node.input[0].clone(), node.input[1].clone(), format!("{}{port}", axis.name)];
    added.push(axis);
    let attributes =
        [("Tparams", params), ("Tindices", indices), ("Taxis", Value::Type(axis_type.number()).into())];
    let mut gather = replaced(node, "GatherV2", &input, attributes);
    if batch != 0 {
        gather.attr.insert("batch_dims".to_owned(), Value::I(batch).into());
    }
    Ok(gather)
}

/// Replaces types in a list: input `first + k` has the type `types[k]`.
pub(super) fn set_types(node: &mut NodeDef, attribute: &str, first: usize, types: &[Option<i32>]) {
    if let Some(Value::List(list)) = node.attr.get_mut(attribute).and_then(|attr| attr.value.as_mut()) {
        for (stated, frozen) in list.r#type.iter_mut().zip(types.iter().skip(first)) {
            *stated = frozen.unwrap_or(*stated);
        }
    }
}

/// Replaces shapes in a list, as [`set_types`] does.
pub(super) fn set_shapes(node: &mut NodeDef, attribute: &str, values: &[Option<Frozen>], unknown: bool) {
    if let Some(Value::List(list)) = node.attr.get_mut(attribute).and_then(|attr| attr.value.as_mut()) {
        for (stated, frozen) in list.shape.iter_mut().zip(values) {
            if let Some(frozen) = frozen {
                *stated = if unknown {
                    TensorShapeProto { unknown_rank: true, ..TensorShapeProto::default() }
                } else {
                    crate::checkpoint::shape_proto(&frozen.sizes)
                };
            }
        }
    }
}
