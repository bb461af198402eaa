//! Nodes of a graph that is built: added, found by name, and checked.

use crate::proto::{AttrValue, NodeDef};
use crate::tensor::{MAX_FILL_BYTES, Tensor};
use crate::{Attributes, DataType, Graph, Node, NodeId, OutputId, PartialShape, Program};
use std::collections::BTreeMap;
use support::{Error, IdVec, Result};

/// Adds a node of the file.
pub(super) fn push_node(
    graph: &mut Graph,
    node: &NodeDef,
    values: BTreeMap<String, AttrValue>,
    inputs: Vec<OutputId>,
    mut control_inputs: Vec<NodeId>,
    output_types: Vec<DataType>,
) -> NodeId {
    control_inputs.sort_unstable();
    control_inputs.dedup();
    graph.nodes.push(Node {
        name: node.name.clone(),
        op: node.op.clone(),
        inputs,
        control_inputs,
        attributes: Attributes::new(&node.name, &node.op, values),
        output_types,
    })
}

/// Checks that a node's inputs exist and match the number and types of its signature. A reference
/// is accepted in place of a value.
pub(super) fn check_inputs(graph: &Graph, id: NodeId, wanted: &[DataType]) -> Result<()> {
    let node = &graph.nodes[id];
    if node.inputs.len() != wanted.len() {
        let names: Vec<&str> = wanted.iter().map(|t| t.name()).collect();
        return Err(Error::invalid(format!(
            "node '{}' (op {}) has {} inputs, but its signature and attributes want {}: ({})",
            node.name,
            node.op,
            node.inputs.len(),
            wanted.len(),
            names.join(", ")
        )));
    }
    for (i, (input, &wanted)) in node.inputs.iter().zip(wanted).enumerate() {
        // A function of the user's takes what is there.
        let takes_any = node.op == crate::substitutions::CUSTOM_CALL;
        let producer = &graph.nodes[input.node];
        let Some(&given) = producer.output_types.get(input.index) else {
            return Err(Error::invalid(format!(
                "node '{}' input {i} is '{}:{}', but op {} of that node has only {} outputs",
                node.name,
                producer.name,
                input.index,
                producer.op,
                producer.output_types.len()
            )));
        };
        if !takes_any && given != wanted && (wanted.is_ref() || given.base() != wanted) {
            return Err(Error::invalid(format!(
                "Input {i} of node {} was passed {given} from {}:{} incompatible with expected {wanted}. \
                 (op {}; correct its type attribute, or what feeds it)",
                node.name, producer.name, input.index, node.op
            )));
        }
    }
    Ok(())
}

/// Refuses constants that together fill too much memory from a few stored elements. Those of one
/// element alone are not counted: they are imported as a broadcast.
pub(super) fn check_fills(program: &Program) -> Result<()> {
    let graphs = std::iter::once(&program.graph).chain(program.library.functions().map(|f| &f.graph));
    let mut total = 0u64;
    for node in graphs.flat_map(|graph: &Graph| graph.nodes.values()).filter(|n| n.op == "Const") {
        let at_node = |e: Error| e.context(format!("node '{}' (op Const)", node.name));
        let tensor = Tensor::new(node.attributes.tensor_proto("value")?).map_err(at_node)?;
        let stated = node.attributes.ty("dtype")?;
        if tensor.data_type() != stated {
            return Err(Error::invalid(format!(
                "node '{}' (op Const) has dtype {stated}, but its value is {}",
                node.name,
                tensor.data_type()
            )));
        }
        if tensor.data_type().primitive_type().is_some() && tensor.splat().map_err(at_node)?.is_none() {
            total = total.saturating_add(tensor.fill_bytes());
        }
        if total > MAX_FILL_BYTES {
            return Err(Error::invalid(format!(
                "node '{}' (op Const) of shape {}: constants that store only a part of their elements fill more than \
                 {} MiB together",
                node.name,
                PartialShape::known(tensor.sizes()),
                MAX_FILL_BYTES >> 20
            )));
        }
    }
    Ok(())
}

/// The ids of a graph's nodes by name.
pub(super) fn ids_by_name(nodes: &IdVec<NodeId, Node>) -> BTreeMap<&str, NodeId> {
    nodes.iter().map(|(id, node)| (node.name.as_str(), id)).collect()
}
