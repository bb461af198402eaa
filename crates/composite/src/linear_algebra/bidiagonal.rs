//! Square matrices made bidiagonal by Householder's reflections from both sides, LAPACK's `gebrd`.

use super::givens::with;
use super::matrix::{adjoint, conjugate, identity, matmul, real_part, spread};
use super::qr::{Reflection, reflected, reflection};
use super::tridiagonal::{Finished, columns_at_a_time, rows_reflected};
use crate::expression::Expression;
use shape::PrimitiveType;

/// A real upper bidiagonal matrix and what it was turned with.
pub(super) struct Bidiagonal<'f> {
    /// `[1, n]`.
    pub(super) diagonal: Expression<'f>,
    /// What stands above each element of the diagonal: `[1, n]`, the first one 0.
    pub(super) above: Expression<'f>,
    /// The transpose of `u`, with `a = u b v^H`.
    pub(super) rows_of_u: Expression<'f>,
    /// The transpose of `v`.
    pub(super) rows_of_v: Expression<'f>,
}

/// `u^H a v`, of one square matrix with magnitudes up to 1: each column in turn keeps one element, each row two.
pub(super) fn bidiagonal(a: Expression<'_>) -> Bidiagonal<'_> {
    let function = a.function();
    let n = a.size_from_end(0);
    let zeros = function.splat(a.element_type().real_part(), &[1, n], 0.0);
    let identity = identity(function, a.element_type(), [1, n, n]);
    let (mut rest, mut parts) = (a, [zeros, zeros, identity, identity]);
    let mut finished = Finished::default();
    loop {
        let size = rest.size_from_end(0);
        let count = columns_at_a_time(size);
        let [diagonal, above, u, v] = parts;
        let state = [rest, diagonal, above, u, v];
        let done = function.for_loop(count, &state, |_, k, state| reduce_column_and_row(k, state));
        rest = done[0];
        parts = [done[1], done[2], done[3], done[4]];
        if count == size - 1 {
            // The last element, too, becomes real.
            let last = function.scalar(PrimitiveType::S32, count as f64);
            let [diagonal, above, u, v] = parts;
            let (_, diagonal, u) = reduce_column(last, rest, diagonal, u);
            let [diagonal, above, rows_of_u, rows_of_v] = finished.with([diagonal, above, u, v]);
            return Bidiagonal { diagonal, above, rows_of_u, rows_of_v };
        }
        rest = rest.slice_in(1, count, size).slice_in(2, count, size);
        parts = finished.split(parts, count);
    }
}

/// Reflects what is below the diagonal of a column to nothing, and what is beyond the next element of a row.
fn reduce_column_and_row<'f>(k: Expression<'f>, state: &[Expression<'f>]) -> Vec<Expression<'f>> {
    let &[a, diagonal, above, u, v] = state else { return Vec::new() };
    let (a, diagonal, u) = reduce_column(k, a, diagonal, u);
    let next = k + 1.0;
    let Reflection { v: vector, tau, beta } = reflection(adjoint(a.dynamic_slice_in(1, k)), next);
    let sizes = a.sizes();
    let projected = matmul(a, vector);
    let scaled = projected * spread(tau, &projected.sizes());
    let a = a - spread(scaled, &sizes) * spread(adjoint(vector), &sizes);
    let above = with(above, next, real_part(beta).reshape(&[]));
    vec![a, diagonal, above, u, rows_reflected(v, vector, tau)]
}

/// Reflects what is on and below the diagonal of a column to one real element.
fn reduce_column<'f>(
    k: Expression<'f>,
    a: Expression<'f>,
    diagonal: Expression<'f>,
    u: Expression<'f>,
) -> (Expression<'f>, Expression<'f>, Expression<'f>) {
    let Reflection { v, tau, beta } = reflection(a.dynamic_slice_in(2, k), k);
    let diagonal = with(diagonal, k, real_part(beta).reshape(&[]));
    (reflected(a, v, conjugate(tau)), diagonal, rows_reflected(u, v, tau))
}
