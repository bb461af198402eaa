//! Hermitian matrices made tridiagonal by Householder's reflections from both sides, LAPACK's `hetrd`.

use super::givens::with;
use super::matrix::{
    adjoint, conjugate, diagonal, identity, in_type_of, matmul, real_part, spread, square_magnitude,
};
use super::qr::{Reflection, reflection};
use crate::expression::Expression;

/// A real symmetric tridiagonal matrix and what it was turned with.
pub(super) struct Tridiagonal<'f> {
    /// `[1, n]`.
    pub(super) diagonal: Expression<'f>,
    /// What stands before each element of the diagonal, in its row: `[1, n]`, the first one 0.
    pub(super) before: Expression<'f>,
    /// The transpose of `q`, with `a = q t q^H`.
    pub(super) rows_of_q: Expression<'f>,
}

/// `q^H a q`, of one Hermitian matrix with magnitudes up to 1: each column in turn keeps two elements.
pub(super) fn tridiagonal(a: Expression<'_>) -> Tridiagonal<'_> {
    let function = a.function();
    let n = a.size_from_end(0);
    let before = function.splat(a.element_type().real_part(), &[1, n], 0.0);
    let q = identity(function, a.element_type(), [1, n, n]);
    let done = function.for_loop(n - 1, &[a, before, q], |_, k, state| reduce_column(k, state));
    Tridiagonal { diagonal: real_part(diagonal(done[0])), before: done[1], rows_of_q: done[2] }
}

/// Reflects what is below the diagonal of a column to one real element, from both sides.
fn reduce_column<'f>(k: Expression<'f>, state: &[Expression<'f>]) -> Vec<Expression<'f>> {
    let &[a, before, q] = state else { return Vec::new() };
    let sizes = a.sizes();
    let pivot = k + 1.0;
    let Reflection { v, tau, beta } = reflection(a.dynamic_slice_in(2, k), pivot);
    // `h^H a h` with `h = 1 - tau v v^H` is `a - w v^H - v w^H`.
    let projected = matmul(a, v);
    let tau_everywhere = spread(tau, &v.sizes());
    let inner = (real_part(conjugate(v) * projected)).sum(&[1, 2]).reshape(&tau.sizes());
    let half = in_type_of(square_magnitude(tau) * inner * 0.5, v);
    let w = tau_everywhere * projected - spread(half, &v.sizes()) * v;
    let outer = |x: Expression<'f>, y: Expression<'f>| spread(x, &sizes) * spread(adjoint(y), &sizes);
    let next = a - outer(w, v) - outer(v, w);
    vec![next, with(before, pivot, real_part(beta).reshape(&[])), rows_reflected(q, v, tau)]
}

/// `(q h)^T` of the transpose of `q`, with the reflection `h = 1 - tau v v^H`.
pub(super) fn rows_reflected<'f>(
    rows: Expression<'f>,
    v: Expression<'f>,
    tau: Expression<'f>,
) -> Expression<'f> {
    let sizes = rows.sizes();
    let turned = matmul(v.transpose(&[0, 2, 1]), rows);
    let turned = turned * spread(tau, &turned.sizes());
    rows - spread(conjugate(v), &sizes) * spread(turned, &sizes)
}
