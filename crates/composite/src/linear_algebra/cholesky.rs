//! Cholesky factors, one column per step, with blocks of columns for large matrices.

use super::matrix::{
    BLOCK, adjoint, diagonal, in_type_of, matmul, pad_with_identity, positions, real_part, spread,
};
use crate::expression::Expression;
use shape::PrimitiveType;

/// Returns `l` with `a = l l^H`, or `u` with `a = u^H u`, reading only that triangle of `a`. The
/// other triangle is zero. A matrix that is not positive definite yields all NaN.
pub fn cholesky(a: Expression<'_>, lower: bool) -> Expression<'_> {
    if a.sizes().contains(&0) {
        return a;
    }
    if lower { factor(a) } else { adjoint(factor(adjoint(a))) }
}

fn factor(a: Expression<'_>) -> Expression<'_> {
    let n = a.size_from_end(0);
    let l = if n <= 2 * BLOCK { columns(a, None) } else { blocked(a) };
    let pivots = real_part(diagonal(l));
    // One nonpositive (or NaN) pivot suffices.
    let wrong = (!pivots.gt(0.0)).convert(PrimitiveType::S32).sum(&[1]).gt(0.0);
    let sizes = l.sizes();
    let (rows, columns) = positions(l);
    let nan = rows.ge(columns).select(l.splat(f64::NAN), f64::NAN);
    wrong.broadcast(&sizes, &[0]).select(nan, l)
}

/// Factors one block of columns at a time. The contribution of earlier blocks is one matrix
/// product.
fn blocked(a: Expression<'_>) -> Expression<'_> {
    let n = a.size_from_end(0);
    let padded = pad_with_identity(a, BLOCK);
    let size = padded.size_from_end(0);
    let outputs = a.function().for_loop(size / BLOCK, &[padded.splat(0.0), padded], |_, block, state| {
        let &[l, a] = state else { return Vec::new() };
        let first = block * BLOCK as f64;
        let known = matmul(l, adjoint(l.dynamic_range_in(1, first, BLOCK)));
        let panel = a.dynamic_range_in(2, first, BLOCK) - known;
        vec![l.dynamic_update_in(columns(panel, Some(first)), 2, first), a]
    });
    outputs[0].slice_in(1, 0, n).slice_in(2, 0, n)
}

/// Returns columns of the factor, given the panel of the matrix minus the contribution of earlier
/// columns. The panel's diagonal starts in row `first`, or in row 0 if `None`.
fn columns<'f>(panel: Expression<'f>, first: Option<Expression<'f>>) -> Expression<'f> {
    let width = panel.size_from_end(0);
    let mut initial = vec![panel.splat(0.0), panel];
    initial.extend(first);
    let outputs = panel.function().for_loop(width, &initial, |function, k, state| {
        let (l, panel, first) = (state[0], state[1], state.get(2).copied());
        let on = first.map_or(k, |first| first + k);
        let known = matmul(l, adjoint(l.dynamic_slice_in(1, on)));
        let rest = panel.dynamic_slice_in(2, k) - known;
        let pivot = real_part(rest.dynamic_slice_in(1, on)).sqrt();
        let pivot = in_type_of(pivot, rest);
        let sizes = rest.sizes();
        let rows = function.iota(PrimitiveType::S32, &sizes, 1);
        let on_everywhere = on.spread_like(rows);
        let pivots = spread(pivot, &sizes);
        let column = rows.equal(on_everywhere).select(pivots, rest / pivots);
        let column = rows.ge(on_everywhere).select(column, 0.0);
        let mut next = vec![l.dynamic_update_in(column, 2, k), panel];
        next.extend(first);
        next
    });
    outputs[0]
}
