//! Tensor lists, stacks, and tensor arrays: values and resources that hold sequences of tensors.

pub(crate) mod element_ops;
pub(crate) mod elements;
pub(crate) mod optionals;
pub(crate) mod stacks;
pub(crate) mod sums;
pub(crate) mod tensor_arrays;
pub(crate) mod whole_ops;

use crate::node::rule::Rule;

/// The rules of this folder.
pub(crate) const FAMILIES: &[&[Rule]] =
    &[element_ops::RULES, stacks::RULES, tensor_arrays::RULES, optionals::RULES, whole_ops::RULES];
