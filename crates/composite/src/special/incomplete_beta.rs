//! The regularised incomplete beta function, by the modified Lentz algorithm on its continued fraction
//! (`dlmf.nist.gov/8.17.E22`).

use super::incomplete_gamma::{log1p_less, stirling};
use super::{epsilon, gamma_below_8, lgamma};
use crate::expression::Expression;
use shape::PrimitiveType;
use std::f64::consts::PI;

/// The most steps of the continued fraction.
const MAX_STEPS: f64 = 600.0;

/// `I_x(a, b)`: NaN unless `a > 0`, `b > 0` and `0 <= x <= 1`.
pub fn betainc<'f>(a: Expression<'f>, b: Expression<'f>, x: Expression<'f>) -> Expression<'f> {
    let outside = a.le(0.0) | b.le(0.0) | x.lt(0.0) | x.gt(1.0);
    let is_nan = a.is_nan() | b.is_nan() | x.is_nan();
    // The fraction converges fast below the mean; `I_x(a, b) = 1 - I_(1-x)(b, a)`.
    let converges = x.lt((a + 1.0) / (a + b + 2.0));
    let complement = 1.0 - x;
    let (p, q) = (converges.select(a, b), converges.select(b, a));
    let (y, log_y) = (converges.select(x, complement), converges.select(x.log(), (-x).log1p()));
    let log_rest = converges.select((-x).log1p(), x.log());
    let fraction = fraction(p, q, y);
    let log_beta = lgamma(p) + lgamma(q) - lgamma(p + q);
    let factor = (log_y * p + log_rest * q - log_beta).exp();
    let rest = converges.select(complement, x);
    let factor = (p + q).lt(8.0).select(small_factor(p, q, y, rest), factor);
    // Where the powers of `y` that this takes are not too small.
    let is_large = (p.ge(8.0) | y.gt(1e-20)) & (p + q).ge(8.0);
    let factor = is_large.select(raised_factor(p, q, y, rest), factor);
    let result = fraction * factor / p;
    // `0 * infinity` where a bound is reached.
    let result = y.equal(0.0).select(y.splat(0.0), result);
    let result = converges.select(result, 1.0 - result);
    (outside | is_nan).select(a.splat(f64::NAN), result)
}

/// `x^a (1 - x)^b / beta(a, b)` for `a + b < 8`.
fn small_factor<'f>(
    a: Expression<'f>,
    b: Expression<'f>,
    x: Expression<'f>,
    rest: Expression<'f>,
) -> Expression<'f> {
    x.pow(a) * rest.pow(b) * gamma_below_8(a + b) / (gamma_below_8(a) * gamma_below_8(b))
}

/// The same, by that of arguments that are raised by 8 where they are below: `beta(a, b) = beta(a + 1, b) (a + b) / a`.
fn raised_factor<'f>(
    a: Expression<'f>,
    b: Expression<'f>,
    x: Expression<'f>,
    rest: Expression<'f>,
) -> Expression<'f> {
    let raise = |a: Expression<'f>, b: Expression<'f>, x: Expression<'f>| {
        let mut factor = a.splat(1.0);
        for k in 0..8 {
            factor = factor * ((a + f64::from(k)) / ((a + b + f64::from(k)) * x));
        }
        let is_below = a.lt(8.0);
        (is_below.select(a + 8.0, a), is_below.select(factor, 1.0))
    };
    let (p, first) = raise(a, b, x);
    let (q, second) = raise(b, p, rest);
    large_factor(p, q, x) * first * second
}

/// The same for `a` and `b` from 8 on, by Stirling's formula: `sqrt(a b / (2 pi (a + b)))` times the exponential of `a (log(1 +
/// u) - u) + b (log(1 + v) - v)`, with `u` and `v` the relative distances of `x` and `1 - x` from their means.
fn large_factor<'f>(a: Expression<'f>, b: Expression<'f>, x: Expression<'f>) -> Expression<'f> {
    let sum = a + b;
    let (mean, other) = (a / sum, b / sum);
    let distance = x - mean;
    let exponent = a * log1p_less(distance / mean) + b * log1p_less(-distance / other);
    let series = stirling(sum) - stirling(a) - stirling(b);
    (mean * b * (0.5 / PI)).sqrt() * (exponent + series).exp()
}

fn fraction<'f>(a: Expression<'f>, b: Expression<'f>, x: Expression<'f>) -> Expression<'f> {
    let end = epsilon(a);
    let function = a.function();
    let counter = function.scalar(PrimitiveType::S32, 0.0);
    let one = a.splat(1.0);
    // After the first step, whose numerator is 1: the first ratio began near 0.
    let far = a.splat(1.0 / end);
    let state = function.while_loop(
        &[counter, function.scalar(PrimitiveType::Pred, 1.0), far, one, one, a, b, x],
        |_, state| state[0].lt(MAX_STEPS) & state[1],
        |_, state| {
            let &[counter, _, c, d, h, a, b, x] = state else { return Vec::new() };
            let m = counter.convert(a.element_type()).spread_like(a);
            let twice = a + m * 2.0;
            let even = -(a + m) * (a + b + m) * x / (twice * (twice + 1.0));
            let (c, d, h, _) = lentz(c, d, h, even, end);
            let m = m + 1.0;
            let twice = a + m * 2.0;
            let odd = m * (b - m) * x / ((twice - 1.0) * twice);
            let (c, d, h, change) = lentz(c, d, h, odd, end);
            vec![counter + 1.0, change.any(), c, d, h, a, b, x]
        },
    );
    state[4]
}

/// One step with a partial numerator: the two ratios, the value so far, and where it still changes.
fn lentz<'f>(
    c: Expression<'f>,
    d: Expression<'f>,
    h: Expression<'f>,
    numerator: Expression<'f>,
    small: f64,
) -> (Expression<'f>, Expression<'f>, Expression<'f>, Expression<'f>) {
    let away_from_zero = |x: Expression<'f>| x.abs().lt(small).select(x.splat(small), x);
    let c = away_from_zero(numerator / c + 1.0);
    let d = 1.0 / away_from_zero(numerator * d + 1.0);
    let delta = c * d;
    (c, d, h * delta, (delta - 1.0).abs().ge(2.0 * small))
}
