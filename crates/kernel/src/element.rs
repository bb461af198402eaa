//! Elements in registers and in memory.
//!
//! Every element type has one register form: `pred` is `Bool`, integers are integers (types narrower than a byte are
//! kept sign or zero extended in `I8`), floats narrower than 32 bits are `F32` rounded to their type, complex numbers
//! are two values.

use crate::ir::{BinaryOp, ConvertOp, FunctionBuilder, Predicate, ScalarType, Type, ValueId};
use crate::narrow;
use shape::PrimitiveType;

/// One element, or one in each lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Element {
    /// A number or truth value in its register form.
    Real(ValueId),
    /// Real and imaginary part.
    Complex(ValueId, ValueId),
}

impl Element {
    /// The value. Panics for complex numbers: only after the element type was looked at.
    #[track_caller]
    pub fn real(self) -> ValueId {
        match self {
            Self::Real(value) => value,
            Self::Complex(..) => panic!("an element that is not complex"),
        }
    }

    /// Real and imaginary part. Panics for other elements.
    #[track_caller]
    pub fn parts(self) -> (ValueId, ValueId) {
        match self {
            Self::Complex(re, im) => (re, im),
            Self::Real(_) => panic!("a complex element"),
        }
    }

    /// The values: one, or two parts.
    pub fn values(self) -> Vec<ValueId> {
        match self {
            Self::Real(value) => vec![value],
            Self::Complex(re, im) => vec![re, im],
        }
    }

    /// The inverse of [`Self::values`].
    pub fn from_values(values: &[ValueId]) -> Self {
        match *values {
            [value] => Self::Real(value),
            [re, im] => Self::Complex(re, im),
            _ => panic!("an element is one value or two"),
        }
    }

    /// Each value mapped.
    #[must_use]
    pub fn map(self, mut f: impl FnMut(ValueId) -> ValueId) -> Self {
        match self {
            Self::Real(value) => Self::Real(f(value)),
            Self::Complex(re, im) => Self::Complex(f(re), f(im)),
        }
    }

    /// The values of two elements of one type combined.
    #[must_use]
    pub fn zip(self, other: Self, mut f: impl FnMut(ValueId, ValueId) -> ValueId) -> Self {
        match (self, other) {
            (Self::Real(a), Self::Real(b)) => Self::Real(f(a, b)),
            (Self::Complex(a, b), Self::Complex(c, d)) => Self::Complex(f(a, c), f(b, d)),
            _ => panic!("two elements of one type"),
        }
    }

    /// How many lanes it has.
    pub fn lanes(self, b: &FunctionBuilder) -> u32 {
        match self {
            Self::Real(value) | Self::Complex(value, _) => b.ty(value).lanes,
        }
    }
}

/// The scalar type of an element's register form (of each part of a complex number).
pub fn register_type(element_type: PrimitiveType) -> ScalarType {
    use PrimitiveType::*;
    match element_type {
        Pred => ScalarType::Bool,
        S2 | S4 | S8 | U2 | U4 | U8 => ScalarType::I8,
        S16 | U16 => ScalarType::I16,
        S32 | U32 => ScalarType::I32,
        S64 | U64 => ScalarType::I64,
        F8e5m2 | F8e4m3fn | F16 | Bf16 | F32 | C64 => ScalarType::F32,
        F64 | C128 => ScalarType::F64,
    }
}

/// The scalar type of an element in memory (of each part of a complex number).
pub fn memory_type(element_type: PrimitiveType) -> ScalarType {
    use PrimitiveType::*;
    match element_type {
        Pred | S2 | S4 | S8 | U2 | U4 | U8 | F8e5m2 | F8e4m3fn => ScalarType::I8,
        S16 | U16 | F16 | Bf16 => ScalarType::I16,
        S32 | U32 => ScalarType::I32,
        S64 | U64 => ScalarType::I64,
        F32 | C64 => ScalarType::F32,
        F64 | C128 => ScalarType::F64,
    }
}

/// The register form of what was read from memory (one part of a complex number).
pub fn decode(b: &mut FunctionBuilder, element_type: PrimitiveType, raw: ValueId) -> ValueId {
    use PrimitiveType::*;
    match element_type {
        Pred => {
            let zero = b.integer(b.ty(raw), 0);
            b.compare(Predicate::NotEqual, raw, zero)
        }
        S2 | S4 | U2 | U4 => normalise(b, element_type, raw),
        F16 => narrow::f16_from_bits(b, raw),
        Bf16 => narrow::bf16_from_bits(b, raw),
        F8e5m2 => narrow::f8e5m2_from_bits(b, raw),
        F8e4m3fn => narrow::f8e4m3fn_from_bits(b, raw),
        S8 | U8 | S16 | U16 | S32 | U32 | S64 | U64 | F32 | F64 | C64 | C128 => raw,
    }
}

/// The memory form of a register (one part of a complex number).
pub fn encode(b: &mut FunctionBuilder, element_type: PrimitiveType, value: ValueId) -> ValueId {
    use PrimitiveType::*;
    match element_type {
        Pred => b.convert(ConvertOp::ZeroExtend, value, ScalarType::I8),
        F16 => narrow::f16_to_bits(b, value),
        Bf16 => narrow::bf16_to_bits(b, value),
        F8e5m2 => narrow::f8e5m2_to_bits(b, value),
        F8e4m3fn => narrow::f8e4m3fn_to_bits(b, value),
        S2 | S4 | U2 | U4 | S8 | U8 | S16 | U16 | S32 | U32 | S64 | U64 | F32 | F64 | C64 | C128 => value,
    }
}

/// Wraps an integer narrower than a byte to its width; rounds a float narrower than `F32` to its type; leaves others.
pub fn normalise(b: &mut FunctionBuilder, element_type: PrimitiveType, value: ValueId) -> ValueId {
    use PrimitiveType::*;
    match element_type {
        S2 | S4 => {
            let shift = b.integer(b.ty(value), i64::from(8 - element_type.bit_width()));
            let high = b.binary(BinaryOp::ShiftLeft, value, shift);
            b.binary(BinaryOp::ShiftRightArithmetic, high, shift)
        }
        U2 | U4 => {
            let mask = b.integer(b.ty(value), (1 << element_type.bit_width()) - 1);
            b.and(value, mask)
        }
        F16 => narrow::round_to_f16(b, value),
        Bf16 => narrow::round_to_bf16(b, value),
        F8e5m2 => narrow::round_to_f8e5m2(b, value),
        F8e4m3fn => narrow::round_to_f8e4m3fn(b, value),
        Pred | S8 | U8 | S16 | U16 | S32 | U32 | S64 | U64 | F32 | F64 | C64 | C128 => value,
    }
}

/// A scalar in so many lanes; constants stay constants.
pub fn splat(b: &mut FunctionBuilder, value: ValueId, lanes: u32) -> ValueId {
    let ty = b.ty(value);
    if ty.lanes == lanes {
        return value;
    }
    match b.known_constant(value) {
        Some(constant) => b.value(Type::vector(ty.scalar, lanes), crate::ir::Expression::Constant(constant)),
        None => b.splat(value, lanes),
    }
}
