//! Ops of ONNX models that no op of TensorFlow defines: the ops `Onnx*`, with which the crate
//! `onnx` describes them. `OnnxMs*` are those of ONNX Runtime (domain `com.microsoft`), and
//! `OnnxMl*` those of `ai.onnx.ml`.
//!
//! Results are those of ONNX's specification, and of ONNX Runtime's kernels where that leaves
//! rounding open.

mod attention;
mod contrib;
mod convolution;
mod detection;
mod ml;
mod ngrams;
mod normalization;
mod operands;
mod padding;
mod pooling;
mod products;
mod qlinear;
mod quantization;
mod recurrent;
mod recurrent_functions;
mod reductions;
mod resize;
mod rotary;
mod sampling;
mod selection;
mod shapes;
mod signals;
mod support_vectors;
mod training;
mod tree_groups;
mod tree_masks;
mod tree_nodes;
mod tree_words;
mod trees;
mod windows;

use crate::node::rule::Rule;

/// The rules of this folder.
pub(crate) const FAMILIES: &[&[Rule]] = &[
    attention::RULES,
    contrib::RULES,
    convolution::RULES,
    detection::RULES,
    ml::RULES,
    ngrams::RULES,
    normalization::RULES,
    pooling::RULES,
    products::RULES,
    qlinear::RULES,
    quantization::RULES,
    recurrent::RULES,
    reductions::RULES,
    resize::RULES,
    rotary::RULES,
    sampling::RULES,
    padding::RULES,
    selection::RULES,
    shapes::RULES,
    signals::RULES,
    support_vectors::RULES,
    training::RULES,
    trees::RULES,
];
