//! Compiles a single function of a graph's library, by a call whose arguments are fed.

use crate::DataType;
use crate::proto::{AttrValue, FunctionDef, GraphDef, NodeDef, TensorShapeProto, attr_value};
use std::collections::{BTreeMap, BTreeSet};
use support::{Error, Result};

/// Adds a call of a function to a graph. Arguments are placeholders, except that a variable's
/// handle is the one that another call in the graph passes. Returns the outputs of the call, which
/// become fetches.
pub(super) fn call(graph: &mut GraphDef, name: &str) -> Result<Vec<(String, i64)>> {
    let library = graph.library.clone().unwrap_or_default();
    let Some(function) = library.function.iter().find(|f| signature_name(f) == name) else {
        let names: Vec<&str> = library.function.iter().map(signature_name).collect();
        let shown = names.iter().take(8).copied().collect::<Vec<_>>().join(", ");
        return Err(Error::invalid(if names.is_empty() {
            format!("--function {name}: the graph's library has no functions")
        } else {
            format!(
                "--function {name}: no such function in the graph's library; available functions: {shown}"
            )
        }));
    };
    let signature = function.signature.clone().unwrap_or_default();
    let mut taken: BTreeSet<String> = graph.node.iter().map(|node| node.name.clone()).collect();
    let call_name = unique_name(name, &mut taken);
    let mut inputs = Vec::new();
    let mut placeholders = Vec::new();
    for (k, argument) in signature.input_arg.iter().enumerate() {
        if !argument.type_attr.is_empty() || !argument.number_attr.is_empty() {
            return Err(Error::unsupported(format!(
                "--function {name}: the type of argument '{}' depends on attributes of the call",
                argument.name
            )));
        }
        if argument.r#type == DataType::Resource.number() {
            inputs.push(passed_handle(graph, name, k).ok_or_else(|| {
                Error::unsupported(format!(
                    "--function {name}: argument '{}' is a variable's handle, but no call in the graph shows which variable",
                    argument.name
                ))
            })?);
            continue;
        }
        let placeholder = unique_name(&argument.name, &mut taken);
        let mut attr =
            BTreeMap::from([("dtype".to_owned(), value(attr_value::Value::Type(argument.r#type)))]);
        if let Some(shape) = stated_shape(function, k) {
            attr.insert("shape".to_owned(), value(attr_value::Value::Shape(shape)));
        }
        inputs.push(placeholder.clone());
        let op = "Placeholder".to_owned();
        placeholders.push(NodeDef { name: placeholder, op, attr, ..NodeDef::default() });
    }
    graph.node.extend(placeholders);
    let op = name.to_owned();
    graph.node.push(NodeDef { name: call_name.clone(), op, input: inputs, ..NodeDef::default() });
    Ok((0..signature.output_arg.len().max(1)).map(|k| (call_name.clone(), k as i64)).collect())
}

fn signature_name(function: &FunctionDef) -> &str {
    function.signature.as_ref().map_or("", |signature| signature.name.as_str())
}

fn value(value: attr_value::Value) -> AttrValue {
    AttrValue { value: Some(value) }
}

/// Returns an unused name, which is `base` or `base` with a suffix, and marks it as used.
fn unique_name(base: &str, taken: &mut BTreeSet<String>) -> String {
    let mut name = base.to_owned();
    let mut suffix = 0;
    while !taken.insert(name.clone()) {
        suffix += 1;
        name = format!("{base}_{suffix}");
    }
    name
}

/// Shape that the function states for an argument.
fn stated_shape(function: &FunctionDef, argument: usize) -> Option<TensorShapeProto> {
    let attributes = function.arg_attr.get(&u32::try_from(argument).ok()?)?;
    match attributes.attr.get("_output_shapes")?.value.as_ref()? {
        attr_value::Value::List(list) => list.shape.first().cloned(),
        attr_value::Value::Shape(shape) => Some(shape.clone()),
        _ => None,
    }
}

/// Handle of a variable that a call in the graph itself passes to a function.
fn passed_handle(graph: &GraphDef, function: &str, argument: usize) -> Option<String> {
    let calls = |node: &&NodeDef| {
        node.op == function
            || node.attr.values().any(|attribute| match &attribute.value {
                Some(attr_value::Value::Func(called)) => called.name == function,
                _ => false,
            })
    };
    let is_handle = |input: &str| {
        let node = input.split(':').next().unwrap_or(input);
        graph.node.iter().any(|other| other.name == node && other.op == "VarHandleOp")
    };
    let inputs = graph.node.iter().filter(calls).filter_map(|node| node.input.get(argument));
    inputs.into_iter().find(|input| is_handle(input)).cloned()
}
