//! Reference interpreter of HLO: slow and simple. It verifies the code generator and folds
//! constants.
//!
//! Guarantees:
//! - **No shared arithmetic.** The code generator uses nothing from this crate. Transcendental
//!   functions come from the pure Rust `libm`, so the same module and arguments produce the same
//!   bytes on every machine.
//! - **Floating point.** Types narrower than `f64` are computed in `f64` and rounded once per
//!   instruction, to nearest even. For `+ - * / sqrt`, this equals IEEE arithmetic of the type
//!   itself. Other functions are correctly rounded in nearly all cases. `f64` functions are
//!   accurate to about one unit in the last place.
//! - **Sums.** `dot`, `convolution`, and a `reduce` or `reduce-window` whose computation is one
//!   `add` or `multiply` accumulate floating-point values in `f64`, in row-major order, and round
//!   at the end. Integers wrap. Other computations round at every step.
//! - **Integers.** As in XLA: `x / 0` is all ones, `x % 0` is `x`, `MIN / -1` is `MIN`, shifts by
//!   the width or more yield 0 or the sign, conversions from floating point saturate and turn NaN
//!   into 0.
//! - **Bounds.** [`Limits`] restricts work, memory, and nesting. A module that exceeds them is an
//!   error.
//!
//! Modules must have passed the verifier. Arrays are row-major regardless of the layout of a shape.
//! A token is the empty tuple.

mod array;
mod batch_norm;
mod complex;
mod computation;
mod contraction;
mod convert;
mod convolution;
mod data_movement;
mod dispatch;
mod dynamic_index;
mod elementwise;
mod evaluator;
mod fft;
mod float;
mod gather_scatter;
mod integer;
mod linear_algebra;
mod operation;
mod random;
mod reduction;
mod scalar_function;
mod sort;
mod window;

pub use evaluator::{Evaluator, Limits, evaluate, evaluate_computation, evaluate_instruction};
