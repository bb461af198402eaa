//! Random numbers.

pub(crate) mod implicit;
pub(crate) mod stateful;
pub(crate) mod stateless;

use crate::node::rule::Rule;

/// The rules of this folder.
pub(crate) const FAMILIES: &[&[Rule]] = &[implicit::RULES, stateful::RULES, stateless::RULES];
