//! Layers of neural networks: activations, convolutions, pooling, normalization, recurrent cells,
//! losses.

pub(crate) mod activations;
pub(crate) mod batch_norm;
pub(crate) mod bias;
pub(crate) mod convolution;
pub(crate) mod convolution_gradients;
pub(crate) mod data_formats;
pub(crate) mod fused;
pub(crate) mod gru_cells;
pub(crate) mod local_response;
pub(crate) mod losses;
pub(crate) mod lstm_cells;
pub(crate) mod lstm_sequences;
pub(crate) mod pooling;
pub(crate) mod pooling_gradients;
mod row_norm;
pub(crate) mod windows;

use crate::node::rule::Rule;

/// The rules of this folder.
pub(crate) const FAMILIES: &[&[Rule]] = &[
    activations::RULES,
    batch_norm::RULES,
    bias::RULES,
    convolution::RULES,
    convolution_gradients::RULES,
    data_formats::RULES,
    fused::RULES,
    gru_cells::RULES,
    local_response::RULES,
    losses::RULES,
    lstm_cells::RULES,
    lstm_sequences::RULES,
    pooling::RULES,
    pooling_gradients::RULES,
];
