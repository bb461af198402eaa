//! Tridiagonal reduction of Hermitian matrices by two-sided Householder reflections (LAPACK's
//! `hetrd`).

use super::givens::with;
use super::matrix::{
    adjoint, conjugate, diagonal, identity, in_type_of, matmul, real_part, spread, square_magnitude,
};
use super::qr::{Reflection, reflection};
use crate::expression::Expression;

/// A real symmetric tridiagonal matrix and the unitary factor of its reduction.
pub(super) struct Tridiagonal<'f> {
    /// `[1, n]`.
    pub(super) diagonal: Expression<'f>,
    /// The subdiagonal: the element to the left of each diagonal element, `[1, n]`, starting with
    /// 0.
    pub(super) before: Expression<'f>,
    /// The transpose of `q`, with `a = q t q^H`.
    pub(super) rows_of_q: Expression<'f>,
}

/// Computes `q^H a q` of one Hermitian matrix with magnitudes up to 1. Each column in turn is
/// reduced to two elements.
pub(super) fn tridiagonal(a: Expression<'_>) -> Tridiagonal<'_> {
    let function = a.function();
    let n = a.size_from_end(0);
    let mut rest = a;
    let mut before = function.splat(a.element_type().real_part(), &[1, n], 0.0);
    let mut rows = identity(function, a.element_type(), [1, n, n]);
    let mut finished = Finished::default();
    loop {
        let size = rest.size_from_end(0);
        let count = columns_at_a_time(size);
        let outputs = function.for_loop(count, &[rest, before, rows], |_, k, state| reduce_column(k, state));
        let parts = [real_part(diagonal(outputs[0])), outputs[1], outputs[2]];
        if count == size - 1 {
            let [diagonal, before, rows_of_q] = finished.with(parts);
            return Tridiagonal { diagonal, before, rows_of_q };
        }
        rest = outputs[0].slice_in(1, count, size).slice_in(2, count, size);
        [_, before, rows] = finished.split(parts, count);
    }
}

/// Number of columns to reduce before continuing with the rest alone: all but the last one of a
/// small matrix, half of a large one. This limits the time spent on the finished part, and code
/// grows with the logarithm of the size.
pub(super) fn columns_at_a_time(size: i64) -> i64 {
    const LARGE: i64 = 48;
    if size < LARGE { size - 1 } else { size / 2 }
}

/// Leading elements or rows of several arrays, `[1, n, ...]`, in pieces.
pub(super) struct Finished<'f, const N: usize>([Vec<Expression<'f>>; N]);

impl<const N: usize> Default for Finished<'_, N> {
    fn default() -> Self {
        Finished(std::array::from_fn(|_| Vec::new()))
    }
}

impl<'f, const N: usize> Finished<'f, N> {
    /// Stores the first `count` of each array and returns the rest.
    pub(super) fn split(&mut self, arrays: [Expression<'f>; N], count: i64) -> [Expression<'f>; N] {
        for (pieces, array) in self.0.iter_mut().zip(&arrays) {
            pieces.push(array.slice_in(1, 0, count));
        }
        arrays.map(|array| array.slice_in(1, count, array.sizes()[1]))
    }

    /// Concatenates all stored pieces and the last ones.
    pub(super) fn with(self, last: [Expression<'f>; N]) -> [Expression<'f>; N] {
        let mut joined = last;
        for (array, mut pieces) in joined.iter_mut().zip(self.0) {
            pieces.push(*array);
            *array = array.function().concatenate(&pieces, 1);
        }
        joined
    }
}

/// Reflects a column below the diagonal to one real element, from both sides.
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
    vec![next, with(before, pivot, real_part(beta).reshape(&[])), reflect_rows(q, v, tau)]
}

/// Computes `(q h)^T` from the transpose of `q`, with the reflection `h = 1 - tau v v^H`.
pub(super) fn reflect_rows<'f>(
    rows: Expression<'f>,
    v: Expression<'f>,
    tau: Expression<'f>,
) -> Expression<'f> {
    let sizes = rows.sizes();
    let turned = matmul(v.transpose(&[0, 2, 1]), rows);
    let turned = turned * spread(tau, &turned.sizes());
    rows - spread(conjugate(v), &sizes) * spread(turned, &sizes)
}
