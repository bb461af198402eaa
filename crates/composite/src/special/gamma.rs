//! The logarithm of the gamma function and its derivative.

use super::rational;
use crate::expression::Expression;
use std::f64::consts::PI;

/// Coefficients of `lgamma` from the freely distributable maths library of Sun Microsystems (`e_lgamma_r.c`), the highest
/// power first.
const A_EVEN: &[f64] = &[
    2.52144565451257326939e-5,
    2.20862790713908385557e-4,
    1.19270763183362067845e-3,
    7.38555086081402883957e-3,
    6.73523010531292681824e-2,
    7.72156649015328655494e-2,
];
const A_ODD: &[f64] = &[
    4.48640949618915160150e-5,
    1.08011567247583939954e-4,
    5.10069792153511336608e-4,
    2.89051383673415629091e-3,
    2.05808084325167332806e-2,
    3.22467033424113591611e-1,
];
const MINIMUM: f64 = 1.46163214496836224576;
const AT_MINIMUM: f64 = -1.21486290535849611461e-1;
const AT_MINIMUM_TAIL: f64 = -3.63867699703950536541e-18;
const T_0: &[f64] = &[
    3.15632070903625950361e-4,
    -1.40346469989232843813e-3,
    6.10053870246291332635e-3,
    -3.27885410759859649565e-2,
    4.83836122723810047042e-1,
];
const T_1: &[f64] = &[
    -3.12754168375120860518e-4,
    8.81081882437654011382e-4,
    -3.68452016781138256760e-3,
    1.79706750811820387126e-2,
    -1.47587722994593911752e-1,
];
const T_2: &[f64] = &[
    3.35529192635519073543e-4,
    -5.38595305356740546715e-4,
    2.25964780900612472250e-3,
    -1.03142241298341437450e-2,
    6.46249402391333854778e-2,
];
const U: &[f64] = &[
    1.33810918536787660377e-2,
    2.28963728064692451092e-1,
    9.77717527963372745603e-1,
    1.45492250137234768737,
    6.32827064025093366517e-1,
    -7.72156649015328655494e-2,
];
const V: &[f64] = &[
    3.21709242282423911810e-3,
    1.04222645593369134254e-1,
    7.69285150456672783825e-1,
    2.12848976379893395361,
    2.45597793713041134822,
    1.0,
];
const S: &[f64] = &[
    3.19475326584100867617e-5,
    1.84028451407337715652e-3,
    2.66422703033638609560e-2,
    1.46350472652464452805e-1,
    3.25778796408930981787e-1,
    2.14982415960608852501e-1,
    -7.72156649015328655494e-2,
];
const R: &[f64] = &[
    7.32668430744625636189e-6,
    7.77942496381893596434e-4,
    1.86459191715652901344e-2,
    1.71933865632803078993e-1,
    7.21935547567138069525e-1,
    1.39200533467621045958,
    1.0,
];
const W: &[f64] = &[
    -1.63092934096575273989e-3,
    8.36339918996282139126e-4,
    -5.95187557450339963135e-4,
    7.93650558643019558500e-4,
    -2.77777777728775536470e-3,
    8.33333333333329678849e-2,
];
const W_0: f64 = 4.18938533204672725052e-1;

/// `log |gamma(x)|`: infinite at 0, at negative integers and at either infinity.
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

fn lgamma_below_2(x: Expression<'_>) -> Expression<'_> {
    let low = x.le(0.9);
    // Below 0.9 of `gamma(x) = gamma(x + 1) / x`.
    let shifted = low.select(x + 1.0, x);
    let start = low.select(-x.log(), 0.0);
    // Differences that are exact: `shifted` may have lost bits of `x`.
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

/// `digamma` on `[1, 2]`, from Boost's maths library: the root in three parts, and `(x - root) (Y + P / Q)`.
const ROOT: [f64; 3] = [
    1_569_415_565.0 / 1_073_741_824.0,
    (381_566_830.0 / 1_073_741_824.0) / 1_073_741_824.0,
    0.901_631_209_325_869_5e-19,
];
const Y: f64 = 0.995_581_626_892_089_8;
const DIGAMMA_P: &[f64] = &[
    -0.0020713321167745952,
    -0.045251321448739056,
    -0.28919126444774784,
    -0.65031853770896507,
    -0.32555031186804491,
    0.25479851061131551,
];
const DIGAMMA_Q: &[f64] = &[
    -0.55789841321675513e-6,
    0.0021284987017821144,
    0.054151797245674225,
    0.43593529692665969,
    1.4606242909763515,
    2.0767117023730469,
    1.0,
];
/// Of the asymptotic series in `1 / x^2`: Bernoulli numbers over twice their order.
const DIGAMMA_ASYMPTOTIC: &[f64] =
    &[1.0 / 12.0, -691.0 / 32_760.0, 1.0 / 132.0, -1.0 / 240.0, 1.0 / 252.0, -1.0 / 120.0, 1.0 / 12.0, 0.0];

/// The derivative of `lgamma`: NaN at 0 and at negative integers.
pub fn digamma(x: Expression<'_>) -> Expression<'_> {
    // Below 0 `digamma(1 - x) - pi / tan(pi x)`, with the angle within half a turn.
    let reflected = x.lt(0.0);
    let turn = x - (x + 0.5).floor();
    let cotangent = (turn * PI).cos() / (turn * PI).sin() * PI;
    let start = reflected.select(-cotangent, 0.0);
    let argument = reflected.select(1.0 - x, x);

    // Into [1, 2] in steps of 1.
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
