//! The incomplete gamma functions of `f64`, by continued fractions in numbers of two parts.

use super::incomplete_gamma::upper_outside;
use super::pair::{Exponential, Pair, two_sum};
use super::raised_gamma::{RaisedGamma, log_of_product};
use super::steps;
use crate::expression::Expression;
use shape::PrimitiveType;

/// `2 pi` in two parts.
const TWO_PI: [f64; 2] = [std::f64::consts::TAU, 2.4492935982947064e-16];

/// Beyond this, the distribution is a step.
pub(super) const LARGE: f64 = 1e90;

/// Returns `P(a, x)` or `Q(a, x)` as a number times a power of two, for positive `a` and `x`.
fn number<'f>(
    [a, x]: [Expression<'f>; 2],
    is_upper: Expression<'f>,
    enabled: Expression<'f>,
) -> (Pair<'f>, Exponential<'f>) {
    let (factor, exponential) = power_over_gamma(a, x);
    let lower = lower_sum([a, x], enabled & !is_upper);
    let upper = upper_denominator([a, x], enabled & is_upper);
    let numerator = Pair::select(is_upper, factor * a, factor);
    (numerator / Pair::select(is_upper, upper, lower), exponential)
}

/// `x^a e^-x / gamma(a + 1)`.
pub(super) fn power_over_gamma<'f>(a: Expression<'f>, x: Expression<'f>) -> (Pair<'f>, Exponential<'f>) {
    let gamma = RaisedGamma::new(a.into());
    let log = log_of_product(x.into(), gamma.inverse);
    let exponential = (log * a + (gamma.argument - x) - gamma.series).exp();
    let root = (gamma.argument * Pair::number(a, TWO_PI)).sqrt();
    (exponential.mantissa() * gamma.ratio / root, exponential)
}

/// Inverse of `sum x^n / ((a + 1) ... (a + n))` for `x <= a` or `x <= 1.7` (`dlmf.nist.gov/13.5`):
/// `1 - x / (a + 1 + x / (a + 2 - (a + 1) x / (a + 3 + 2 x / (a + 4 - ...))))`.
fn lower_sum<'f>([a, x]: [Expression<'f>; 2], enabled: Expression<'f>) -> Pair<'f> {
    let count = lower_steps([a, x]);
    let (a, x) = (enabled.select(a, 1.0), enabled.select(x, 1.0));
    let [rest] = from_last_step(steps(enabled, count), [a, x], |m, [a, x], [rest]| {
        let twice = two_sum(a, m + m);
        let inner = Pair::from(m + 1.0) * x / (twice + 2.0 + rest);
        [two_sum(a, m) * -x / (twice + 1.0 + inner)]
    });
    let a = Pair::from(a);
    -(Pair::from(x) / (Pair::from(x) / (a + 2.0 + rest) + (a + 1.0))) + 1.0
}

/// Returns a sufficient number of steps of [`lower_sum`].
pub(super) fn lower_steps<'f>([a, x]: [Expression<'f>; 2]) -> Expression<'f> {
    let larger = a.max(x);
    (larger.sqrt() * 1.9).min(larger * 3.0 / (larger - x)) + 14.0
}

/// Denominator of
/// `Q(a, x) = x^a e^-x / gamma(a) / (x + 1 - a - 1 (1 - a) / (x + 3 - a - 2 (2 - a) / ...))`
/// (`dlmf.nist.gov/8.9.E2`), for `x >= a` and `x >= 1`.
fn upper_denominator<'f>([a, x]: [Expression<'f>; 2], enabled: Expression<'f>) -> Pair<'f> {
    let count = upper_steps([a, x]);
    let (a, x) = (enabled.select(a, 1.0), enabled.select(x, 1.0));
    let [rest] = from_last_step(steps(enabled, count), [a, x], |k, [a, x], [rest]| {
        [two_sum(a, -k) * k / (two_sum(x, -a) + (k + k + 1.0) + rest)]
    });
    two_sum(x, -a) + 1.0 + rest
}

/// Returns a sufficient number of steps of [`upper_denominator`].
pub(super) fn upper_steps<'f>([a, x]: [Expression<'f>; 2]) -> Expression<'f> {
    (a.sqrt() * 3.1).min(a * 6.0 / (x - a)) + 150.0 / x + 14.0
}

/// Evaluates `N` recurrences from step `count` down to step 1. Each starts from 0, and `step`
/// computes the numbers of a step from those of the next higher step.
pub(super) fn from_last_step<'f, const N: usize>(
    count: Expression<'f>,
    [a, x]: [Expression<'f>; 2],
    step: impl for<'g> Fn(Expression<'g>, [Expression<'g>; 2], [Pair<'g>; N]) -> [Pair<'g>; N],
) -> [Pair<'f>; N] {
    fn numbers<'f, const N: usize>(state: &[Expression<'f>]) -> [Pair<'f>; N] {
        std::array::from_fn(|k| Pair { high: state[3 + 2 * k], low: state[4 + 2 * k] })
    }
    let mut state = vec![count, a, x];
    state.resize(3 + 2 * N, a.splat(0.0));
    let state = a.function().while_loop(
        &state,
        |_, state| state[0].gt(0.0),
        |_, state| {
            let (index, a, x) = (state[0], state[1], state[2]);
            let m = index.convert(PrimitiveType::F64).spread_like(a);
            let numbers_of_step = step(m, [a, x], numbers(state));
            let mut next = vec![index - 1.0, a, x];
            next.extend(numbers_of_step.iter().flat_map(|pair| [pair.high, pair.low]));
            next
        },
    );
    numbers(&state)
}

/// Euler's constant and `zeta(2) / 2`, in two parts. [`SLOPE_REST`] has `(-1)^n zeta(n) / n` for
/// `n` from 11 down to 3.
const SLOPE: &[[f64; 2]] =
    &[[-0.8224670334241132, -1.520336175199238e-17], [0.5772156649015329, -4.942915152430645e-18]];
const SLOPE_REST: &[f64] = &[
    0.09095401714582904,
    -0.1000994575127818,
    0.11133426586956469,
    -0.12550966952474304,
    0.1440498967688461,
    -0.1695571769974082,
    0.20738555102867398,
    -0.27058080842778454,
    0.40068563438653143,
];

/// Bound for [`upper_of_tiny`].
const TINY: f64 = 1.0 / 64.0;

/// `Q(a, x)` for `a` below 1/64 and `x` below 1, where it is about as small as `a`. With
/// `1 + u = x^a / gamma(1 + a)`, computes `-u + (1 + u) a (x / (a + 1) - x^2 / (2! (a + 2)) + ...)`
/// (Gautschi, "A computational procedure for incomplete gamma functions", 1979).
fn upper_of_tiny<'f>([a, x]: [Expression<'f>; 2], enabled: Expression<'f>) -> Expression<'f> {
    const TERMS: f64 = 22.0;
    let (a, x) = (enabled.select(a, TINY), enabled.select(x, 1.0));
    let one = Pair::from(a.splat(1.0));
    let log = log_of_product(x.into(), one) + Pair::from(a).polynomial(SLOPE_REST, SLOPE);
    let power = (log * a).exp();
    let [sum] = from_last_step(steps(enabled, a.splat(TERMS)), [a, x], |n, [a, x], [sum]| {
        let term = Pair::from(a.splat(1.0)) / two_sum(a, n);
        [term - sum * x / Pair::from(n + 1.0)]
    });
    let sum = sum * x * a;
    let less_one = power.less_one();
    ((less_one + 1.0) * sum - less_one).round()
}

/// [`super::igamma`] of `f64`, accurate to a unit or two in the last place.
pub fn igamma_in_pairs<'f>(a: Expression<'f>, x: Expression<'f>) -> Expression<'f> {
    let is_nan = a.is_nan() | x.is_nan();
    let outside = x.lt(0.0) | a.le(0.0);
    let by_upper = x.gt(1.7) & x.gt(a);
    let in_range = x.gt(0.0) & x.lt(LARGE) & a.gt(0.0) & a.lt(LARGE);
    let (inner_a, inner_x) = (in_range.select(a, 1.0), in_range.select(x, 1.0));
    let (number, power) = number([inner_a, inner_x], by_upper, in_range);
    let lower = power.scale_rounded(number);
    let result = by_upper.select((-power.scale(number) + 1.0).round(), lower);
    let far = x.gt(a).select(x.splat(1.0), x.equal(a).select(x.splat(0.5), 0.0));
    let result = in_range.select(result, far);
    let result = x.equal(0.0).select(x.splat(0.0), result);
    let result = x.equal(f64::INFINITY).select(x.splat(1.0), result);
    (outside | is_nan).select(a.splat(f64::NAN), result)
}

/// [`super::igammac`] of `f64`, accurate to a unit or two in the last place.
pub fn igammac_in_pairs<'f>(a: Expression<'f>, x: Expression<'f>) -> Expression<'f> {
    let is_tiny = x.lt(1.0) & a.lt(TINY);
    let by_upper = x.ge(1.0) & x.ge(a);
    let in_range = x.gt(0.0) & x.lt(LARGE) & a.gt(0.0) & a.lt(LARGE);
    let (inner_a, inner_x) = (in_range.select(a, 1.0), in_range.select(x, 1.0));
    let (number, power) = number([inner_a, inner_x], by_upper, in_range & !is_tiny);
    let upper = power.scale_rounded(number);
    let result = by_upper.select(upper, (-power.scale(number) + 1.0).round());
    let result = is_tiny.select(upper_of_tiny([inner_a, inner_x], in_range & is_tiny), result);
    let far = x.gt(a).select(x.splat(0.0), x.equal(a).select(x.splat(0.5), 1.0));
    upper_outside([a, x], in_range.select(result, far))
}
