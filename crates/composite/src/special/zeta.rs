//! The Hurwitz zeta function and the derivatives of the digamma function.

use super::{digamma, lgamma};
use crate::expression::Expression;

/// `(2 k)! / B_2k` for `k` from 12 down to 1, where `B` are the Bernoulli numbers.
const BERNOULLI: [f64; 12] = [
    -7.166165256175667e18,
    1.8152105401943546e17,
    -4597978722407473.0,
    116467828143500.7,
    -2950130727918.164,
    74_724_249_600.0,
    -1892437580.3183792,
    47_900_160.0,
    -1_209_600.0,
    30_240.0,
    -720.0,
    12.0,
];

/// `zeta(x, q) = sum 1 / (q + k)^x`, by the Euler-Maclaurin formula.
///
/// Infinite for `x = 1`, NaN for `x < 1`; for `q <= 0` `x` must be an integer, and at the poles only an even `x` has a
/// limit.
pub fn zeta<'f>(x: Expression<'f>, q: Expression<'f>) -> Expression<'f> {
    let mut sum = q.pow(-x);
    let mut base = q;
    for _ in 0..9 {
        base = base + 1.0;
        sum = sum + base.pow(-x);
    }
    base = base + 1.0;
    let power = base.pow(-x);
    let integral = power * base / (x - 1.0);
    let inverse_square = 1.0 / (base * base);
    let mut series = x.splat(0.0);
    for (i, bernoulli) in BERNOULLI[..11].iter().enumerate() {
        let k = 22.0 - 2.0 * i as f64;
        series = (x + k) * (x + (k - 1.0)) * inverse_square * (series + 1.0 / bernoulli);
    }
    let correction = power * (x / base * (series + 1.0 / BERNOULLI[11]) + 0.5);
    // What is added to a sum that does not change any more may be infinite times 0.
    let done = power.abs().lt(sum.abs() * f64::EPSILON);
    let result = done.select(sum, sum + integral + correction);

    let nan = x.splat(f64::NAN);
    let infinity = x.splat(f64::INFINITY);
    let result = x.equal(1.0).select(infinity, result);
    let result = x.lt(1.0).select(nan, result);
    let is_integer = x.equal(x.floor());
    let result = (q.le(0.0) & !is_integer).select(nan, result);
    let pole = q.le(0.0) & q.equal(q.floor());
    let is_even = (x % 2.0).equal(0.0) & is_integer;
    pole.select(is_even.select(infinity, nan), result)
}

/// The `n`-th derivative of `digamma`; NaN unless `n` is a natural number.
pub fn polygamma<'f>(n: Expression<'f>, x: Expression<'f>) -> Expression<'f> {
    let next = n + 1.0;
    let sign = (n % 2.0) * 2.0 - 1.0;
    let derivative = sign * lgamma(next).exp() * zeta(next, x);
    let result = n.equal(0.0).select(digamma(x), derivative);
    (n.not_equal(n.floor()) | n.lt(0.0)).select(n.splat(f64::NAN), result)
}
