//! The Hurwitz zeta function and the derivatives of the digamma function.

use super::digamma;
use super::gamma_roots::look_up;
use super::pair::two_sum;
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
/// Infinite for `x = 1`, NaN for `x < 1`; for `q <= 0` `x` must be an integer, and at the poles
/// only an even `x` has a limit.
pub fn zeta<'f>(x: Expression<'f>, q: Expression<'f>) -> Expression<'f> {
    zeta_times_power(x, q, None)
}

/// `zeta(x, q) / scale^x`. The scale avoids overflow and underflow of a result that is multiplied
/// by a factorial.
fn zeta_times_power<'f>(
    x: Expression<'f>,
    q: Expression<'f>,
    scale: Option<Expression<'f>>,
) -> Expression<'f> {
    // The rounding error of `q + k` is multiplied by `x` in its power.
    let exponent = x.min(1e4);
    let term = |k: f64| {
        let base = two_sum(q, q.splat(k));
        let scaled = scale.map_or(base.high, |scale| base.high * scale);
        let lost = base.low.equal(base.low).select(base.low, 0.0);
        let term = scaled.pow(-x);
        (base.high, term - term * (exponent * lost / base.high))
    };
    let mut sum = scale.map_or(q, |scale| q * scale).pow(-x);
    for k in 1..=9 {
        sum = sum + term(f64::from(k)).1;
    }
    let (base, power) = term(10.0);
    let integral = power * base / (x - 1.0);
    let inverse_square = 1.0 / (base * base);
    let mut series = x.splat(0.0);
    for (i, bernoulli) in BERNOULLI[..11].iter().enumerate() {
        let k = 22.0 - 2.0 * i as f64;
        series = (x + k) * (x + (k - 1.0)) * inverse_square * (series + 1.0 / bernoulli);
    }
    let correction = power * (x / base * (series + 1.0 / BERNOULLI[11]) + 0.5);
    // Terms added to a sum that has converged may be infinity times 0.
    let converged = power.abs().lt(sum.abs() * f64::EPSILON);
    let result = converged.select(sum, sum + integral + correction);

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

/// Returns `n! / 2^((n + 1) k)` and the exponents `k`, the integer nearest to `log2(n / e)`, for
/// `n` up to 170. These factorials do not overflow, nor does their product with the scaled powers.
fn scaled_factorials() -> (Vec<f64>, Vec<f64>) {
    let mut factorials = Vec::new();
    let mut scales = Vec::new();
    for n in 0..=LARGEST_FACTORIAL {
        let k = (f64::from(n.max(1)) / std::f64::consts::E).log2().round().max(0.0) as i32;
        // The product is computed in two parts, because its rounding errors would add up.
        let (mut high, mut low) = (1.0f64, 0.0f64);
        for factor in 1..=n {
            let factor = f64::from(factor);
            let product = high * factor;
            let lost = high.mul_add(factor, -product) + low * factor;
            high = product + lost;
            low = lost - (high - product);
            let shift = 2f64.powi(-k);
            (high, low) = (high * shift, low * shift);
        }
        factorials.push((high + low) * 2f64.powi(-k));
        scales.push(2f64.powi(-k));
    }
    (factorials, scales)
}

/// The largest number whose factorial is finite.
const LARGEST_FACTORIAL: i32 = 170;

/// The `n`-th derivative of `digamma`; NaN unless `n` is a nonnegative integer.
pub fn polygamma<'f>(n: Expression<'f>, x: Expression<'f>) -> Expression<'f> {
    let (factorials, scales) = scaled_factorials();
    let next = n + 1.0;
    let sign = (n % 2.0) * 2.0 - 1.0;
    let is_moderate = n.ge(0.0) & n.le(f64::from(LARGEST_FACTORIAL));
    let index = is_moderate.select(n, 0.0);
    let factorial = is_moderate.select(look_up(&factorials, index), f64::INFINITY);
    let sum = zeta_times_power(next, x, Some(look_up(&scales, index)));
    let result = n.equal(0.0).select(digamma(x), sign * factorial * sum);
    (n.not_equal(n.floor()) | n.lt(0.0)).select(n.splat(f64::NAN), result)
}
