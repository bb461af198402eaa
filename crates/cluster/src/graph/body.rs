//! Converts functions to graphs.

use super::assembly::{Input, Position, typed_node};
use super::definitions::Definitions;
use crate::graph::{Graph, Node, OutputArgument};
use std::collections::BTreeMap;
use std::ops::Range;
use support::{Error, Id, IdVec, Result};
use tf::proto::attr_value::Value;
use tf::proto::{AttrValue, FunctionDef, NameAttrList, NodeDef, OpDef};
use tf::{DataType, node_types};

/// Meaning of a name in a body.
enum NamedItem {
    /// Arguments, as a range of consecutive nodes.
    Arguments(Range<usize>),
    Node(Position),
}

/// The graph of a function for these attribute values. Arguments and results are nodes `_Arg` and
/// `_Retval`.
pub(crate) fn instantiate(
    function: &FunctionDef,
    values: &BTreeMap<String, AttrValue>,
    definitions: &Definitions<'_>,
    device: &str,
) -> Result<Graph> {
    let signature = function.signature.as_ref().expect("a library function has no signature");
    let mut nodes: IdVec<Position, Node> = IdVec::new();
    let mut inputs: IdVec<Position, Vec<Input>> = IdVec::new();
    let mut items: BTreeMap<&str, NamedItem> = BTreeMap::new();
    let types = node_types(signature, &signature.input_arg, values)?;
    for (arg, bounds) in signature.input_arg.iter().zip(types.starts.windows(2)) {
        let (first, end) = (bounds[0], bounds[1]);
        for index in first..end {
            let name =
                if end - first == 1 { arg.name.clone() } else { format!("{}_{}", arg.name, index - first) };
            nodes.push(argument(&name, index, types.types[index], device));
            inputs.push(Vec::new());
        }
        items.insert(&arg.name, NamedItem::Arguments(first..end));
    }
    for def in &function.node_def {
        if items.insert(&def.name, NamedItem::Node(nodes.next_id())).is_some() {
            return Err(Error::invalid(format!("two nodes or arguments are named '{}'", def.name)));
        }
        let mut copy = NodeDef { input: Vec::new(), ..def.clone() };
        for value in copy.attr.values_mut() {
            substitute(value, values, &def.name)?;
        }
        if copy.device.is_empty() {
            device.clone_into(&mut copy.device);
        }
        nodes.push(typed_node(copy, definitions)?);
        inputs.push(Vec::new());
    }
    for (i, def) in function.node_def.iter().enumerate() {
        let at = Position::from_index(types.types.len() + i);
        for text in &def.input {
            let tensors = resolve(text, &def.name, &nodes, &items)?;
            inputs[at].extend(tensors);
        }
    }
    add_results(function, signature, values, device, &items, &mut nodes, &mut inputs)?;
    Graph::assemble(nodes, &inputs)
}

fn add_results(
    function: &FunctionDef,
    signature: &OpDef,
    values: &BTreeMap<String, AttrValue>,
    device: &str,
    items: &BTreeMap<&str, NamedItem>,
    nodes: &mut IdVec<Position, Node>,
    inputs: &mut IdVec<Position, Vec<Input>>,
) -> Result<()> {
    let results = node_types(signature, &signature.output_arg, values)?;
    for (arg, bounds) in signature.output_arg.iter().zip(results.starts.windows(2)) {
        let text = function.ret.get(&arg.name).ok_or_else(|| {
            Error::invalid(format!("the function does not define the result '{}'", arg.name))
        })?;
        let tensors = resolve(text, &arg.name, nodes, items)?;
        let expected = bounds[1] - bounds[0];
        if tensors.len() != expected {
            return Err(Error::invalid(format!(
                "expected {expected} tensors for the result '{}', but '{text}' has {}",
                arg.name,
                tensors.len()
            )));
        }
        for (k, input) in tensors.into_iter().enumerate() {
            let name = if expected == 1 {
                format!("{}_RetVal", arg.name)
            } else {
                format!("{}_{k}_RetVal", arg.name)
            };
            let index = bounds[0] + k;
            nodes.push(result(&name, index, results.types[index], device));
            inputs.push(vec![input]);
        }
    }
    Ok(())
}

fn index_attributes(data_type: DataType, index: usize) -> BTreeMap<String, AttrValue> {
    BTreeMap::from([
        ("T".to_owned(), Value::Type(data_type.number()).into()),
        ("index".to_owned(), Value::I(index as i64).into()),
    ])
}

/// Creates a node `_Arg`.
pub(crate) fn argument(name: &str, index: usize, data_type: DataType, device: &str) -> Node {
    let def = NodeDef {
        name: name.to_owned(),
        op: "_Arg".to_owned(),
        input: Vec::new(),
        device: device.to_owned(),
        attr: index_attributes(data_type, index),
    };
    Node {
        def,
        output_types: vec![data_type],
        output_arguments: vec![OutputArgument { name: "output".to_owned(), start: 0 }],
        is_stateful: true,
        ..Node::default()
    }
}

/// Creates a node `_Retval`.
pub(crate) fn result(name: &str, index: usize, data_type: DataType, device: &str) -> Node {
    let def = NodeDef {
        name: name.to_owned(),
        op: "_Retval".to_owned(),
        input: Vec::new(),
        device: device.to_owned(),
        attr: index_attributes(data_type, index),
    };
    Node { def, input_types: vec![data_type], is_stateful: true, ..Node::default() }
}

/// Tensors that an input of a body names: `argument`, `node:output_argument:index`,
/// `node:output_argument`, or `^node`.
fn resolve(
    text: &str,
    user: &str,
    nodes: &IdVec<Position, Node>,
    items: &BTreeMap<&str, NamedItem>,
) -> Result<Vec<Input>> {
    let wrong =
        || Error::invalid(format!("'{user}' has the input '{text}', which does not exist in the body"));
    if let Some(name) = text.strip_prefix('^') {
        return match items.get(name) {
            Some(NamedItem::Node(at)) => Ok(vec![Input::Control(*at)]),
            Some(NamedItem::Arguments(range)) => {
                Ok(range.clone().map(|at| Input::Control(Position::from_index(at))).collect())
            }
            None => Err(wrong()),
        };
    }
    let mut parts = text.split(':');
    let name = parts.next().unwrap_or("");
    let (argument, index) = (parts.next(), parts.next());
    match items.get(name).ok_or_else(wrong)? {
        NamedItem::Arguments(range) => {
            let first_output = |at: usize| Input::Data { node: Position::from_index(at), output: 0 };
            // A single-tensor argument may also be written with an index.
            match argument.map(str::parse::<usize>) {
                None => Ok(range.clone().map(first_output).collect()),
                Some(Ok(k)) if k < range.len() => Ok(vec![first_output(range.start + k)]),
                Some(_) => Err(wrong()),
            }
        }
        NamedItem::Node(at) => {
            let node = &nodes[*at];
            let output = |output: usize| Input::Data { node: *at, output };
            let Some(argument) = argument else {
                return match node.output_types.len() {
                    0 => Err(wrong()),
                    count => Ok((0..count).map(output).collect()),
                };
            };
            let place = node.output_arguments.iter().position(|a| a.name == argument);
            let place = place.ok_or_else(wrong)?;
            let first = node.output_arguments[place].start;
            let end = node.output_arguments.get(place + 1).map_or(node.output_types.len(), |a| a.start);
            match index.map(str::parse::<usize>) {
                None => Ok((first..end).map(output).collect()),
                Some(Ok(k)) if k < end - first => Ok(vec![output(first + k)]),
                Some(_) => Err(wrong()),
            }
        }
    }
}

/// Replaces a placeholder by the value of the function's attribute, including in function
/// attributes.
fn substitute(value: &mut AttrValue, values: &BTreeMap<String, AttrValue>, node: &str) -> Result<()> {
    let in_function = |func: &mut NameAttrList| -> Result<()> {
        func.attr.values_mut().try_for_each(|inner| substitute_placeholder(inner, values, node))
    };
    match &mut value.value {
        Some(Value::Func(func)) => in_function(func),
        Some(Value::List(list)) => list.func.iter_mut().try_for_each(in_function),
        _ => substitute_placeholder(value, values, node),
    }
}

fn substitute_placeholder(
    value: &mut AttrValue,
    values: &BTreeMap<String, AttrValue>,
    node: &str,
) -> Result<()> {
    if let Some(Value::Placeholder(name)) = &value.value {
        *value = values.get(name).cloned().ok_or_else(|| {
            Error::invalid(format!("node '{node}' refers to the attribute '{name}', which has no value"))
        })?;
    }
    Ok(())
}
