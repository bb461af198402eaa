//! Floating-point arithmetic of every width: computed in `f64`, rounded once.

use crate::elementwise::{Binary, Unary};
use shape::{PrimitiveType, Scalar};

/// A number rounded to an element type of its kind. Integers are wrapped where they are made.
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

/// The nearest value of a floating-point type, ties to even; what is too large becomes an infinity (NaN in
/// `f8e4m3fn`, which has none).
pub(crate) fn round_float(element_type: PrimitiveType, value: f64) -> f64 {
    let (mantissa_bits, min_exponent, max_finite, overflow) = match element_type {
        PrimitiveType::F32 => return f64::from(value as f32),
        PrimitiveType::F16 => (10, -14, 65504.0, f64::INFINITY),
        PrimitiveType::Bf16 => (7, -126, f64::from(f32::from_bits(0x7f7f_0000)), f64::INFINITY),
        PrimitiveType::F8e5m2 => (2, -14, 57344.0, f64::INFINITY),
        PrimitiveType::F8e4m3fn => (3, -6, 448.0, f64::NAN),
        _ => return value,
    };
    let rounded = round_significand(value, mantissa_bits, min_exponent);
    if rounded.abs() > max_finite { overflow.copysign(value) } else { rounded }
}

/// Rounds to `mantissa_bits` bits behind the leading one, ties to even, with gradual underflow below `min_exponent`.
pub(crate) fn round_significand(value: f64, mantissa_bits: i32, min_exponent: i32) -> f64 {
    if value == 0.0 || !value.is_finite() {
        return value;
    }
    // frexp's fraction is within [1/2, 1).
    let exponent = (libm::frexp(value).1 - 1).max(min_exponent);
    let quantum = exponent - mantissa_bits;
    libm::ldexp(libm::ldexp(value, -quantum).round_ties_even(), quantum)
}

/// XLA's `reduce-precision`: rounds the mantissa; beyond the exponent range the result is an infinity or zero, for
/// there are no subnormal numbers in the narrow format.
pub(crate) fn reduce_precision(
    element_type: PrimitiveType,
    exponent_bits: u32,
    mantissa_bits: u32,
    value: f64,
) -> f64 {
    let (source_exponent_bits, source_mantissa_bits, min_exponent) = match element_type {
        PrimitiveType::F16 => (5, 10, -14),
        PrimitiveType::Bf16 => (8, 7, -126),
        PrimitiveType::F32 => (8, 23, -126),
        PrimitiveType::F8e5m2 => (5, 2, -14),
        PrimitiveType::F8e4m3fn => (4, 3, -6),
        _ => (11, 52, -1022),
    };
    if value.is_nan() {
        return if mantissa_bits > 0 { value } else { f64::INFINITY };
    }
    let mut rounded = value;
    if mantissa_bits < source_mantissa_bits {
        rounded = round_float(element_type, round_significand(value, mantissa_bits as i32, min_exponent));
    }
    if exponent_bits < source_exponent_bits && rounded != 0.0 && rounded.is_finite() {
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

/// A function of one real number, not yet rounded; `None` if it has no real result or no floating-point meaning.
pub(crate) fn unary(function: Unary, x: f64) -> Option<f64> {
    Some(match function {
        Unary::Abs => x.abs(),
        Unary::Acos => libm::acos(x),
        // `libm` has no second look at numbers below -2.
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

/// A function of two real numbers, not yet rounded; `None` if it has no floating-point meaning.
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

/// IEEE 754-2019 `maximum`: NaN if either is, and -0 below +0.
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
        // 1 + 2^-11 is the tie between 1 and 1 + 2^-10; a bit far below decides, which rounding through f32 loses.
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
