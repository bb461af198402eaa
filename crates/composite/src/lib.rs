//! Functions for which HLO has no opcode of its own, or whose opcode is expanded: special functions, decompositions of
//! matrices and Fourier transforms, each written once as a computation of plain HLO.
//!
//! The import calls the former, the expander passes put the latter in the place of `cholesky`, `triangular-solve` and
//! `fft`. Whoever calls has checked the operands' types and ranks.

mod c_library;
mod expression;
pub mod fft;
mod function;
pub mod linear_algebra;
pub mod philox;
pub mod random;
pub mod special;

pub use expression::Expression;
pub use function::{Function, build};
