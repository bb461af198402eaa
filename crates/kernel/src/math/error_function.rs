//! The error function.
//!
//! In `F32`, `erf(x) = x + x E(x^2)` near 0 and `1 - exp(-P(x))` beyond, with minimax polynomials.
//! In `F64`, the rational approximations of FreeBSD's msun, on the same intervals.

use super::exact::{two_product, two_sum};
use super::exponential::{exp_of_sum, exp_within};
use super::lanes::Lanes;

/// Boundary between the two approximations of `F32`.
const SINGLE_BOUND: f64 = 0.875;
const SINGLE_NEAR: &[f64] =
    &[1.2837915e-1, -3.7612504e-1, 1.1281922e-1, -2.6770486e-2, 4.9989275e-3, -6.020482e-4];
/// `-log(1 - erf(x))` up to 3.93.
const SINGLE_FAR: &[f64] =
    &[1.3357178e-4, 1.1279361, 6.367373e-1, 1.0432738e-1, -2.2420108e-2, 3.0922482e-3, -2.0098966e-4];

/// The error function.
pub(super) fn erf(x: Lanes<'_>) -> Lanes<'_> {
    let magnitude = x.abs();
    if x.is_single() { erf_single(x, magnitude) } else { erf_double(x, magnitude) }
}

fn erf_single<'s>(x: Lanes<'s>, magnitude: Lanes<'s>) -> Lanes<'s> {
    let near = (x * x).polynomial(SINGLE_NEAR).mul_add(x, x);
    // The result is 1 well before 3.93.
    let far = 1.0 - exp_within(-magnitude.at_most_bound(3.93).polynomial(SINGLE_FAR));
    magnitude.below(SINGLE_BOUND).choose(near, far.with_sign_of(x))
}

/// `-log(1 - erf(x)) = x (C(x^2) + x D(x^2))` for nonnegative `x`. The two halves are computed
/// independently.
const SINGLE_COMPLEMENT_EVEN: &[f64] = &[
    1.1283806562423706,
    0.10292758792638779,
    0.0003840276622213423,
    -0.00046692643081769347,
    -9.683179087005556e-06,
    -1.3918115548960941e-08,
];
const SINGLE_COMPLEMENT_ODD: &[f64] = &[
    0.6365931630134583,
    -0.01954694464802742,
    0.0012542714830487967,
    8.885795250535011e-05,
    5.685769224328396e-07,
];
/// At this bound, the polynomial is 88. `e^-88` is computed as 0 because its power of two is not a
/// normal number.
const SINGLE_COMPLEMENT_BOUND: f64 = 9.2305;

/// `1 + erf(x)` for `F32`, with one polynomial. Small results are not computed as differences of
/// large numbers.
pub(super) fn one_plus_erf(x: Lanes<'_>) -> Lanes<'_> {
    let magnitude = x.abs().at_most_bound(SINGLE_COMPLEMENT_BOUND);
    let square = magnitude * magnitude;
    let odd = square.polynomial(SINGLE_COMPLEMENT_ODD);
    let logarithm = odd.mul_add(magnitude, square.polynomial(SINGLE_COMPLEMENT_EVEN));
    let rest = exp_within(-(magnitude * logarithm));
    x.below(0.0).choose(rest, 2.0 - rest)
}

/// `erf(x) = x + x P / Q`, with polynomials in `x^2`, up to 0.84375.
const NEAR_P: &[f64] = &[
    0.12837916709551256,
    -0.3250421072470015,
    -0.02848174957559851,
    -0.005770270296489442,
    -2.3763016656650163e-05,
];
const NEAR_Q: &[f64] = &[
    1.0,
    0.39791722395915535,
    0.0650222499887673,
    0.005081306281875766,
    0.00013249473800432164,
    -3.960228278775368e-06,
];
/// `erf(x) = 0.845.. + P / Q`, with polynomials in `x - 1`, up to 1.25.
const MIDDLE: f64 = 0.8450629115104675;
const MIDDLE_P: &[f64] = &[
    -0.0023621185607526594,
    0.41485611868374833,
    -0.3722078760357013,
    0.31834661990116175,
    -0.11089469428239668,
    0.035478304325618236,
    -0.002166375594868791,
];
const MIDDLE_Q: &[f64] = &[
    1.0,
    0.10642088040084423,
    0.540397917702171,
    0.07182865441419627,
    0.12617121980876164,
    0.01363708391202905,
    0.011984499846799107,
];
/// `erf(x) = 1 - exp(-x^2 - 0.5625 + R / S) / x`, with polynomials in `1 / x^2`, up to 1/0.35 and
/// beyond.
const FAR_R: &[f64] = &[
    -0.009864944034847148,
    -0.6938585727071818,
    -10.558626225323291,
    -62.375332450326006,
    -162.39666946257347,
    -184.60509290671104,
    -81.2874355063066,
    -9.814329344169145,
];
const FAR_S: &[f64] = &[
    1.0,
    19.651271667439257,
    137.65775414351904,
    434.56587747522923,
    645.3872717332679,
    429.00814002756783,
    108.63500554177944,
    6.570249770319282,
    -0.0604244152148581,
];
const FARTHER_R: &[f64] = &[
    -0.0098649429247001,
    -0.799283237680523,
    -17.757954917754752,
    -160.63638485582192,
    -637.5664433683896,
    -1025.0951316110772,
    -483.5191916086514,
];
const FARTHER_S: &[f64] = &[
    1.0,
    30.33806074348246,
    325.7925129965739,
    1536.729586084437,
    3199.8582195085955,
    2553.0504064331644,
    474.52854120695537,
    -22.44095244658582,
];

fn erf_double<'s>(x: Lanes<'s>, magnitude: Lanes<'s>) -> Lanes<'s> {
    let is_near = magnitude.below(0.84375);
    let t = is_near.choose(x * x, magnitude - 1.0);
    let p = t.polynomial_of(is_near, NEAR_P, MIDDLE_P);
    let q = t.polynomial_of(is_near, NEAR_Q, MIDDLE_Q);
    let ratio = p / q;
    let near = ratio.mul_add(magnitude, magnitude);
    let near = is_near.choose(near, ratio + MIDDLE);
    // The result is 1 from 6 on.
    let far = magnitude.at_most_bound(6.0).at_least_bound(1.25);
    let square = two_product(far, far);
    let s = 1.0 / square.high;
    let is_far = far.below(1.0 / 0.35);
    let ratio = s.polynomial_of(is_far, FAR_R, FARTHER_R) / s.polynomial_of(is_far, FAR_S, FARTHER_S);
    let exponent = two_sum(-square.high, ratio - 0.5625);
    let far = 1.0 - exp_of_sum(exponent.high, exponent.low - square.low) / far;
    magnitude.at_least(1.25).choose(far, near).with_sign_of(x)
}
