//! Integer arithmetic of every width: exact in `i128`, or modulo 2^128 where that is too narrow,
//! then wrapped.

use crate::operation::{Binary, Unary};
use shape::{PrimitiveType, Scalar};

/// Returns the value modulo 2^width, in the type's range.
pub(crate) fn wrap(element_type: PrimitiveType, value: i128) -> Scalar {
    let unused = 128 - element_type.bit_width();
    if element_type.is_signed_integer() {
        Scalar::Signed((value << unused >> unused) as i64)
    } else {
        Scalar::Unsigned(((value as u128) << unused >> unused) as u64)
    }
}

/// Returns the least and the greatest value of an integer type.
pub(crate) fn range(element_type: PrimitiveType) -> (i128, i128) {
    let width = element_type.bit_width();
    if element_type.is_signed_integer() {
        (-(1 << (width - 1)), (1 << (width - 1)) - 1)
    } else {
        (0, (1 << width) - 1)
    }
}

/// Evaluates a unary function. Returns `None` if it has no integer meaning.
pub(crate) fn unary(function: Unary, element_type: PrimitiveType, x: i128) -> Option<Scalar> {
    let width = element_type.bit_width();
    let bits = x as u128 & ((1 << width) - 1);
    let value = match function {
        Unary::Abs => x.abs(),
        Unary::Negate => -x,
        Unary::Not => !x,
        Unary::Sign => x.signum(),
        Unary::PopulationCount => bits.count_ones().into(),
        Unary::CountLeadingZeros => (bits.leading_zeros() - (128 - width)).into(),
        Unary::Real => x,
        Unary::Imag => 0,
        Unary::Ceil | Unary::Floor | Unary::RoundNearestAfz | Unary::RoundNearestEven => x,
        Unary::Acos
        | Unary::Acosh
        | Unary::Asin
        | Unary::Asinh
        | Unary::Atanh
        | Unary::Cbrt
        | Unary::Copy
        | Unary::Cos
        | Unary::Cosh
        | Unary::Erf
        | Unary::Exp
        | Unary::Expm1
        | Unary::IsFinite
        | Unary::Log
        | Unary::Log1p
        | Unary::Logistic
        | Unary::Rsqrt
        | Unary::Sin
        | Unary::Sinh
        | Unary::Sqrt
        | Unary::Tan
        | Unary::Tanh => return None,
    };
    Some(wrap(element_type, value))
}

/// Evaluates a binary function. Returns `None` if it has no integer meaning.
pub(crate) fn binary(function: Binary, element_type: PrimitiveType, x: i128, y: i128) -> Option<Scalar> {
    let width = i128::from(element_type.bit_width());
    // A negative distance represents a huge unsigned one.
    let distance = (0..width).contains(&y).then_some(y as u32);
    let bits = x as u128 & ((1 << width) - 1);
    let unused = 128 - width;
    let value = match function {
        Binary::Add => x + y,
        Binary::Subtract => x - y,
        Binary::Multiply => x.wrapping_mul(y),
        Binary::Divide if y == 0 => -1,
        Binary::Divide => x / y,
        Binary::Remainder if y == 0 => x,
        Binary::Remainder => x % y,
        Binary::Maximum => x.max(y),
        Binary::Minimum => x.min(y),
        Binary::And => x & y,
        Binary::Or => x | y,
        Binary::Xor => x ^ y,
        Binary::Power => power(x, y),
        Binary::ShiftLeft => distance.map_or(0, |d| x << d),
        Binary::ShiftRightLogical => distance.map_or(0, |d| (bits >> d) as i128),
        // An unsigned operand is shifted like the signed number with the same bits.
        Binary::ShiftRightArithmetic => (bits as i128) << unused >> unused >> distance.unwrap_or(127),
        Binary::Atan2 => return None,
    };
    Some(wrap(element_type, value))
}

/// Returns the power modulo 2^128. For a negative exponent, powers of 1 and -1 are exact, all
/// others are 0.
fn power(base: i128, exponent: i128) -> i128 {
    let is_odd = exponent & 1 == 1;
    if exponent < 0 {
        return match base {
            1 => 1,
            -1 if is_odd => -1,
            -1 => 1,
            _ => 0,
        };
    }
    let (mut result, mut square, mut rest) = (1i128, base, exponent);
    while rest > 0 {
        if rest & 1 == 1 {
            result = result.wrapping_mul(square);
        }
        square = square.wrapping_mul(square);
        rest >>= 1;
    }
    result
}
