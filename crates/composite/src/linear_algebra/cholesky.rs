//! Cholesky factors, one column a step.

use super::matrix::{adjoint, diagonal, in_type_of, matmul, positions, real_part, spread};
use crate::expression::Expression;

/// `l` with `a = l l^H`, or `u` with `a = u^H u`, from that triangle of `a`, zeros in the other one. A matrix that is not
/// positive definite gives NaN throughout.
pub fn cholesky(a: Expression<'_>, lower: bool) -> Expression<'_> {
    if a.sizes().contains(&0) {
        return a;
    }
    if lower { factor(a) } else { adjoint(factor(adjoint(a))) }
}

fn factor(a: Expression<'_>) -> Expression<'_> {
    let n = a.size_from_end(0);
    let done = a.function().for_loop(n, &[a.splat(0.0), a], |function, k, state| {
        let &[l, a] = state else { return Vec::new() };
        let known = matmul(l, adjoint(l.dynamic_slice_in(1, k)));
        let rest = a.dynamic_slice_in(2, k) - known;
        let pivot = real_part(rest.dynamic_slice_in(1, k)).sqrt();
        let pivot = in_type_of(pivot, rest);
        let sizes = rest.sizes();
        let rows = function.iota(shape::PrimitiveType::S32, &sizes, 1);
        let k_everywhere = k.spread_like(rows);
        let pivots = spread(pivot, &sizes);
        let column = rows.equal(k_everywhere).select(pivots, rest / pivots);
        let column = rows.ge(k_everywhere).select(column, 0.0);
        vec![l.dynamic_update_in(column, 2, k), a]
    });
    let l = done[0];
    let pivots = real_part(diagonal(l));
    // One pivot that is not positive is enough.
    let wrong = (!pivots.gt(0.0)).convert(shape::PrimitiveType::S32).sum(&[1]).gt(0.0);
    let sizes = l.sizes();
    let (rows, columns) = positions(l);
    let nan = rows.ge(columns).select(l.splat(f64::NAN), f64::NAN);
    wrong.broadcast(&sizes, &[0]).select(nan, l)
}
