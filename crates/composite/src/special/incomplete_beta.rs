//! The regularized incomplete beta function in numbers of two parts, by the contracted continued
//! fraction of Didonato and Morris ("Significant digit computation of the incomplete beta function
//! ratios", 1992).

use super::pair::{Exponential, Pair, two_sum};
use super::raised_gamma::{RaisedGamma, log_of_product};
use super::steps;
use crate::expression::Expression;
use shape::PrimitiveType;

/// `1 / (2 pi)` in two parts.
const INVERSE_TWO_PI: [f64; 2] = [0.15915494309189535, -9.839338337591243e-18];

/// Beyond this, the distribution is a step.
const LARGE: f64 = 1e90;

/// `I_x(a, b)` of `f64`, accurate to a unit or two in the last place: NaN unless `a > 0`, `b > 0`,
/// and `0 <= x <= 1`.
pub fn betainc<'f>(a: Expression<'f>, b: Expression<'f>, x: Expression<'f>) -> Expression<'f> {
    let outside = a.le(0.0) | b.le(0.0) | x.lt(0.0) | x.gt(1.0);
    let is_nan = a.is_nan() | b.is_nan() | x.is_nan();
    // The fraction converges fast below the mean. Above it, use `I_x(a, b) = 1 - I_(1-x)(b, a)`.
    let below_mean = x.lt((a + 1.0) / (a + b + 2.0));
    let in_range = x.gt(0.0) & x.lt(1.0) & a.gt(0.0) & a.lt(LARGE) & b.gt(0.0) & b.lt(LARGE);
    let inner = [a, b].map(|parameter| in_range.select(parameter, 1.0));
    let x_inner = in_range.select(x, 0.25);
    let (x_pair, complement) = (Pair::from(x_inner), two_sum(x.splat(1.0), -x_inner));
    let p = below_mean.select(inner[0], inner[1]);
    let q = below_mean.select(inner[1], inner[0]);
    let y = Pair::select(below_mean, x_pair, complement);
    let rest = Pair::select(below_mean, complement, x_pair);
    let (factor, power) = powers_over_beta(p, q, y, rest);
    let number = factor / fraction(p, q, y, rest, in_range);
    let value = power.scale_rounded(number);
    let result = below_mean.select(value, (-power.scale(number) + 1.0).round());
    let result = in_range.select(result, below_mean.select(x.splat(0.0), 1.0));
    (outside | is_nan).select(a.splat(f64::NAN), result)
}

/// `y^p rest^q / (p B(p, q))`, where `rest` is `1 - y`.
fn powers_over_beta<'f>(
    p: Expression<'f>,
    q: Expression<'f>,
    y: Pair<'f>,
    rest: Pair<'f>,
) -> (Pair<'f>, Exponential<'f>) {
    let sum = two_sum(p, q);
    let of_p = RaisedGamma::new(p.into());
    let of_q = RaisedGamma::new(q.into());
    let of_sum = RaisedGamma::new(sum);
    // The quotient of Stirling's formula for gamma(p + q + 1) / (gamma(p + 1) gamma(q + 1)).
    let logs = log_of_product(y, of_sum.argument * of_p.inverse) * p
        + log_of_product(rest, of_sum.argument * of_q.inverse) * q;
    let raised = of_p.argument + of_q.argument - of_sum.argument;
    let series = of_sum.series - of_p.series - of_q.series;
    let exponential = (logs + raised + series).exp();
    let square = of_sum.argument * of_p.inverse * of_q.inverse * Pair::number(p, INVERSE_TWO_PI);
    let ratio = of_p.ratio * of_q.ratio / of_sum.ratio;
    (exponential.mantissa() * square.sqrt() * ratio * q / sum, exponential)
}

/// Inverse of `p / (b_0 + a_1 / (b_1 + a_2 / (b_2 + ...)))`.
fn fraction<'f>(
    p: Expression<'f>,
    q: Expression<'f>,
    y: Pair<'f>,
    rest: Pair<'f>,
    enabled: Expression<'f>,
) -> Pair<'f> {
    let mean = p / (p + q);
    let by_parameter = (p.log() * (1.0 / 3.0)).exp() * 6.6;
    let by_distance = mean * 4.0 / (mean - y.high).abs();
    let count = by_parameter.min(by_distance) + (10.0 / rest.high.sqrt()).min(120.0) + 12.0;
    // p rest - q y + 1
    let start = rest * p - y * q + 1.0;
    let one = Pair::from(p.splat(1.0));
    let steps = steps(enabled, count);
    // 1 / (p + 2 m + 1), which the next step uses, too.
    let last = steps.convert(PrimitiveType::F64).spread_like(p);
    let first = one / (two_sum(p, last + last) + 1.0);
    let zero = p.splat(0.0);
    let state = p.function().while_loop(
        &[
            steps, zero, zero, first.high, first.low, p, q, y.high, y.low, rest.high, rest.low, start.high,
            start.low,
        ],
        |_, state| state[0].gt(0.0),
        |_, state| {
            let &[step, t, t_low, inverse, inverse_low, p, q, y, y_low, rest, rest_low, start, start_low] =
                state
            else {
                return Vec::new();
            };
            let pair = |high, low| Pair { high, low };
            let (y, rest, start) = (pair(y, y_low), pair(rest, rest_low), pair(start, start_low));
            let m = step.convert(PrimitiveType::F64).spread_like(p);
            let above = pair(inverse, inverse_low);
            let below = Pair::from(p.splat(1.0)) / (two_sum(p, m + m) + -1.0);
            let y_below = y * below;
            // m (q - m) y / (p + 2 m - 1)
            let product = two_sum(q, -m) * m * y_below;
            let raised = two_sum(p, m);
            let denominator = product + raised * ((rest + 1.0) * m + start) * above + m;
            let raised = raised + -1.0;
            let numerator = product * (raised * y_below) * (raised + q);
            let t = numerator / (denominator + pair(t, t_low));
            vec![
                step - 1.0,
                t.high,
                t.low,
                below.high,
                below.low,
                p,
                q,
                y.high,
                y.low,
                rest.high,
                rest.low,
                start.high,
                start.low,
            ]
        },
    );
    let t = Pair { high: state[1], low: state[2] };
    start / (Pair::from(p) + 1.0) + t / Pair::from(p)
}
