//! Ops that pass their inputs on, or do nothing at all.

use crate::node::context::{NodeContext, list};
use crate::node::data_types::*;
use crate::node::rule::{Rule, rule, rule_values};
use crate::values::value::Value;
use hlo::InstructionId;
use support::Result;

pub(crate) const RULES: &[Rule] = &[
    rule_values("Identity", pass_all).types("T", ANYTHING),
    rule_values("IdentityN", pass_all).types("T", ANYTHING),
    rule_values("_ArrayToList", pass_all).types("T", ALL),
    rule_values("_ListToArray", pass_all).types("T", ALL),
    rule_values("StopGradient", pass_all).types("T", ANYTHING),
    rule_values("PreventGradient", pass_all).types("T", ANYTHING),
    rule_values("Snapshot", pass_all).types("T", ALL),
    rule_values("PlaceholderWithDefault", pass_all).types("dtype", ALL),
    // Checks nothing, as in XLA: compiled code has no way to report it.
    rule_values("CheckNumerics", pass_all).types("T", FLOATS),
    rule("EnsureShape", ensure_shape).types("T", ALL),
    rule_values("NoOp", |_| Ok(Vec::new())),
    rule_values("ControlTrigger", |_| Ok(Vec::new())),
    // Checks nothing, as in XLA, unless the user asks for it.
    rule_values("Assert", |_| Ok(Vec::new())),
    // Nothing is printed, and what would be needs no value.
    rule_values("Print", pass_all).types("T", ANYTHING),
    rule_values("PrintV2", |_| Ok(Vec::new())),
    rule_values("StringFormat", |_| Ok(vec![Value::Opaque])),
    rule_values("StringJoin", |_| Ok(vec![Value::Opaque])),
    rule_values("AsString", |_| Ok(vec![Value::Opaque])),
];

/// Each output is the input of its position. References to variables are read.
fn pass_all(cx: &mut NodeContext<'_, '_>) -> Result<Vec<Value>> {
    (0..cx.node.output_types.len())
        .map(|k| match cx.value(k)? {
            Value::Reference(variable) => Ok(Value::Array(cx.importer.read_variable(variable))),
            value => Ok(value),
        })
        .collect()
}

/// `EnsureShape(x) = x`, refused at compile time if `x` has another shape.
fn ensure_shape(cx: &mut NodeContext<'_, '_>) -> Result<InstructionId> {
    let x = cx.input(0)?;
    let (sizes, wanted) = (cx.sizes(x), cx.node.attributes.shape("shape")?);
    let known = cx.array(x).dimensions;
    let fits = wanted.dimensions.as_ref().is_none_or(|wanted| {
        wanted.len() == known.len()
            && wanted.iter().zip(&known).all(|(wanted, known)| {
                wanted.is_none_or(|w| w == known.size || (known.is_dynamic && w < known.size))
            })
    });
    cx.check(fits, || format!("the tensor's shape {} is not compatible with {wanted}", list(&sizes)))?;
    Ok(x)
}
