//! The complementary error function.

use super::pair::{Pair, two_product};
use super::rational;
use crate::expression::Expression;
use std::f64::consts::FRAC_2_SQRT_PI;

/// Above this, `1 - erf(x)` loses digits.
const NEAR: f64 = 0.46875;
/// Start of the second approximation.
const FAR: f64 = 4.0;
/// Beyond this, the function is 0.
const GONE: f64 = 28.0;

/// Rational approximations by W. J. Cody (Math. Comp. 23, 1969), highest power first:
/// `erfc(x) exp(x^2)` between 0.46875 and 4; beyond, the difference from `1/sqrt(pi)` in terms of
/// `1/x^2`.
const MIDDLE: (&[f64], &[f64]) = (
    &[
        2.153_115_354_744_038_3e-8,
        5.641_884_969_886_701e-1,
        8.883_149_794_388_377,
        66.119_190_637_141_63,
        298.635_138_197_400_1,
        881.952_221_241_769,
        1_712.047_612_634_070_7,
        2_051.078_377_826_071_6,
        1_230.339_354_797_997_2,
    ],
    &[
        1.0,
        15.744_926_110_709_835,
        117.693_950_891_312_5,
        537.181_101_862_009_9,
        1_621.389_574_566_690_3,
        3_290.799_235_733_459_7,
        4_362.619_090_143_247,
        3_439.367_674_143_721_6,
        1_230.339_354_803_749_5,
    ],
);
const BEYOND: (&[f64], &[f64]) = (
    &[
        1.631_538_713_730_209_7e-2,
        3.053_266_349_612_323_6e-1,
        3.603_448_999_498_044_5e-1,
        1.257_817_261_112_292_6e-1,
        1.608_378_514_874_227_5e-2,
        6.587_491_615_298_378e-4,
    ],
    &[
        1.0,
        2.568_520_192_289_822,
        1.872_952_849_923_467_3,
        5.279_051_029_514_285e-1,
        6.051_834_131_244_132e-2,
        2.335_204_976_268_691_8e-3,
    ],
);

/// `erfc(x) exp(x^2) (x + 2)` for nonnegative `f32`, in terms of `(x - 2) / (x + 2)`, highest power
/// first: a least-squares fit with a relative error of 2e-8, weighted until its peaks were even.
const SINGLE: &[f64] = &[
    -4.680566063282061e-5,
    -5.291550079125074e-4,
    -7.26355782612792e-4,
    3.042921219265471e-3,
    6.4352122543784585e-3,
    -2.1502815814940623e-2,
    -3.6435901723434194e-2,
    2.794715196474046e-1,
    -6.87160924860537e-1,
    1.0215827139525595,
];
/// Beyond this, the function is 0 in `f32`.
const SINGLE_GONE: f64 = 10.1;
/// Splits a number of `f32` into its leading 12 bits, which have an exact square, and the rest
/// (Veltkamp).
const SINGLE_SPLIT: f64 = 4097.0;

/// `1 - erf(x)` for `f32`, within 6 ulp. The rest of the square is a factor, since an ulp of `x^2`
/// is up to 60 ulps of its exponential. Half the exponential enters twice, because all of it is
/// subnormal before the result is.
pub fn erfc_of_single(x: Expression<'_>) -> Expression<'_> {
    let magnitude = x.abs().min(SINGLE_GONE);
    let square = magnitude * magnitude;
    let multiple = magnitude * SINGLE_SPLIT;
    let half = multiple - (multiple - magnitude);
    let rest = (half * half - square) + (half + magnitude) * (magnitude - half);
    let inverse = 1.0 / (magnitude + 2.0);
    let scaled = inverse * ((magnitude - 2.0) * inverse).polynomial(SINGLE);
    let exponential = (square * -0.5).exp();
    let tail = exponential * (scaled - scaled * rest) * exponential;
    x.lt(0.0).select(2.0 - tail, tail)
}

/// `1 - erf(x)` for `f64`, within 4 ulp. An ulp of `x^2` is hundreds of ulps of its exponential, so
/// the square is kept in two parts, and so are the last terms of the middle approximation's sums.
pub fn erfc_in_pairs(x: Expression<'_>) -> Expression<'_> {
    let magnitude = x.abs().min(GONE);
    let square = two_product(magnitude, magnitude);
    let exponential = (-square.high).exp();
    let middle = (in_pairs(magnitude, MIDDLE.0) / in_pairs(magnitude, MIDDLE.1)).round();
    let exponential = exponential - exponential * square.low;
    let inverse = 1.0 / (magnitude * magnitude);
    let lacking = inverse * rational(inverse, BEYOND.0, BEYOND.1);
    let far = (FRAC_2_SQRT_PI / 2.0 - lacking) / magnitude;
    let tail = exponential * magnitude.lt(FAR).select(middle, far);
    let tail = x.lt(0.0).select(2.0 - tail, tail);
    magnitude.gt(NEAR).select(tail, 1.0 - x.erf())
}

/// A polynomial whose last steps are computed in two parts.
fn in_pairs<'f>(x: Expression<'f>, coefficients: &[f64]) -> Pair<'f> {
    const LAST: usize = 4;
    let (first, last) = coefficients.split_at(coefficients.len() - LAST);
    last.iter().fold(Pair::from(x.polynomial(first)), |sum, &coefficient| sum * x + coefficient)
}
