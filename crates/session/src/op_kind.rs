//! Queries about ops that the plan, kernels and the host's ops share.

use tf::DataType;

/// Whether a node's function is compiled as one.
pub(crate) fn must_compile(node: &tf::Node) -> bool {
    node.op == "_XlaLaunch"
        || node.op == "XlaLaunch"
        || node.attributes.bool_or("_XlaMustCompile", false).unwrap_or(false)
}

/// Whether an output is an array, as kernels make them.
pub(crate) fn is_array(data_type: DataType) -> bool {
    !data_type.is_ref() && data_type.primitive_type().is_some()
}

pub(crate) fn is_enter(node: &tf::Node) -> bool {
    matches!(node.op.as_str(), "Enter" | "RefEnter")
}

pub(crate) fn is_exit(node: &tf::Node) -> bool {
    matches!(node.op.as_str(), "Exit" | "RefExit")
}

pub(crate) fn is_next_iteration(node: &tf::Node) -> bool {
    matches!(node.op.as_str(), "NextIteration" | "RefNextIteration")
}

pub(crate) fn is_merge(node: &tf::Node) -> bool {
    matches!(node.op.as_str(), "Merge" | "RefMerge")
}
