//! All rules: those of all folders.

use crate::node::rule::{Rule, RuleTable};
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

/// The rules by op.
pub(crate) static RULES: LazyLock<RuleTable> = LazyLock::new(|| RuleTable::new(all()));

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
    RULES.iter().map(|rule| SupportedOp { name: rule.op, types: types(rule) }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::node::accepted::{ELEMENTWISE, OTHERS};

    #[test]
    fn every_op_has_one_rule() {
        let mut names: Vec<&str> = all().map(|rule| rule.op).collect();
        names.sort_unstable();
        let twice: Vec<&[&str]> = names.windows(2).filter(|pair| pair[0] == pair[1]).collect();
        assert!(twice.is_empty(), "rows of the same op: {twice:?}");
        assert_eq!(supported_ops().len(), names.len());
    }

    #[test]
    fn ops_that_accept_bounded_arrays_have_rules_and_stand_in_one_list() {
        for op in ELEMENTWISE.split(' ').chain(OTHERS.split(' ')) {
            assert!(RULES.find(op).is_some(), "{op}");
        }
        assert!(!ELEMENTWISE.split(' ').any(|op| OTHERS.split(' ').any(|other| other == op)));
    }
}
