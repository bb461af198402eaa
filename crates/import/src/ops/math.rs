//! Arithmetic and elementwise functions, reductions, scans, searches, and sequences.

pub(crate) mod arithmetic;
pub(crate) mod cast;
pub(crate) mod comparison;
pub(crate) mod complex;
pub(crate) mod counts;
pub(crate) mod division;
pub(crate) mod fourier;
pub(crate) mod isotonic;
pub(crate) mod next_after;
pub(crate) mod ranges;
pub(crate) mod reductions;
pub(crate) mod scans;
pub(crate) mod searches;
pub(crate) mod special_math;
pub(crate) mod topk;
pub(crate) mod trigonometry;

use crate::node::rule::Rule;

/// The rules of this folder.
pub(crate) const FAMILIES: &[&[Rule]] = &[
    arithmetic::RULES,
    cast::RULES,
    comparison::RULES,
    complex::RULES,
    counts::RULES,
    division::RULES,
    fourier::RULES,
    isotonic::RULES,
    next_after::RULES,
    ranges::RULES,
    reductions::RULES,
    scans::RULES,
    searches::RULES,
    special_math::RULES,
    topk::RULES,
    trigonometry::RULES,
];
