//! The logarithm of the gamma function and its derivative.

use super::gamma_roots::{
    digamma_by_roots, is_among_digamma_roots, is_among_lgamma_roots, is_between_lgamma_roots,
    lgamma_between_roots, lgamma_by_roots,
};
use super::rational;
use crate::expression::Expression;
use std::f64::consts::PI;

/// Coefficients of `lgamma` from Sun Microsystems' freely distributable math library
/// (`e_lgamma_r.c`), highest power first.
const A_EVEN: &[f64] = &[
    2.5214456545125733e-5,
    0.00022086279071390839,
    0.0011927076318336207,
    0.007385550860814029,
    0.06735230105312927,
    0.07721566490153287,
];
const A_ODD: &[f64] = &[
    4.4864094961891516e-5,
    0.00010801156724758394,
    0.0005100697921535113,
    0.0028905138367341563,
    0.020580808432516733,
    0.3224670334241136,
];
const MINIMUM: f64 = 1.4616321449683622;
const AT_MINIMUM: f64 = -0.12148629053584961;
const AT_MINIMUM_TAIL: f64 = -3.638676997039505e-18;
const T_0: &[f64] = &[
    0.00031563207090362595,
    -0.0014034646998923284,
    0.006100538702462913,
    -0.032788541075985965,
    0.48383612272381005,
];
const T_1: &[f64] = &[
    -0.00031275416837512086,
    0.000881081882437654,
    -0.0036845201678113826,
    0.01797067508118204,
    -0.1475877229945939,
];
const T_2: &[f64] = &[
    0.0003355291926355191,
    -0.0005385953053567405,
    0.0022596478090061247,
    -0.010314224129834144,
    0.06462494023913339,
];
const U: &[f64] = &[
    0.013381091853678766,
    0.22896372806469245,
    0.9777175279633727,
    1.4549225013723477,
    0.6328270640250934,
    -0.07721566490153287,
];
const V: &[f64] = &[
    0.003217092422824239,
    0.10422264559336913,
    0.7692851504566728,
    2.128489763798934,
    2.4559779371304113,
    1.0,
];
const S: &[f64] = &[
    3.194753265841009e-5,
    0.0018402845140733772,
    0.02664227030336386,
    0.14635047265246445,
    0.325778796408931,
    0.21498241596060885,
    -0.07721566490153287,
];
const R: &[f64] = &[
    7.326684307446256e-6,
    0.0007779424963818936,
    0.01864591917156529,
    0.17193386563280308,
    0.7219355475671381,
    1.3920053346762105,
    1.0,
];
const W: &[f64] = &[
    -0.0016309293409657527,
    0.0008363399189962821,
    -0.00059518755745034,
    0.0007936505586430196,
    -0.0027777777772877554,
    0.08333333333333297,
];
const W_0: f64 = 0.4189385332046727;

/// `log |gamma(x)|`: infinite at 0, at negative integers, and at both infinities.
pub fn lgamma(x: Expression<'_>) -> Expression<'_> {
    let magnitude = x.abs();
    let small = lgamma_below_2(magnitude);
    let middle = lgamma_from_2_to_8(magnitude);
    let log = magnitude.log();
    let inverse = 1.0 / magnitude;
    let correction = (inverse * inverse).polynomial(W) * inverse + W_0;
    let large = (magnitude - 0.5) * (log - 1.0) + correction;
    let large = magnitude.lt(2f64.powi(58)).select(large, magnitude * (log - 1.0));
    let positive = magnitude.lt(8.0).select(middle, large);
    let positive = magnitude.lt(2.0).select(small, positive);

    // `lgamma(x) + lgamma(-x) = log(pi / |x sin(pi x)|)`, with the angle within half a turn.
    let fraction = magnitude - magnitude.floor();
    let fraction = fraction.gt(0.5).select(1.0 - fraction, fraction);
    let sine = (fraction * PI).sin();
    let tiny = magnitude.lt(2f64.powi(-70));
    let reflected = (PI / (sine * magnitude)).log() - positive;
    let reflected = fraction.equal(0.0).select(x.splat(f64::INFINITY), reflected);
    let result = (x.lt(0.0) & !tiny).select(reflected, positive);
    let result = tiny.select(-log, result);
    magnitude.equal(f64::INFINITY).select(magnitude, result)
}

/// [`lgamma`] with full accuracy near the roots below 0.
pub fn lgamma_near_roots(x: Expression<'_>) -> Expression<'_> {
    let is_pole = x.equal(x.floor());
    let result = (is_among_lgamma_roots(x) & !is_pole).select(lgamma_by_roots(x), lgamma(x));
    is_between_lgamma_roots(x).select(lgamma_between_roots(x), result)
}

/// [`digamma`] with full accuracy near the roots from -32 to 0.
pub fn digamma_near_roots(x: Expression<'_>) -> Expression<'_> {
    let is_pole = x.equal(x.floor());
    (is_among_digamma_roots(x) & !is_pole).select(digamma_by_roots(x), digamma(x))
}

fn lgamma_below_2(x: Expression<'_>) -> Expression<'_> {
    let low = x.le(0.9);
    // Up to 0.9, use `gamma(x) = gamma(x + 1) / x`.
    let shifted = low.select(x + 1.0, x);
    let start = low.select(-x.log(), 0.0);
    // These differences are exact, whereas `shifted` may have lost bits of `x`.
    let near_2 = low.select(1.0 - x, 2.0 - x);
    let near_minimum = low.select(x - (MINIMUM - 1.0), x - MINIMUM);
    let near_1 = low.select(x, x - 1.0);

    let square = near_2 * near_2;
    let by_2 = near_2 * square.polynomial(A_EVEN) + square * square.polynomial(A_ODD) - near_2 * 0.5;

    let y = near_minimum;
    let square = y * y;
    let cube = square * y;
    let p = cube * (cube.polynomial(T_1) + y * cube.polynomial(T_2));
    let by_minimum = square * cube.polynomial(T_0) - (AT_MINIMUM_TAIL - p) + AT_MINIMUM;

    let by_1 = near_1 * near_1.polynomial(U) / near_1.polynomial(V) - near_1 * 0.5;
    let part = shifted.ge(1.7316).select(by_2, by_minimum);
    start + shifted.lt(1.23).select(by_1, part)
}

fn lgamma_from_2_to_8(x: Expression<'_>) -> Expression<'_> {
    let y = x - x.floor();
    let base = y * 0.5 + y * rational(y, S, R);
    // `gamma(x) = (x - 1) (x - 2) ... (y + 2) gamma(y + 2)`
    let mut product = x.splat(1.0);
    for k in 2..=6 {
        product = x.ge(f64::from(k) + 1.0).select(product * (y + f64::from(k)), product);
    }
    base + product.log()
}

/// `gamma(x)` for `0 < x < 8`: the value in `[1, 2]`, where the logarithm is small, times the
/// factors up to `x`.
pub fn gamma_below_8(x: Expression<'_>) -> Expression<'_> {
    let below_1 = x.lt(1.0);
    let base = below_1.select(x + 1.0, x - x.floor() + 1.0);
    let mut product = lgamma_below_2(base).exp();
    for k in 1..=6 {
        let above = x.ge(f64::from(k) + 1.0);
        product = above.select(product * (base + f64::from(k - 1)), product);
    }
    below_1.select(product / x, product)
}

/// `digamma` on `[1, 2]`, from Boost's math library: the root in three parts, and
/// `(x - root) (Y + P / Q)`.
const ROOT: [f64; 3] = [
    1_569_415_565.0 / 1_073_741_824.0,
    (381_566_830.0 / 1_073_741_824.0) / 1_073_741_824.0,
    9.016312093258695e-20,
];
const Y: f64 = 0.9955816268920898;
const DIGAMMA_P: &[f64] = &[
    -0.002071332116774595,
    -0.04525132144873906,
    -0.28919126444774784,
    -0.6503185377089651,
    -0.3255503118680449,
    0.25479851061131553,
];
const DIGAMMA_Q: &[f64] = &[
    -5.578984132167551e-7,
    0.0021284987017821146,
    0.054151797245674226,
    0.43593529692665967,
    1.4606242909763516,
    2.076711702373047,
    1.0,
];
/// Asymptotic series in `1 / x^2`: Bernoulli numbers divided by twice their order.
const DIGAMMA_ASYMPTOTIC: &[f64] =
    &[1.0 / 12.0, -691.0 / 32_760.0, 1.0 / 132.0, -1.0 / 240.0, 1.0 / 252.0, -1.0 / 120.0, 1.0 / 12.0, 0.0];

/// Derivative of `lgamma`: NaN at 0 and at negative integers.
pub fn digamma(x: Expression<'_>) -> Expression<'_> {
    // Below 0, use `digamma(1 - x) - pi / tan(pi x)` with the angle within half a turn.
    let reflected = x.lt(0.0);
    let turn = x - (x + 0.5).floor();
    // Within an eighth of a turn of a root; differences of exact numbers preserve the distance.
    let magnitude = turn.abs();
    let near_root = magnitude.gt(0.25);
    let angle = near_root.select(0.5 - magnitude, magnitude) * PI;
    let (sine, cosine) = (angle.sin(), angle.cos());
    let cotangent = near_root.select(sine / cosine, cosine / sine) * PI;
    let cotangent = turn.lt(0.0).select(-cotangent, cotangent);
    let start = reflected.select(-cotangent, 0.0);
    let argument = reflected.select(1.0 - x, x);

    // Shift the argument into [1, 2] in steps of 1.
    let below = argument.lt(1.0);
    let mut sum = start + below.select(-(1.0 / argument), 0.0);
    let mut y = below.select(argument + 1.0, argument);
    for _ in 0..8 {
        let above = y.gt(2.0) & argument.lt(10.0);
        let next = y - 1.0;
        sum = sum + above.select(1.0 / next, 0.0);
        y = above.select(next, y);
    }
    let g = y - ROOT[0] - ROOT[1] - ROOT[2];
    let small = g * Y + g * rational(y - 1.0, DIGAMMA_P, DIGAMMA_Q);

    let inverse = 1.0 / argument;
    let series = (inverse * inverse).polynomial(DIGAMMA_ASYMPTOTIC);
    let large = argument.log() - inverse * 0.5 - series;
    let result = sum + argument.lt(10.0).select(small, large);
    (x.le(0.0) & x.equal(x.floor())).select(x.splat(f64::NAN), result)
}
