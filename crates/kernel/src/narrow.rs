//! Floats narrower than 32 bits: encoding, decoding, and rounding in integer arithmetic.
//!
//! Values of `f16`, `bf16`, `f8`, `f6`, and `f4` are `F32` in registers. Rounding is to nearest
//! even, subnormals included. NaN stays a quiet NaN: it keeps its sign if NaNs of the type have
//! one, and as much of its payload as fits. In types without NaN it becomes -0. Values that are
//! only moved, or change only their sign, keep their bits, including those of signaling NaNs.

use nest::{BinaryOp, ConvertOp, FunctionBuilder, Predicate, ScalarType, Type, UnaryOp, ValueId};
use shape::{FloatFormat, PrimitiveType, Specials};

const SIGN: i64 = 0x8000_0000u32 as i32 as i64;
const INFINITY: i64 = 0x7f80_0000;
const QUIET_NAN: i64 = 0x7fc0_0000;

/// Returns the `F32` bits of `2^exponent`.
const fn power_of_two(exponent: i64) -> i64 {
    (exponent + 127) << 23
}

/// Returns the `F32` bits of the smallest normal number.
fn least_normal(format: FloatFormat) -> i64 {
    power_of_two(format.least_exponent().into())
}

/// Returns the `F32` bits of the largest finite number.
fn largest(format: FloatFormat) -> i64 {
    i64::from((format.largest() as f32).to_bits())
}

/// Returns the `F32` bits of the number whose unit in the last place is the format's smallest
/// subnormal. Adding it to a subnormal rounds that subnormal to the format.
fn subnormal_rounder(format: FloatFormat) -> i64 {
    power_of_two(i64::from(format.least_exponent()) - i64::from(format.mantissa_bits) + 23)
}

/// Returns the `F32` bits of the result of an overflow.
fn beyond(format: FloatFormat) -> i64 {
    match format.specials {
        Specials::Ieee => INFINITY,
        Specials::AllFinite => largest(format),
        Specials::AllOnesNan | Specials::NegativeZeroNan | Specials::PowersOfTwo => QUIET_NAN,
    }
}

/// Integer arithmetic on the bits of `F32` lanes.
struct Bits<'b> {
    b: &'b mut FunctionBuilder,
    lanes: u32,
}

impl Bits<'_> {
    fn ty(&self) -> Type {
        Type::vector(ScalarType::I32, self.lanes)
    }

    fn constant(&mut self, value: i64) -> ValueId {
        let ty = self.ty();
        self.b.integer(ty, value)
    }

    fn bits(&mut self, value: ValueId) -> ValueId {
        let ty = self.ty();
        self.b.bitcast(value, ty)
    }

    fn float(&mut self, bits: ValueId) -> ValueId {
        self.b.bitcast(bits, Type::vector(ScalarType::F32, self.lanes))
    }

    fn with(&mut self, op: BinaryOp, a: ValueId, constant: i64) -> ValueId {
        let constant = self.constant(constant);
        self.b.binary(op, a, constant)
    }

    fn test(&mut self, predicate: Predicate, a: ValueId, constant: i64) -> ValueId {
        let constant = self.constant(constant);
        self.b.compare(predicate, a, constant)
    }

    /// Returns a constant where an integer is greater than a limit, and a value elsewhere.
    fn replaced(&mut self, tested: ValueId, limit: i64, constant: i64, value: ValueId) -> ValueId {
        let is_greater = self.test(Predicate::Greater, tested, limit);
        let constant = self.constant(constant);
        self.b.select(is_greater, constant, value)
    }

    /// Clears the low `dropped` bits, rounding to nearest even.
    fn round_off(&mut self, bits: ValueId, dropped: u32) -> ValueId {
        let shifted = self.with(BinaryOp::ShiftRightLogical, bits, i64::from(dropped));
        let odd = self.with(BinaryOp::And, shifted, 1);
        let half = self.with(BinaryOp::Add, bits, (1 << (dropped - 1)) - 1);
        let rounded = self.b.add(half, odd);
        self.with(BinaryOp::And, rounded, -1i64 << dropped)
    }

    /// Returns the magnitude of a NaN without its low `dropped` bits, or the quiet NaN if its
    /// payload becomes 0.
    fn truncated_nan(&mut self, magnitude: ValueId, dropped: u32) -> ValueId {
        let kept = self.with(BinaryOp::And, magnitude, -1i64 << dropped);
        let is_lost = self.test(Predicate::Equal, kept, INFINITY);
        let quiet = self.constant(QUIET_NAN);
        self.b.select(is_lost, quiet, kept)
    }
}

fn on(b: &mut FunctionBuilder, value: ValueId) -> Bits<'_> {
    let lanes = b.ty(value).lanes;
    Bits { b, lanes }
}

/// Returns the values of finite `f16` bits, which are in `I16` lanes. A multiplication corrects the
/// exponent, and normalizes subnormals.
pub(crate) fn decode_finite_half(b: &mut FunctionBuilder, raw: ValueId) -> ValueId {
    const KEPT: i64 = 0x8fff_e000u32 as i32 as i64;
    let wide = b.convert(ConvertOp::SignExtend, raw, ScalarType::I32);
    let mut f = on(b, wide);
    let bits = f.with(BinaryOp::ShiftLeft, wide, 13);
    let bits = f.with(BinaryOp::And, bits, KEPT);
    let scale = f.constant(power_of_two(127 - 15));
    let (number, scale) = (f.float(bits), f.float(scale));
    b.mul(number, scale)
}

/// Rounds `F32` to a format whose exponent range is a part of `F32`'s. The result is `F32`.
fn round_to(b: &mut FunctionBuilder, format: FloatFormat, value: ValueId) -> ValueId {
    let mut f = on(b, value);
    let bits = f.bits(value);
    let sign = f.with(BinaryOp::And, bits, SIGN);
    let magnitude = f.with(BinaryOp::And, bits, !SIGN & 0xffff_ffff);
    let normal = f.round_off(magnitude, 23 - format.mantissa_bits);
    let overflows = f.test(Predicate::Greater, normal, largest(format));
    let beyond = f.constant(beyond(format));
    let normal = f.b.select(overflows, beyond, normal);
    let rounder = f.constant(subnormal_rounder(format));
    let rounder = f.float(rounder);
    let positive = f.float(magnitude);
    let sum = f.b.add(positive, rounder);
    let subnormal = f.b.sub(sum, rounder);
    let subnormal = f.bits(subnormal);
    let is_subnormal = f.test(Predicate::Less, magnitude, least_normal(format));
    let rounded = f.b.select(is_subnormal, subnormal, normal);
    let is_nan = f.test(Predicate::Greater, magnitude, INFINITY);
    let nan = match format.specials {
        Specials::Ieee => {
            let kept = f.with(BinaryOp::And, magnitude, -1i64 << (23 - format.mantissa_bits));
            f.with(BinaryOp::Or, kept, QUIET_NAN)
        }
        Specials::AllFinite => f.constant(SIGN),
        _ => f.constant(QUIET_NAN),
    };
    let rounded = f.b.select(is_nan, nan, rounded);
    let sign = match format.specials {
        // The bits of -0 encode NaN. Zero therefore has no sign, and NaN always has one.
        Specials::NegativeZeroNan => {
            let is_zero = f.test(Predicate::Equal, rounded, 0);
            let none = f.constant(0);
            let sign = f.b.select(is_zero, none, sign);
            f.replaced(rounded, INFINITY, SIGN, sign)
        }
        _ => sign,
    };
    let signed = f.b.or(rounded, sign);
    f.float(signed)
}

/// Returns the bits of a format in the low bits of `I32` lanes.
fn to_bits(b: &mut FunctionBuilder, format: FloatFormat, value: ValueId) -> ValueId {
    let rounded = round_to(b, format, value);
    let mut f = on(b, rounded);
    let bits = f.bits(rounded);
    let magnitude = f.with(BinaryOp::And, bits, !SIGN & 0xffff_ffff);
    let dropped = i64::from(23 - format.mantissa_bits);
    let rebased = f.with(BinaryOp::Subtract, magnitude, i64::from(127 - format.bias) << 23);
    let normal = f.with(BinaryOp::ShiftRightLogical, rebased, dropped);
    // The rounder's mantissa is 0, so the sum's mantissa counts smallest subnormals.
    let rounder = f.constant(subnormal_rounder(format));
    let rounder = f.float(rounder);
    let positive = f.float(magnitude);
    let sum = f.b.add(positive, rounder);
    let sum = f.bits(sum);
    let subnormal = f.with(BinaryOp::Subtract, sum, subnormal_rounder(format));
    let is_subnormal = f.test(Predicate::Less, magnitude, least_normal(format));
    let encoded = f.b.select(is_subnormal, subnormal, normal);
    let width = i64::from(format.width()) - 1;
    let sign = f.with(BinaryOp::ShiftRightLogical, bits, 31 - width);
    let sign = f.with(BinaryOp::And, sign, 1 << width);
    let signed = f.b.or(encoded, sign);
    let nan = format.nan_bits(false) as i64;
    match format.specials {
        Specials::AllFinite | Specials::PowersOfTwo => signed,
        Specials::NegativeZeroNan => f.replaced(magnitude, INFINITY, nan, signed),
        Specials::AllOnesNan => {
            let nan = f.replaced(magnitude, INFINITY, nan, encoded);
            f.b.or(nan, sign)
        }
        Specials::Ieee => {
            let infinity = format.largest_bits() as i64 + 1;
            let special = f.replaced(magnitude, INFINITY - 1, infinity, encoded);
            // Keep as much of a NaN's payload as fits.
            let is_nan = f.test(Predicate::Greater, magnitude, INFINITY);
            let original = f.bits(value);
            let original = f.with(BinaryOp::And, original, !SIGN & 0xffff_ffff);
            let nan = f.truncated_nan(original, 23 - format.mantissa_bits);
            let nan = f.with(BinaryOp::ShiftRightLogical, nan, dropped);
            let nan = f.with(BinaryOp::And, nan, (1 << format.mantissa_bits) - 1);
            let nan = f.with(BinaryOp::Or, nan, infinity);
            let special = f.b.select(is_nan, nan, special);
            f.b.or(special, sign)
        }
    }
}

/// Returns the value of a format's bits, which are in the low bits of `I32` lanes.
fn from_bits(b: &mut FunctionBuilder, format: FloatFormat, bits: ValueId) -> ValueId {
    let mut f = on(b, bits);
    let width = i64::from(format.width()) - 1;
    let magnitude = f.with(BinaryOp::And, bits, (1 << width) - 1);
    let shifted = f.with(BinaryOp::ShiftLeft, magnitude, i64::from(23 - format.mantissa_bits));
    // Multiplying moves the exponent to `F32`'s bias and makes subnormals normal.
    let shifted_float = f.float(shifted);
    let scale = f.constant(power_of_two(127 - i64::from(format.bias)));
    let scale = f.float(scale);
    let scaled = f.b.mul(shifted_float, scale);
    let scaled = f.bits(scaled);
    let value = match format.specials {
        Specials::Ieee => {
            let infinity = format.largest_bits() as i64 + 1;
            let is_special = f.test(Predicate::Greater, magnitude, infinity - 1);
            let special = f.with(BinaryOp::Or, shifted, INFINITY);
            f.b.select(is_special, special, scaled)
        }
        Specials::AllOnesNan => f.replaced(magnitude, format.largest_bits() as i64, QUIET_NAN, scaled),
        Specials::NegativeZeroNan => {
            let all = f.with(BinaryOp::And, bits, (2 << width) - 1);
            let is_nan = f.test(Predicate::Equal, all, 1 << width);
            let nan = f.constant(QUIET_NAN);
            f.b.select(is_nan, nan, scaled)
        }
        Specials::AllFinite | Specials::PowersOfTwo => scaled,
    };
    let sign = f.with(BinaryOp::And, bits, 1 << width);
    let sign = f.with(BinaryOp::ShiftLeft, sign, 31 - width);
    let signed = f.b.or(value, sign);
    f.float(signed)
}

/// Returns the bits of the nearest power of two in a format of powers of two, in the low bits of
/// `I32` lanes. They equal `F32`'s exponent, plus one in the upper half between two powers.
fn power_bits(b: &mut FunctionBuilder, format: FloatFormat, value: ValueId) -> ValueId {
    let mut f = on(b, value);
    let bits = f.bits(value);
    let nan = format.nan_bits(false) as i64;
    // `F32` has one more power below its smallest normal number, as a subnormal.
    let is_subnormal = f.test(Predicate::Less, bits, 1 << 23);
    let (half, subnormal_half) = (f.constant(1 << 22), f.constant(1 << 21));
    let half = f.b.select(is_subnormal, subnormal_half, half);
    let sum = f.b.add(bits, half);
    let exponent = f.with(BinaryOp::ShiftRightLogical, sum, 23);
    let is_infinite = f.test(Predicate::Greater, bits, INFINITY - 1);
    let is_negative = f.test(Predicate::Less, bits, 1);
    let none = f.b.or(is_infinite, is_negative);
    let nan = f.constant(nan);
    f.b.select(none, nan, exponent)
}

/// Returns the value of the bits of a format of powers of two, which are in the low bits of `I32`
/// lanes.
fn power_value(b: &mut FunctionBuilder, format: FloatFormat, bits: ValueId) -> ValueId {
    let mut f = on(b, bits);
    let normal = f.with(BinaryOp::ShiftLeft, bits, 23);
    let is_least = f.test(Predicate::Equal, bits, 0);
    let least = f.constant(1 << 22);
    let value = f.b.select(is_least, least, normal);
    let value = f.replaced(bits, format.largest_bits() as i64, QUIET_NAN, value);
    f.float(value)
}

/// True if a type contains the negative of each of its values.
pub fn has_negatives(element_type: PrimitiveType) -> bool {
    let format = element_type.float_format();
    format.is_none_or(|f| !matches!(f.specials, Specials::NegativeZeroNan | Specials::PowersOfTwo))
}

/// True if a type's values are rounded from `F32`, as in XLA: formats of powers of two.
pub fn is_from_f32(element_type: PrimitiveType) -> bool {
    element_type.float_format().is_some_and(|format| format.specials == Specials::PowersOfTwo)
}

/// Decodes the bits of a narrower float, stored in integers of its size, to `F32`. An instruction
/// that converts makes a signaling NaN quiet.
pub fn decode(b: &mut FunctionBuilder, element_type: PrimitiveType, raw: ValueId) -> ValueId {
    let value = if converts(b, element_type) {
        b.convert(ConvertOp::FloatExtend, raw, ScalarType::F32)
    } else {
        decode_bits(b, element_type, raw)
    };
    b.remember_bits(value, element_type as u8, raw);
    value
}

/// True if single instructions convert between a type and `F32`.
fn converts(b: &FunctionBuilder, element_type: PrimitiveType) -> bool {
    element_type == PrimitiveType::F16 && b.converts_f16()
}

/// Returns the constant whose bits in a narrower type are given.
pub fn constant(b: &mut FunctionBuilder, element_type: PrimitiveType, bits: u64, lanes: u32) -> ValueId {
    let value = b.float(Type::vector(ScalarType::F32, lanes), format_of(element_type).decode(bits));
    let memory = bits_type(element_type);
    let bits = b.integer(Type::vector(memory, lanes), sign_extended(memory, bits));
    b.remember_bits(value, element_type as u8, bits);
    value
}

/// Changes only the sign, even of NaN: `op` is `Abs` or `Negate`. The type must contain the
/// negative of each of its values.
pub fn change_sign(
    b: &mut FunctionBuilder,
    element_type: PrimitiveType,
    op: UnaryOp,
    value: ValueId,
) -> ValueId {
    let changed = b.unary(op, value);
    if let Some(bits) = b.bits_in(value, element_type as u8) {
        let ty = b.ty(bits);
        let sign = sign_extended(ty.scalar, 1 << (element_type.bit_width() - 1));
        let bits = if op == UnaryOp::Abs {
            let rest = b.integer(ty, !sign);
            b.and(bits, rest)
        } else {
            let sign = b.integer(ty, sign);
            b.binary(BinaryOp::Xor, bits, sign)
        };
        b.remember_bits(changed, element_type as u8, bits);
    }
    changed
}

fn decode_bits(b: &mut FunctionBuilder, element_type: PrimitiveType, raw: ValueId) -> ValueId {
    let bits = b.convert(ConvertOp::ZeroExtend, raw, ScalarType::I32);
    let format = format_of(element_type);
    if format.exponent_bits == 8 && format.has_infinity() {
        let mut f = on(b, bits);
        let shifted = f.with(BinaryOp::ShiftLeft, bits, i64::from(23 - format.mantissa_bits));
        return f.float(shifted);
    }
    match format.specials {
        Specials::PowersOfTwo => power_value(b, format, bits),
        _ => from_bits(b, format, bits),
    }
}

/// Returns the bits of a value that is rounded to a narrower type already (see [`round`]), in
/// integers of its size.
pub fn encode(b: &mut FunctionBuilder, element_type: PrimitiveType, value: ValueId) -> ValueId {
    if let Some(bits) = b.bits_in(value, element_type as u8) {
        return bits;
    }
    if converts(b, element_type) {
        return b.convert(ConvertOp::FloatTruncate, value, ScalarType::I16);
    }
    let format = format_of(element_type);
    let bits = if element_type == PrimitiveType::Bf16 {
        bf16_bits(b, value)
    } else if format.specials == Specials::PowersOfTwo {
        power_bits(b, format, value)
    } else {
        to_bits(b, format, value)
    };
    b.convert(ConvertOp::Truncate, bits, bits_type(element_type))
}

/// Rounds to the nearest number of a narrower type. The result is `F32`.
pub fn round(b: &mut FunctionBuilder, element_type: PrimitiveType, value: ValueId) -> ValueId {
    if b.bits_in(value, element_type as u8).is_some() {
        return value;
    }
    if converts(b, element_type) {
        let bits = b.convert(ConvertOp::FloatTruncate, value, ScalarType::I16);
        return decode(b, element_type, bits);
    }
    let format = format_of(element_type);
    match format.specials {
        _ if element_type == PrimitiveType::Bf16 => round_to_bf16(b, value),
        Specials::PowersOfTwo => {
            let bits = power_bits(b, format, value);
            power_value(b, format, bits)
        }
        _ => round_to(b, format, value),
    }
}

fn format_of(element_type: PrimitiveType) -> FloatFormat {
    element_type.float_format().expect("expected a floating-point type")
}

/// The integer type of a narrow number's bits in memory.
fn bits_type(element_type: PrimitiveType) -> ScalarType {
    if element_type.byte_size() == 1 { ScalarType::I8 } else { ScalarType::I16 }
}

/// Extends the sign of an integer of a register's width, as in a constant of a function.
pub(crate) fn sign_extended(scalar: ScalarType, value: u64) -> i64 {
    let unused = 64 - 8 * scalar.byte_size() as u32;
    (value << unused) as i64 >> unused
}

/// Returns the bits of a `bf16`, in the low bits of `I32` lanes. The value is a `bf16` already: the
/// lower half of its bits is dropped.
fn bf16_bits(b: &mut FunctionBuilder, value: ValueId) -> ValueId {
    let mut f = on(b, value);
    let bits = f.bits(value);
    f.with(BinaryOp::ShiftRightLogical, bits, 16)
}

/// Rounds to the nearest `bf16`, as `F32`. Both types have the same exponent range, so rounding the
/// bits carries into infinity by itself.
fn round_to_bf16(b: &mut FunctionBuilder, value: ValueId) -> ValueId {
    let mut f = on(b, value);
    let bits = f.bits(value);
    let rounded = f.round_off(bits, 16);
    let quiet = f.with(BinaryOp::Or, bits, QUIET_NAN);
    let quiet = f.with(BinaryOp::And, quiet, 0xffff_0000u32 as i32 as i64);
    let is_nan = f.b.compare(Predicate::NotEqual, value, value);
    let result = f.b.select(is_nan, quiet, rounded);
    f.float(result)
}

/// Rounds `F64` to `F32` such that a second rounding to a narrower format equals a single one:
/// inexact results get an odd last bit.
pub fn round_to_odd(b: &mut FunctionBuilder, value: ValueId) -> ValueId {
    let nearest = b.convert(ConvertOp::FloatTruncate, value, ScalarType::F32);
    let back = b.convert(ConvertOp::FloatExtend, nearest, ScalarType::F64);
    let mut f = on(b, nearest);
    let bits = f.bits(nearest);
    let magnitude = f.b.unary(UnaryOp::Abs, value);
    let rounded = f.b.unary(UnaryOp::Abs, back);
    let was_raised = f.b.compare(Predicate::Greater, rounded, magnitude);
    let was_lowered = f.b.compare(Predicate::Less, rounded, magnitude);
    let lower = f.with(BinaryOp::Subtract, bits, 1);
    let truncated = f.b.select(was_raised, lower, bits);
    let odd = f.with(BinaryOp::Or, truncated, 1);
    let is_inexact = f.b.or(was_raised, was_lowered);
    let result = f.b.select(is_inexact, odd, bits);
    f.float(result)
}

#[cfg(test)]
mod tests {
    use super::*;
    use nest::{Expression, Linkage, Statement, Type};

    /// The definition of the bits of four numbers that were decoded, moved, and encoded again.
    fn bits_after(
        element_type: PrimitiveType,
        moved: impl FnOnce(&mut FunctionBuilder, ValueId, ValueId) -> ValueId,
    ) -> Expression {
        let mut b = FunctionBuilder::new("f", Linkage::Internal);
        let [x, y] = [1, 2].map(|bits| b.integer(Type::vector(ScalarType::I16, 4), bits));
        let [x, y] = [x, y].map(|raw| decode(&mut b, element_type, raw));
        let value = moved(&mut b, x, y);
        let bits = encode(&mut b, element_type, value);
        let function = b.finish();
        let defined = function.body.statements.into_iter().find_map(|statement| match statement {
            Statement::Let(id, expression) if id == bits => Some(expression),
            _ => None,
        });
        defined.expect("a definition of the bits")
    }

    #[test]
    fn chosen_numbers_are_not_rounded_again() {
        let mut b = FunctionBuilder::new("f", Linkage::Internal);
        let x = b.integer(Type::vector(ScalarType::I16, 4), 0x3c01);
        let x = decode(&mut b, PrimitiveType::F16, x);
        let least = constant(&mut b, PrimitiveType::F16, 0xbc00, 4);
        let is_less = b.compare(Predicate::Less, x, least);
        let raised = b.select(is_less, least, x);
        assert_eq!(round(&mut b, PrimitiveType::F16, raised), raised);
        assert_ne!(round(&mut b, PrimitiveType::Bf16, raised), raised);
    }

    #[test]
    fn moved_numbers_keep_their_bits() {
        for element_type in [PrimitiveType::F16, PrimitiveType::Bf16] {
            let shuffled = bits_after(element_type, |b, x, y| b.shuffle(x, y, vec![3, 2, 5, 4]));
            assert!(matches!(shuffled, Expression::Shuffle(..)), "{shuffled:?}");
            let selected = bits_after(element_type, |b, x, y| {
                let first = b.integer(Type::BOOL, 1);
                b.select(first, x, y)
            });
            assert!(matches!(selected, Expression::Select(..)), "{selected:?}");
            let magnitude = bits_after(element_type, |b, x, _| change_sign(b, element_type, UnaryOp::Abs, x));
            assert!(matches!(magnitude, Expression::Binary(BinaryOp::And, ..)), "{magnitude:?}");
            let sum = bits_after(element_type, FunctionBuilder::add);
            assert!(matches!(sum, Expression::Convert(ConvertOp::Truncate, _)), "{sum:?}");
        }
    }
}
