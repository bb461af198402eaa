//! Functions without an HLO opcode, and expansions of opcodes: special functions, matrix
//! decompositions, and Fourier transforms, each written once as a computation of plain HLO.
//!
//! The importer calls the special functions. The expander passes replace `cholesky`,
//! `triangular-solve`, and `fft` by the other computations. Callers check the operands' types and
//! ranks.

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
