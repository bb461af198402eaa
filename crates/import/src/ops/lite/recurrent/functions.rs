//! Functions of fixed-point numbers of 16 bits, as in gemmlowp's `fixedpoint.h`: a number with n
//! integer bits is its stored integer × 2^(n - 15). The integers are `s32` here.

use crate::ops::lite::fixed_point::{Multiplier, doubling_high, rounding_shift};
use composite::Expression;
use shape::PrimitiveType;

/// 1 with 2 integer bits.
const ONE_OF_2: f64 = 8192.0;

/// The largest number, which stands for 1 if there are no integer bits.
const MOST: f64 = 32767.0;

/// A constant of 32 bits as one of 16 (`RescaleConstantInitializer`).
fn constant(bits: i32) -> f64 {
    f64::from((bits + (1 << 15)) >> 16)
}

pub(super) fn saturated(x: Expression<'_>) -> Expression<'_> {
    x.max(-32768.0).min(MOST)
}

/// x × 2^bits, saturated.
fn shifted(x: Expression<'_>, bits: i32) -> Expression<'_> {
    saturated(x * f64::from(1 << bits))
}

/// x / 2^bits, rounded to nearest and away from zero at halves. The sum of x and half of 2^bits
/// must fit.
pub(super) fn halved(x: Expression<'_>, bits: i64) -> Expression<'_> {
    if bits == 0 {
        return x;
    }
    let sign = x.lt(0.0).select(x.splat(-1.0), 0.0);
    (x + sign + 2f64.powi(bits as i32 - 1)).shift_right_arithmetic(bits as f64)
}

/// x y / 2^15, rounded to nearest and saturated (`SaturatingRoundingDoublingHighMul`).
pub(super) fn times<'f>(x: Expression<'f>, y: Expression<'f>) -> Expression<'f> {
    // The reference adds a number that depends on the sign and divides toward zero: halves become
    // the larger neighbor, as here.
    (x * y + 16384.0).shift_right_arithmetic(15.0).min(MOST)
}

/// x multiplied by a real number (`MultiplyByQuantizedMultiplier`), `s32` to `s32`.
pub(super) fn scaled(x: Expression<'_>, Multiplier { factor, shift }: Multiplier) -> Expression<'_> {
    let shifted = if shift > 0 { x << f64::from(shift) } else { x };
    let wide = shifted.convert(PrimitiveType::S64);
    let high = doubling_high(wide, wide.splat(f64::from(factor)));
    halved(high, i64::from(-shift.min(0))).convert(PrimitiveType::S32)
}

/// e^a for numbers from -1/4 to 0 without integer bits, by a polynomial around -1/8.
fn exp_above_minus_quarter(a: Expression<'_>) -> Expression<'_> {
    let x = a + 4096.0;
    let square = times(x, x);
    let cube = times(square, x);
    let fourth = times(square, square);
    let sum = times(halved(fourth, 2) + cube, a.splat(constant(715_827_883))) + square;
    let at_center = constant(1_895_147_668);
    saturated(times(x + halved(sum, 1), x.splat(at_center)) + at_center)
}

/// e^a for numbers up to 0, without integer bits (`exp_on_negative_values`).
fn exp(a: Expression<'_>, integer_bits: i32) -> Expression<'_> {
    /// e^-(2^k) for k from -2.
    const FACTORS: [i32; 7] =
        [1_672_461_947, 1_302_514_674, 790_015_084, 290_630_308, 39_332_535, 720_401, 242];
    let fraction_bits = 15 - integer_bits;
    let quarter = f64::from(1 << (fraction_bits - 2));
    let below_quarter = (a & (quarter - 1.0)) - quarter;
    let mut result = exp_above_minus_quarter(shifted(below_quarter, integer_bits));
    let rest = below_quarter - a;
    for (k, &factor) in (-2..).zip(&FACTORS) {
        if integer_bits > k {
            let bit = rest & f64::from(1 << (fraction_bits + k));
            result = bit.not_equal(0.0).select(times(result, result.splat(constant(factor))), result);
        }
    }
    if integer_bits > 5 {
        let least = -f64::from(1 << (20 - integer_bits));
        result = a.lt(least).select(result.splat(0.0), result);
    }
    a.equal(0.0).select(result.splat(MOST), result)
}

/// 2 / (1 + a) for numbers from 0 to 1: Newton's iteration for 1 / half of the denominator, with 2
/// integer bits.
fn reciprocal(a: Expression<'_>) -> Expression<'_> {
    // Half of a sum that is never negative, rounded up.
    let half = (a + (MOST + 1.0)) / 2.0;
    let mut x = times(half, half.splat(constant(-1_010_580_540))) + constant(1_515_870_810);
    for _ in 0..3 {
        let error = ONE_OF_2 - times(half, x);
        x = x + shifted(times(x, error), 2);
    }
    x
}

/// 1 / (1 + e^-a).
pub(super) fn logistic(a: Expression<'_>, integer_bits: i32) -> Expression<'_> {
    let of_magnitude = shifted(reciprocal(exp(-a.abs(), integer_bits)), 1);
    let result = a.gt(0.0).select(of_magnitude, MOST - of_magnitude);
    a.equal(0.0).select(result.splat(16384.0), result)
}

/// tanh a.
pub(super) fn tanh(a: Expression<'_>, integer_bits: i32) -> Expression<'_> {
    let of_magnitude = shifted(reciprocal(exp(-a.abs(), integer_bits + 1)) - ONE_OF_2, 2);
    let result = a.lt(0.0).select(-of_magnitude, of_magnitude);
    a.equal(0.0).select(result.splat(0.0), result)
}

/// Normalizes rows of 16-bit numbers with 12 fraction bits to mean 0 and variance 1, then
/// multiplies by weights and adds a bias, `[columns]` each (`PortableApplyLayerNorm`).
pub(super) fn layer_norm<'f>(
    rows: Expression<'f>,
    weights: Expression<'f>,
    bias: Expression<'f>,
    scale: f32,
) -> Expression<'f> {
    let sizes = rows.sizes();
    let count = rows.size_from_end(0).max(1) as f64;
    let wide = rows.convert(PrimitiveType::S64);
    // The mean has 10 more fraction bits, and the sum of squares 20.
    let mean = wide.sum(&[1]) * 1024.0 / count;
    let variance = (wide * wide).sum(&[1]) * (1_048_576.0 / count).floor() - mean * mean;
    let variance = (variance / 1_048_576.0).convert(PrimitiveType::S32);
    let guard = f64::from((10000.0 * scale) as i32).max(1.0);
    let variance = variance.lt(1.0).select(variance.splat(guard), variance);
    let (factor, shift) = inverse_square_root(variance);
    let centered = rows * 1024.0 - mean.convert(PrimitiveType::S32).broadcast(&sizes, &[0]);
    let high = doubling_high(centered.convert(PrimitiveType::S64), factor.broadcast(&sizes, &[0]));
    let normal = rounding_shift(high, shift.broadcast(&sizes, &[0])).convert(PrimitiveType::S32);
    let weighted = normal * weights.broadcast(&sizes, &[1]) + bias.broadcast(&sizes, &[1]);
    let nudge = weighted.gt(0.0).select(weighted.splat(512.0), -512.0);
    // The sum of the largest number and the nudge does not fit 32 bits.
    let sum = weighted.convert(PrimitiveType::S64) + nudge.convert(PrimitiveType::S64);
    let rounded = (sum / 1024.0).convert(PrimitiveType::S32);
    let Multiplier { factor, shift } = Multiplier::of(f64::from(scale));
    saturated(scaled(rounded, Multiplier { factor, shift: shift + 12 }))
}

/// 1 / √x of `s32` numbers as factor × 2^(-31 - shift), `s64` both
/// (`GetInvSqrtQuantizedMultiplierExp`).
fn inverse_square_root<'f>(x: Expression<'f>) -> (Expression<'f>, Expression<'f>) {
    let is_one = x.le(1.0);
    let is_large = x.ge(f64::from(1 << 29));
    let input = is_large.select(x / 4.0, x);
    let input = is_one.select(input.splat(2.0), input);
    let zeros = x.function().op(hlo::Op::CountLeadingZeros {}, &[input], None);
    let pairs = (zeros - 1.0) / 2.0 - 1.0;
    let shift = is_large.select(x.splat(12.0), 11.0) - pairs;
    let input = (input << (pairs * 2.0)).convert(PrimitiveType::S64);
    // 32-bit numbers with 3 integer bits.
    let limits = [f64::from(i32::MIN), f64::from(i32::MAX)];
    let rescaled = |x: Expression<'f>, bits: i32| (x * f64::from(1 << bits)).max(limits[0]).min(limits[1]);
    let input = input / 2.0;
    let half = halved(input, 1);
    let half_of_three = input.splat(f64::from((1 << 28) + (1 << 27)));
    let mut root = input.splat(f64::from(1 << 28));
    for _ in 0..5 {
        let cube = rescaled(doubling_high(doubling_high(root, root), root), 6);
        root = rescaled(doubling_high(half_of_three, root) - doubling_high(half, cube), 3);
    }
    let factor = doubling_high(root, root.splat(1_518_500_250.0));
    let shift = shift.convert(PrimitiveType::S64);
    // A shift to the left belongs to the factor.
    let factor = factor << (-shift).max(0.0);
    let factor = is_one.select(factor.splat(f64::from(i32::MAX)), factor);
    (factor, is_one.select(shift.splat(0.0), shift.max(0.0)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use hlo::{Module, OpMetadata};
    use shape::Literal;

    /// The function of all 16-bit numbers with some integer bits, as real numbers.
    fn of_all(body: impl for<'f> FnOnce(Expression<'f>) -> Expression<'f>) -> Vec<f64> {
        let numbers: Vec<i32> = (-32768..=32767).collect();
        let argument = Literal::from_elements(&[65536], &numbers);
        let mut module = Module::new("test");
        let parameters = [argument.shape()];
        let id = composite::build(&mut module, "f", &OpMetadata::default(), &parameters, |_, values| {
            vec![body(values[0])]
        });
        module.set_entry(id.expect("a valid function"));
        let result = evaluator::evaluate(&module, &[argument]).expect("a value");
        result.scalars().map(|scalar| scalar.as_f64().expect("a number") / 32768.0).collect()
    }

    #[track_caller]
    fn assert_near(got: &[f64], integer_bits: i32, tolerance: f64, want: impl Fn(f64) -> f64) {
        for (k, got) in got.iter().enumerate() {
            let x = (k as f64 - 32768.0) / f64::from(1 << (15 - integer_bits));
            let distance = (got - want(x)).abs();
            assert!(distance < tolerance, "{got} instead of {} at {x}", want(x));
        }
    }

    #[test]
    fn logistic_and_tanh_are_near_the_functions_of_real_numbers() {
        let logistic = of_all(|x| super::logistic(x, 3));
        assert_near(&logistic, 3, 2e-4, |x| 1.0 / (1.0 + (-x).exp()));
        for integer_bits in [0, 3, 4, 6] {
            let tanh = of_all(|x| super::tanh(x, integer_bits));
            assert_near(&tanh, integer_bits, 5e-4, f64::tanh);
        }
    }

    #[test]
    fn multiplication_by_real_numbers_rounds_to_nearest() {
        for real in [0.3, 0.75, 1.6, 3.2] {
            let got = of_all(|x| scaled(x, Multiplier::of(real)));
            for (k, got) in got.iter().enumerate() {
                let want = (k as f64 - 32768.0) * real;
                // Two roundings.
                assert!((got * 32768.0 - want).abs() <= 0.76, "{real}: {} instead of {want}", got * 32768.0);
            }
        }
    }

    #[test]
    fn inverse_square_roots_have_almost_all_bits() {
        let numbers: Vec<i32> = (1..500).chain([4095, 65536, 1 << 28, (1 << 29) + 7, i32::MAX]).collect();
        let argument = Literal::from_elements(&[numbers.len() as i64], &numbers);
        let mut module = Module::new("test");
        let parameters = [argument.shape()];
        let id = composite::build(&mut module, "f", &OpMetadata::default(), &parameters, |_, values| {
            let (factor, shift) = inverse_square_root(values[0]);
            vec![factor, shift]
        });
        module.set_entry(id.expect("a valid function"));
        let result = evaluator::evaluate(&module, &[argument]).expect("a value");
        let Literal::Tuple(parts) = result else { panic!("not a tuple") };
        let parts: Vec<Vec<i64>> = parts.iter().map(|part| part.to_i64s().expect("integers")).collect();
        for (k, &x) in numbers.iter().enumerate() {
            let got = parts[0][k] as f64 * (-31.0 - parts[1][k] as f64).exp2();
            let want = 1.0 / f64::from(x).sqrt();
            assert!((got / want - 1.0).abs() < 1e-4, "{got} instead of {want} for {x}");
        }
    }
}
