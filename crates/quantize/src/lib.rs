//! Post-training quantization of HLO modules: layers compute with integers, or only store their
//! weights as integers or shorter floats.
//!
//! The crate changes modules and chooses scales; it runs nothing. Its caller runs the module on
//! examples of inputs, and passes in what it observes.
//!
//! - [`Layers`] are the contractions with constant weights.
//! - [`Points`] are the values between layers that become integers.
//! - [`with_results`] makes values visible, [`Range`] and [`Histogram`] record them, and [`Method`]
//!   chooses the range that integers cover.
//! - [`weights`] has the integers of constant weights.
//! - [`rewrite()`] puts all of it into the module, in the form that `form.rs` states.
//! - [`with_switches`] makes a module whose layers are quantized one by one, to measure how much
//!   each of them changes the results.
//! - [`equalize`] and [`correction`] reduce the error without training.

mod bias;
mod equalization;
mod form;
mod layer;
mod observe;
mod point;
mod range;
mod rewrite;
pub mod weights;

pub use bias::{Sums, correction};
pub use equalization::equalize;
pub use layer::{Layer, Layers, Unsuitable};
pub use observe::{with_results, with_switches};
pub use point::Points;
pub use range::{Histogram, Method, Range};
pub use rewrite::{Form, LayerForm, Weights, rewrite};
