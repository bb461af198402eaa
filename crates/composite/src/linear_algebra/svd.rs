//! Singular values and vectors by one-sided Jacobi rotations (Hestenes): columns are turned until they are orthogonal.

use super::jacobi::{MAX_SWEEPS, epsilon, next_round, rotation, sorting};
use super::matrix::{
    adjoint, conjugate, diagonal, identity, in_type_of, matmul, poison, real_part, spread, square_magnitude,
};
use super::qr::qr;
use crate::expression::Expression;
use shape::PrimitiveType;

/// `u`, `s` and `v` with `a = u diag(s) v^H`, `s` in falling order and real. With `full_matrices` `u` and `v` are
/// square.
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
    let [w, v] = orthogonal_columns(a);
    let padded = w.size_from_end(0);
    let norms = square_magnitude(w).sum(&[1]).sqrt();
    // A column of the padding comes last, behind those of rank-deficient matrices.
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
    // Orthogonal columns as a product: the first factor is orthonormal even where they vanish.
    let (u, r) = qr(w, full_matrices);
    let signs = real_part(diagonal(r)).lt(0.0).select(s.splat(-1.0), 1.0);
    let width = u.size_from_end(0);
    let signs = signs.pad_in(1, 0, width - n, 1.0).reshape(&[batch, 1, width]);
    let u = u * spread(in_type_of(signs, u), &u.sizes());
    let nan = |x: Expression<'_>| (x + in_type_of(poison.broadcast(&x.sizes(), &[0]), x)).id;
    [nan(u), nan(s), nan(v)].map(|id| function.wrap(id))
}

/// `w = a v` with orthogonal columns and an orthogonal `v`; an odd number of columns is padded with a column of zeros.
fn orthogonal_columns(a: Expression<'_>) -> [Expression<'_>; 2] {
    let function = a.function();
    let sizes = a.sizes();
    let (batch, n) = (sizes[0], sizes[2]);
    let padded = n + n % 2;
    let half = padded / 2;
    let w = a.pad_in(2, 0, padded - n, 0.0);
    let v = identity(function, a.element_type(), [batch, padded, padded]);
    let side = |x: Expression<'_>, k: i64| x.slice_in(2, k * half, (k + 1) * half).id;
    let wrap = |id| function.wrap(id);
    // Products below this are rounding errors of the whole.
    let limit = epsilon(a.element_type());
    let least = square_magnitude(a).sum(&[1, 2]) * (limit * limit * 0.0625);
    let state = [
        function.scalar(PrimitiveType::S32, 0.0),
        function.scalar(PrimitiveType::Pred, 1.0),
        least,
        wrap(side(w, 0)),
        wrap(side(w, 1)),
        wrap(side(v, 0)),
        wrap(side(v, 1)),
    ];
    let done = function.while_loop(
        &state,
        |_, state| state[0].lt(MAX_SWEEPS) & state[1],
        |function, state| {
            let mut inner = state.to_vec();
            inner[1] = function.scalar(PrimitiveType::Pred, 0.0);
            let mut next = vec![state[0] + 1.0];
            next.extend(function.for_loop(padded - 1, &inner[1..], |_, _, state| round(state)));
            next
        },
    );
    [function.concatenate(&[done[3], done[4]], 2), function.concatenate(&[done[5], done[6]], 2)]
}

/// Turns each pair of columns until its product is 0.
fn round<'f>(state: &[Expression<'f>]) -> Vec<Expression<'f>> {
    let &[changed, least, wl, wr, vl, vr] = state else { return Vec::new() };
    let (alpha, beta) = (square_magnitude(wl).sum(&[1]), square_magnitude(wr).sum(&[1]));
    let gamma = inner_products(wl, wr);
    let sizes = gamma.sizes();
    let limit = epsilon(wl.element_type()) * (wl.size_from_end(1) as f64).sqrt();
    let magnitude = gamma.abs();
    let counts =
        magnitude.gt(alpha.sqrt() * beta.sqrt() * limit) & magnitude.gt(least.broadcast(&sizes, &[0]));
    let phase = phase(gamma, magnitude);
    let (sine, cosine) = rotation(alpha, magnitude, beta, !counts);
    let (sine, cosine) = (in_type_of(sine, phase), in_type_of(cosine, phase));
    let (there, back) = (sine * phase, sine * conjugate(phase));
    let turn = |p: Expression<'f>, q: Expression<'f>| {
        let sizes = p.sizes();
        let [t, b, c] = [there, back, cosine].map(|e| e.broadcast(&sizes, &[0, 2]));
        next_round(c * p - b * q, t * p + c * q, 2)
    };
    let ((wl, wr), (vl, vr)) = (turn(wl, wr), turn(vl, vr));
    vec![changed | counts.any(), least, wl, wr, vl, vr]
}

/// The product of each pair of columns, the first one conjugated: `[batch, columns]`.
fn inner_products<'f>(p: Expression<'f>, q: Expression<'f>) -> Expression<'f> {
    if !p.element_type().is_complex() {
        return (p * q).sum(&[1]);
    }
    let real = (p.real() * q.real() + p.imag() * q.imag()).sum(&[1]);
    real.complex((p.real() * q.imag() - p.imag() * q.real()).sum(&[1]))
}

/// Numbers over their magnitudes: 1 for 0.
fn phase<'f>(x: Expression<'f>, magnitude: Expression<'f>) -> Expression<'f> {
    if !x.element_type().is_complex() {
        return x.lt(0.0).select(x.splat(-1.0), 1.0);
    }
    let is_zero = magnitude.equal(0.0);
    let divisor = is_zero.select(magnitude.splat(1.0), magnitude);
    is_zero.select(x.splat(1.0), x / in_type_of(divisor, x))
}
