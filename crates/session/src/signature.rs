//! Facts about a node's inputs from its op's signature.

use tf::proto::{ArgDef, attr_value::Value};

/// Number of inputs of a node that belong to one argument of the signature.
fn count(arg: &ArgDef, node: &tf::Node) -> usize {
    if !arg.type_list_attr.is_empty() {
        return match node.attributes.values().get(&arg.type_list_attr).and_then(|v| v.value.as_ref()) {
            Some(Value::List(list)) => list.r#type.len(),
            _ => 0,
        };
    }
    if !arg.number_attr.is_empty() {
        let count = node.attributes.int_or(&arg.number_attr, 0).unwrap_or(0);
        return usize::try_from(count).unwrap_or(0).min(node.inputs.len());
    }
    1
}

/// Argument name of each input of a node; empty for unregistered ops.
pub(crate) fn input_names(node: &tf::Node) -> Vec<&'static str> {
    let Some(op) = tf::op_signature(&node.op) else { return Vec::new() };
    let names = op.input_arg.iter().flat_map(|arg| std::iter::repeat_n(arg.name.as_str(), count(arg, node)));
    names.collect()
}

/// For each input, true if it expects a reference to a variable.
pub(crate) fn input_references(node: &tf::Node) -> Vec<bool> {
    let Some(op) = tf::op_signature(&node.op) else { return Vec::new() };
    op.input_arg.iter().flat_map(|arg| std::iter::repeat_n(arg.is_ref, count(arg, node))).collect()
}
