//! Trigonometric and hyperbolic functions and their inverses, in terms of a few opcodes.
//!
//! float16 and bfloat16 are computed in float32. The inverses of complex numbers follow W. Kahan,
//! "Branch cuts for complex elementary functions", so that the sign of a zero determines the side
//! of a branch cut.

use crate::node::context::NodeContext;
use crate::node::data_types::*;
use crate::node::rule::{Rule, rule};
use hlo::{ComparisonDirection, InstructionId, Op};
use shape::PrimitiveType;
use support::Result;

pub(crate) const RULES: &[Rule] = &[
    rule("Sin", |cx| cx.unary(Op::Sin {})).types("T", FLOATS_AND_COMPLEX),
    rule("Cos", |cx| cx.unary(Op::Cos {})).types("T", FLOATS_AND_COMPLEX),
    rule("Tan", |cx| cx.unary(Op::Tan {})).types("T", FLOATS_AND_COMPLEX),
    rule("Sinh", |cx| in_32_bits(cx, sinh)).types("T", FLOATS_AND_COMPLEX),
    rule("Cosh", |cx| in_32_bits(cx, cosh)).types("T", FLOATS_AND_COMPLEX),
    rule("Asin", |cx| in_32_bits(cx, asin)).types("T", FLOATS_AND_COMPLEX),
    rule("Acos", |cx| in_32_bits(cx, acos)).types("T", FLOATS_AND_COMPLEX),
    rule("Atan", |cx| in_32_bits(cx, atan)).types("T", FLOATS_AND_COMPLEX),
    rule("Asinh", |cx| in_32_bits(cx, asinh)).types("T", FLOATS_AND_COMPLEX),
    rule("Acosh", |cx| in_32_bits(cx, acosh)).types("T", FLOATS_AND_COMPLEX),
    rule("Atanh", |cx| in_32_bits(cx, atanh)).types("T", FLOATS_AND_COMPLEX),
];

type Function = fn(&mut NodeContext<'_, '_>, InstructionId) -> Result<InstructionId>;

/// Computes narrow types in float32.
fn in_32_bits(cx: &mut NodeContext<'_, '_>, function: Function) -> Result<InstructionId> {
    let x = cx.input(0)?;
    let element_type = cx.element_type(x);
    let narrow = matches!(element_type, PrimitiveType::F16 | PrimitiveType::Bf16);
    let x = if narrow { cx.convert(x, PrimitiveType::F32)? } else { x };
    let result = function(cx, x)?;
    cx.convert(result, element_type)
}

/// Returns `exp(x + log(1/2))` and `exp(-x + log(1/2))`. These halved exponentials overflow only if
/// the result does.
fn half_exponentials(
    cx: &mut NodeContext<'_, '_>,
    x: InstructionId,
) -> Result<(InstructionId, InstructionId)> {
    let negative = cx.neg(x)?;
    let half = |cx: &mut NodeContext<'_, '_>, x: InstructionId| {
        let shifted = cx.add_scalar(x, -std::f64::consts::LN_2)?;
        cx.op(Op::Exp {}, &[shifted])
    };
    Ok((half(cx, x)?, half(cx, negative)?))
}

/// `(exp(x) - exp(-x)) / 2`. Small real numbers use `expm1`, which avoids cancellation. Complex
/// numbers use the real functions.
fn sinh(cx: &mut NodeContext<'_, '_>, x: InstructionId) -> Result<InstructionId> {
    if cx.element_type(x).is_complex() {
        let (re, im) = cx.parts(x)?;
        let (sinh, cosh) = (sinh(cx, re)?, cosh(cx, re)?);
        let (sin, cos) = (cx.op(Op::Sin {}, &[im])?, cx.op(Op::Cos {}, &[im])?);
        let (re, im) = (cx.mul(sinh, cos)?, cx.mul(cosh, sin)?);
        return cx.op(Op::Complex {}, &[re, im]);
    }
    let (up, down) = half_exponentials(cx, x)?;
    let large = cx.sub(up, down)?;
    let expm1 = cx.op(Op::Expm1 {}, &[x])?;
    let divisor = cx.add_scalar(expm1, 1.0)?;
    let quotient = cx.div(expm1, divisor)?;
    let sum = cx.add(expm1, quotient)?;
    let small = cx.mul_scalar(sum, 0.5)?;
    let magnitude = cx.op(Op::Abs {}, &[x])?;
    let is_small = cx.compare_scalar(ComparisonDirection::Lt, magnitude, 1.0)?;
    cx.select(is_small, small, large)
}

/// `(exp(x) + exp(-x)) / 2`. Complex numbers use the real functions.
fn cosh(cx: &mut NodeContext<'_, '_>, x: InstructionId) -> Result<InstructionId> {
    if cx.element_type(x).is_complex() {
        let (re, im) = cx.parts(x)?;
        let (sinh, cosh) = (sinh(cx, re)?, cosh(cx, re)?);
        let (sin, cos) = (cx.op(Op::Sin {}, &[im])?, cx.op(Op::Cos {}, &[im])?);
        let (re, im) = (cx.mul(cosh, cos)?, cx.mul(sinh, sin)?);
        return cx.op(Op::Complex {}, &[re, im]);
    }
    let (up, down) = half_exponentials(cx, x)?;
    let sum = cx.add(up, down)?;
    // Rounding must not go below the minimum.
    let one = cx.splat_like(sum, 1.0)?;
    cx.op(Op::Maximum {}, &[sum, one])
}

/// Returns the square roots of `1 - z` and `1 + z`, computed part by part to preserve the sign of a
/// zero.
fn roots(cx: &mut NodeContext<'_, '_>, z: InstructionId) -> Result<(InstructionId, InstructionId)> {
    let (re, im) = cx.parts(z)?;
    let one = cx.splat_like(re, 1.0)?;
    let (low, high, down) = (cx.sub(one, re)?, cx.add(one, re)?, cx.neg(im)?);
    let (low, high) = (cx.op(Op::Complex {}, &[low, down])?, cx.op(Op::Complex {}, &[high, im])?);
    Ok((cx.op(Op::Sqrt {}, &[low])?, cx.op(Op::Sqrt {}, &[high])?))
}

/// Returns the imaginary part of `conj(a) * b`.
fn imaginary_of_conjugate_product(
    cx: &mut NodeContext<'_, '_>,
    a: InstructionId,
    b: InstructionId,
) -> Result<InstructionId> {
    let ((a_re, a_im), (b_re, b_im)) = (cx.parts(a)?, cx.parts(b)?);
    let (x, y) = (cx.mul(a_re, b_im)?, cx.mul(a_im, b_re)?);
    cx.sub(x, y)
}

/// Returns the real part of `a * b` or, with `conjugate`, of `conj(a) * b`.
fn real_of_product(
    cx: &mut NodeContext<'_, '_>,
    a: InstructionId,
    b: InstructionId,
    conjugate: bool,
) -> Result<InstructionId> {
    let ((a_re, a_im), (b_re, b_im)) = (cx.parts(a)?, cx.parts(b)?);
    let (x, y) = (cx.mul(a_re, b_re)?, cx.mul(a_im, b_im)?);
    if conjugate { cx.add(x, y) } else { cx.sub(x, y) }
}

/// `asin(x) = 2 atan2(x, 1 + sqrt((1 - x) (1 + x)))`.
fn asin(cx: &mut NodeContext<'_, '_>, x: InstructionId) -> Result<InstructionId> {
    if cx.element_type(x).is_complex() {
        let (low, high) = roots(cx, x)?;
        let (re, _) = cx.parts(x)?;
        let product = real_of_product(cx, low, high, false)?;
        let angle = cx.op(Op::Atan2 {}, &[re, product])?;
        let height = imaginary_of_conjugate_product(cx, low, high)?;
        let height = asinh(cx, height)?;
        return cx.op(Op::Complex {}, &[angle, height]);
    }
    let one = cx.splat_like(x, 1.0)?;
    let (low, high) = (cx.sub(one, x)?, cx.add(one, x)?);
    let product = cx.mul(low, high)?;
    let root = cx.op(Op::Sqrt {}, &[product])?;
    let base = cx.add(one, root)?;
    let angle = cx.op(Op::Atan2 {}, &[x, base])?;
    cx.mul_scalar(angle, 2.0)
}

/// `acos(x) = 2 atan2(sqrt(1 - x), sqrt(1 + x))`.
fn acos(cx: &mut NodeContext<'_, '_>, x: InstructionId) -> Result<InstructionId> {
    if cx.element_type(x).is_complex() {
        let (low, high) = roots(cx, x)?;
        let ((low_re, _), (high_re, _)) = (cx.parts(low)?, cx.parts(high)?);
        let angle = cx.op(Op::Atan2 {}, &[low_re, high_re])?;
        let angle = cx.mul_scalar(angle, 2.0)?;
        let height = imaginary_of_conjugate_product(cx, high, low)?;
        let height = asinh(cx, height)?;
        return cx.op(Op::Complex {}, &[angle, height]);
    }
    let one = cx.splat_like(x, 1.0)?;
    let (low, high) = (cx.sub(one, x)?, cx.add(one, x)?);
    let (low, high) = (cx.op(Op::Sqrt {}, &[low])?, cx.op(Op::Sqrt {}, &[high])?);
    let angle = cx.op(Op::Atan2 {}, &[low, high])?;
    cx.mul_scalar(angle, 2.0)
}

/// `atan(x) = atan2(x, 1)`. For complex numbers, `-i atanh(i x)`.
fn atan(cx: &mut NodeContext<'_, '_>, x: InstructionId) -> Result<InstructionId> {
    if cx.element_type(x).is_complex() {
        let turned = times_i(cx, x)?;
        let result = atanh(cx, turned)?;
        return times_minus_i(cx, result);
    }
    let one = cx.splat_like(x, 1.0)?;
    cx.op(Op::Atan2 {}, &[x, one])
}

fn times_i(cx: &mut NodeContext<'_, '_>, x: InstructionId) -> Result<InstructionId> {
    let (re, im) = cx.parts(x)?;
    let im = cx.neg(im)?;
    cx.op(Op::Complex {}, &[im, re])
}

fn times_minus_i(cx: &mut NodeContext<'_, '_>, x: InstructionId) -> Result<InstructionId> {
    let (re, im) = cx.parts(x)?;
    let re = cx.neg(re)?;
    cx.op(Op::Complex {}, &[im, re])
}

/// The square root of a type's largest number. The square of a larger number overflows.
fn sqrt_largest(element_type: PrimitiveType) -> f64 {
    match element_type {
        PrimitiveType::F64 => f64::MAX.sqrt(),
        _ => f64::from(f32::MAX).sqrt(),
    }
}

/// `asinh(x) = sign(x) log(|x| + sqrt(x^2 + 1))`. Uses `log1p` if `|x|` is at most 1, and `log(|x|)
/// + log(2)` if the square overflows. For complex numbers, `-i asin(i x)`.
fn asinh(cx: &mut NodeContext<'_, '_>, x: InstructionId) -> Result<InstructionId> {
    let element_type = cx.element_type(x);
    if element_type.is_complex() {
        let turned = times_i(cx, x)?;
        let result = asin(cx, turned)?;
        return times_minus_i(cx, result);
    }
    let a = cx.op(Op::Abs {}, &[x])?;
    let square = cx.mul(a, a)?;
    let hypotenuse = cx.add_scalar(square, 1.0)?;
    let hypotenuse = cx.op(Op::Sqrt {}, &[hypotenuse])?;
    let divisor = cx.add_scalar(hypotenuse, 1.0)?;
    let quotient = cx.div(square, divisor)?;
    let argument = cx.add(a, quotient)?;
    let small = cx.op(Op::Log1p {}, &[argument])?;
    let sum = cx.add(a, hypotenuse)?;
    let medium = cx.op(Op::Log {}, &[sum])?;
    let log = cx.op(Op::Log {}, &[a])?;
    let large = cx.add_scalar(log, std::f64::consts::LN_2)?;
    let is_small = cx.compare_scalar(ComparisonDirection::Le, a, 1.0)?;
    let is_large = cx.compare_scalar(ComparisonDirection::Ge, a, sqrt_largest(element_type))?;
    let value = cx.select(is_small, small, medium)?;
    let value = cx.select(is_large, large, value)?;
    let negated = cx.neg(value)?;
    let negative = cx.compare_scalar(ComparisonDirection::Lt, x, 0.0)?;
    let value = cx.select(negative, negated, value)?;
    // Zero keeps its sign.
    let is_zero = cx.compare_scalar(ComparisonDirection::Eq, x, 0.0)?;
    cx.select(is_zero, x, value)
}

/// `acosh(x) = log1p(t + sqrt(t (t + 2)))` with `t = x - 1`. NaN below 1, and `log(x) + log(2)` if
/// the square overflows.
fn acosh(cx: &mut NodeContext<'_, '_>, x: InstructionId) -> Result<InstructionId> {
    let element_type = cx.element_type(x);
    if element_type.is_complex() {
        return acosh_complex(cx, x);
    }
    let t = cx.add_scalar(x, -1.0)?;
    let next = cx.add_scalar(t, 2.0)?;
    let product = cx.mul(t, next)?;
    let root = cx.op(Op::Sqrt {}, &[product])?;
    let argument = cx.add(t, root)?;
    let value = cx.op(Op::Log1p {}, &[argument])?;
    let log = cx.op(Op::Log {}, &[x])?;
    let large = cx.add_scalar(log, std::f64::consts::LN_2)?;
    let is_large = cx.compare_scalar(ComparisonDirection::Ge, x, sqrt_largest(element_type))?;
    let value = cx.select(is_large, large, value)?;
    // Below -1, the root is real again.
    let outside = cx.compare_scalar(ComparisonDirection::Lt, x, 1.0)?;
    let nan = cx.splat_like(x, f64::NAN)?;
    cx.select(outside, nan, value)
}

/// `(asinh(re(conj(sqrt(z - 1)) sqrt(z + 1))), 2 atan2(im(sqrt(z - 1)), re(sqrt(z + 1))))`.
fn acosh_complex(cx: &mut NodeContext<'_, '_>, z: InstructionId) -> Result<InstructionId> {
    let (re, im) = cx.parts(z)?;
    let (low, high) = (cx.add_scalar(re, -1.0)?, cx.add_scalar(re, 1.0)?);
    let (low, high) = (cx.op(Op::Complex {}, &[low, im])?, cx.op(Op::Complex {}, &[high, im])?);
    let (low, high) = (cx.op(Op::Sqrt {}, &[low])?, cx.op(Op::Sqrt {}, &[high])?);
    let height = real_of_product(cx, low, high, true)?;
    let height = asinh(cx, height)?;
    let ((_, low_im), (high_re, _)) = (cx.parts(low)?, cx.parts(high)?);
    let angle = cx.op(Op::Atan2 {}, &[low_im, high_re])?;
    let angle = cx.mul_scalar(angle, 2.0)?;
    cx.op(Op::Complex {}, &[height, angle])
}

/// `atanh(x) = (log1p(x) - log1p(-x)) / 2`. NaN if `|x|` exceeds 1.
fn atanh(cx: &mut NodeContext<'_, '_>, x: InstructionId) -> Result<InstructionId> {
    if cx.element_type(x).is_complex() {
        return atanh_complex(cx, x);
    }
    let negative = cx.neg(x)?;
    let (up, down) = (cx.op(Op::Log1p {}, &[x])?, cx.op(Op::Log1p {}, &[negative])?);
    let difference = cx.sub(up, down)?;
    cx.mul_scalar(difference, 0.5)
}

/// With `z = x + i y`: `sign(x) log1p(4 |x| / ((1 - |x|)^2 + y^2)) / 4 + i atan2(2 y, (1 - x) (1 +
/// x) - y^2) / 2`.
fn atanh_complex(cx: &mut NodeContext<'_, '_>, z: InstructionId) -> Result<InstructionId> {
    let (x, y) = cx.parts(z)?;
    let one = cx.splat_like(x, 1.0)?;
    let (low, high) = (cx.sub(one, x)?, cx.add(one, x)?);
    let magnitude = cx.op(Op::Abs {}, &[x])?;
    let near = cx.sub(one, magnitude)?;
    let (near_square, y_square) = (cx.mul(near, near)?, cx.mul(y, y)?);
    let distance = cx.add(near_square, y_square)?;
    let four_x = cx.mul_scalar(magnitude, 4.0)?;
    let ratio = cx.div(four_x, distance)?;
    let log = cx.op(Op::Log1p {}, &[ratio])?;
    let quarter = cx.mul_scalar(log, 0.25)?;
    let sign = cx.op(Op::Sign {}, &[x])?;
    let re = cx.mul(sign, quarter)?;
    let twice = cx.mul_scalar(y, 2.0)?;
    let product = cx.mul(low, high)?;
    let base = cx.sub(product, y_square)?;
    let angle = cx.op(Op::Atan2 {}, &[twice, base])?;
    let im = cx.mul_scalar(angle, 0.5)?;
    cx.op(Op::Complex {}, &[re, im])
}
