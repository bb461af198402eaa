//! The table of all rules, collected from all folders.

use crate::node::rule::{Rule, RuleTable};
use std::sync::LazyLock;

/// A folder of rules. The documentation has one page per folder.
pub(crate) struct Folder {
    /// File name of the page, without its extension.
    pub(crate) page: &'static str,
    /// Title of the page.
    pub(crate) title: &'static str,
    families: &'static [&'static [Rule]],
}

impl Folder {
    const fn new(page: &'static str, title: &'static str, families: &'static [&'static [Rule]]) -> Folder {
        Folder { page, title, families }
    }

    /// True if the rule of this op is in the folder.
    pub(crate) fn has(&self, op: &str) -> bool {
        self.families.iter().copied().flatten().any(|rule| rule.op == op)
    }
}

/// All folders.
pub(crate) const FOLDERS: &[Folder] = &[
    Folder::new("array", "arrays and shapes", crate::ops::array::FAMILIES),
    Folder::new("math", "mathematics", crate::ops::math::FAMILIES),
    Folder::new("linalg", "linear algebra", crate::ops::linalg::FAMILIES),
    Folder::new("nn", "neural networks", crate::ops::nn::FAMILIES),
    Folder::new("training", "training", crate::ops::training::FAMILIES),
    Folder::new("control", "control flow, functions, and variables", crate::control::FAMILIES),
    Folder::new("lists", "lists, stacks, and tensor arrays", crate::lists::FAMILIES),
    Folder::new("image", "images", crate::ops::image::FAMILIES),
    Folder::new("quantized", "quantization", crate::ops::quantized::FAMILIES),
    Folder::new("lite", "TensorFlow Lite", crate::ops::lite::FAMILIES),
    Folder::new("onnx", "ONNX", crate::ops::onnx::FAMILIES),
    Folder::new("random", "random numbers", crate::ops::random::FAMILIES),
    Folder::new("xla", "XLA's own ops", crate::ops::xla::FAMILIES),
];

/// All rules.
fn all() -> impl Iterator<Item = &'static Rule> {
    FOLDERS.iter().flat_map(|folder| folder.families).copied().flatten()
}

/// The rules by op.
pub(crate) static RULES: LazyLock<RuleTable> = LazyLock::new(|| RuleTable::new(all()));

/// An op that can be imported.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SupportedOp {
    /// TensorFlow's name.
    pub name: &'static str,
    /// Types accepted for each of its type attributes. Attributes that are not listed are not
    /// restricted.
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
    fn ops_that_accept_bounded_arrays_have_rules_and_are_listed_once() {
        let mut listed: Vec<&str> = [ELEMENTWISE, OTHERS].iter().flat_map(|list| list.split(' ')).collect();
        for op in &listed {
            assert!(RULES.find(op).is_some(), "{op}");
        }
        listed.sort_unstable();
        let twice: Vec<&[&str]> = listed.windows(2).filter(|pair| pair[0] == pair[1]).collect();
        assert!(twice.is_empty(), "listed twice: {twice:?}");
    }
}
