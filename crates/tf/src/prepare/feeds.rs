//! Determines the type and shape of each feed from config and graph.

use super::names::Names;
use super::quantization::quantization;
use super::signatures::Signatures;
use super::{FedOutput, config};
use crate::proto::{Config, NodeDef, TensorShapeProto, attr_value::Value};
use crate::{DataType, PartialShape};
use shape::{Quantization, index};
use std::collections::BTreeMap;
use support::{Code, Error, Result};

/// A feed with its type and shape.
pub(super) struct Argument {
    pub(super) id: FedOutput,
    pub(super) name: String,
    pub(super) shape: Vec<i64>,
    /// Positions of its named dimensions in the config, by dimension.
    pub(super) dimensions: BTreeMap<usize, usize>,
    pub(super) data_type: DataType,
    pub(super) quantization: Option<Quantization>,
}

/// Looks up every feed in the graph.
pub(super) fn resolve(
    config: &Config,
    nodes: &[NodeDef],
    names: &Names<'_>,
    signatures: &Signatures<'_>,
) -> Result<Vec<Argument>> {
    let mut arguments = Vec::new();
    for feed in &config.feed {
        let id = config::id(&feed.id);
        let node = names.get(&id.0).map(|i| &nodes[i]).ok_or_else(|| {
            Error::invalid(format!(
                "Can't find feed node: {}:{}: no node of the graph has this name",
                id.0, id.1
            ))
        })?;
        let data_type = feed_type(&id, feed.r#type, node, signatures)?;
        let (shape, dimensions) = feed_shape(&id, feed.shape.as_ref(), node, config)?;
        let bytes =
            data_type.primitive_type().ok_or_else(|| unsupported_type(&id, data_type, nodes))?.byte_size()
                as i64;
        if index::element_count(&shape).and_then(|count| count.checked_mul(bytes)).is_none() {
            return Err(Error::invalid(format!("feed '{}:{}' has a size of 2^63 bytes or more", id.0, id.1)));
        }
        let quantization = quantization(node, id.1, data_type);
        arguments.push(Argument { id, name: feed.name.clone(), shape, dimensions, data_type, quantization });
    }
    Ok(arguments)
}

fn feed_type(
    id: &FedOutput,
    configured: i32,
    node: &NodeDef,
    signatures: &Signatures<'_>,
) -> Result<DataType> {
    let configured =
        match configured {
            0 => None,
            number => Some(DataType::from_number(number).map(DataType::base).ok_or_else(|| {
                Error::invalid(format!("feed '{}:{}' has unknown type {number}", id.0, id.1))
            })?),
        };
    let stated = match signatures.get(&node.op) {
        Some(_) => Some(graph_type(id, node, signatures)?),
        None => None,
    };
    let data_type = match (configured, stated) {
        (Some(configured), Some(stated)) if configured != stated => {
            return Err(Error::invalid(format!(
                "feed '{}:{}' has type {configured} in the config, but the node (op {}) returns {stated}: remove \
                 `type` from the feed or correct it",
                id.0, id.1, node.op
            )));
        }
        (Some(data_type), _) | (None, Some(data_type)) => data_type,
        (None, None) => {
            return Err(Error::invalid(format!(
                "the type of feed '{}:{}' is unknown, because op '{}' of its node is not registered: set it in \
                 the config, for example type: DT_FLOAT",
                id.0, id.1, node.op
            )));
        }
    };
    Ok(data_type)
}

/// Creates the error for a feed of strings, resources, or similar. Its consumers cannot be compiled
/// either, so the error names them.
fn unsupported_type(id: &FedOutput, data_type: DataType, nodes: &[NodeDef]) -> Error {
    let names_feed = |input: &String| match input.split_once(':') {
        Some((node, output)) => node == id.0 && output.parse() == Ok(id.1),
        None => *input == id.0 && id.1 == 0,
    };
    let readers = nodes.iter().filter(|node| node.input.iter().any(names_feed));
    let readers: Vec<String> = readers.take(3).map(|n| format!("node '{}' (op {})", n.name, n.op)).collect();
    let read_by =
        if readers.is_empty() { String::new() } else { format!(", read by {}", readers.join(", ")) };
    Error::unsupported(format!(
        "feed '{}:{}' has type {data_type}{read_by}, which cannot be an argument: feed tensors of numbers or bools \
         downstream of it",
        id.0, id.1
    ))
}

fn graph_type(id: &FedOutput, node: &NodeDef, signatures: &Signatures<'_>) -> Result<DataType> {
    let (_, types) = signatures.output_types(node)?;
    let index = usize::try_from(id.1).unwrap_or(usize::MAX);
    types.get(index).map(|t| t.base()).ok_or_else(|| {
        Error::invalid(format!(
            "Invalid output_index {} for feed node {}: op {} has {} outputs here",
            id.1,
            id.0,
            node.op,
            types.len()
        ))
    })
}

/// Returns the shape from the config, or else from the graph, with the largest sizes of named
/// dimensions and their positions in the config. If the graph states no rank either, the feed is a
/// scalar, as in TensorFlow's tfcompile.
fn feed_shape(
    id: &FedOutput,
    configured: Option<&TensorShapeProto>,
    node: &NodeDef,
    config: &Config,
) -> Result<(Vec<i64>, BTreeMap<usize, usize>)> {
    let (mut shape, source) = match configured {
        Some(proto) => (PartialShape::from_proto(proto)?, "config"),
        None => match stated_shape(node, id.1) {
            PartialShape::UNKNOWN => (PartialShape::known(&[]), "config"),
            stated => (stated, "graph"),
        },
    };
    let mut dimensions = BTreeMap::new();
    let names = configured.map_or(&[][..], |proto| &proto.dim);
    for (d, (size, dim)) in shape.dimensions.iter_mut().flatten().zip(names).enumerate() {
        let named = || config.dimension.iter().position(|dimension| dimension.name == dim.name);
        if let Some(position) = named().filter(|_| size.is_none()) {
            *size = Some(config.dimension[position].max);
            dimensions.insert(d, position);
        }
    }
    let sizes = shape.sizes().ok_or_else(|| {
        Error::invalid(format!(
            "Shape {shape} is not fully defined: it is the shape of feed '{}:{}' in the {source}; set every size in the \
             config, for example shape {{ dim {{ size: 2 }} dim {{ size: 3 }} }}, or give open sizes a name and a range: \
             shape {{ dim {{ size: -1 name: \"batch\" }} }} with dimension {{ name: \"batch\" min: 1 max: 64 }}",
            id.0, id.1
        ))
        .coded(Code::OpenSize)
    })?;
    Ok((sizes, dimensions))
}

/// Returns the shape that the graph states for an output: the `_output_shapes` that exported graphs
/// have for every node, or the shape of a placeholder, constant, or variable.
pub(super) fn stated_shape(node: &NodeDef, output: i64) -> PartialShape {
    let value = |name: &str| node.attr.get(name).and_then(|v| v.value.as_ref());
    let proto = match (node.op.as_str(), value("_output_shapes")) {
        (_, Some(Value::List(list))) => usize::try_from(output).ok().and_then(|i| list.shape.get(i)),
        ("Const", _) => match value("value") {
            Some(Value::Tensor(tensor)) => tensor.tensor_shape.as_ref(),
            _ => None,
        },
        ("Placeholder" | "PlaceholderV2" | "PlaceholderWithDefault" | "VariableV2" | "Variable", _) => {
            match value("shape") {
                Some(Value::Shape(shape)) => Some(shape),
                _ => None,
            }
        }
        _ => None,
    };
    proto.and_then(|proto| PartialShape::from_proto(proto).ok()).unwrap_or(PartialShape::UNKNOWN)
}
