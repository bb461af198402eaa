//! Ops that run on the host: those without arithmetic, and those on strings or files.

mod arrays;
mod checkpoints;
mod draws;
mod functional;
mod lists;
mod random;
mod slices;
mod stacks;
mod strings;
mod tensor_arrays;
mod variables;

pub(crate) use strings::summary;

use crate::context::Context;
use std::collections::BTreeMap;
use std::sync::LazyLock;
use support::Result;
use tf::DataType;

/// Runs a node and appends all of its outputs.
pub(crate) type HostOp = fn(&mut Context<'_>) -> Result<()>;

/// A node that runs the kernel of another op.
#[derive(Debug)]
pub(crate) struct Rewritten {
    /// The nodes to choose from, each compiled when it is first used.
    pub(crate) variants: Vec<Variant>,
    /// Computes the variant's inputs from the node's.
    pub(crate) prepare: fn(&mut Context<'_>) -> Result<Prepared>,
}

/// A node that is compiled in place of another.
#[derive(Debug)]
pub(crate) struct Variant {
    pub(crate) node: tf::Node,
    pub(crate) input_types: Vec<DataType>,
}

/// Work that remains after [`Rewritten::prepare`].
pub(crate) enum Prepared {
    /// None: the outputs are complete.
    Done,
    /// Run the kernel of this variant.
    Launch(usize),
    /// Run the kernel of this variant, then give its result these sizes.
    Reshape(usize, Vec<i64>),
}

type Row = (&'static str, HostOp);

const FAMILIES: &[&[Row]] = &[
    arrays::OPS,
    checkpoints::OPS,
    draws::OPS,
    functional::OPS,
    lists::OPS,
    stacks::OPS,
    strings::OPS,
    tensor_arrays::OPS,
    variables::OPS,
];

static BY_NAME: LazyLock<BTreeMap<&'static str, HostOp>> =
    LazyLock::new(|| FAMILIES.iter().copied().flatten().copied().collect());

/// The host function of a node.
pub(crate) fn find(node: &tf::Node) -> Option<HostOp> {
    if crate::op_kind::must_compile(node) {
        return None;
    }
    let is_variant = || node.attributes.ty("T").is_ok_and(|t| t == DataType::Variant);
    let of_variants = lists::OF_VARIANTS.iter().find(|(op, _)| *op == node.op).filter(|_| is_variant());
    of_variants.map(|(_, op)| *op).or_else(|| BY_NAME.get(node.op.as_str()).copied())
}

/// The kernels that a node uses in place of its own op's.
pub(crate) fn rewrite(node: &tf::Node) -> Result<Option<Rewritten>> {
    match node.op.as_str() {
        "Slice" | "StridedSlice" => slices::rewrite(node),
        _ => random::rewrite(node),
    }
}

/// Reason why an op that TensorFlow supports is refused.
pub(crate) fn refusal(op: &str) -> Option<String> {
    let reason = if op.contains("Queue") {
        "queues are not supported: feed the dequeued tensors"
    } else if op.contains("Reader") && !op.contains("ReadVariable") {
        "file readers are not supported: feed the tensors that they read"
    } else if op.contains("Iterator") || op.contains("Dataset") {
        "input pipelines are not supported: feed the tensors that they produce"
    } else if op.contains("HashTable") || op.starts_with("LookupTable") || op.contains("MutableHash") {
        "tables are not supported: pass the model as a SavedModel, whose tables become constants"
    } else if op.contains("Barrier") || op.contains("Accumulator") {
        "barriers and accumulators are not supported: use the part of the graph downstream of them"
    } else if op.starts_with("PyFunc") || op == "EagerPyFunc" {
        "Python functions are not supported: use TensorFlow ops instead"
    } else {
        return None;
    };
    Some(format!("op {op} is not supported: {reason}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_op_has_one_row_and_is_registered() {
        let rows: Vec<&str> = FAMILIES.iter().copied().flatten().map(|row| row.0).collect();
        assert_eq!(rows.len(), BY_NAME.len(), "an op has more than one row");
        for op in rows {
            assert!(tf::op_signature(op).is_some(), "{op} is not a TensorFlow op");
        }
    }

    #[test]
    fn refusals_suggest_an_alternative() {
        assert!(refusal("QueueDequeueV2").is_some_and(|text| text.contains("feed the dequeued")));
        assert!(refusal("ReaderReadV2").is_some_and(|text| text.contains("feed the tensors that they read")));
        assert_eq!(refusal("ReadVariableOp"), None);
        assert_eq!(refusal("MatMul"), None);
    }
}
