//! Jacobi's method for Hermitian matrices: all pairs of a round at once.

use super::jacobi::{MAX_SWEEPS, epsilon, next_round, rotation};
use super::matrix::{
    conjugate, diagonal, identity, in_type_of, positions, real_part, spread, square_magnitude,
};
use crate::expression::Expression;
use shape::PrimitiveType;

/// Returns the eigenvalues of a stack with an even number of rows, `[batch, n]`, and the
/// eigenvectors as columns, unsorted.
pub(super) fn diagonalize(a: Expression<'_>) -> (Expression<'_>, Expression<'_>) {
    let function = a.function();
    let (batch, n) = (a.sizes()[0], a.sizes()[1]);
    let half = n / 2;
    let v = identity(function, a.element_type(), [batch, n, n]);
    let quarter =
        |i: i64, j: i64| a.slice_in(1, i * half, (i + 1) * half).slice_in(2, j * half, (j + 1) * half);
    let side = |k: i64| v.slice_in(2, k * half, (k + 1) * half);
    let state = [
        function.scalar(PrimitiveType::S32, 0.0),
        quarter(0, 0),
        quarter(0, 1),
        quarter(1, 0),
        quarter(1, 1),
        side(0),
        side(1),
    ];
    let outputs = function.while_loop(
        &state,
        |_, state| state[0].lt(MAX_SWEEPS) & changes(&state[1..5]),
        |function, state| {
            let mut next = vec![state[0] + 1.0];
            next.extend(function.for_loop(n - 1, &state[1..], |_, _, state| round(state)));
            next
        },
    );
    let values = function.concatenate(&[real_part(diagonal(outputs[1])), real_part(diagonal(outputs[4]))], 1);
    (values, function.concatenate(&[outputs[5], outputs[6]], 2))
}

/// True if the off-diagonal part of any matrix is significant relative to the whole.
fn changes<'f>(quarters: &[Expression<'f>]) -> Expression<'f> {
    let sum = |x: Expression<'f>| square_magnitude(x).sum(&[1, 2]);
    let total: Vec<Expression<'f>> = quarters.iter().map(|&x| sum(x)).collect();
    let total = total[1..].iter().fold(total[0], |sum, &x| sum + x);
    let diagonal_square = |x: Expression<'f>| {
        let d = diagonal(x);
        square_magnitude(d).sum(&[1])
    };
    let off = |x: Expression<'f>| {
        let (rows, columns) = positions(x);
        sum(rows.equal(columns).select(x.splat(0.0), x))
    };
    let off = off(quarters[0]) + off(quarters[3]) + sum(quarters[1]) + sum(quarters[2]);
    let limit = epsilon(quarters[0].element_type());
    let diagonal_square = diagonal_square(quarters[0]);
    // `total` includes `diagonal_square`. NaN compares false and ends the loop.
    off.gt(total.max(diagonal_square) * (limit * limit)).any()
}

/// Rotates all pairs, then arranges the pairs of the next round.
fn round<'f>(state: &[Expression<'f>]) -> Vec<Expression<'f>> {
    let &[tl, tr, bl, br, vl, vr] = state else { return Vec::new() };
    let sizes = tl.sizes();
    let (batch, half) = (sizes[0], sizes[1]);
    let (a, b, d) = (real_part(diagonal(tl)), diagonal(tr), real_part(diagonal(br)));
    let magnitude = b.abs();
    let skips = magnitude.equal(0.0);
    let (sine, cosine) = rotation(a, magnitude, d, skips);
    let divisor = skips.select(magnitude.splat(1.0), magnitude);
    let phase = skips.select(b.splat(1.0), b / in_type_of(divisor, b));
    let (sine, cosine) = (in_type_of(sine, b), in_type_of(cosine, b));

    let line = |x: Expression<'f>| spread(x.reshape(&[batch, half, 1]), &sizes);
    let (s, c, w) = (line(sine), line(cosine), line(phase));
    let (tl, bl) = (c * tl - s * w * bl, s * tl + c * w * bl);
    let (tr, br) = (c * tr - s * w * br, s * tr + c * w * br);

    let turn = |p: Expression<'f>, q: Expression<'f>| {
        let sizes = p.sizes();
        let column = |x: Expression<'f>| spread(x.reshape(&[batch, 1, half]), &sizes);
        let (s, c, w) = (column(sine), column(cosine), column(conjugate(phase)));
        (c * p - s * w * q, s * p + c * w * q)
    };
    let ((tl, tr), (bl, br), (vl, vr)) = (turn(tl, tr), turn(bl, br), turn(vl, vr));
    // The eliminated elements are exactly 0.
    let (rows, columns) = positions(tr);
    let on = rows.equal(columns);
    let clear = |x: Expression<'f>| on.select(x.splat(0.0), x);
    let (tr, bl) = (clear(tr), clear(bl));

    let ((tl, tr), (bl, br), (vl, vr)) =
        (next_round(tl, tr, 2), next_round(bl, br, 2), next_round(vl, vr, 2));
    let ((tl, bl), (tr, br)) = (next_round(tl, bl, 1), next_round(tr, br, 1));
    vec![tl, tr, bl, br, vl, vr]
}
