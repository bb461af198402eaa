//! Quantized graphs: integers take the place of the real numbers that they stand for.
//!
//! The passes read the forms of `hlo::quantization`, and run in this order: constants become
//! integers, dequantization moves toward the results, contractions multiply integers, and the
//! scales before a quantization become one.

mod constants;
mod contraction;
mod edit;
mod forms;
mod requantization;
mod sinking;

pub use constants::{DequantizedConstantFolding, QuantizedConstantFolding};
pub use contraction::QuantizedContraction;
pub use requantization::RequantizationFolding;
pub use sinking::DequantizationSinking;
