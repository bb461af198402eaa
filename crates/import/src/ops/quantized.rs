//! Quantization, and arithmetic on quantized numbers.

pub(crate) mod fake_quantization;
pub(crate) mod quantization;
pub(crate) mod ranges;
pub(crate) mod uniform_convolution;
pub(crate) mod uniform_quantization;

use crate::node::rule::Rule;

/// The rules of this folder.
pub(crate) const FAMILIES: &[&[Rule]] = &[
    fake_quantization::RULES,
    quantization::RULES,
    ranges::RULES,
    uniform_convolution::RULES,
    uniform_quantization::RULES,
];
