//! A rule: the translation of one TF op to HLO, and the types that it accepts.

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

/// The function that builds the HLO of a node, by the kind of its results.
#[derive(Clone, Copy)]
pub(crate) enum Translation {
    /// One array.
    One(fn(&mut NodeContext<'_, '_>) -> Result<InstructionId>),
    /// Several arrays.
    Many(fn(&mut NodeContext<'_, '_>) -> Result<Vec<InstructionId>>),
    /// Any values: handles of variables, strings without consumers, or nothing.
    Values(fn(&mut NodeContext<'_, '_>) -> Result<Vec<Value>>),
}

/// The translation of one TF op to HLO.
#[derive(Clone, Copy)]
pub(crate) struct Rule {
    pub(crate) op: &'static str,
    pub(crate) translation: Translation,
    pub(crate) types: [Option<TypeConstraint>; 3],
    /// True if the op must run even if its outputs have no consumers.
    pub(crate) has_effect: bool,
}

impl Rule {
    /// Restricts a type attribute to these types.
    pub(crate) const fn types(mut self, attribute: &'static str, types: &'static [DataType]) -> Self {
        let mut free = 0;
        while self.types[free].is_some() {
            free += 1;
        }
        self.types[free] = Some(TypeConstraint { attribute, types });
        self
    }

    /// Declares that the op runs even if its outputs have no consumers.
    pub(crate) const fn effect(mut self) -> Self {
        self.has_effect = true;
        self
    }
}

/// A rule that returns one array.
pub(crate) const fn rule(
    op: &'static str,
    translate: fn(&mut NodeContext<'_, '_>) -> Result<InstructionId>,
) -> Rule {
    Rule { op, translation: Translation::One(translate), types: [None; 3], has_effect: false }
}

/// A rule that returns several arrays.
pub(crate) const fn rule_many(
    op: &'static str,
    translate: fn(&mut NodeContext<'_, '_>) -> Result<Vec<InstructionId>>,
) -> Rule {
    Rule { op, translation: Translation::Many(translate), types: [None; 3], has_effect: false }
}

/// A rule that returns any values.
pub(crate) const fn rule_values(
    op: &'static str,
    translate: fn(&mut NodeContext<'_, '_>) -> Result<Vec<Value>>,
) -> Rule {
    Rule { op, translation: Translation::Values(translate), types: [None; 3], has_effect: false }
}

/// The rules by op.
pub(crate) struct RuleTable(BTreeMap<&'static str, &'static Rule>);

impl RuleTable {
    /// Creates a table of rules, with one for each op.
    pub(crate) fn new(rules: impl Iterator<Item = &'static Rule>) -> Self {
        Self(rules.map(|rule| (rule.op, rule)).collect())
    }

    /// Returns the rule of an op.
    pub(crate) fn find(&self, op: &str) -> Option<&'static Rule> {
        self.0.get(op).copied()
    }

    /// Returns all rules, sorted by op.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &'static Rule> {
        self.0.values().copied()
    }
}
