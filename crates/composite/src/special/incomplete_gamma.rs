//! The incomplete gamma functions and their derivatives, by power series and continued fraction.

use super::{digamma, epsilon, gamma_below_8, lgamma, log_of_largest};
use crate::expression::Expression;
use std::f64::consts::PI;

/// Quantity to compute from `P(a, x)` or `Q(a, x)`.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Mode {
    Value,
    /// Derivative with respect to `a`.
    Derivative,
    /// Derivative with respect to `a` of a sample `x` of the gamma distribution.
    SampleDerivative,
}

/// Upper bound for terms of a series and steps of a continued fraction.
const MAX_TERMS: f64 = 20_000.0;

/// Returns `x^a e^-x / gamma(a)`, and whether it underflows.
fn factor<'f>(a: Expression<'f>, x: Expression<'f>) -> (Expression<'f>, Expression<'f>) {
    let exponent = a * x.log() - x - lgamma(a);
    let vanishes = exponent.lt(-log_of_largest(a));
    let below_8 = a.lt(8.0);
    let small = x.pow(a) * (-x).exp() / gamma_below_8(below_8.select(a, 1.0));
    // Stirling's formula: `sqrt(a / (2 pi)) e^(a (log(1 + u) - u) - series)` with
    // `u = (x - a) / a`.
    let exponent = a * log1p_less((x - a) / a);
    let large = (a * (0.5 / PI)).sqrt() * (exponent - stirling(a)).exp();
    (below_8.select(small, large), vanishes)
}

/// Coefficients of Stirling's series of `lgamma`, highest power of `1 / a^2` first.
const STIRLING: &[f64] =
    &[1.0 / 156.0, -691.0 / 360_360.0, 1.0 / 1188.0, -1.0 / 1680.0, 1.0 / 1260.0, -1.0 / 360.0, 1.0 / 12.0];

/// Remainder of Stirling's formula for `lgamma(a)`, for `a >= 8`.
fn stirling(a: Expression<'_>) -> Expression<'_> {
    let inverse = 1.0 / a;
    inverse * (inverse * inverse).polynomial(STIRLING)
}

/// `log(1 + u) - u` without cancellation near 0. With `s = u / (2 + u)`, it is
/// `2 (s^3 / 3 + s^5 / 5 + ...) - u s`.
fn log1p_less(u: Expression<'_>) -> Expression<'_> {
    let is_near = u.gt(-0.75) & u.lt(2.5);
    let near = is_near.select(u, 0.0);
    let s = near / (near + 2.0);
    let square = s * s;
    let coefficients: Vec<f64> = (1..=33).rev().map(|k| 2.0 / f64::from(2 * k + 1)).collect();
    let close = s * (square * square.polynomial(&coefficients) - near);
    is_near.select(close, u.log1p() - u)
}

/// Series of the lower function where `enabled`: `sum x^n / ((a + 1) ... (a + n))`.
fn series<'f>(
    mode: Mode,
    factor: Expression<'f>,
    [a, x]: [Expression<'f>; 2],
    enabled: Expression<'f>,
) -> Expression<'f> {
    let end = epsilon(a);
    let (zero, one) = (a.splat(0.0), a.splat(1.0));
    let count = a.function().scalar(shape::PrimitiveType::S32, 0.0);
    let state = [count, enabled, a, one, one, zero, zero, x];
    let state = a.function().while_loop(
        &state,
        |_, state| state[0].lt(MAX_TERMS) & state[1].any(),
        |_, state| {
            let &[count, enabled, r, term, sum, term_slope, sum_slope, x] = state else {
                return Vec::new();
            };
            let next = r + 1.0;
            let ratio = x / next;
            let next_slope = term_slope * ratio - term * x / (next * next);
            let next_term = term * ratio;
            let next_sum = sum + next_term;
            let next_sum_slope = sum_slope + next_slope;
            let continues = match mode {
                Mode::Value => (next_term / next_sum).gt(end),
                _ => (next_slope / next_sum_slope).abs().gt(end),
            };
            vec![
                count + 1.0,
                enabled & continues,
                enabled.select(next, r),
                enabled.select(next_term, term),
                enabled.select(next_sum, sum),
                enabled.select(next_slope, term_slope),
                enabled.select(next_sum_slope, sum_slope),
                x,
            ]
        },
    );
    let (sum, sum_slope) = (state[4], state[6]);
    if mode == Mode::Value {
        return sum * factor / a;
    }
    let log_slope = x.log() - digamma(a + 1.0);
    match mode {
        Mode::Derivative => factor * (sum * log_slope + sum_slope) / a,
        _ => -(sum_slope + sum * log_slope) * x / a,
    }
}

/// Continued fraction of the upper function where `enabled`.
fn continued_fraction<'f>(
    mode: Mode,
    factor: Expression<'f>,
    [a, x]: [Expression<'f>; 2],
    enabled: Expression<'f>,
) -> Expression<'f> {
    let end = epsilon(a);
    let (zero, one) = (a.splat(0.0), a.splat(1.0));
    let y = 1.0 - a;
    let z = x + y + 1.0;
    let (p, q) = (x + 1.0, z * x);
    let value = p / q;
    // Derivatives of the previous two numerators and denominators: only the last one depends on
    // `a`.
    let slope = value * x / q;
    let count = a.function().scalar(shape::PrimitiveType::S32, 0.0);
    let state = [count, enabled, value, y, z, zero, p, q, one, x, zero, zero, zero, -x, slope];
    let state = a.function().while_loop(
        &state,
        |_, state| state[0].lt(MAX_TERMS) & state[1].any(),
        |_, state| step(mode, end, state),
    );
    let (value, slope) = (state[2], state[14]);
    if mode == Mode::Value {
        return value * factor;
    }
    let log_slope = x.log() - digamma(a);
    match mode {
        Mode::Derivative => factor * (value * log_slope + slope),
        _ => -(slope + value * log_slope) * x,
    }
}

/// Continued fraction of the upper function, evaluated from its end:
/// `1 / (x + 1 - a - 1 (1 - a) / (x + 3 - a - 2 (2 - a) / ...))`. This loses less than ratios of
/// numerators and denominators. The number of steps suffices from `x = 1` up to `a = x = 10`;
/// elsewhere the result is meaningless.
fn backward_fraction<'f>([a, x]: [Expression<'f>; 2], enabled: Expression<'f>) -> Expression<'f> {
    const STEPS: f64 = 100.0;
    let (a, x) = (enabled.select(a, 1.0), enabled.select(x, 1.0));
    let function = a.function();
    let steps = |count: f64| function.scalar(shape::PrimitiveType::S32, count);
    let step = enabled.any().select(steps(STEPS), steps(0.0));
    let state = function.while_loop(
        &[step, a.splat(0.0), a, x],
        |_, state| state[0].gt(0.0),
        |_, state| {
            let &[step, rest, a, x] = state else { return Vec::new() };
            let k = step.convert(a.element_type()).spread_like(a);
            let rest = k * (a - k) / (x + (k * 2.0 + 1.0 - a) + rest);
            vec![step - 1.0, rest, a, x]
        },
    );
    1.0 / (x + (1.0 - a) + state[1])
}

/// One step of the continued fraction, with the derivatives of the recurrences with respect to `a`.
fn step<'f>(mode: Mode, end: f64, state: &[Expression<'f>]) -> Vec<Expression<'f>> {
    let &[count, enabled, value, y, z, c, p1, q1, p2, q2, dp2, dq2, dp1, dq1, slope] = state else {
        return Vec::new();
    };
    let (next_c, next_y, next_z) = (c + 1.0, y + 1.0, z + 2.0);
    let yc = next_y * next_c;
    let p = p1 * next_z - p2 * yc;
    let q = q1 * next_z - q2 * yc;
    let valid = q.not_equal(0.0);
    let ratio = p / q;
    let next_value = valid.select(ratio, value);
    let dp = dp1 * next_z - p1 - dp2 * yc + p2 * next_c;
    let dq = dq1 * next_z - q1 - dq2 * yc + q2 * next_c;
    let next_slope = valid.select((dp - next_value * dq) / q, slope);
    let change = match mode {
        Mode::Value => ((value - ratio) / ratio).abs(),
        _ => (next_slope - slope).abs(),
    };
    let continues = valid.select(change, 1.0).gt(end);
    // Numerators and denominators grow together; only their quotients matter.
    let rescale = p.abs().gt(1.0 / end);
    let scale = rescale.select(p.splat(end), 1.0);
    let keep = |next: Expression<'f>, old: Expression<'f>| enabled.select(next, old);
    vec![
        count + 1.0,
        enabled & continues,
        keep(next_value, value),
        keep(next_y, y),
        keep(next_z, z),
        keep(next_c, c),
        keep(p * scale, p1),
        keep(q * scale, q1),
        keep(p1 * scale, p2),
        keep(q1 * scale, q2),
        keep(dp1 * scale, dp2),
        keep(dq1 * scale, dq2),
        keep(dp * scale, dp1),
        keep(dq * scale, dq1),
        keep(next_slope, slope),
    ]
}

/// `lgamma(1 + a) / (a (1 - a))` for `a` from 0 to 1.
const LGAMMA_1P: &[f64] = &[
    -1.1820969445467145e-05,
    0.00013673749845170442,
    -0.0007510944620906334,
    0.0026202979485050316,
    -0.006568778005711162,
    0.012742266956440252,
    -0.020215502781759945,
    0.027534187815233195,
    -0.03370537137511358,
    0.03867042441832247,
    -0.04301415542600463,
    0.04744503662529866,
    -0.052537419190277455,
    0.05877516383097031,
    -0.06673142618826892,
    0.07731814517650464,
    -0.09223900725237584,
    0.11514654252510402,
    -0.15543426586329281,
    0.2452513685225759,
    -0.5772156649015329,
];

/// Number of terms of the series below. Further terms are negligible at `x = 1`.
const SMALL_TERMS: u32 = 19;

/// `Q(a, x)` for `a` and `x` below 1, avoiding a difference of numbers near 1. With
/// `u = 1 - x^a / gamma(1 + a)`, computes `u + (1 - u) a (x / (a + 1) - x^2 / (2! (a + 2)) + ...)`
/// (Gautschi, "A computational procedure for incomplete gamma functions", 1979).
fn upper_of_small<'f>(a: Expression<'f>, x: Expression<'f>) -> Expression<'f> {
    let exponent = a * (x.log() - (1.0 - a) * a.polynomial(LGAMMA_1P));
    let first = -exponent.expm1();
    let mut sum = x.splat(0.0);
    let mut factorial: f64 = (1..=SMALL_TERMS).map(f64::from).product();
    for n in (1..=SMALL_TERMS).rev() {
        let sign = if n % 2 == 1 { 1.0 } else { -1.0 };
        sum = (sum + (sign / factorial) / (a + f64::from(n))) * x;
        factorial /= f64::from(n);
    }
    first + (1.0 - first) * a * sum
}

fn lower<'f>(mode: Mode, a: Expression<'f>, x: Expression<'f>) -> Expression<'f> {
    let is_nan = a.is_nan() | x.is_nan();
    let outside = x.lt(0.0) | a.le(0.0);
    let by_fraction = x.gt(1.7) & x.gt(a);
    let (factor, vanishes) = factor(a, x);
    let at_zero = x.equal(0.0);
    let enabled = !(at_zero | outside | vanishes | is_nan);
    let fraction = continued_fraction(mode, factor, [a, x], enabled & by_fraction);
    let fraction = if mode == Mode::Value { 1.0 - fraction } else { -fraction };
    let series = series(mode, factor, [a, x], enabled & !by_fraction);
    let result = by_fraction.select(fraction, series);
    let result = at_zero.select(x.splat(0.0), result);
    let result = match mode {
        Mode::Value => x.equal(f64::INFINITY).select(x.splat(1.0), result),
        _ => result,
    };
    (outside | is_nan).select(a.splat(f64::NAN), result)
}

/// The lower regularized incomplete gamma function `P(a, x)`: NaN for `x < 0` or `a <= 0`.
pub fn igamma<'f>(a: Expression<'f>, x: Expression<'f>) -> Expression<'f> {
    lower(Mode::Value, a, x)
}

/// Derivative of `P(a, x)` with respect to `a`.
pub fn igamma_grad_a<'f>(a: Expression<'f>, x: Expression<'f>) -> Expression<'f> {
    lower(Mode::Derivative, a, x)
}

/// Derivative with respect to `a` of a sample `x` of the gamma distribution with parameter `a`.
pub fn random_gamma_grad<'f>(a: Expression<'f>, x: Expression<'f>) -> Expression<'f> {
    lower(Mode::SampleDerivative, a, x)
}

/// The upper regularized incomplete gamma function `Q(a, x)`: 1 for `x <= 0` or `a <= 0`, as in
/// XLA.
pub fn igammac<'f>(a: Expression<'f>, x: Expression<'f>) -> Expression<'f> {
    let is_nan = a.is_nan() | x.is_nan();
    let outside = x.le(0.0) | a.le(0.0);
    let by_series = x.lt(1.0) | x.lt(a);
    // The lower function may be near 1 there.
    let is_small = x.lt(1.0) & a.lt(1.0);
    let (factor, vanishes) = factor(a, x);
    let enabled = !(outside | vanishes | is_nan | is_small);
    let series = 1.0 - series(Mode::Value, factor, [a, x], enabled & by_series);
    let is_moderate = x.ge(1.0) & x.lt(10.0) & !by_series;
    let fraction = continued_fraction(Mode::Value, factor, [a, x], enabled & !by_series & !is_moderate);
    let moderate = is_moderate.select(backward_fraction([a, x], is_moderate) * factor, fraction);
    let result = by_series.select(series, moderate);
    let result = is_small.select(upper_of_small(a, x), result);
    upper_outside([a, x], result)
}

/// `Q(a, x)` outside its domain as an integral: see [`igammac`].
pub(super) fn upper_outside<'f>([a, x]: [Expression<'f>; 2], result: Expression<'f>) -> Expression<'f> {
    let result = x.equal(f64::INFINITY).select(x.splat(0.0), result);
    let result = (x.le(0.0) | a.le(0.0)).select(a.splat(1.0), result);
    (a.is_nan() | x.is_nan()).select(a.splat(f64::NAN), result)
}
