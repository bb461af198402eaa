//! Bidiagonal reduction of square matrices by two-sided Householder reflections (LAPACK's `gebrd`).

use super::givens::with;
use super::matrix::{adjoint, conjugate, identity, matmul, real_part, spread};
use super::qr::{Reflection, apply_reflection, reflection};
use super::tridiagonal::{Finished, columns_at_a_time, reflect_rows};
use crate::expression::Expression;
use shape::PrimitiveType;

/// A real upper bidiagonal matrix and the unitary factors of its reduction.
pub(super) struct Bidiagonal<'f> {
    /// `[1, n]`.
    pub(super) diagonal: Expression<'f>,
    /// The superdiagonal: the element above each diagonal element, `[1, n]`, starting with 0.
    pub(super) above: Expression<'f>,
    /// The transpose of `u`, with `a = u b v^H`.
    pub(super) rows_of_u: Expression<'f>,
    /// The transpose of `v`.
    pub(super) rows_of_v: Expression<'f>,
}

/// Computes `u^H a v` of one square matrix with magnitudes up to 1. Each column in turn is reduced
/// to one element, each row to two.
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
        let outputs = function.for_loop(count, &state, |_, k, state| reduce_column_and_row(k, state));
        rest = outputs[0];
        parts = [outputs[1], outputs[2], outputs[3], outputs[4]];
        if count == size - 1 {
            // The last element becomes real, too.
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

/// Reflects the part of a column below the diagonal to 0, and the part of a row after the
/// superdiagonal.
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
    vec![a, diagonal, above, u, reflect_rows(v, vector, tau)]
}

/// Reflects a column, from the diagonal down, to one real element.
fn reduce_column<'f>(
    k: Expression<'f>,
    a: Expression<'f>,
    diagonal: Expression<'f>,
    u: Expression<'f>,
) -> (Expression<'f>, Expression<'f>, Expression<'f>) {
    let Reflection { v, tau, beta } = reflection(a.dynamic_slice_in(2, k), k);
    let diagonal = with(diagonal, k, real_part(beta).reshape(&[]));
    (apply_reflection(a, v, conjugate(tau)), diagonal, reflect_rows(u, v, tau))
}
