//! Reference interpreter of HLO: slow, obvious, the judge of the code generator and the folder of constants.
//!
//! What it promises:
//! - **No shared arithmetic.** Nothing here is used by the code generator; transcendental functions come from the pure
//!   Rust `libm`, so the same module and arguments give the same bytes on every machine.
//! - **Floating point.** Types narrower than `f64` are computed in `f64` and rounded once, to nearest even, for each
//!   instruction. For `+ - * / sqrt` that is IEEE arithmetic of the type itself; for other functions it is correctly
//!   rounded in nearly all cases. `f64` functions are accurate to about one unit in the last place.
//! - **Sums.** `dot`, `convolution`, and a `reduce` or `reduce-window` whose computation is one `add` or `multiply`
//!   accumulate floating-point values in `f64`, in row-major order, and round at the end. Integers wrap. Other
//!   computations round at every step.
//! - **Integers.** As XLA: `x / 0` is all ones, `x % 0` is `x`, `MIN / -1` is `MIN`, shifts by the width or more
//!   give 0 or the sign, conversions from floating point saturate and turn NaN into 0.
//! - **Bounds.** Work, memory and nesting are limited by [`Limits`]; a module that exceeds them is an error.
//!
//! Modules must have passed the verifier. Arrays are row-major whatever layout a shape carries. A token is the empty
//! tuple.

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
