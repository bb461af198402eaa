//! Multiplication by real numbers in integer arithmetic, as in gemmlowp's `fixedpoint.h` and
//! TensorFlow Lite's `common.h`.

use crate::node::context::NodeContext;
use ::composite::Expression;
use hlo::{InstructionId, Op};
use shape::{Literal, PrimitiveType};
use support::Result;

/// A real number as factor × 2^(shift - 31).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Multiplier {
    /// 0, or at least 2^30 in magnitude.
    pub(crate) factor: i32,
    /// Positive numbers shift to the left.
    pub(crate) shift: i32,
}

impl Multiplier {
    /// The multiplier nearest to a real number; 0 for one below 2^-32 (`QuantizeMultiplier`).
    pub(crate) fn of(real: f64) -> Self {
        if real == 0.0 || !real.is_finite() {
            return Self { factor: 0, shift: 0 };
        }
        // real = fraction × 2^shift, with the fraction in [0.5, 1).
        let mut shift = real.abs().log2().floor() as i32 + 1;
        let mut fraction = real / 2f64.powi(shift);
        while fraction.abs() >= 1.0 {
            (fraction, shift) = (fraction / 2.0, shift + 1);
        }
        while fraction.abs() < 0.5 {
            (fraction, shift) = (fraction * 2.0, shift - 1);
        }
        let mut factor = (fraction * 2f64.powi(31)).round() as i64;
        if factor == 1 << 31 {
            (factor, shift) = (1 << 30, shift + 1);
        }
        if shift < -31 {
            return Self { factor: 0, shift: 0 };
        }
        if shift > 30 {
            return Self { factor: i32::MAX, shift: 30 };
        }
        Self { factor: factor as i32, shift }
    }
}

/// `x` multiplied by one number, or by one for each index of a dimension
/// (`MultiplyByQuantizedMultiplier`). An `x` of `s32` is rounded twice; one of `s64` once, with a
/// multiplier of 15 bits. Returns `s32`.
pub(crate) fn multiply(
    cx: &mut NodeContext<'_, '_>,
    x: InstructionId,
    multipliers: &[Multiplier],
    dimension: usize,
) -> Result<InstructionId> {
    let sizes = cx.sizes(x);
    let is_wide = cx.element_type(x) == PrimitiveType::S64;
    let mut vector = |of: &dyn Fn(&Multiplier) -> i64| {
        let values: Vec<i64> = multipliers.iter().map(of).collect();
        let id = match values.as_slice() {
            [only] => cx.literal(Literal::scalar(*only)),
            many => cx.literal(Literal::from_elements(&[many.len() as i64], many)),
        };
        cx.broadcast(id, &sizes, if values.len() == 1 { &[] } else { std::slice::from_ref(&dimension) })
    };
    if is_wide {
        let factor = vector(&|m| {
            let reduced = (i64::from(m.factor) + (1 << 15)) >> 16;
            if m.factor < 0x7fff_0000 { reduced } else { 0x7fff }
        })?;
        let shift = vector(&|m| 15 - i64::from(m.shift))?;
        let half = vector(&|m| 1 << (14 - i64::from(m.shift)).clamp(0, 62))?;
        return cx.composite_one(&[x, factor, shift, half], |_, operands| {
            let product = operands[0] * operands[1] + operands[3];
            arithmetic_shift(product, operands[2]).convert(PrimitiveType::S32)
        });
    }
    let factor = vector(&|m| i64::from(m.factor))?;
    let left = vector(&|m| 1 << m.shift.max(0))?;
    let right = vector(&|m| i64::from(-m.shift.min(0)))?;
    cx.composite_one(&[x, factor, left, right], |_, operands| {
        // The shift to the left is of 32 bits, and wraps around.
        let shifted = (operands[0] * operands[2].convert(PrimitiveType::S32)).convert(PrimitiveType::S64);
        let high = doubling_high(shifted, operands[1]);
        rounding_shift(high, operands[3]).convert(PrimitiveType::S32)
    })
}

/// x × factor / 2^31, rounded to nearest, of 32-bit numbers in 64 bits, and saturated
/// (`SaturatingRoundingDoublingHighMul`).
pub(crate) fn doubling_high<'f>(x: Expression<'f>, factor: Expression<'f>) -> Expression<'f> {
    // The reference adds a number that depends on the sign and divides toward zero: halves become
    // the larger neighbor, as here.
    let quotient = (x * factor + 2f64.powi(30)).shift_right_arithmetic(31.0);
    quotient.min(f64::from(i32::MAX))
}

/// x / 2^shift, rounded to nearest and away from zero at halves (`RoundingDivideByPOT`). For
/// numbers of at most 62 bits.
pub(crate) fn rounding_shift<'f>(x: Expression<'f>, shift: Expression<'f>) -> Expression<'f> {
    let one = x.splat(1.0);
    let half = arithmetic_shift(one << shift, one);
    // Halves below zero become the smaller neighbor. Without a shift, nothing is rounded.
    let below = x.lt(0.0).select(shift.min(1.0), 0.0);
    arithmetic_shift(x + half - below, shift)
}

/// x / 2^shift, rounded down.
pub(crate) fn arithmetic_shift<'f>(x: Expression<'f>, shift: Expression<'f>) -> Expression<'f> {
    x.function().op(Op::ShiftRightArithmetic {}, &[x, shift], None)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `RoundingDivideByPOT` of gemmlowp, line by line.
    fn reference(x: i32, exponent: i32) -> i32 {
        let mask = ((1i64 << exponent) - 1) as i32;
        let remainder = x & mask;
        let threshold = (mask >> 1) + i32::from(x < 0);
        (x >> exponent) + i32::from(remainder > threshold)
    }

    #[test]
    fn halves_are_rounded_away_from_zero() {
        let near = |x: i64| (-3..=3).map(move |offset| x + offset);
        let mut numbers: Vec<i64> =
            (0..31).flat_map(|bits| near(1 << bits).chain(near(-1 << bits))).collect();
        numbers.extend((0..31).flat_map(|bits| near(3 << bits).chain(near(-3 << bits))));
        numbers.extend([i64::from(i32::MIN), i64::from(i32::MAX), 1_234_567_890, -987_654_321]);
        numbers.retain(|&x| i32::try_from(x).is_ok());
        let x = Literal::from_elements(&[numbers.len() as i64], &numbers);
        for shift in 0..=31 {
            let mut module = hlo::Module::new("rounding");
            let metadata = hlo::OpMetadata::default();
            let id = composite::build(&mut module, "f", &metadata, &[x.shape()], |_, operands| {
                vec![rounding_shift(operands[0], operands[0].splat(f64::from(shift)))]
            });
            module.set_entry(id.expect("a valid function"));
            let have = evaluator::evaluate(&module, std::slice::from_ref(&x)).expect("a value");
            let want: Vec<i64> = numbers.iter().map(|&x| reference(x as i32, shift).into()).collect();
            assert_eq!(have.to_vec::<i64>(), Some(want), "by {shift} bits");
        }
    }

    /// From TensorFlow Lite's `quantization_util_test.cc` (`QuantizeMultiplierArray` and
    /// `...Underflow`).
    #[test]
    fn multipliers_have_31_bits() {
        let of = |real: f64| {
            let Multiplier { factor, shift } = Multiplier::of(real);
            (factor, shift)
        };
        assert_eq!(of(0.5), (1 << 30, 0));
        assert_eq!(of(-0.5), (-(1 << 30), 0));
        assert_eq!(of(0.25), (1 << 30, -1));
        assert_eq!(of(4.0), (1 << 30, 3));
        assert_eq!(of(0.0), (0, 0));
        assert_eq!(of(2f64.powi(-34)), (0, 0));
    }
}
