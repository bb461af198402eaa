//! One-sided Jacobi rotations (Hestenes): rotates columns until they are orthogonal, all pairs of a
//! round at once.

use super::jacobi::{MAX_SWEEPS, epsilon, next_round, rotation};
use super::matrix::{conjugate, identity, in_type_of, square_magnitude};
use crate::expression::Expression;
use shape::PrimitiveType;

/// Returns `w = a v` with orthogonal columns, and an orthogonal `v`. An odd number of columns is
/// padded with a column of zeros.
pub(super) fn orthogonal_columns(a: Expression<'_>) -> [Expression<'_>; 2] {
    let function = a.function();
    let sizes = a.sizes();
    let (batch, n) = (sizes[0], sizes[2]);
    let padded = n + n % 2;
    let half = padded / 2;
    let w = a.pad_in(2, 0, padded - n, 0.0);
    let v = identity(function, a.element_type(), [batch, padded, padded]);
    let side = |x: Expression<'_>, k: i64| x.slice_in(2, k * half, (k + 1) * half).id;
    let wrap = |id| function.wrap(id);
    // Smaller products are rounding errors relative to the whole matrix.
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
    let outputs = function.while_loop(
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
    [function.concatenate(&[outputs[3], outputs[4]], 2), function.concatenate(&[outputs[5], outputs[6]], 2)]
}

/// Rotates each pair of columns until their product is 0.
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

/// Returns the inner product of each pair of columns, conjugating the first: `[batch, columns]`.
fn inner_products<'f>(p: Expression<'f>, q: Expression<'f>) -> Expression<'f> {
    if !p.element_type().is_complex() {
        return (p * q).sum(&[1]);
    }
    let real = (p.real() * q.real() + p.imag() * q.imag()).sum(&[1]);
    real.complex((p.real() * q.imag() - p.imag() * q.real()).sum(&[1]))
}

/// Divides numbers by their magnitudes; 0 yields 1.
fn phase<'f>(x: Expression<'f>, magnitude: Expression<'f>) -> Expression<'f> {
    if !x.element_type().is_complex() {
        return x.lt(0.0).select(x.splat(-1.0), 1.0);
    }
    let is_zero = magnitude.equal(0.0);
    let divisor = is_zero.select(magnitude.splat(1.0), magnitude);
    is_zero.select(x.splat(1.0), x / in_type_of(divisor, x))
}
