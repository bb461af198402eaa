//! Replaces variables by constants in the body of a graph or function, and the users of their
//! handles by nodes that use their values.

use super::functions::{Functions, flat_output, function_attributes};
use super::{Choice, Variables, constant, is_variable};
use crate::proto::{AttrValue, GraphDef, NodeDef, TensorShapeProto, attr_value::Value};
use crate::{DataType, op_def};
use std::collections::{BTreeMap, BTreeSet};
use support::{Error, Result};

/// An output that carries a variable's handle, reference, or value, and that carries the value of a
/// constant after freezing.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Frozen {
    pub(super) kind: Kind,
    /// Number of the value's data type.
    pub(super) data_type: i32,
    pub(super) sizes: Vec<i64>,
    /// Name of the variable, for messages.
    pub(super) variable: String,
}

/// Kind of an output before freezing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    /// A handle, to be replaced by the variable's value.
    Handle,
    /// A reference to a mutable tensor.
    Reference,
    /// A value that was copied from a reference.
    Plain,
}

/// Frozen outputs by node name and output number.
pub(super) type FrozenOutputs = BTreeMap<(String, usize), Frozen>;

/// Nodes of a graph, or nodes and arguments of a function.
pub(super) struct Body<'a> {
    pub(super) nodes: Vec<&'a NodeDef>,
    /// Name of the function, or `None` for the graph itself.
    pub(super) function: Option<&'a str>,
    pub(super) arguments: FrozenOutputs,
}

/// Freezes the needed nodes of a graph and the functions that they call.
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
    // The original writes the library even if it is empty.
    let library = Some(functions.finish(&nodes));
    Ok(GraphDef { node: nodes, versions: graph.versions.clone(), library })
}

/// Propagates handles and references from variables and arguments to all outputs that carry them.
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
        let mut changed = false;
        for (output, value) in results(node, &inputs, functions)? {
            changed |=
                frozen.insert((node.name.clone(), output), value.clone()).is_none_or(|old| old != value);
        }
        if changed {
            work.extend(users.get(node.name.as_str()).into_iter().flatten());
        }
    }
    Ok(frozen)
}

/// The frozen output that each data input of a node reads, or `None` for other inputs.
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

/// Outputs of a node that pass a frozen input on, with their numbers.
fn results(
    node: &NodeDef,
    inputs: &[Option<Frozen>],
    functions: &mut Functions<'_>,
) -> Result<Vec<(usize, Frozen)>> {
    let first = || inputs.iter().flatten().next().cloned();
    let all = |count: usize, value: Option<Frozen>| {
        value.map_or(vec![], |v| (0..count).map(|i| (i, v.clone())).collect())
    };
    // Copying a reference yields a value.
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
                Some(&Value::I(count)) => usize::try_from(count).unwrap_or(0).min(max_outputs()),
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

/// Upper bound for the number of outputs of a node.
fn max_outputs() -> usize {
    1 << 16
}

/// Freezes the nodes of a body. Returns its nodes, and additional nodes that the replacements use.
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

/// Updates a reference to an output within a function. Such references use the names of outputs,
/// which differ between the variable ops and their replacements.
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

/// Rewrites a node with frozen inputs so that it takes the values.
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
                return Err(unsupported(node, inputs, "together with a variable that is not frozen"));
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
                None => Err(unsupported(node, inputs, "in a way that a constant cannot replace")),
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
                return Err(unsupported(node, inputs, "in a way that a constant cannot replace"));
            }
            functions.caller(node, inputs)
        }
    }
}

fn unsupported(node: &NodeDef, inputs: &[Option<Frozen>], what: &str) -> Error {
    let variable = inputs.iter().flatten().next().map_or("", |v| v.variable.as_str());
    Error::unsupported(format!(
        "node '{}' (op {}) uses variable '{variable}' {what}; choose --output_node_names that only read it, or exclude \
         it with --variable_names_denylist={variable}",
        node.name, node.op
    ))
}

/// Creates the replacement of a node. Keeps the node's name and `_class`, but not its device.
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

/// Replaces a gather from a variable by a gather from its value. The axis is the number of batch
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

/// Replaces element `k` of a list of types by `types[first + k]`, unless that is `None`.
pub(super) fn set_types(node: &mut NodeDef, attribute: &str, first: usize, types: &[Option<i32>]) {
    if let Some(Value::List(list)) = node.attr.get_mut(attribute).and_then(|attr| attr.value.as_mut()) {
        for (stated, frozen) in list.r#type.iter_mut().zip(types.iter().skip(first)) {
            *stated = frozen.unwrap_or(*stated);
        }
    }
}

/// Replaces element `k` of a list of shapes by the shape of `values[k]`, or by the unknown shape,
/// unless `values[k]` is `None`.
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
