//! Signatures of the ops that TensorFlow registers, and the types that they give to nodes.

mod foreign;
mod signature;
mod table;

pub(crate) use signature::{check_attributes, fill_defaults, flat_types};
pub(crate) use table::lookup;

use crate::DataType;
use crate::proto::{ArgDef, AttrValue, OpDef};
use std::collections::BTreeMap;
use support::Result;

/// Signature of an op that TensorFlow registers.
pub fn op_signature(op: &str) -> Option<&'static OpDef> {
    lookup(op)
}

/// Types of a node's inputs or outputs, grouped by the arguments of its op's signature.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct NodeTypes {
    /// Types in order.
    pub types: Vec<DataType>,
    /// Index of the first type of each argument, followed by the number of types.
    pub starts: Vec<usize>,
}

/// Types of a signature's arguments (`input_arg` or `output_arg`) for a node's attributes,
/// including defaults. Returns an error if a required attribute is missing, or if there are too
/// many arguments.
pub fn node_types(
    signature: &OpDef,
    arguments: &[ArgDef],
    attributes: &BTreeMap<String, AttrValue>,
) -> Result<NodeTypes> {
    // Reads only the attributes that the arguments refer to. Others may be large tensors.
    let mut values = BTreeMap::new();
    for name in arguments.iter().flat_map(|a| [&a.type_attr, &a.number_attr, &a.type_list_attr]) {
        if name.is_empty() || values.contains_key(name) {
            continue;
        }
        let given = attributes.get(name).filter(|value| value.value.is_some());
        let default = || signature.attr.iter().find(|a| a.name == *name)?.default_value.as_ref();
        if let Some(value) = given.or_else(default) {
            values.insert(name.clone(), value.clone());
        }
    }
    let (types, starts) = flat_types(arguments, &values)?;
    Ok(NodeTypes { types, starts })
}
