//! Control flow: calls, conditionals, loops, and the nodes that only order or check.

pub(crate) mod calls;
pub(crate) mod conditionals;
pub(crate) mod custom_calls;
pub(crate) mod loop_bounds;
pub(crate) mod loops;
pub(crate) mod no_ops;
pub(crate) mod while_loops;

use crate::node::rule::Rule;

/// The rules of this folder.
pub(crate) const FAMILIES: &[&[Rule]] =
    &[calls::RULES, conditionals::RULES, custom_calls::RULES, no_ops::RULES, while_loops::RULES];
