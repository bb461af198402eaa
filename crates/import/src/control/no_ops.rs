//! Nodes that leave nothing in compiled code: those that only order others, check, or print.

use crate::node::data_types::*;
use crate::node::rule::{Rule, rule_values};
use crate::values::value::Value;

pub(crate) const RULES: &[Rule] = &[
    rule_values("NoOp", |_| Ok(Vec::new())),
    rule_values("ControlTrigger", |_| Ok(Vec::new())),
    // Assert checks nothing, as in XLA, unless the user requests it.
    rule_values("Assert", |_| Ok(Vec::new())),
    // Nothing is printed, so the strings need no value.
    rule_values("Print", |cx| cx.pass_on()).types("T", ANYTHING),
    rule_values("PrintV2", |_| Ok(Vec::new())),
    rule_values("StringFormat", |_| Ok(vec![Value::Opaque])),
    rule_values("StringJoin", |_| Ok(vec![Value::Opaque])),
    rule_values("AsString", |_| Ok(vec![Value::Opaque])),
];
