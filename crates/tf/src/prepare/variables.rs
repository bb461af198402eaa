//! Determines the type and shape of each variable from config and graph.

use super::names::Names;
use super::nodes::ids_by_name;
use super::quantization::quantization;
use crate::proto::{Config, NodeDef, Variable as VariableProto, attr_value::Value};
use crate::{DataType, Graph, PartialShape, Resource, Variable, VariableState};
use std::collections::BTreeMap;
use support::{Error, Result};

/// Ops that create a variable.
const VARIABLE_OPS: [&str; 6] = [
    "VarHandleOp",
    "_XlaAotOnlyVarHandleOp",
    "VariableV2",
    "Variable",
    "AutoReloadVariable",
    "_VarHandlesOp",
];

/// Looks up every variable of the config in the graph. Rejects variables of the graph that are
/// missing from the config.
pub(super) fn resolve(
    config: &Config,
    nodes: &[NodeDef],
    names: &Names<'_>,
    pruned: &Graph,
) -> Result<Vec<Variable>> {
    let ids = ids_by_name(&pruned.nodes);
    let mut variables = Vec::new();
    for proto in &config.variable {
        let node = names.get(&proto.node_name).map(|i| &nodes[i]);
        check_node(proto, node)?;
        let data_type = variable_type(proto, node)?;
        let shape = variable_shape(proto, node)?;
        variables.push(Variable {
            node_name: proto.node_name.clone(),
            name: proto.name.clone(),
            shape,
            data_type,
            readonly: proto.readonly,
            state: VariableState::default(),
            node: ids.get(proto.node_name.as_str()).copied().filter(|&id| is_variable(&pruned.nodes[id].op)),
            quantization: node.and_then(|node| quantization(node, 0, data_type)),
            resource: node.map_or_else(|| Resource::new(&proto.node_name, &[], &[]), resource),
        });
    }
    let mut configured: BTreeMap<&Resource, &str> = BTreeMap::new();
    for variable in &variables {
        if let Some(other) = configured.insert(&variable.resource, &variable.node_name) {
            return Err(Error::invalid(format!(
                "nodes '{other}' and '{}' are handles of the same variable '{}': list only one of them in the config",
                variable.node_name, variable.resource.name
            )));
        }
    }
    let missing: Vec<&str> = pruned
        .nodes
        .values()
        .filter(|node| is_variable(&node.op) && !configured.contains_key(&Resource::of_node(node)))
        .map(|node| node.name.as_str())
        .collect();
    if missing.is_empty() {
        return Ok(variables);
    }
    let missing: Vec<String> =
        missing.iter().map(|name| format!("Variable: {name} not configured")).collect();
    Err(Error::invalid(format!(
        "{}: list every variable that a fetch needs in the config, as variable {{ node_name: \"...\" shape {{ ... }} \
         type: DT_FLOAT }}, with readonly: true if it is only read",
        missing.join("; ")
    )))
}

pub(super) fn is_variable(op: &str) -> bool {
    VARIABLE_OPS.contains(&op)
}

/// Returns the resource that a variable's node names.
pub(super) fn resource(node: &NodeDef) -> Resource {
    let text = |name: &str| match node.attr.get(name).and_then(|v| v.value.as_ref()) {
        Some(Value::S(text)) => text.as_ref(),
        _ => [].as_slice(),
    };
    Resource::new(&node.name, text("container"), text("shared_name"))
}

fn check_node(proto: &VariableProto, node: Option<&NodeDef>) -> Result<()> {
    let name = &proto.node_name;
    match node {
        // A read-only variable without a node is an unused argument.
        None if proto.readonly => Ok(()),
        None => Err(Error::invalid(format!(
            "Variable \"{name}\" is marked as not readonly, but is not modified by the computation: the graph has no \
             node of this name"
        ))),
        Some(node) if is_variable(&node.op) => Ok(()),
        Some(node) => Err(Error::invalid(format!(
            "variable '{name}' in the config names a node with op {}, which is not a variable",
            node.op
        ))),
    }
}

fn variable_type(proto: &VariableProto, node: Option<&NodeDef>) -> Result<DataType> {
    let name = &proto.node_name;
    let stated = match node.and_then(|n| n.attr.get("dtype")).and_then(|v| v.value.as_ref()) {
        Some(Value::Type(number)) => DataType::from_number(*number).map(DataType::base),
        _ => None,
    };
    let configured = match proto.r#type {
        0 => None,
        number => Some(
            DataType::from_number(number)
                .map(DataType::base)
                .ok_or_else(|| Error::invalid(format!("variable '{name}' has unknown type {number}")))?,
        ),
    };
    if let (Some(configured), Some(stated)) = (configured, stated)
        && configured != stated
    {
        return Err(Error::invalid(format!(
            "variable '{name}' has type {configured} in the config, but {stated} in the graph"
        )));
    }
    let data_type = configured.or(stated).ok_or_else(|| {
        Error::invalid(format!(
            "Unsupported type in DataTypeToPrimitiveType: 'INVALID': variable '{name}' has no type; set it in the \
             config, for example type: DT_FLOAT"
        ))
    })?;
    match data_type.primitive_type() {
        Some(_) => Ok(data_type),
        None => Err(Error::unsupported(format!(
            "variable '{name}' has type {data_type}; expected numbers or bools"
        ))),
    }
}

/// Returns the shape from the config, or else from the graph. If the graph states no rank either,
/// the variable is a scalar, as in TensorFlow's tfcompile.
fn variable_shape(proto: &VariableProto, node: Option<&NodeDef>) -> Result<Vec<i64>> {
    let name = &proto.node_name;
    let stated = match node.and_then(|n| n.attr.get("shape")).and_then(|v| v.value.as_ref()) {
        Some(Value::Shape(shape)) => {
            PartialShape::from_proto(shape).map_err(|e| e.context(format!("node '{name}'")))?
        }
        _ => PartialShape::UNKNOWN,
    };
    let shape = match &proto.shape {
        Some(shape) => PartialShape::from_proto(shape)?,
        None if stated == PartialShape::UNKNOWN => PartialShape::known(&[]),
        None => stated.clone(),
    };
    let sizes = shape.sizes().ok_or_else(|| {
        Error::invalid(format!(
            "Shape {shape} is not fully defined: it is the shape of variable '{name}'; set every size in the config"
        ))
    })?;
    if !stated.allows(&sizes) {
        return Err(Error::invalid(format!(
            "variable '{name}' has shape {shape} in the config, but {stated} in the graph: correct the config"
        )));
    }
    Ok(sizes)
}
