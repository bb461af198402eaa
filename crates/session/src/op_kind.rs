//! Queries about ops, shared by the plan, the kernels, and the host ops.

use tf::DataType;

/// True if the node's function is compiled as a unit.
pub(crate) fn must_compile(node: &tf::Node) -> bool {
    node.op == "_XlaLaunch"
        || node.op == "XlaLaunch"
        || node.attributes.bool_or("_XlaMustCompile", false).unwrap_or(false)
}

/// True if an output of this type is an array, the kind of result that kernels return.
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

/// True if the host's function of an op only passes its operands on or looks at their shapes, so
/// that they can stay on a GPU.
pub(crate) fn keeps_operands(op: &str) -> bool {
    const OPS: &[&str] = &[
        "Assign",
        "AssignVariableOp",
        "IsVariableInitialized",
        "Rank",
        "ReadVariableOp",
        "Shape",
        "ShapeN",
        "Size",
        "StackPush",
        "StackPushV2",
        "TensorArrayWriteV3",
        "VarIsInitializedOp",
    ];
    OPS.contains(&op)
}
