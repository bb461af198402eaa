//! Ops that pass their inputs through.

use crate::node::context::NodeContext;
use crate::node::data_types::*;
use crate::node::rule::{Rule, rule, rule_values};
use crate::values::value::Value;
use bounded::list;
use hlo::InstructionId;
use support::Result;

pub(crate) const RULES: &[Rule] = &[
    rule_values("Identity", |cx| cx.pass_on()).types("T", ANYTHING),
    rule_values("IdentityN", |cx| cx.pass_on()).types("T", ANYTHING),
    rule_values("_ArrayToList", array_or_list).types("T", ALL),
    rule_values("_ListToArray", array_or_list).types("T", ALL),
    rule_values("StopGradient", |cx| cx.pass_on()).types("T", ANYTHING),
    rule_values("PreventGradient", |cx| cx.pass_on()).types("T", ANYTHING),
    rule_values("Snapshot", |cx| cx.pass_on()).types("T", ALL),
    rule_values("PlaceholderWithDefault", |cx| cx.pass_on()).types("dtype", ALL),
    // Checks nothing, as in XLA: compiled code has no way to report a failure.
    rule_values("CheckNumerics", |cx| cx.pass_on()).types("T", FLOATS),
    rule("EnsureShape", ensure_shape).types("T", ALL),
];

/// Passes the inputs on. Attributes state their types twice.
fn array_or_list(cx: &mut NodeContext<'_, '_>) -> Result<Vec<Value>> {
    let outputs = cx.pass_on()?;
    for (k, id) in outputs.iter().enumerate().filter_map(|(k, output)| Some((k, output.array()?))) {
        let (stated, own) = (cx.output_type(k)?, cx.element_type(id));
        cx.check(stated == own, || {
            format!("output {k} has the type {stated}, but input {k} has {own}: the attributes must agree")
        })?;
    }
    Ok(outputs)
}

/// `EnsureShape(x) = x`. Another shape of `x` is a compile-time error.
fn ensure_shape(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let x = cx.input(0)?;
    let (sizes, requested) = (cx.sizes(x), cx.attributes().shape("shape")?);
    let known = cx.array(x).dimensions;
    let fits = requested.dimensions.as_ref().is_none_or(|requested| {
        requested.len() == known.len()
            && requested.iter().zip(&known).all(|(requested, known)| {
                requested.is_none_or(|w| w == known.size || (known.is_dynamic && w < known.size))
            })
    });
    cx.check(fits, || format!("the tensor's shape {} is not compatible with {requested}", list(&sizes)))?;
    Ok(x)
}
