//! Calls of functions: their bodies take the place of the call.

use crate::node::context::NodeContext;
use crate::node::rule::{Rule, rule_values};
use crate::values::value::Value;
use support::{Error, Result};
use tf::Function;

pub(crate) const RULES: &[Rule] = &[
    rule_values("PartitionedCall", call),
    rule_values("StatefulPartitionedCall", call).effect(),
    // Preparing a program makes calls of the functions that compute gradients.
    rule_values("SymbolicGradient", |_| Err(Error::internal("a gradient was not made a call"))),
    rule_values("_Arg", |cx| {
        Err(Error::invalid(format!(
            "it stands for an argument of a function, but the graph is none: feed '{}:0' in the config",
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

/// A node whose op is no registered op, but the name of a function.
pub(crate) fn call_of_op(cx: &mut NodeContext<'_, '_>) -> Result<Vec<Value>> {
    let function = cx.function(&cx.node().op)?;
    inline(cx, function)
}

/// The values of a function's results, its body translated here.
pub(crate) fn inline<'p>(cx: &mut NodeContext<'_, 'p>, function: &'p Function) -> Result<Vec<Value>> {
    let arguments = cx.inputs().to_vec();
    cx.translate_function(function, &arguments)
}
