//! Ops that the host runs: what has no arithmetic, or strings, or files.

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

/// Runs a node: makes as many outputs as it has.
pub(crate) type HostOp = fn(&mut Context<'_>) -> Result<()>;

/// A node whose kernel is another op's.
#[derive(Debug)]
pub(crate) struct Rewritten {
    /// The nodes that may be compiled.
    pub(crate) variants: Vec<Variant>,
    /// Makes its inputs of the node's.
    pub(crate) prepare: fn(&mut Context<'_>) -> Result<Prepared>,
}

/// A node that is compiled in place of another.
#[derive(Debug)]
pub(crate) struct Variant {
    pub(crate) node: tf::Node,
    pub(crate) input_types: Vec<DataType>,
}

/// Work that is left after [`Rewritten::prepare`].
pub(crate) enum Prepared {
    /// None: the outputs are made.
    Done,
    /// Running the kernel of a variant.
    Launch(usize),
    /// The same, and then its result gets these sizes.
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

/// The function of the host for a node.
pub(crate) fn find(node: &tf::Node) -> Option<HostOp> {
    if crate::op_kind::must_compile(node) {
        return None;
    }
    let is_variant = || node.attributes.ty("T").is_ok_and(|t| t == DataType::Variant);
    let of_variants = lists::OF_VARIANTS.iter().find(|(op, _)| *op == node.op).filter(|_| is_variant());
    of_variants.map(|(_, op)| *op).or_else(|| BY_NAME.get(node.op.as_str()).copied())
}

/// The kernel that a node has in place of its own op's.
pub(crate) fn rewrite(node: &tf::Node) -> Result<Option<Rewritten>> {
    match node.op.as_str() {
        "Slice" | "StridedSlice" => slices::rewrite(node),
        _ => random::rewrite(node),
    }
}

/// Why an op is refused that TensorFlow would run.
pub(crate) fn refusal(op: &str) -> Option<String> {
    let reason = if op.contains("Queue") {
        "queues are not run: feed what is taken from them"
    } else if op.contains("Reader") && !op.contains("ReadVariable") {
        "readers of files are not run: feed what is read"
    } else if op.contains("Iterator") || op.contains("Dataset") {
        "input pipelines are not run: feed what they make"
    } else if op.contains("HashTable") || op.starts_with("LookupTable") || op.contains("MutableHash") {
        "tables are not run: give the model as a SavedModel, whose tables become constants"
    } else if op.contains("Barrier") || op.contains("Accumulator") {
        "barriers and accumulators are not run: take the part of the graph behind them"
    } else if op.starts_with("PyFunc") || op == "EagerPyFunc" {
        "Python functions are not run: write it with TensorFlow's ops"
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
        assert_eq!(rows.len(), BY_NAME.len(), "an op has two rows");
        for op in rows {
            assert!(tf::op_signature(op).is_some(), "{op} is no op of TensorFlow");
        }
    }

    #[test]
    fn what_is_refused_says_what_to_do() {
        assert!(refusal("QueueDequeueV2").is_some_and(|text| text.contains("feed what is taken")));
        assert!(refusal("ReaderReadV2").is_some_and(|text| text.contains("feed what is read")));
        assert_eq!(refusal("ReadVariableOp"), None);
        assert_eq!(refusal("MatMul"), None);
    }
}
