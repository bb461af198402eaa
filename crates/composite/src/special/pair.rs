//! Numbers of `f64` in two parts, with twice the digits. They serve functions whose powers and
//! exponentials turn an ulp of an exponent into hundreds of ulps of the value.
//!
//! Sums and products are those of Dekker and Knuth, with an error of a few units of `2^-104`. They
//! rely on each operation being rounded to `f64` separately. Nothing here is correct for
//! infinities, NaN, or parts below the normal numbers; callers must exclude them.

use crate::expression::Expression;
use shape::PrimitiveType;
use std::ops::{Add, Div, Mul, Neg, Sub};

/// `high + low`, where `low` is below an ulp of `high`.
#[derive(Clone, Copy)]
pub(super) struct Pair<'f> {
    pub(super) high: Expression<'f>,
    pub(super) low: Expression<'f>,
}

/// Computes `a + b` exactly.
pub(super) fn two_sum<'f>(a: Expression<'f>, b: Expression<'f>) -> Pair<'f> {
    let high = a + b;
    let of_b = high - a;
    Pair { high, low: (a - (high - of_b)) + (b - of_b) }
}

/// Computes `a + b` exactly if `a` is 0 or at least as large as `b`.
fn quick_two_sum<'f>(a: Expression<'f>, b: Expression<'f>) -> Pair<'f> {
    let high = a + b;
    Pair { high, low: b - (high - a) }
}

/// Splits a number below `2^996` into its leading 26 bits and the rest (Veltkamp).
fn halves(x: Expression<'_>) -> (Expression<'_>, Expression<'_>) {
    let multiple = x * 134_217_729.0;
    let high = multiple - (multiple - x);
    (high, x - high)
}

/// Computes `a b` exactly (Dekker).
pub(super) fn two_product<'f>(a: Expression<'f>, b: Expression<'f>) -> Pair<'f> {
    let high = a * b;
    let ((a_high, a_low), (b_high, b_low)) = (halves(a), halves(b));
    let low = ((a_high * b_high - high) + a_high * b_low + a_low * b_high) + a_low * b_low;
    Pair { high, low }
}

impl<'f> From<Expression<'f>> for Pair<'f> {
    fn from(high: Expression<'f>) -> Self {
        Pair { high, low: high.splat(0.0) }
    }
}

impl Neg for Pair<'_> {
    type Output = Self;

    fn neg(self) -> Self {
        Pair { high: -self.high, low: -self.low }
    }
}

impl Add for Pair<'_> {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        let (high, low) = (two_sum(self.high, other.high), two_sum(self.low, other.low));
        let sum = quick_two_sum(high.high, high.low + low.high);
        quick_two_sum(sum.high, sum.low + low.low)
    }
}

impl<'f> Add<Expression<'f>> for Pair<'f> {
    type Output = Self;

    fn add(self, other: Expression<'f>) -> Self {
        let sum = two_sum(self.high, other);
        quick_two_sum(sum.high, sum.low + self.low)
    }
}

impl Add<f64> for Pair<'_> {
    type Output = Self;

    fn add(self, other: f64) -> Self {
        self + self.high.splat(other)
    }
}

impl Sub for Pair<'_> {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        self + -other
    }
}

impl<'f> Sub<Expression<'f>> for Pair<'f> {
    type Output = Self;

    fn sub(self, other: Expression<'f>) -> Self {
        self + -other
    }
}

impl Mul for Pair<'_> {
    type Output = Self;

    fn mul(self, other: Self) -> Self {
        let product = two_product(self.high, other.high);
        quick_two_sum(product.high, product.low + (self.high * other.low + self.low * other.high))
    }
}

impl<'f> Mul<Expression<'f>> for Pair<'f> {
    type Output = Self;

    fn mul(self, other: Expression<'f>) -> Self {
        let product = two_product(self.high, other);
        quick_two_sum(product.high, product.low + self.low * other)
    }
}

impl Mul<f64> for Pair<'_> {
    type Output = Self;

    fn mul(self, other: f64) -> Self {
        self * self.high.splat(other)
    }
}

impl Div for Pair<'_> {
    type Output = Self;

    fn div(self, other: Self) -> Self {
        let inverse = 1.0 / other.high;
        let quotient = self.high * inverse;
        let product = two_product(quotient, other.high);
        let rest = ((self.high - product.high) - product.low) + (self.low - quotient * other.low);
        quick_two_sum(quotient, rest * inverse)
    }
}

impl<'f> Pair<'f> {
    /// Returns a constant of two parts.
    pub(super) fn number(like: Expression<'f>, [high, low]: [f64; 2]) -> Self {
        Pair { high: like.splat(high), low: like.splat(low) }
    }

    /// Selects one of two numbers by a condition.
    pub(super) fn select(condition: Expression<'f>, on_true: Self, on_false: Self) -> Self {
        let select = |on_true, on_false| condition.select(on_true, on_false);
        Pair { high: select(on_true.high, on_false.high), low: select(on_true.low, on_false.low) }
    }

    /// Rounds to one part.
    pub(super) fn round(self) -> Expression<'f> {
        self.high + self.low
    }

    /// Adds `low`, which is below an ulp of 1/2 of `self`.
    fn with_rest(self, low: Expression<'f>) -> Self {
        quick_two_sum(self.high, self.low + low)
    }

    /// Returns the inverse.
    pub(super) fn inverse(self) -> Self {
        Pair::from(self.high.splat(1.0)) / self
    }

    /// Returns the square root of a positive number.
    pub(super) fn sqrt(self) -> Self {
        let root = self.high.sqrt();
        let square = two_product(root, root);
        let rest = ((self.high - square.high) - square.low) + self.low;
        quick_two_sum(root, rest / (root + root))
    }

    /// Evaluates a polynomial whose higher coefficients `high` need only one part. Both `high` and
    /// `low` have the highest power first.
    pub(super) fn polynomial(self, high: &[f64], low: &[[f64; 2]]) -> Self {
        let tail = self.high.polynomial(high);
        let mut coefficients = low.iter().map(|&coefficient| Pair::number(self.high, coefficient));
        let Some(first) = coefficients.next() else { return tail.into() };
        let product = self.high * tail;
        let sum = quick_two_sum(first.high, product);
        let start = quick_two_sum(sum.high, sum.low + first.low);
        coefficients.fold(start, |sum, coefficient| {
            // Coefficients are larger than the terms added to them.
            let product = sum * self;
            let sum = quick_two_sum(coefficient.high, product.high);
            quick_two_sum(sum.high, sum.low + (product.low + coefficient.low))
        })
    }

    /// Natural logarithm of a positive number whose inverse is not subnormal, with a relative error
    /// of about `2^-85`.
    pub(super) fn log(self) -> Self {
        // The leading bits of sqrt(1/2): mantissas are between it and twice that.
        const LEAST: f64 = 0x3FE6_A09E_0000_0000u64 as f64;
        const MANTISSA: f64 = 52.0;
        let bits = self.high.bitcast_convert(PrimitiveType::S64);
        let exponent = (bits - LEAST).shift_right_arithmetic(MANTISSA);
        let k = exponent.convert(PrimitiveType::S32).convert(PrimitiveType::F64);
        let scale = power_of_two(-exponent);
        let m = Pair { high: self.high * scale, low: self.low * scale };
        // log m = 2 artanh s with s = (m - 1) / (m + 1).
        let above_1 = quick_two_sum(m.high - 1.0, m.low);
        let s = above_1 / (m + 1.0);
        let z = s * s;
        let tail: Vec<f64> = (6..=16).rev().map(|n| 1.0 / f64::from(2 * n + 1)).collect();
        let series = s * z * z.polynomial(&tail, INVERSE_ODD);
        let log = s + series;
        let log = Pair { high: log.high * 2.0, low: log.low * 2.0 };
        // A multiple of ln 2 is 0 or larger than the logarithm of the mantissa.
        let sum = quick_two_sum(k * LN2_HIGH, log.high);
        sum.with_rest(log.low + k * LN2_LOW)
    }

    /// Exponential of a number up to 1000. Numbers below -1000 are treated as -1000.
    pub(super) fn exp(self) -> Exponential<'f> {
        let is_moderate = self.high.gt(-1000.0);
        let (high, low) = (is_moderate.select(self.high, -1000.0), is_moderate.select(self.low, 0.0));
        let k = (high * std::f64::consts::LOG2_E + 0.5).floor();
        let r = two_sum(high - k * LN2_HIGH, low - k * LN2_LOW);
        let mut factorial: f64 = (1..=18).map(f64::from).product();
        let tail: Vec<f64> = (8..=18)
            .rev()
            .map(|n| {
                let coefficient = 1.0 / factorial;
                factorial /= f64::from(n);
                coefficient
            })
            .collect();
        let less_one = r + r * r * r.polynomial(&tail, INVERSE_FACTORIALS);
        Exponential { less_one, k }
    }
}

/// `ln 2`: a part whose products with exponents are exact, and the rest.
const LN2_HIGH: f64 = 0.6931471805598903;
const LN2_LOW: f64 = 5.497923018708371e-14;

/// `1/11`, `1/9` ... `1/3`.
const INVERSE_ODD: &[[f64; 2]] = &[
    [0.09090909090909091, -2.523234146875356e-18],
    [0.1111111111111111, 6.1679056923619804e-18],
    [0.14285714285714285, 7.93016446160826e-18],
    [0.2, -1.1102230246251566e-17],
    [0.3333333333333333, 1.850371707708594e-17],
];

/// `1/7!`, `1/6!` ... `1/2!`.
const INVERSE_FACTORIALS: &[[f64; 2]] = &[
    [0.0001984126984126984, 1.7209558293420705e-22],
    [0.001388888888888889, -5.300543954373577e-20],
    [0.008333333333333333, 1.1564823173178714e-19],
    [0.041666666666666664, 2.3129646346357427e-18],
    [0.16666666666666666, 9.25185853854297e-18],
    [0.5, 0.0],
];

/// `2^k` of integers `s64` from -1022 to 1023.
fn power_of_two(k: Expression<'_>) -> Expression<'_> {
    ((k + 1023.0) << 52.0).bitcast_convert(PrimitiveType::F64)
}

/// `2^k (1 + less_one)`, where `less_one` is within `sqrt(2) - 1` of 0.
#[derive(Clone, Copy)]
pub(super) struct Exponential<'f> {
    less_one: Pair<'f>,
    k: Expression<'f>,
}

impl<'f> Exponential<'f> {
    /// The value minus 1. The value must not overflow.
    pub(super) fn less_one(self) -> Pair<'f> {
        let whole = self.scale(self.mantissa());
        Pair::select(self.k.equal(0.0), self.less_one, whole + -1.0)
    }

    /// Exponent of the power of two.
    pub(super) fn exponent(self) -> Expression<'f> {
        self.k
    }

    /// The value without its power of two.
    pub(super) fn mantissa(self) -> Pair<'f> {
        self.less_one + 1.0
    }

    /// Multiplies a number by the power of two.
    pub(super) fn scale(self, number: Pair<'f>) -> Pair<'f> {
        let [first, second] = self.powers();
        Pair { high: number.high * first * second, low: number.low * first * second }
    }

    /// Multiplies a number by the power of two and rounds. A subnormal result is rounded twice.
    pub(super) fn scale_rounded(self, number: Pair<'f>) -> Expression<'f> {
        let [first, second] = self.powers();
        number.round() * first * second
    }

    /// The power of two as a product of factors that are both in range.
    fn powers(self) -> [Expression<'f>; 2] {
        let half = (self.k * 0.5).floor();
        [half, self.k - half].map(|k| power_of_two(k.convert(PrimitiveType::S32).convert(PrimitiveType::S64)))
    }
}
