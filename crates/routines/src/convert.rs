//! Conversions among formats of floats and integers.

use crate::bits::{Bits, Format, GUARD, LONG, WORD};
use nest::{BinaryOp, FunctionBuilder, Predicate, Type, ValueId};
use support::Result;

/// A float in a wider format, without a change of its value.
pub(crate) fn widen(b: &mut FunctionBuilder, from: Format, to: Format, x: ValueId) -> Result<ValueId> {
    let x = b.mask(x, from.sign_bit().wrapping_mul(2).wrapping_sub(1));
    let sign = from.sign(b, x);
    let sign = b.resize(sign, to.ty);
    let sign = b.left(sign, to.width() - 1 - from.sign_bit().trailing_zeros());
    let magnitude = from.magnitude(b, x);
    let exponent = from.exponent(b, x);
    let scale = to.mantissa - from.mantissa;
    let rebias = (to.bias() - from.bias()) << to.mantissa;
    let placed = b.resize(magnitude, to.ty);
    let placed = b.left(placed, scale);
    let before = b.plus(exponent, -1);
    let is_normal = b.is(Predicate::Below, before, from.special() - 1);
    let magnitude = b.choose(
        is_normal,
        |b| Ok(b.plus(placed, rebias)),
        |b| {
            let is_special = b.is(Predicate::Equal, exponent, from.special());
            let special = b.with(BinaryOp::Or, placed, to.infinity());
            let is_zero = b.is(Predicate::Equal, magnitude, 0);
            let is_known = b.or(is_special, is_zero);
            let known = b.select(is_special, special, placed);
            b.choose(
                is_known,
                |_| Ok(known),
                |b| {
                    let (exponent, mantissa) = from.normalized(b, x)?;
                    let mantissa = b.resize(mantissa, to.ty);
                    let mantissa = b.left(mantissa, scale);
                    // The hidden bit adds 1.
                    let exponent = b.plus(exponent, to.bias() - from.bias() - 1);
                    let exponent = b.resize(exponent, to.ty);
                    let exponent = b.left(exponent, to.mantissa);
                    Ok(b.add(exponent, mantissa))
                },
            )
        },
    )?;
    Ok(b.or(magnitude, sign))
}

/// The nearest float of a narrower format.
pub(crate) fn narrow(b: &mut FunctionBuilder, from: Format, to: Format, x: ValueId) -> Result<ValueId> {
    let sign = b.right(x, from.width() - 1);
    let sign = b.resize(sign, to.ty);
    let sign = b.left(sign, to.sign_bit().trailing_zeros());
    let exponent = from.exponent(b, x);
    let is_special = b.is(Predicate::Equal, exponent, from.special());
    b.choose(
        is_special,
        |b| {
            let is_nan = from.is_nan(b, x);
            let (nan, infinity) = (b.number(to.ty, to.nan()), b.number(to.ty, to.infinity()));
            let magnitude = b.select(is_nan, nan, infinity);
            Ok(b.or(magnitude, sign))
        },
        |b| {
            let fraction = b.mask(x, from.hidden() - 1);
            // Subnormal numbers become 0, so their hidden bit does not matter, except for 0.
            let is_zero = b.is(Predicate::Equal, exponent, 0);
            let with_hidden = b.with(BinaryOp::Or, fraction, from.hidden());
            let mantissa = b.select(is_zero, fraction, with_hidden);
            let mantissa = b.right_sticky(mantissa, from.mantissa - to.mantissa - GUARD);
            let mantissa = b.resize(mantissa, to.ty);
            let exponent = b.plus(exponent, to.bias() - from.bias());
            // Larger ones would not fit their place.
            let is_large = b.is(Predicate::Greater, exponent, to.special());
            let most = b.number(WORD, to.special());
            let exponent = b.select(is_large, most, exponent);
            to.round_any(b, sign, exponent, mantissa)
        },
    )
}

/// The float nearest to an integer.
pub(crate) fn from_integer(
    b: &mut FunctionBuilder,
    is_signed: bool,
    to: Format,
    x: ValueId,
) -> Result<ValueId> {
    let ty = b.ty(x);
    let width = if ty == LONG { 64 } else { 32 };
    let is_zero = b.is(Predicate::Equal, x, 0);
    b.choose(
        is_zero,
        |b| Ok(b.number(to.ty, 0)),
        |b| {
            let (sign, magnitude) = if is_signed {
                let is_negative = b.is(Predicate::Less, x, 0);
                let negated = b.less(0, x);
                let (zero, sign) = (b.number(to.ty, 0), b.number(to.ty, to.sign_bit()));
                (b.select(is_negative, sign, zero), b.select(is_negative, negated, x))
            } else {
                (b.number(to.ty, 0), x)
            };
            let zeros = b.leading_zeros(magnitude);
            let mantissa = b.shift(BinaryOp::ShiftLeft, magnitude, zeros);
            // The highest bit is moved to the hidden bit, before the guard bits.
            let place = to.mantissa + GUARD;
            let mantissa = if place >= width - 1 {
                let wide = b.resize(mantissa, to.ty);
                b.left(wide, place + 1 - width)
            } else {
                let sticky = b.right_sticky(mantissa, width - 1 - place);
                b.resize(sticky, to.ty)
            };
            let exponent = b.less(to.bias() + i64::from(width) - 1, zeros);
            Ok(to.round(b, sign, exponent, mantissa))
        },
    )
}

/// The integer below a float's magnitude, with the float's sign. It saturates, and NaN becomes 0.
pub(crate) fn to_integer(
    b: &mut FunctionBuilder,
    is_signed: bool,
    from: Format,
    ty: Type,
    x: ValueId,
) -> Result<ValueId> {
    let width: u32 = if ty == LONG { 64 } else { 32 };
    let exponent = from.exponent(b, x);
    let exponent = b.plus(exponent, -from.bias());
    let is_negative = b.is(Predicate::Less, x, 0);
    let is_small = b.is(Predicate::Less, exponent, 0);
    let bits = i64::from(width) - i64::from(is_signed);
    let zero = b.number(ty, 0);
    b.choose(
        is_small,
        |_| Ok(zero),
        |b| {
            let is_large = b.is(Predicate::GreaterEqual, exponent, bits);
            let magnitude = b.choose(
                is_large,
                |b| {
                    let most = if is_signed { i64::MAX >> (64 - width) } else { -1 };
                    let most = b.number(ty, most);
                    // The least number is its own negation.
                    let least = b.number(ty, if is_signed { i64::MIN >> (64 - width) } else { 0 });
                    let most = b.select(is_negative, least, most);
                    let is_nan = from.is_nan(b, x);
                    Ok(b.select(is_nan, zero, most))
                },
                |b| {
                    let fraction = b.mask(x, from.hidden() - 1);
                    let mantissa = b.with(BinaryOp::Or, fraction, from.hidden());
                    // The hidden bit becomes the highest bit.
                    let top = if from.mantissa < width {
                        let wide = if from.ty == WORD { b.resize(mantissa, ty) } else { mantissa };
                        b.left(wide, width - 1 - from.mantissa)
                    } else {
                        let shifted = b.right(mantissa, from.mantissa + 1 - width);
                        b.resize(shifted, ty)
                    };
                    let distance = b.less(i64::from(width) - 1, exponent);
                    Ok(b.shift(BinaryOp::ShiftRightLogical, top, distance))
                },
            )?;
            let negated = if is_signed { b.less(0, magnitude) } else { zero };
            Ok(b.select(is_negative, negated, magnitude))
        },
    )
}
