//! Least squares: the `x` that minimizes `|a x - b|`, and the shortest such `x` if there are
//! several.

use super::cholesky::cholesky;
use super::jacobi::epsilon;
use super::matrix::{adjoint, identity, in_type_of, matmul, spread};
use super::svd::svd;
use super::triangular::substitute;
use crate::expression::Expression;

/// Solves the normal equations, which is accurate for matrices of full rank that are not
/// ill-conditioned. The minimized sum includes `regularizer`, a real scalar, times `|x|^2`.
pub fn normal_least_squares<'f>(
    a: Expression<'f>,
    b: Expression<'f>,
    regularizer: Expression<'f>,
) -> Expression<'f> {
    let sizes = a.sizes();
    let (batch, is_tall) = (sizes[0], sizes[1] >= sizes[2]);
    let transposed = adjoint(a);
    let gram = if is_tall { matmul(transposed, a) } else { matmul(a, transposed) };
    let n = gram.size_from_end(0);
    let one = identity(a.function(), a.element_type(), [batch, n, n]);
    let more = in_type_of(regularizer.broadcast(&[batch, n, n], &[]), a);
    let factor = cholesky(gram + one * more, true);
    let solved = |right: Expression<'f>| {
        let down = substitute(factor, right, true, false);
        substitute(adjoint(factor), down, false, false)
    };
    if is_tall { solved(matmul(transposed, b)) } else { matmul(transposed, solved(b)) }
}

/// Solves by singular values, treating those near 0 as 0. Works for any matrix.
pub fn least_squares<'f>(a: Expression<'f>, b: Expression<'f>) -> Expression<'f> {
    let [u, s, v] = svd(a, false);
    let sizes = s.sizes();
    let long = a.size_from_end(0).max(a.size_from_end(1)) as f64;
    let limit = s.largest_magnitude(&[1]) * (epsilon(a.element_type()) * long);
    let counts = s.gt(limit.broadcast(&sizes, &[0]));
    let divisor = counts.select(s, 1.0);
    let inverse = counts.select(s.splat(1.0) / divisor, 0.0);
    let nan = (s * 0.0).sum(&[1]).broadcast(&sizes, &[0]);
    let projected = matmul(adjoint(u), b);
    let scale = in_type_of((inverse + nan).reshape(&[sizes[0], sizes[1], 1]), a);
    matmul(v, projected * spread(scale, &projected.sizes()))
}
