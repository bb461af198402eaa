//! Floats narrower than 32 bits: their bits and their rounding, in integer arithmetic.
//!
//! Values of `f16`, `bf16` and `f8` are `F32` in registers. Rounding is to nearest even, subnormals included; NaN stays
//! NaN (quiet, sign kept, and of the payload what there is room for).

use crate::ir::{BinaryOp, ConvertOp, FunctionBuilder, Predicate, ScalarType, Type, UnaryOp, ValueId};

/// A float format that `F32` contains.
#[derive(Clone, Copy)]
struct Format {
    exponent_bits: u32,
    mantissa_bits: u32,
    /// The bits of the largest finite value as an `F32`.
    largest: u32,
    has_infinity: bool,
}

const F16: Format = Format { exponent_bits: 5, mantissa_bits: 10, largest: 0x477f_e000, has_infinity: true };
const E5M2: Format = Format { exponent_bits: 5, mantissa_bits: 2, largest: 0x4760_0000, has_infinity: true };
const E4M3FN: Format =
    Format { exponent_bits: 4, mantissa_bits: 3, largest: 0x43e0_0000, has_infinity: false };

const SIGN: i64 = 0x8000_0000u32 as i32 as i64;
const INFINITY: i64 = 0x7f80_0000;
const QUIET_NAN: i64 = 0x7fc0_0000;

impl Format {
    const fn bias(self) -> i64 {
        (1 << (self.exponent_bits - 1)) - 1
    }

    /// The `F32` bits of `2^exponent`.
    const fn power_of_two(exponent: i64) -> i64 {
        (exponent + 127) << 23
    }

    /// The `F32` bits of the least normal value.
    const fn least_normal(self) -> i64 {
        Self::power_of_two(1 - self.bias())
    }

    /// The `F32` bits of the number whose unit in the last place is this format's least subnormal: adding it to a
    /// subnormal rounds that to the format.
    const fn subnormal_rounder(self) -> i64 {
        Self::power_of_two(1 - self.bias() - self.mantissa_bits as i64 + 23)
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

    /// Drops so many low bits, to nearest even.
    fn round_off(&mut self, bits: ValueId, dropped: u32) -> ValueId {
        let shifted = self.with(BinaryOp::ShiftRightLogical, bits, i64::from(dropped));
        let odd = self.with(BinaryOp::And, shifted, 1);
        let half = self.with(BinaryOp::Add, bits, (1 << (dropped - 1)) - 1);
        let rounded = self.b.add(half, odd);
        self.with(BinaryOp::And, rounded, -1i64 << dropped)
    }
}

fn on(b: &mut FunctionBuilder, value: ValueId) -> Bits<'_> {
    let lanes = b.ty(value).lanes;
    Bits { b, lanes }
}

/// Rounds `F32` to a format with `F32`'s exponents cut at both ends; the result is `F32`.
fn round_to(b: &mut FunctionBuilder, format: Format, value: ValueId) -> ValueId {
    let mut f = on(b, value);
    let bits = f.bits(value);
    let sign = f.with(BinaryOp::And, bits, SIGN);
    let magnitude = f.with(BinaryOp::And, bits, !SIGN & 0xffff_ffff);
    let normal = f.round_off(magnitude, 23 - format.mantissa_bits);
    let overflows = f.test(Predicate::Greater, normal, i64::from(format.largest));
    let beyond = f.constant(if format.has_infinity { INFINITY } else { QUIET_NAN });
    let normal = f.b.select(overflows, beyond, normal);
    let rounder = f.constant(format.subnormal_rounder());
    let rounder = f.float(rounder);
    let positive = f.float(magnitude);
    let sum = f.b.add(positive, rounder);
    let subnormal = f.b.sub(sum, rounder);
    let subnormal = f.bits(subnormal);
    let is_subnormal = f.test(Predicate::Less, magnitude, format.least_normal());
    let rounded = f.b.select(is_subnormal, subnormal, normal);
    let is_nan = f.test(Predicate::Greater, magnitude, INFINITY);
    let kept = f.with(BinaryOp::And, magnitude, -1i64 << (23 - format.mantissa_bits));
    let nan = f.with(BinaryOp::Or, kept, QUIET_NAN);
    let rounded = f.b.select(is_nan, nan, rounded);
    let signed = f.b.or(rounded, sign);
    f.float(signed)
}

/// The bits of a format, in the low bits of `I32` lanes.
fn to_bits(b: &mut FunctionBuilder, format: Format, value: ValueId) -> ValueId {
    let rounded = round_to(b, format, value);
    let mut f = on(b, rounded);
    let bits = f.bits(rounded);
    let magnitude = f.with(BinaryOp::And, bits, !SIGN & 0xffff_ffff);
    let dropped = i64::from(23 - format.mantissa_bits);
    let rebased = f.with(BinaryOp::Subtract, magnitude, (127 - format.bias()) << 23);
    let normal = f.with(BinaryOp::ShiftRightLogical, rebased, dropped);
    // The rounder's mantissa is 0, so the sum's mantissa counts least subnormals.
    let rounder = f.constant(format.subnormal_rounder());
    let rounder = f.float(rounder);
    let positive = f.float(magnitude);
    let sum = f.b.add(positive, rounder);
    let sum = f.bits(sum);
    let subnormal = f.with(BinaryOp::Subtract, sum, format.subnormal_rounder());
    let is_subnormal = f.test(Predicate::Less, magnitude, format.least_normal());
    let encoded = f.b.select(is_subnormal, subnormal, normal);
    let width = format.exponent_bits + format.mantissa_bits;
    let infinity = ((1i64 << format.exponent_bits) - 1) << format.mantissa_bits;
    let (special, special_limit) = match format.has_infinity {
        true => (infinity, INFINITY - 1),
        false => ((1 << width) - 1, i64::from(format.largest)),
    };
    let is_special = f.test(Predicate::Greater, magnitude, special_limit);
    let special = f.constant(special);
    let encoded = f.b.select(is_special, special, encoded);
    let encoded = if format.has_infinity {
        let is_nan = f.test(Predicate::Greater, magnitude, INFINITY);
        let nan = f.with(BinaryOp::ShiftRightLogical, magnitude, dropped);
        let nan = f.with(BinaryOp::And, nan, (1 << format.mantissa_bits) - 1);
        let nan = f.with(BinaryOp::Or, nan, infinity);
        f.b.select(is_nan, nan, encoded)
    } else {
        encoded
    };
    let sign = f.with(BinaryOp::ShiftRightLogical, bits, i64::from(31 - width));
    let sign = f.with(BinaryOp::And, sign, 1 << width);
    f.b.or(encoded, sign)
}

/// The value of a format's bits in the low bits of `I32` lanes; the format has infinities.
fn from_bits(b: &mut FunctionBuilder, format: Format, bits: ValueId) -> ValueId {
    let mut f = on(b, bits);
    let width = format.exponent_bits + format.mantissa_bits;
    let magnitude = f.with(BinaryOp::And, bits, (1 << width) - 1);
    let shifted = f.with(BinaryOp::ShiftLeft, magnitude, i64::from(23 - format.mantissa_bits));
    // Multiplying moves the exponent to F32's bias and makes subnormals normal.
    let shifted_float = f.float(shifted);
    let scale = f.constant(Format::power_of_two(127 - format.bias()));
    let scale = f.float(scale);
    let scaled = f.b.mul(shifted_float, scale);
    let scaled = f.bits(scaled);
    let infinity = ((1i64 << format.exponent_bits) - 1) << format.mantissa_bits;
    let value = if format.has_infinity {
        let is_special = f.test(Predicate::Greater, magnitude, infinity - 1);
        let special = f.with(BinaryOp::Or, shifted, INFINITY);
        let is_nan = f.test(Predicate::Greater, magnitude, infinity);
        let quiet = f.with(BinaryOp::Or, special, QUIET_NAN);
        let special = f.b.select(is_nan, quiet, special);
        f.b.select(is_special, special, scaled)
    } else {
        let is_nan = f.test(Predicate::Equal, magnitude, (1 << width) - 1);
        let nan = f.constant(QUIET_NAN);
        f.b.select(is_nan, nan, scaled)
    };
    let sign = f.with(BinaryOp::And, bits, 1 << width);
    let sign = f.with(BinaryOp::ShiftLeft, sign, i64::from(31 - width));
    let signed = f.b.or(value, sign);
    f.float(signed)
}

fn widen(b: &mut FunctionBuilder, raw: ValueId) -> ValueId {
    b.convert(ConvertOp::ZeroExtend, raw, ScalarType::I32)
}

/// `F32` from the bits of an `f16` in `I16`.
pub fn f16_from_bits(b: &mut FunctionBuilder, raw: ValueId) -> ValueId {
    let bits = widen(b, raw);
    from_bits(b, F16, bits)
}

/// The bits of the nearest `f16`, in `I16`.
pub fn f16_to_bits(b: &mut FunctionBuilder, value: ValueId) -> ValueId {
    let bits = to_bits(b, F16, value);
    b.convert(ConvertOp::Truncate, bits, ScalarType::I16)
}

/// `F32` from the bits of a `bf16` in `I16`.
pub fn bf16_from_bits(b: &mut FunctionBuilder, raw: ValueId) -> ValueId {
    let bits = widen(b, raw);
    let mut f = on(b, bits);
    let shifted = f.with(BinaryOp::ShiftLeft, bits, 16);
    f.float(shifted)
}

/// The bits of the nearest `bf16`, in `I16`.
pub fn bf16_to_bits(b: &mut FunctionBuilder, value: ValueId) -> ValueId {
    let rounded = round_to_bf16(b, value);
    let mut f = on(b, rounded);
    let bits = f.bits(rounded);
    let high = f.with(BinaryOp::ShiftRightLogical, bits, 16);
    b.convert(ConvertOp::Truncate, high, ScalarType::I16)
}

/// `F32` from the bits of an `f8e5m2` in `I8`.
pub fn f8e5m2_from_bits(b: &mut FunctionBuilder, raw: ValueId) -> ValueId {
    let bits = widen(b, raw);
    from_bits(b, E5M2, bits)
}

/// The bits of the nearest `f8e5m2`, in `I8`.
pub fn f8e5m2_to_bits(b: &mut FunctionBuilder, value: ValueId) -> ValueId {
    let bits = to_bits(b, E5M2, value);
    b.convert(ConvertOp::Truncate, bits, ScalarType::I8)
}

/// `F32` from the bits of an `f8e4m3fn` in `I8`.
pub fn f8e4m3fn_from_bits(b: &mut FunctionBuilder, raw: ValueId) -> ValueId {
    let bits = widen(b, raw);
    from_bits(b, E4M3FN, bits)
}

/// The bits of the nearest `f8e4m3fn`, in `I8`; NaN beyond the largest.
pub fn f8e4m3fn_to_bits(b: &mut FunctionBuilder, value: ValueId) -> ValueId {
    let bits = to_bits(b, E4M3FN, value);
    b.convert(ConvertOp::Truncate, bits, ScalarType::I8)
}

/// The nearest `f16`, as `F32`.
pub fn round_to_f16(b: &mut FunctionBuilder, value: ValueId) -> ValueId {
    round_to(b, F16, value)
}

/// The nearest `f8e5m2`, as `F32`.
pub fn round_to_f8e5m2(b: &mut FunctionBuilder, value: ValueId) -> ValueId {
    round_to(b, E5M2, value)
}

/// The nearest `f8e4m3fn`, as `F32`; NaN beyond the largest.
pub fn round_to_f8e4m3fn(b: &mut FunctionBuilder, value: ValueId) -> ValueId {
    round_to(b, E4M3FN, value)
}

/// The nearest `bf16`, as `F32`. Its exponents are `F32`'s, so rounding the bits carries into infinity by itself.
pub fn round_to_bf16(b: &mut FunctionBuilder, value: ValueId) -> ValueId {
    let mut f = on(b, value);
    let bits = f.bits(value);
    let rounded = f.round_off(bits, 16);
    let quiet = f.with(BinaryOp::Or, bits, QUIET_NAN);
    let quiet = f.with(BinaryOp::And, quiet, 0xffff_0000u32 as i32 as i64);
    let is_nan = f.b.compare(Predicate::NotEqual, value, value);
    let result = f.b.select(is_nan, quiet, rounded);
    f.float(result)
}

/// `F64` to `F32` such that a further rounding to a narrower format is as one: inexact results get an odd last bit.
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
