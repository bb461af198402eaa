//! All rules: those of all folders.

use crate::node::rule::Rule;
use std::collections::BTreeMap;
use std::sync::LazyLock;

/// The families' rules, folder by folder.
const FOLDERS: &[&[&[Rule]]] = &[
    crate::control::FAMILIES,
    crate::lists::FAMILIES,
    crate::ops::array::FAMILIES,
    crate::ops::image::FAMILIES,
    crate::ops::linalg::FAMILIES,
    crate::ops::math::FAMILIES,
    crate::ops::nn::FAMILIES,
    crate::ops::quantized::FAMILIES,
    crate::ops::random::FAMILIES,
    crate::ops::training::FAMILIES,
    crate::ops::xla::FAMILIES,
];

/// All rules.
fn all() -> impl Iterator<Item = &'static Rule> {
    FOLDERS.iter().copied().flatten().copied().flatten()
}

static BY_OP: LazyLock<BTreeMap<&'static str, &'static Rule>> =
    LazyLock::new(|| all().map(|rule| (rule.op, rule)).collect());

/// The rule of an op.
pub(crate) fn find(op: &str) -> Option<&'static Rule> {
    BY_OP.get(op).copied()
}

/// An op that can be imported.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SupportedOp {
    /// TensorFlow's name.
    pub name: &'static str,
    /// The types that each of its type attributes may name; attributes that are not here are not restricted.
    pub types: Vec<(&'static str, &'static [tf::DataType])>,
}

/// Every op that can be imported, by name.
pub fn supported_ops() -> Vec<SupportedOp> {
    let types = |rule: &Rule| rule.types.iter().flatten().map(|t| (t.attribute, t.types)).collect();
    BY_OP.values().map(|rule| SupportedOp { name: rule.op, types: types(rule) }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_op_has_one_rule() {
        let mut names: Vec<&str> = all().map(|rule| rule.op).collect();
        names.sort_unstable();
        let twice: Vec<&[&str]> = names.windows(2).filter(|pair| pair[0] == pair[1]).collect();
        assert!(twice.is_empty(), "rows of the same op: {twice:?}");
        assert_eq!(supported_ops().len(), names.len());
    }
}
