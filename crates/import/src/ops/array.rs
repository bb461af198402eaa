//! Ops that rearrange, join, split, and index arrays.

pub(crate) mod arrays;
pub(crate) mod bounded_slices;
pub(crate) mod concat_split;
pub(crate) mod constants;
pub(crate) mod dynamic_stitch;
pub(crate) mod gather;
pub(crate) mod identity;
pub(crate) mod pad;
pub(crate) mod positions;
pub(crate) mod ragged_ranges;
pub(crate) mod scatter;
pub(crate) mod selections;
pub(crate) mod shapes;
pub(crate) mod slice_spec;
pub(crate) mod space_to_depth;
pub(crate) mod strided_slice;
pub(crate) mod unique;

use crate::node::rule::Rule;

/// The rules of this folder.
pub(crate) const FAMILIES: &[&[Rule]] = &[
    arrays::RULES,
    concat_split::RULES,
    constants::RULES,
    dynamic_stitch::RULES,
    gather::RULES,
    identity::RULES,
    positions::RULES,
    pad::RULES,
    ragged_ranges::RULES,
    scatter::RULES,
    selections::RULES,
    shapes::RULES,
    space_to_depth::RULES,
    strided_slice::RULES,
    unique::RULES,
];
