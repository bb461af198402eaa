//! Quantized graphs: integers take the place of the real numbers that they stand for.
//!
//! The passes read the forms of `hlo::quantization`, and run in this order: constants become
//! integers, dequantization moves toward the results, contractions multiply integers, and the
//! scales before a quantization become one. Scales in fixed-point arithmetic become `f32` where
//! that gives the same integers.

mod constants;
mod contraction;
mod edit;
mod float_line;
mod float_requantization;
mod float_rounding;
mod float_sum;
mod forms;
mod requantization;
mod sinking;
mod steps;

pub use constants::{DequantizedConstantFolding, QuantizedConstantFolding};
pub use contraction::QuantizedContraction;
pub use edit::Edit;
pub use float_requantization::FloatRequantization;
pub use requantization::RequantizationFolding;
pub use sinking::DequantizationSinking;
