//! XLA's own instructions as ops, and StableHLO programs in a graph.

pub(crate) mod call_module;
pub(crate) mod collectives;
pub(crate) mod convolution;
pub(crate) mod element_functions;
pub(crate) mod instructions;
pub(crate) mod partitions;
pub(crate) mod reductions;

use crate::node::rule::Rule;

/// The rules of this folder.
pub(crate) const FAMILIES: &[&[Rule]] = &[
    call_module::RULES,
    collectives::RULES,
    convolution::RULES,
    instructions::RULES,
    partitions::RULES,
    reductions::RULES,
];
