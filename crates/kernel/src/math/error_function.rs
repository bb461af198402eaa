//! The error function.
//!
//! `F32`: near 0 `erf(x) = x + x E(x^2)`, beyond `1 - exp(-P(x))`, with minimax polynomials. `F64`: the rational
//! approximations of FreeBSD's msun, on the same intervals.

use super::exact::{two_product, two_sum};
use super::exponential::{exp_of_sum, exp_within};
use super::lanes::Lanes;

/// Where the two approximations of `F32` meet.
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
    // At 3.93 the result has been 1 for a while.
    let far = 1.0 - exp_within(-magnitude.at_most_bound(3.93).polynomial(SINGLE_FAR));
    magnitude.below(SINGLE_BOUND).choose(near, far.with_sign_of(x))
}

/// `erf(x) = x + x P / Q` in `x^2`, up to 0.84375.
const NEAR_P: &[f64] = &[
    1.28379167095512558561e-01,
    -3.25042107247001499370e-01,
    -2.84817495755985104766e-02,
    -5.77027029648944159157e-03,
    -2.37630166566501626084e-05,
];
const NEAR_Q: &[f64] = &[
    1.0,
    3.97917223959155352819e-01,
    6.50222499887672944485e-02,
    5.08130628187576562776e-03,
    1.32494738004321644526e-04,
    -3.96022827877536812320e-06,
];
/// `erf(x) = 0.845.. + P / Q` in `x - 1`, up to 1.25.
const MIDDLE: f64 = 8.45062911510467529297e-01;
const MIDDLE_P: &[f64] = &[
    -2.36211856075265944077e-03,
    4.14856118683748331666e-01,
    -3.72207876035701323847e-01,
    3.18346619901161753674e-01,
    -1.10894694282396677476e-01,
    3.54783043256182359371e-02,
    -2.16637559486879084300e-03,
];
const MIDDLE_Q: &[f64] = &[
    1.0,
    1.06420880400844228286e-01,
    5.40397917702171048937e-01,
    7.18286544141962662868e-02,
    1.26171219808761642112e-01,
    1.36370839120290507362e-02,
    1.19844998467991074170e-02,
];
/// `erf(x) = 1 - exp(-x^2 - 0.5625 + R / S) / x` in `1 / x^2`, up to 1/0.35 and beyond.
const FAR_R: &[f64] = &[
    -9.86494403484714822705e-03,
    -6.93858572707181764372e-01,
    -1.05586262253232909814e+01,
    -6.23753324503260060396e+01,
    -1.62396669462573470355e+02,
    -1.84605092906711035994e+02,
    -8.12874355063065934246e+01,
    -9.81432934416914548592e+00,
];
const FAR_S: &[f64] = &[
    1.0,
    1.96512716674392571292e+01,
    1.37657754143519042600e+02,
    4.34565877475229228821e+02,
    6.45387271733267880336e+02,
    4.29008140027567833386e+02,
    1.08635005541779435134e+02,
    6.57024977031928170135e+00,
    -6.04244152148580987438e-02,
];
const FARTHER_R: &[f64] = &[
    -9.86494292470009928597e-03,
    -7.99283237680523006574e-01,
    -1.77579549177547519889e+01,
    -1.60636384855821916062e+02,
    -6.37566443368389627722e+02,
    -1.02509513161107724954e+03,
    -4.83519191608651397019e+02,
];
const FARTHER_S: &[f64] = &[
    1.0,
    3.03380607434824582924e+01,
    3.25792512996573918826e+02,
    1.53672958608443695994e+03,
    3.19985821950859553908e+03,
    2.55305040643316442583e+03,
    4.74528541206955367215e+02,
    -2.24409524465858183362e+01,
];

fn erf_double<'s>(x: Lanes<'s>, magnitude: Lanes<'s>) -> Lanes<'s> {
    let is_near = magnitude.below(0.84375);
    let t = is_near.choose(x * x, magnitude - 1.0);
    let p = t.polynomial_of(is_near, NEAR_P, MIDDLE_P);
    let q = t.polynomial_of(is_near, NEAR_Q, MIDDLE_Q);
    let ratio = p / q;
    let near = ratio.mul_add(magnitude, magnitude);
    let near = is_near.choose(near, ratio + MIDDLE);
    // From 6 on the result is 1.
    let far = magnitude.at_most_bound(6.0).at_least_bound(1.25);
    let square = two_product(far, far);
    let s = 1.0 / square.high;
    let is_far = far.below(1.0 / 0.35);
    let ratio = s.polynomial_of(is_far, FAR_R, FARTHER_R) / s.polynomial_of(is_far, FAR_S, FARTHER_S);
    let exponent = two_sum(-square.high, ratio - 0.5625);
    let far = 1.0 - exp_of_sum(exponent.high, exponent.low - square.low) / far;
    magnitude.at_least(1.25).choose(far, near).with_sign_of(x)
}
