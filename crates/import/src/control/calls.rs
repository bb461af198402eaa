//! Function calls: the body is inlined in place of the call.

use crate::node::context::NodeContext;
use crate::node::rule::{Rule, rule_values};
use crate::values::value::Value;
use support::{Error, Result};
use tf::Function;

pub(crate) const RULES: &[Rule] = &[
    rule_values("PartitionedCall", call),
    rule_values("StatefulPartitionedCall", call).effect(),
    // Program preparation replaces these with calls of the functions that compute gradients.
    rule_values("SymbolicGradient", |_| Err(Error::internal("SymbolicGradient was not replaced by a call"))),
    rule_values("_Arg", |cx| {
        Err(Error::invalid(format!(
            "the node is an argument of a function, but the graph is not a function: feed '{}:0' in the config",
            cx.node().name
        )))
    }),
    rule_values("_Retval", |_| Ok(Vec::new())),
];

/// Calls the function of attribute `f`.
fn call(cx: &mut NodeContext<'_, '_>) -> Result<Vec<Value>> {
    let (name, _) = cx.attributes().func("f")?;
    let function = cx.function(name)?;
    inline(cx, function)
}

/// Calls the function that the op names. Such an op is not registered.
pub(crate) fn call_of_op(cx: &mut NodeContext<'_, '_>) -> Result<Vec<Value>> {
    let function = cx.function(&cx.node().op)?;
    inline(cx, function)
}

/// Translates a function's body in place and returns the values of its results.
pub(crate) fn inline<'p>(cx: &mut NodeContext<'_, 'p>, function: &'p Function) -> Result<Vec<Value>> {
    let arguments = cx.inputs().to_vec();
    cx.translate_function(function, &arguments)
}
