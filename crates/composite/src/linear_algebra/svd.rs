//! Singular values and vectors: Jacobi's method for small matrices, reduction to bidiagonal form
//! for others.

use super::bidiagonal::bidiagonal;
use super::bidiagonal_qr::{Factors, diagonalize_bidiagonal};
use super::jacobi::{sort_by_keys, sorting};
use super::matrix::{
    adjoint, diagonal, identity, in_type_of, matmul, poison, real_part, scale_to_one, spread,
    square_magnitude,
};
use super::one_sided_jacobi::orthogonal_columns;
use super::qr::qr;
use crate::expression::Expression;

/// Largest number of columns for which all pairs of columns of a stack are rotated at once. For
/// more columns, rotations of whole matrices cost more than the sequential steps of the bidiagonal
/// method.
const MOST_COLUMNS_BY_PAIRS: i64 = 4;

/// Returns `u`, `s`, and `v` with `a = u diag(s) v^H`, and a real `s` in descending order. With
/// `full_matrices`, `u` and `v` are square.
pub fn svd(a: Expression<'_>, full_matrices: bool) -> [Expression<'_>; 3] {
    let sizes = a.sizes();
    let (batch, m, n) = (sizes[0], sizes[1], sizes[2]);
    let function = a.function();
    if sizes.contains(&0) {
        let p = m.min(n);
        let width = |size: i64| if full_matrices { size } else { p };
        let side = |size: i64| identity(function, a.element_type(), [batch, size, width(size)]);
        return [side(m), function.splat(a.element_type().real_part(), &[batch, p], 0.0), side(n)];
    }
    if m < n {
        let [v, s, u] = svd(adjoint(a), full_matrices);
        return [u, s, v];
    }
    let poison = poison(a);
    let parts =
        if n <= MOST_COLUMNS_BY_PAIRS { by_pairs(a, full_matrices) } else { one_by_one(a, full_matrices) };
    parts.map(|x| x + in_type_of(poison.broadcast(&x.sizes(), &[0]), x))
}

/// Rotates columns of all matrices of the stack at once.
fn by_pairs(a: Expression<'_>, full_matrices: bool) -> [Expression<'_>; 3] {
    let (batch, n) = (a.sizes()[0], a.sizes()[2]);
    let [w, v] = orthogonal_columns(a);
    let padded = w.size_from_end(0);
    let norms = square_magnitude(w).sum(&[1]).sqrt();
    // The padding's column comes last, after those of rank-deficient matrices.
    let keys = if padded == n {
        -norms
    } else {
        let last = square_magnitude(v.slice_in(1, n, padded)).reshape(&[batch, padded]);
        last.gt(0.25).select(norms.splat(1.0), -norms)
    };
    let order = sorting(keys, a.element_type());
    let w = matmul(w, order).slice_in(2, 0, n);
    let v = matmul(v, order).slice_in(1, 0, n).slice_in(2, 0, n);
    let s = square_magnitude(w).sum(&[1]).sqrt();
    // QR of the orthogonal columns makes the first factor orthonormal even where columns vanish.
    let (u, r) = qr(w, full_matrices);
    let signs = real_part(diagonal(r)).lt(0.0).select(s.splat(-1.0), 1.0);
    let width = u.size_from_end(0);
    let signs = signs.pad_in(1, 0, width - n, 1.0).reshape(&[batch, 1, width]);
    [u * spread(in_type_of(signs, u), &u.sizes()), s, v]
}

/// Decomposes one matrix at a time, replacing a tall matrix by the triangle of its QR factors.
fn one_by_one(a: Expression<'_>, full_matrices: bool) -> [Expression<'_>; 3] {
    let function = a.function();
    let sizes = a.sizes();
    let (batch, m, n) = (sizes[0], sizes[1], sizes[2]);
    let (a, scale) = scale_to_one(a);
    let (q, square) = if m == n {
        (None, a)
    } else {
        let (q, r) = qr(a, full_matrices);
        (Some(q), r.slice_in(1, 0, n))
    };
    let values = function.splat(a.element_type().real_part(), &[batch, n], 0.0);
    let outputs = function.for_loop(batch, &[values, square.splat(0.0), square], |_, index, state| {
        let &[values, u, matrices] = state else { return Vec::new() };
        let factors = diagonalize_bidiagonal(bidiagonal(matrices.dynamic_slice_in(0, index)));
        let Factors { values: value, u: left_vectors, v } = factors;
        vec![
            values.dynamic_update_in(value, 0, index),
            u.dynamic_update_in(left_vectors, 0, index),
            matrices.dynamic_update_in(v, 0, index),
        ]
    });
    let &[values, u, v] = &outputs[..] else { return [a; 3] };
    let s = sort_by_keys(values, -values) * scale.broadcast(&[batch, n], &[0]);
    let order = sorting(-values, a.element_type());
    let (u, v) = (matmul(u, order), matmul(v, order));
    let Some(q) = q else { return [u, s, v] };
    let width = q.size_from_end(0);
    let first = matmul(q.slice_in(2, 0, n), u);
    if width == n {
        return [first, s, v];
    }
    [function.concatenate(&[first, q.slice_in(2, n, width)], 2), s, v]
}
