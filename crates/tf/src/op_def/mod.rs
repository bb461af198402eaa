//! The signatures of the ops that TensorFlow registers, and what they say about a node.

mod signature;
mod table;

pub(crate) use signature::{check_attributes, fill_defaults, flat_types};
pub(crate) use table::lookup;

/// The signature of an op that TensorFlow registers.
pub fn op_signature(op: &str) -> Option<&'static crate::proto::OpDef> {
    lookup(op)
}
