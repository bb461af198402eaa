//! A rule: how one TF op becomes HLO, and which types it takes.

use crate::node::context::NodeContext;
use crate::values::value::Value;
use hlo::InstructionId;
use std::collections::BTreeMap;
use support::Result;
use tf::DataType;

/// The types that an attribute may name.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TypeConstraint {
    pub(crate) attribute: &'static str,
    pub(crate) types: &'static [DataType],
}

/// What builds the HLO of a node.
#[derive(Clone, Copy)]
pub(crate) enum Translation {
    /// One array.
    One(fn(&mut NodeContext<'_, '_>) -> Result<InstructionId>),
    /// Several arrays.
    Many(fn(&mut NodeContext<'_, '_>) -> Result<Vec<InstructionId>>),
    /// Anything: handles of variables, strings that nobody reads, nothing.
    Values(fn(&mut NodeContext<'_, '_>) -> Result<Vec<Value>>),
}

/// How one TF op becomes HLO.
#[derive(Clone, Copy)]
pub(crate) struct Rule {
    pub(crate) op: &'static str,
    pub(crate) translation: Translation,
    pub(crate) types: [Option<TypeConstraint>; 3],
    /// Whether it must run even if nobody needs its outputs.
    pub(crate) has_effect: bool,
}

impl Rule {
    /// Takes only these types for a type attribute.
    pub(crate) const fn types(mut self, attribute: &'static str, types: &'static [DataType]) -> Self {
        let mut free = 0;
        while self.types[free].is_some() {
            free += 1;
        }
        self.types[free] = Some(TypeConstraint { attribute, types });
        self
    }

    /// Runs even if nobody needs its outputs.
    pub(crate) const fn effect(mut self) -> Self {
        self.has_effect = true;
        self
    }
}

/// A rule that makes one array.
pub(crate) const fn rule(
    op: &'static str,
    translate: fn(&mut NodeContext<'_, '_>) -> Result<InstructionId>,
) -> Rule {
    Rule { op, translation: Translation::One(translate), types: [None; 3], has_effect: false }
}

/// A rule that makes several arrays.
pub(crate) const fn rule_many(
    op: &'static str,
    translate: fn(&mut NodeContext<'_, '_>) -> Result<Vec<InstructionId>>,
) -> Rule {
    Rule { op, translation: Translation::Many(translate), types: [None; 3], has_effect: false }
}

/// A rule that makes any values.
pub(crate) const fn rule_values(
    op: &'static str,
    translate: fn(&mut NodeContext<'_, '_>) -> Result<Vec<Value>>,
) -> Rule {
    Rule { op, translation: Translation::Values(translate), types: [None; 3], has_effect: false }
}

/// Rules by op.
pub(crate) struct RuleTable(BTreeMap<&'static str, &'static Rule>);

impl RuleTable {
    /// A table of rules, one for each op.
    pub(crate) fn new(rules: impl Iterator<Item = &'static Rule>) -> Self {
        Self(rules.map(|rule| (rule.op, rule)).collect())
    }

    /// The rule of an op.
    pub(crate) fn find(&self, op: &str) -> Option<&'static Rule> {
        self.0.get(op).copied()
    }

    /// All rules, by name of their op.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &'static Rule> {
        self.0.values().copied()
    }
}
