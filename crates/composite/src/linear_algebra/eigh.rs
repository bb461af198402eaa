//! Eigenvalues and eigenvectors of Hermitian matrices: Jacobi's method for small ones, reduction to
//! tridiagonal form for others.

use super::hermitian_jacobi::diagonalize;
use super::jacobi::{sort_by_keys, sorting};
use super::matrix::{
    adjoint, in_type_of, lower_triangle, matmul, poison, positions, real_part, scale_to_one, square_magnitude,
};
use super::tridiagonal::tridiagonal;
use super::tridiagonal_qr::diagonalize_tridiagonal;
use crate::expression::Expression;

/// Largest number of rows for which all pairs of rows and columns of a stack are rotated at once.
/// For more rows, rotations of whole matrices cost more than the sequential steps of the
/// tridiagonal method.
const MOST_ROWS_BY_PAIRS: i64 = 4;

/// Returns the eigenvalues in ascending order (real, `[batch, n]`), and the eigenvectors as
/// columns. Reads only the lower (or upper) triangle of the matrices.
pub fn eigh(a: Expression<'_>, lower: bool) -> (Expression<'_>, Expression<'_>) {
    let function = a.function();
    let sizes = a.sizes();
    let (batch, n) = (sizes[0], sizes[1]);
    if sizes.contains(&0) {
        return (function.splat(a.element_type().real_part(), &sizes[..2], 0.0), a);
    }
    let a = if lower { a } else { adjoint(a) };
    let poison = poison(lower_triangle(a));
    let a = hermitian(a);
    let (values, vectors) = if n <= MOST_ROWS_BY_PAIRS { by_pairs(a) } else { one_by_one(a) };
    let values = values + poison.broadcast(&[batch, n], &[0]);
    // Of the two signs, choose the one with a nonnegative first component.
    let signs = real_part(vectors.slice_in(1, 0, 1).reshape(&[batch, n])).lt(0.0);
    let vectors = signs.broadcast(&[batch, n, n], &[0, 2]).select(-vectors, vectors);
    let nan = in_type_of(poison.broadcast(&[batch, n, n], &[0]), vectors);
    (values, vectors + nan)
}

/// Completes the lower triangle to a Hermitian matrix with a real diagonal.
fn hermitian(a: Expression<'_>) -> Expression<'_> {
    let (rows, columns) = positions(a);
    let on = rows.equal(columns).select(in_type_of(real_part(a), a), 0.0);
    let below = rows.gt(columns).select(a, 0.0);
    on + below + adjoint(below)
}

/// Computes sorted eigenvalues and their vectors by Jacobi rotations of all matrices of the stack
/// at once.
fn by_pairs(a: Expression<'_>) -> (Expression<'_>, Expression<'_>) {
    let (batch, n) = (a.sizes()[0], a.sizes()[1]);
    // The number of columns must be even.
    let padded = n + n % 2;
    let (values, v) = diagonalize(a.pad_in(1, 0, padded - n, 0.0).pad_in(2, 0, padded - n, 0.0));
    // The padding's eigenvector has its nonzero element in the last row.
    let is_padding = if padded == n {
        values.not_equal(values)
    } else {
        let last = square_magnitude(v.slice_in(1, n, padded)).reshape(&[batch, padded]);
        last.gt(0.5)
    };
    let keys = is_padding.select(values.splat(f64::INFINITY), values);
    let values = sort_by_keys(is_padding.select(values.splat(0.0), values), keys);
    let vectors = matmul(v, sorting(keys, v.element_type()));
    (values.slice_in(1, 0, n), vectors.slice_in(1, 0, n).slice_in(2, 0, n))
}

/// Computes sorted eigenvalues and their vectors, one matrix at a time.
fn one_by_one(a: Expression<'_>) -> (Expression<'_>, Expression<'_>) {
    let function = a.function();
    let sizes = a.sizes();
    let (batch, n) = (sizes[0], sizes[1]);
    let (scaled, scale) = scale_to_one(a);
    let values = function.splat(a.element_type().real_part(), &[batch, n], 0.0);
    let outputs = function.for_loop(batch, &[values, scaled], |_, index, state| {
        let &[values, matrices] = state else { return Vec::new() };
        let reduced = tridiagonal(matrices.dynamic_slice_in(0, index));
        let (diagonal, v) = diagonalize_tridiagonal(reduced);
        vec![values.dynamic_update_in(diagonal, 0, index), matrices.dynamic_update_in(v, 0, index)]
    });
    let values = outputs[0] * scale.broadcast(&[batch, n], &[0]);
    (sort_by_keys(values, values), matmul(outputs[1], sorting(values, a.element_type())))
}
