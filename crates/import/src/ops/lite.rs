//! Operators of TensorFlow Lite on quantized tensors: the ops `TFLite*`, with which the crate
//! `tflite` describes them.
//!
//! Results are those of the reference kernels (`tensorflow/lite/kernels/internal/reference`), bit
//! for bit: scales become multipliers of 31 bits with a shift ([`fixed_point`]), or tables with an
//! entry for each value of an operand.

mod activations;
mod arithmetic;
mod binary;
mod contraction;
mod convolution;
mod dynamic;
pub(crate) mod fixed_point;
mod hashes;
pub(crate) mod operands;
mod pooling;
mod products;
mod quantization;
mod random;
mod recurrent;
mod reductions;
mod shapes;
mod sigmoid;
mod softmax;
mod tables;

use crate::node::rule::Rule;

/// The rules of this folder.
pub(crate) const FAMILIES: &[&[Rule]] = &[
    activations::RULES,
    binary::RULES,
    convolution::RULES,
    hashes::RULES,
    pooling::RULES,
    products::RULES,
    quantization::RULES,
    random::RULES,
    recurrent::lstm::RULES,
    recurrent::rnn::RULES,
    recurrent::svdf::RULES,
    reductions::RULES,
    shapes::RULES,
    sigmoid::RULES,
    softmax::RULES,
];
