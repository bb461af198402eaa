//! Variables, and the ops that train them.

pub(crate) mod optimizers;
pub(crate) mod variables;

use crate::node::rule::Rule;

/// The rules of this folder.
pub(crate) const FAMILIES: &[&[Rule]] = &[optimizers::RULES, optimizers::sparse::RULES, variables::RULES];
