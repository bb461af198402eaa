//! Floating-point arithmetic of every width, computed in `f64` and rounded once.

use crate::operation::{Binary, Unary};
use shape::{FloatFormat, PrimitiveType, Scalar, Specials};

/// Rounds a floating-point or complex number to an element type. Integers are wrapped when
/// computed.
pub(crate) fn round_scalar(element_type: PrimitiveType, scalar: Scalar) -> Scalar {
    match scalar {
        Scalar::Float(value) => Scalar::Float(round_float(element_type, value)),
        Scalar::Complex(re, im) => {
            let part = element_type.real_part();
            Scalar::Complex(round_float(part, re), round_float(part, im))
        }
        other => other,
    }
}

/// Returns the nearest value of a floating-point type, ties to even. A number that is too large
/// becomes infinity, NaN in a type without infinity, or the largest number in a type without
/// either.
pub(crate) fn round_float(element_type: PrimitiveType, value: f64) -> f64 {
    let format = match element_type {
        PrimitiveType::F32 => return f64::from(value as f32),
        PrimitiveType::F64 => return value,
        _ => element_type.float_format(),
    };
    let Some(format) = format else { return value };
    if format.specials == Specials::PowersOfTwo {
        return round_to_power(value, format);
    }
    let rounded = round_significand(value, format.mantissa_bits as i32, format.least_exponent());
    let is_beyond = rounded.abs() > format.largest();
    match format.specials {
        Specials::Ieee if is_beyond => f64::INFINITY.copysign(value),
        Specials::AllFinite if value.is_nan() => -0.0,
        Specials::AllFinite if is_beyond => format.largest().copysign(value),
        // The only NaN has the bits of -0.
        Specials::NegativeZeroNan if is_beyond || value.is_nan() => -f64::NAN,
        Specials::NegativeZeroNan if rounded == 0.0 => 0.0,
        Specials::AllOnesNan if is_beyond => f64::NAN.copysign(value),
        _ => rounded,
    }
}

/// Rounds to the nearest power of two, ties up. Returns NaN for numbers that are not positive or
/// exceed the largest power. As in XLA and `ml_dtypes`, the number is rounded to `f32` first, and a
/// number that is zero there has no power.
fn round_to_power(value: f64, format: FloatFormat) -> f64 {
    let value = f64::from(value as f32);
    if value.is_nan() || value <= 0.0 || value.is_infinite() {
        return f64::NAN;
    }
    let (fraction, exponent) = libm::frexp(value);
    let exponent = if fraction < 0.75 { exponent - 1 } else { exponent };
    let power = libm::ldexp(1.0, exponent.max(format.least_exponent()));
    if power > format.largest() { f64::NAN } else { power }
}

/// Rounds to `mantissa_bits` bits after the leading one, ties to even, with gradual underflow below
/// `min_exponent`.
pub(crate) fn round_significand(value: f64, mantissa_bits: i32, min_exponent: i32) -> f64 {
    if value == 0.0 || !value.is_finite() {
        return value;
    }
    // frexp's fraction is in [1/2, 1).
    let exponent = (libm::frexp(value).1 - 1).max(min_exponent);
    let quantum = exponent - mantissa_bits;
    libm::ldexp(libm::ldexp(value, -quantum).round_ties_even(), quantum)
}

/// XLA's `reduce-precision`: rounds the mantissa. Numbers outside the exponent range become an
/// infinity or zero, because the narrow format has no subnormal numbers.
pub(crate) fn reduce_precision(
    element_type: PrimitiveType,
    exponent_bits: u32,
    mantissa_bits: u32,
    value: f64,
) -> f64 {
    let Some(source) = element_type.float_format() else { return value };
    if value.is_nan() {
        return if mantissa_bits > 0 { value } else { f64::INFINITY };
    }
    let mut rounded = value;
    if mantissa_bits < source.mantissa_bits {
        rounded = round_float(
            element_type,
            round_significand(value, mantissa_bits as i32, source.least_exponent()),
        );
    }
    if exponent_bits < source.exponent_bits && rounded != 0.0 && rounded.is_finite() {
        let bias = (1 << (exponent_bits.max(1) - 1)) - 1;
        let exponent = libm::frexp(rounded).1 - 1;
        if exponent > bias {
            return f64::INFINITY.copysign(value);
        }
        if exponent <= -bias {
            return 0.0_f64.copysign(value);
        }
    }
    rounded
}

/// Evaluates a unary function without rounding. Returns `None` if it has no real result or no
/// floating-point meaning.
pub(crate) fn unary(function: Unary, x: f64) -> Option<f64> {
    Some(match function {
        Unary::Abs => x.abs(),
        Unary::Acos => libm::acos(x),
        // `libm` mishandles numbers below -2.
        Unary::Acosh if x < 1.0 => f64::NAN,
        Unary::Acosh => libm::acosh(x),
        Unary::Asin => libm::asin(x),
        Unary::Asinh => libm::asinh(x),
        Unary::Atanh => libm::atanh(x),
        Unary::Cbrt => libm::cbrt(x),
        Unary::Ceil => x.ceil(),
        Unary::Cos => libm::cos(x),
        Unary::Cosh => libm::cosh(x),
        Unary::Erf => libm::erf(x),
        Unary::Exp => libm::exp(x),
        Unary::Expm1 => libm::expm1(x),
        Unary::Floor => x.floor(),
        Unary::Log => libm::log(x),
        Unary::Log1p => libm::log1p(x),
        // The reciprocal of 1 + exp(-x) would be 0 where exp(-x) overflows.
        Unary::Logistic if x < 0.0 => libm::exp(x) / (1.0 + libm::exp(x)),
        Unary::Logistic => 1.0 / (1.0 + libm::exp(-x)),
        Unary::Negate => -x,
        Unary::RoundNearestAfz => x.round(),
        Unary::RoundNearestEven => x.round_ties_even(),
        Unary::Rsqrt => 1.0 / x.sqrt(),
        Unary::Sign if x == 0.0 || x.is_nan() => x,
        Unary::Sign => 1.0_f64.copysign(x),
        Unary::Sin => libm::sin(x),
        Unary::Sinh => libm::sinh(x),
        Unary::Sqrt => x.sqrt(),
        Unary::Tan => libm::tan(x),
        Unary::Tanh => libm::tanh(x),
        Unary::Real | Unary::Copy => x,
        Unary::Imag => 0.0,
        Unary::CountLeadingZeros | Unary::IsFinite | Unary::Not | Unary::PopulationCount => return None,
    })
}

/// Evaluates a binary function without rounding. Returns `None` if it has no floating-point
/// meaning.
pub(crate) fn binary(function: Binary, x: f64, y: f64) -> Option<f64> {
    Some(match function {
        Binary::Add => x + y,
        Binary::Subtract => x - y,
        Binary::Multiply => x * y,
        Binary::Divide => x / y,
        Binary::Remainder => libm::fmod(x, y),
        Binary::Maximum => maximum(x, y),
        Binary::Minimum => -maximum(-x, -y),
        Binary::Power => libm::pow(x, y),
        Binary::Atan2 => libm::atan2(x, y),
        Binary::And
        | Binary::Or
        | Binary::Xor
        | Binary::ShiftLeft
        | Binary::ShiftRightArithmetic
        | Binary::ShiftRightLogical => return None,
    })
}

/// IEEE 754-2019 `maximum`: NaN if either operand is NaN, and -0 is below +0.
pub(crate) fn maximum(x: f64, y: f64) -> f64 {
    match x.partial_cmp(&y) {
        None if x.is_nan() => x,
        None => y,
        Some(std::cmp::Ordering::Less) => y,
        Some(std::cmp::Ordering::Greater) => x,
        Some(std::cmp::Ordering::Equal) if x.is_sign_negative() => y,
        Some(std::cmp::Ordering::Equal) => x,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn narrow_types_round_once_from_f64() {
        // 1 + 2^-11 is the tie between 1 and 1 + 2^-10. A bit far below decides, which rounding
        // through f32 loses.
        let above_tie = 1.0 + 2f64.powi(-11) + 2f64.powi(-40);
        assert_eq!(round_float(PrimitiveType::F16, above_tie), 1.0 + 2f64.powi(-10));
        assert_eq!(round_float(PrimitiveType::F16, 1.0 + 2f64.powi(-11)), 1.0);
        assert_eq!(round_float(PrimitiveType::F16, 65519.0), 65504.0);
        assert_eq!(round_float(PrimitiveType::F16, 65520.0), f64::INFINITY);
        assert_eq!(round_float(PrimitiveType::F16, 2f64.powi(-25)), 0.0);
        assert_eq!(round_float(PrimitiveType::F16, 1.5 * 2f64.powi(-25)), 2f64.powi(-24));
        assert_eq!(round_float(PrimitiveType::Bf16, 257.0), 256.0);
        assert_eq!(round_float(PrimitiveType::Bf16, 259.0), 260.0);
        assert_eq!(round_float(PrimitiveType::Bf16, -3.4e38), -f64::from(f32::from_bits(0x7f80_0000)));
        assert!(round_float(PrimitiveType::F8e4m3fn, 500.0).is_nan());
        assert_eq!(round_float(PrimitiveType::F8e5m2, -1e9), -f64::INFINITY);
        assert_eq!(round_float(PrimitiveType::F4e2m1fn, -1e9), -6.0);
        assert_eq!(round_float(PrimitiveType::F8e4m3fnuz, -1e-9).to_bits(), 0);
        assert!(round_float(PrimitiveType::F8e4m3b11fnuz, 31.0).is_nan());
        assert_eq!(round_float(PrimitiveType::F8e8m0fnu, 3.0), 4.0);
        assert_eq!(round_float(PrimitiveType::F8e8m0fnu, 2.9), 2.0);
        assert_eq!(round_float(PrimitiveType::F8e8m0fnu, 1e-44), 2f64.powi(-127));
        assert!(round_float(PrimitiveType::F8e8m0fnu, 1e-300).is_nan());
        assert!(round_float(PrimitiveType::F8e8m0fnu, -1.0).is_nan());
    }

    #[test]
    fn the_only_nan_of_a_type_is_negative() {
        for nan in [f64::NAN, -f64::NAN, 1e9] {
            let rounded = round_float(PrimitiveType::F8e4m3b11fnuz, nan);
            assert!(rounded.is_nan() && rounded.is_sign_negative(), "{nan}");
        }
    }

    #[test]
    fn reduce_precision_flushes_what_the_exponent_cannot_hold() {
        let reduced = |value| reduce_precision(PrimitiveType::F32, 5, 10, value);
        assert_eq!(reduced(65504.0), 65504.0);
        assert_eq!(reduced(65520.0), f64::INFINITY);
        assert_eq!(reduced(2f64.powi(-14)), 2f64.powi(-14));
        assert_eq!(reduced(2f64.powi(-15)), 0.0);
        assert_eq!(reduced(-2f64.powi(-15)).to_bits(), (-0.0f64).to_bits());
        assert_eq!(reduced(1.0 + 2f64.powi(-11)), 1.0);
        assert_eq!(reduced(1.0 + 3.0 * 2f64.powi(-11)), 1.0 + 2f64.powi(-9));
    }
}
