//! Helpers for building graphs: adding nodes, finding them by name, and checking them.

use crate::proto::{AttrValue, NodeDef};
use crate::tensor::{MAX_FILL_BYTES, Tensor};
use crate::{Attributes, DataType, Graph, Node, NodeId, OutputId, PartialShape, Program};
use std::collections::BTreeMap;
use support::{Error, IdVec, Result};

/// Adds a node from the file.
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
pub(super) fn check_inputs(graph: &Graph, id: NodeId, expected: &[DataType]) -> Result<()> {
    let node = &graph.nodes[id];
    if node.inputs.len() != expected.len() {
        let names: Vec<&str> = expected.iter().map(|t| t.name()).collect();
        return Err(Error::invalid(format!(
            "node '{}' (op {}) has {} inputs, but its signature and attributes require {}: ({})",
            node.name,
            node.op,
            node.inputs.len(),
            expected.len(),
            names.join(", ")
        )));
    }
    for (i, (input, &expected)) in node.inputs.iter().zip(expected).enumerate() {
        // The user's own functions accept any type.
        let accepts_any = node.op == crate::substitutions::CUSTOM_CALL;
        let producer = &graph.nodes[input.node];
        let Some(&actual) = producer.output_types.get(input.index) else {
            return Err(Error::invalid(format!(
                "node '{}' input {i} is '{}:{}', but op {} of that node has only {} outputs",
                node.name,
                producer.name,
                input.index,
                producer.op,
                producer.output_types.len()
            )));
        };
        if !accepts_any && actual != expected && (expected.is_ref() || actual.base() != expected) {
            return Err(Error::invalid(format!(
                "Input {i} of node {} was passed {actual} from {}:{} incompatible with expected {expected}. \
                 (op {}; correct its type attribute or its input)",
                node.name, producer.name, input.index, node.op
            )));
        }
    }
    Ok(())
}

/// Rejects constants that together expand to too much memory from few stored elements. Constants
/// with a single distinct element are not counted, because they are imported as a broadcast.
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
                "node '{}' (op Const) of shape {}: constants that store only some of their elements expand to more \
                 than {} MiB in total",
                node.name,
                PartialShape::known(tensor.sizes()),
                MAX_FILL_BYTES >> 20
            )));
        }
    }
    Ok(())
}

/// Returns the ids of a graph's nodes by name.
pub(super) fn ids_by_name(nodes: &IdVec<NodeId, Node>) -> BTreeMap<&str, NodeId> {
    nodes.iter().map(|(id, node)| (node.name.as_str(), id)).collect()
}
