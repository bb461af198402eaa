//! Short names for arithmetic on bits, and floats as bits.

use nest::{
    BinaryOp, ConvertOp, FunctionBuilder, Predicate, RegionBuilder, ScalarType, Type, UnaryOp, ValueId,
};
use support::Result;

/// A word of 32 bits.
pub(crate) const WORD: Type = Type::scalar(ScalarType::I32);
/// Two words.
pub(crate) const LONG: Type = Type::I64;

/// Arithmetic on bits with constants.
pub(crate) trait Bits: RegionBuilder {
    /// A constant.
    fn number(&mut self, ty: Type, value: i64) -> ValueId {
        // Constants of a type are sign extended.
        let value = if ty == WORD { i64::from(value as i32) } else { value };
        self.builder().integer(ty, value)
    }
    /// An operation with a constant.
    fn with(&mut self, op: BinaryOp, a: ValueId, constant: i64) -> ValueId {
        let ty = self.builder().ty(a);
        let b = self.number(ty, constant);
        self.builder().binary(op, a, b)
    }
    fn op(&mut self, op: BinaryOp, a: ValueId, b: ValueId) -> ValueId {
        self.builder().binary(op, a, b)
    }
    fn plus(&mut self, a: ValueId, constant: i64) -> ValueId {
        self.with(BinaryOp::Add, a, constant)
    }
    fn mask(&mut self, a: ValueId, constant: i64) -> ValueId {
        self.with(BinaryOp::And, a, constant)
    }
    fn left(&mut self, a: ValueId, bits: u32) -> ValueId {
        self.with(BinaryOp::ShiftLeft, a, bits.into())
    }
    fn right(&mut self, a: ValueId, bits: u32) -> ValueId {
        self.with(BinaryOp::ShiftRightLogical, a, bits.into())
    }
    /// `constant - a`.
    fn less(&mut self, constant: i64, a: ValueId) -> ValueId {
        let ty = self.builder().ty(a);
        let constant = self.number(ty, constant);
        self.op(BinaryOp::Subtract, constant, a)
    }
    fn is(&mut self, predicate: Predicate, a: ValueId, constant: i64) -> ValueId {
        let ty = self.builder().ty(a);
        let constant = self.number(ty, constant);
        self.builder().compare(predicate, a, constant)
    }
    fn compare(&mut self, predicate: Predicate, a: ValueId, b: ValueId) -> ValueId {
        self.builder().compare(predicate, a, b)
    }
    fn select(&mut self, condition: ValueId, a: ValueId, b: ValueId) -> ValueId {
        self.builder().select(condition, a, b)
    }
    /// A condition as 1 or 0.
    fn bit(&mut self, condition: ValueId, ty: Type) -> ValueId {
        self.builder().convert(ConvertOp::ZeroExtend, condition, ty.scalar)
    }
    /// A word or two words as another number of words, with zeros or without the upper word.
    fn resize(&mut self, a: ValueId, to: Type) -> ValueId {
        let op = if to == LONG { ConvertOp::ZeroExtend } else { ConvertOp::Truncate };
        self.builder().convert(op, a, to.scalar)
    }
    /// The upper word.
    fn upper(&mut self, a: ValueId) -> ValueId {
        let upper = self.right(a, 32);
        self.resize(upper, WORD)
    }
    /// Two words as one number.
    fn join(&mut self, lower: ValueId, upper: ValueId) -> ValueId {
        let (lower, upper) = (self.resize(lower, LONG), self.resize(upper, LONG));
        let upper = self.left(upper, 32);
        self.op(BinaryOp::Or, lower, upper)
    }
    /// Number of leading zeros, as a word.
    fn leading_zeros(&mut self, a: ValueId) -> ValueId {
        let count = self.builder().unary(UnaryOp::CountLeadingZeros, a);
        self.resize(count, WORD)
    }
    /// Shifts by a number of bits below the width.
    fn shift(&mut self, op: BinaryOp, a: ValueId, bits: ValueId) -> ValueId {
        let ty = self.builder().ty(a);
        let bits = self.resize(bits, ty);
        self.op(op, a, bits)
    }
    /// Shifts right. The lowest bit is also set if a lost bit was.
    fn shift_sticky(&mut self, a: ValueId, bits: ValueId) -> ValueId {
        let ty = self.builder().ty(a);
        let last = if ty == LONG { 63 } else { 31 };
        let is_far = self.is(Predicate::Above, bits, last);
        let last = self.number(WORD, last);
        let bits = self.select(is_far, last, bits);
        let shifted = self.shift(BinaryOp::ShiftRightLogical, a, bits);
        let back = self.shift(BinaryOp::ShiftLeft, shifted, bits);
        let lost = self.compare(Predicate::NotEqual, back, a);
        let lost = self.bit(lost, ty);
        self.op(BinaryOp::Or, shifted, lost)
    }
    /// As [`Self::shift_sticky`], by a constant number of bits.
    fn right_sticky(&mut self, a: ValueId, bits: u32) -> ValueId {
        let ty = self.builder().ty(a);
        let shifted = self.right(a, bits);
        let lost = self.mask(a, (1 << bits) - 1);
        let lost = self.is(Predicate::NotEqual, lost, 0);
        let lost = self.bit(lost, ty);
        self.op(BinaryOp::Or, shifted, lost)
    }
    /// One of two values, of which only one is computed.
    fn choose(
        &mut self,
        condition: ValueId,
        then: impl FnOnce(&mut Self) -> Result<ValueId>,
        otherwise: impl FnOnce(&mut Self) -> Result<ValueId>,
    ) -> Result<ValueId> {
        let values = self.if_else(condition, |b| Ok(vec![then(b)?]), |b| Ok(vec![otherwise(b)?]))?;
        Ok(values[0])
    }
}

impl Bits for FunctionBuilder {}

/// A format of floats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Format {
    /// The words that hold it.
    pub(crate) ty: Type,
    /// Stored bits of the mantissa.
    pub(crate) mantissa: u32,
    /// Bits of the exponent.
    exponent: u32,
}

/// `f16`, in the lower half of a word.
pub(crate) const HALF: Format = Format { ty: WORD, mantissa: 10, exponent: 5 };
/// `f32`.
pub(crate) const SINGLE: Format = Format { ty: WORD, mantissa: 23, exponent: 8 };
/// `f64`.
pub(crate) const DOUBLE: Format = Format { ty: LONG, mantissa: 52, exponent: 11 };

/// Bits after the mantissa that decide how it is rounded. The lowest one stands for all that
/// follow.
pub(crate) const GUARD: u32 = 3;

impl Format {
    pub(crate) const fn bias(self) -> i64 {
        (1 << (self.exponent - 1)) - 1
    }
    /// Exponent of infinity and NaN.
    pub(crate) const fn special(self) -> i64 {
        (1 << self.exponent) - 1
    }
    pub(crate) const fn infinity(self) -> i64 {
        self.special() << self.mantissa
    }
    pub(crate) const fn sign_bit(self) -> i64 {
        1 << (self.exponent + self.mantissa)
    }
    /// The mantissa's bit that is not stored.
    pub(crate) const fn hidden(self) -> i64 {
        1 << self.mantissa
    }
    pub(crate) const fn nan(self) -> i64 {
        self.infinity() | 1 << (self.mantissa - 1)
    }
    /// Number of bits of its words.
    pub(crate) fn width(self) -> u32 {
        if self.ty == LONG { 64 } else { 32 }
    }

    pub(crate) fn exponent(self, b: &mut FunctionBuilder, x: ValueId) -> ValueId {
        let exponent = b.right(x, self.mantissa);
        let exponent = b.resize(exponent, WORD);
        b.mask(exponent, self.special())
    }

    pub(crate) fn sign(self, b: &mut FunctionBuilder, x: ValueId) -> ValueId {
        b.mask(x, self.sign_bit())
    }

    pub(crate) fn magnitude(self, b: &mut FunctionBuilder, x: ValueId) -> ValueId {
        b.mask(x, self.sign_bit().wrapping_sub(1))
    }

    /// The bits with which NaN is recognized.
    pub(crate) fn is_nan(self, b: &mut FunctionBuilder, x: ValueId) -> ValueId {
        let magnitude = self.magnitude(b, x);
        b.is(Predicate::Above, magnitude, self.infinity())
    }

    /// Exponent and mantissa of a finite number that is not 0, such that the hidden bit is set.
    pub(crate) fn normalized(self, b: &mut FunctionBuilder, x: ValueId) -> Result<(ValueId, ValueId)> {
        let exponent = self.exponent(b, x);
        let fraction = b.mask(x, self.hidden() - 1);
        let is_subnormal = b.is(Predicate::Equal, exponent, 0);
        let parts = b.if_else(
            is_subnormal,
            |b| {
                let zeros = b.leading_zeros(fraction);
                let distance = b.plus(zeros, -i64::from(self.width() - 1 - self.mantissa));
                let exponent = b.less(1, distance);
                Ok(vec![exponent, b.shift(BinaryOp::ShiftLeft, fraction, distance)])
            },
            |b| Ok(vec![exponent, b.with(BinaryOp::Or, fraction, self.hidden())]),
        )?;
        Ok((parts[0], parts[1]))
    }

    /// Rounds to the nearest float, ties to even. The mantissa has [`GUARD`] more bits, and its
    /// hidden bit is set unless the exponent is 1. Exponents that are too large give infinity.
    pub(crate) fn round(
        self,
        b: &mut FunctionBuilder,
        sign: ValueId,
        exponent: ValueId,
        mantissa: ValueId,
    ) -> ValueId {
        let whole = b.right(mantissa, GUARD);
        let exponent = b.plus(exponent, -1);
        let exponent = b.resize(exponent, self.ty);
        let exponent = b.left(exponent, self.mantissa);
        // A set hidden bit adds 1 to the exponent.
        let whole = b.add(whole, exponent);
        let rest = b.mask(mantissa, (1 << GUARD) - 1);
        let odd = b.mask(whole, 1);
        let rest = b.add(rest, odd);
        let up = b.is(Predicate::Above, rest, 1 << (GUARD - 1));
        let up = b.bit(up, self.ty);
        let rounded = b.add(whole, up);
        let is_infinite = b.is(Predicate::Above, rounded, self.infinity());
        let infinity = b.number(self.ty, self.infinity());
        let rounded = b.select(is_infinite, infinity, rounded);
        b.or(rounded, sign)
    }

    /// As [`Self::round`], for exponents of any size and a mantissa whose hidden bit is set.
    pub(crate) fn round_any(
        self,
        b: &mut FunctionBuilder,
        sign: ValueId,
        exponent: ValueId,
        mantissa: ValueId,
    ) -> Result<ValueId> {
        let is_subnormal = b.is(Predicate::Less, exponent, 1);
        let parts = b.if_else(
            is_subnormal,
            |b| {
                let distance = b.less(1, exponent);
                Ok(vec![b.number(WORD, 1), b.shift_sticky(mantissa, distance)])
            },
            |_| Ok(vec![exponent, mantissa]),
        )?;
        Ok(self.round(b, sign, parts[0], parts[1]))
    }
}
