//! Parts that are missing in a graph: the values of its constants, and attributes that
//! TensorFlow.js omits.

use crate::weights::Weights;
use std::collections::BTreeMap;
use support::{Error, Result};
use tf::DataType;
use tf::proto::attr_value::Value;
use tf::proto::{AttrValue, GraphDef, ListValue, NodeDef};

/// Adds the values of constants to a graph and its functions, and completes the nodes that the
/// converter fuses.
pub(crate) fn complete(graph: &mut GraphDef, weights: &Weights) -> Result<()> {
    let functions = graph.library.iter_mut().flat_map(|library| &mut library.function);
    let bodies = functions.flat_map(|function| &mut function.node_def);
    for node in graph.node.iter_mut().chain(bodies) {
        match node.op.as_str() {
            "Const" => constant(node, weights).map_err(|e| e.context(format!("node '{}'", node.name)))?,
            "FusedDepthwiseConv2dNative" => node.op = "_FusedDepthwiseConv2dNative".to_owned(),
            "_FusedConv2D" => fused_types(node),
            "Prelu" => {
                node.attr.entry("T".to_owned()).or_insert(Value::Type(DataType::Float.number()).into());
            }
            _ => {}
        }
    }
    Ok(())
}

/// Sets the value of a constant to its weight. In the graph, it may have another one of its shape
/// that is empty.
fn constant(node: &mut NodeDef, weights: &Weights) -> Result<()> {
    if node.attr.contains_key("value") && !weights.has(&node.name) {
        return Ok(());
    }
    let data_type = match node.attr.get("dtype").and_then(|attr| attr.value.as_ref()) {
        Some(&Value::Type(number)) => DataType::from_number(number),
        _ => None,
    };
    let data_type = data_type.ok_or_else(|| Error::invalid("the constant has no attribute 'dtype'"))?;
    let tensor = weights.tensor(&node.name, data_type)?;
    node.attr.insert("value".to_owned(), Value::Tensor(Box::new(tensor)).into());
    Ok(())
}

/// Adds the types of a fused convolution's further inputs, which are those of the first.
fn fused_types(node: &mut NodeDef) {
    let attributes: &mut BTreeMap<String, AttrValue> = &mut node.attr;
    let value = |name: &str| attributes.get(name).and_then(|attr| attr.value.clone());
    let (Some(Value::Type(data_type)), Some(Value::I(count))) = (value("T"), value("num_args")) else {
        return;
    };
    let count = usize::try_from(count).unwrap_or_default().min(node.input.len());
    let types = ListValue { r#type: vec![data_type; count], ..ListValue::default() };
    attributes.entry("TArgs".to_owned()).or_insert_with(|| Value::List(Box::new(types)).into());
}
