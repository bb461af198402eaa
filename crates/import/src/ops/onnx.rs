//! Ops of ONNX models that no op of TensorFlow defines: the ops `Onnx*`, with which the crate
//! `onnx` describes them. `OnnxMs*` are those of ONNX Runtime (domain `com.microsoft`), and
//! `OnnxMl*` those of `ai.onnx.ml`.
//!
//! Results are those of ONNX's specification, and of ONNX Runtime's kernels where that leaves
//! rounding open.

mod convolution;
mod normalization;
mod operands;
mod pooling;
mod products;
mod qlinear;
mod quantization;
mod recurrent;
mod recurrent_functions;
mod reductions;
mod selection;
mod shapes;
mod windows;

use crate::node::rule::Rule;

/// The rules of this folder.
pub(crate) const FAMILIES: &[&[Rule]] = &[
    convolution::RULES,
    normalization::RULES,
    pooling::RULES,
    products::RULES,
    qlinear::RULES,
    quantization::RULES,
    recurrent::RULES,
    reductions::RULES,
    selection::RULES,
    shapes::RULES,
];
