//! Tensor lists: TF 2's values that hold a sequence of tensors.

use crate::rule::Rule;

pub(crate) const RULES: &[Rule] = &[];
