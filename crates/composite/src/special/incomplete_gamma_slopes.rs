//! Derivatives of the incomplete gamma functions of `f64` with respect to their parameter, in
//! numbers of two parts: the function's value times its logarithmic derivative, which is that of
//! the power over gamma minus that of the continued fraction.

use super::incomplete_gamma_pairs::{LARGE, from_last_step, lower_steps, power_over_gamma, upper_steps};
use super::pair::{Exponential, Pair, two_sum};
use super::raised_gamma::{RaisedGamma, log_of_product};
use super::steps;
use crate::expression::Expression;

/// From here on, squares of arguments are infinite, and XLA's derivatives are 0.
const LARGEST: f64 = 1.3407807929942597e154;

/// Derivative of `P(a, x)` with respect to `a`, accurate to a unit or two of `f64`; near `x = a`
/// only up to `a = 3e7`, where `steps` reaches its limit. NaN for `x < 0`, `a <= 0`, and
/// infinities, but 0 for `x = 0`.
pub fn igamma_grad_a_in_pairs<'f>(a: Expression<'f>, x: Expression<'f>) -> Expression<'f> {
    let slope = Slope::new(a, x);
    let result = slope.power.scale_rounded(slope.factor * slope.number);
    // A nearly vertical step.
    let step = -1.0 / (a * std::f64::consts::TAU).sqrt();
    let far = x.equal(a).select(step, 0.0);
    slope.where_defined(slope.in_range.select(result, far))
}

/// Derivative with respect to `a` of a sample `x` of the gamma distribution with parameter `a`: the
/// negated quotient of the derivatives of `P` with respect to `a` and `x`. Accurate to a unit or
/// two of `f64`. As in XLA, it is 0 from `x = 1.3e154` on, and uses only the first term of the sum
/// or fraction where `x^a e^-x / gamma(a)` is subnormal. Limits and NaN are those of
/// [`igamma_grad_a_in_pairs`].
pub fn random_gamma_grad_in_pairs<'f>(a: Expression<'f>, x: Expression<'f>) -> Expression<'f> {
    let slope = Slope::new(a, x);
    // Scaling keeps the quotient of subnormal parameters and arguments.
    let scale = slope.a.lt(2f64.powi(-960)).select(slope.a.splat(2f64.powi(100)), 1.0);
    let result = -slope.number.round() / (slope.a * scale) * slope.x * scale;
    let result = slope.factor_vanishes().select(slope.first_of_sample(), result);
    // If `P` is a step: `log(x / a) / (1 - a / x)`.
    let distance = (x - a) / a;
    let is_near = distance.abs().lt(0.5);
    let log = is_near.select(is_near.select(distance, 0.0).log1p(), x.log() - a.log());
    let of_step = x.equal(a).select(x.splat(1.0), log / distance * (x / a));
    let far = x.lt(LARGEST).select(of_step, 0.0);
    slope.where_defined(slope.in_range.select(result, far))
}

/// Quantities shared by both derivatives.
struct Slope<'f> {
    /// The arguments, replaced by others where not `in_range`.
    a: Expression<'f>,
    x: Expression<'f>,
    in_range: Expression<'f>,
    is_upper: Expression<'f>,
    is_zero: Expression<'f>,
    is_defined: Expression<'f>,
    /// `log(x) - digamma(a + 1)`.
    log_slope: Pair<'f>,
    /// `x^a e^-x / gamma(a + 1)` as a number times a power of two.
    factor: Pair<'f>,
    power: Exponential<'f>,
    /// Derivative of `P` with respect to `a`, divided by the factor.
    number: Pair<'f>,
}

impl<'f> Slope<'f> {
    fn new(a: Expression<'f>, x: Expression<'f>) -> Self {
        let is_finite = x.ge(0.0) & x.lt(f64::INFINITY) & a.lt(f64::INFINITY);
        let is_zero = x.equal(0.0);
        let is_defined = a.gt(0.0) & (is_finite | is_zero);
        let in_range = x.gt(0.0) & x.lt(LARGEST) & a.gt(0.0) & a.lt(LARGE);
        let is_upper = x.gt(1.7) & x.gt(a);
        let (a, x) = (in_range.select(a, 1.0), in_range.select(x, 1.0));
        let (factor, power) = power_over_gamma(a, x);
        let log_slope = log_slope_of_power(a, x);
        let (lower, lower_slope) = lower_sum_slope([a, x], in_range & !is_upper);
        let (upper, upper_slope) = upper_denominator_slope([a, x], in_range & is_upper);
        let denominator = Pair::select(is_upper, upper, lower);
        let slope = log_slope - Pair::select(is_upper, upper_slope, lower_slope) / denominator;
        // Q has gamma(a) in place of P's gamma(a + 1).
        let slope = Pair::select(is_upper, -(slope * a + 1.0), slope);
        let number = slope / denominator;
        Slope { a, x, in_range, is_upper, is_zero, is_defined, log_slope, factor, power, number }
    }

    /// True where `x^a e^-x / gamma(a)` is below the inverse of the largest number.
    fn factor_vanishes(&self) -> Expression<'f> {
        let log = (self.factor.high * self.a).log() + self.power.exponent() * std::f64::consts::LN_2;
        log.lt(-f64::MAX.ln())
    }

    /// Derivative of a sample from the first term of the sum of `P`, or from the first step of the
    /// fraction of `Q`.
    fn first_of_sample(&self) -> Expression<'f> {
        let (a, x) = (self.a, self.x);
        let log_slope = self.log_slope.round();
        let lower = -log_slope * x / a;
        let denominator = (x + 2.0 - a) * x;
        let value = (x + 1.0) / denominator;
        let upper = (value * x / denominator + value * (log_slope + 1.0 / a)) * x;
        self.is_upper.select(upper, lower)
    }

    fn where_defined(&self, result: Expression<'f>) -> Expression<'f> {
        let result = self.is_zero.select(result.splat(0.0), result);
        self.is_defined.select(result, f64::NAN)
    }
}

/// `log(x) - digamma(a + 1)`.
fn log_slope_of_power<'f>(a: Expression<'f>, x: Expression<'f>) -> Pair<'f> {
    let gamma = RaisedGamma::new(a.into());
    log_of_product(x.into(), gamma.inverse) - gamma.digamma_less_log()
}

/// Returns the inverse of the sum of [`lower_sum`](super::incomplete_gamma_pairs), and its
/// derivative with respect to `a`.
fn lower_sum_slope<'f>([a, x]: [Expression<'f>; 2], enabled: Expression<'f>) -> (Pair<'f>, Pair<'f>) {
    let count = with_more(lower_steps([a, x]));
    let (a, x) = (enabled.select(a, 1.0), enabled.select(x, 1.0));
    let [rest, slope] = from_last_step(steps(enabled, count), [a, x], |m, [a, x], [rest, slope]| {
        let twice = two_sum(a, m + m);
        let denominator = twice + 2.0 + rest;
        let inner = Pair::from(m + 1.0) * x / denominator;
        let inner_slope = -(inner * (slope + 1.0) / denominator);
        let denominator = twice + 1.0 + inner;
        let rest = two_sum(a, m) * -x / denominator;
        [rest, -((rest * (inner_slope + 1.0) + x) / denominator)]
    });
    let denominator = Pair::from(a) + 2.0 + rest;
    let second = Pair::from(x) / denominator;
    let second_slope = -(second * (slope + 1.0) / denominator);
    let denominator = Pair::from(a) + 1.0 + second;
    let first = Pair::from(x) / denominator;
    (-first + 1.0, first * (second_slope + 1.0) / denominator)
}

/// Returns the denominator of `Q`'s continued fraction, and its derivative with respect to `a`.
fn upper_denominator_slope<'f>([a, x]: [Expression<'f>; 2], enabled: Expression<'f>) -> (Pair<'f>, Pair<'f>) {
    let count = with_more(upper_steps([a, x]));
    let (a, x) = (enabled.select(a, 1.0), enabled.select(x, 1.0));
    let [rest, slope] = from_last_step(steps(enabled, count), [a, x], |k, [a, x], [rest, slope]| {
        let denominator = two_sum(x, -a) + (k + k + 1.0) + rest;
        let rest = two_sum(a, -k) * k / denominator;
        [rest, (rest * (-slope + 1.0) + k) / denominator]
    });
    (two_sum(x, -a) + 1.0 + rest, slope + -1.0)
}

/// Number of steps for a derivative. Its error shrinks by the same factor per step as the value's,
/// times the number of steps.
fn with_more(count: Expression<'_>) -> Expression<'_> {
    count * 1.2 + 6.0
}
