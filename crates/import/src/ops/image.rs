//! Images and boxes.

pub(crate) mod colors;
pub(crate) mod crops;
pub(crate) mod non_max_suppression;
pub(crate) mod patches;
pub(crate) mod resample;
pub(crate) mod resize;
pub(crate) mod suppression;

use crate::node::rule::Rule;

/// The rules of this folder.
pub(crate) const FAMILIES: &[&[Rule]] =
    &[colors::RULES, crops::RULES, non_max_suppression::RULES, patches::RULES, resize::RULES];
