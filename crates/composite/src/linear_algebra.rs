//! Decompositions of stacks of matrices, `[batch, rows, columns]`, as loops over operations on
//! whole matrices.

mod bidiagonal;
mod bidiagonal_qr;
mod cholesky;
mod decomposition;
mod eigh;
mod exponential;
mod givens;
mod hermitian_jacobi;
mod jacobi;
mod least_squares;
mod lu;
mod matrix;
mod one_sided_jacobi;
mod qr;
mod svd;
mod triangular;
mod tridiagonal;
mod tridiagonal_qr;

pub use cholesky::cholesky;
pub use decomposition::Decomposition;
pub use eigh::eigh;
pub use exponential::exponential;
pub use least_squares::{least_squares, normal_least_squares};
pub use lu::{Lu, determinant, lu, solve};
pub use matrix::{adjoint, as_stack, identity, lower_triangle, matmul, of_stack};
pub use qr::{orthonormal_columns, qr, reflections};
pub use svd::svd;
pub use triangular::{Triangular, triangular_solve};
