//! Elements in registers and in memory.
//!
//! Every element type has one register form. `pred` is `Bool`. Integers are integers; types
//! narrower than a byte are sign or zero extended to `I8`. Floats narrower than 32 bits are `F32`,
//! rounded to their type. Complex numbers are two values.

use crate::narrow;
use nest::{BinaryOp, ConvertOp, FunctionBuilder, Predicate, ScalarType, Type, ValueId};
use shape::PrimitiveType;

/// One element, or one per lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Element {
    /// A number or truth value in its register form.
    Real(ValueId),
    /// Real and imaginary part.
    Complex(ValueId, ValueId),
}

impl Element {
    /// Returns the value. Panics for complex numbers; check the element type first.
    #[track_caller]
    pub fn real(self) -> ValueId {
        match self {
            Self::Real(value) => value,
            Self::Complex(..) => panic!("expected a real element, got a complex one"),
        }
    }

    /// Returns the real and imaginary part. Panics for other elements.
    #[track_caller]
    pub fn parts(self) -> (ValueId, ValueId) {
        match self {
            Self::Complex(re, im) => (re, im),
            Self::Real(_) => panic!("expected a complex element, got a real one"),
        }
    }

    /// Returns the values: one, or two parts.
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
            _ => panic!("expected one or two values, got {}", values.len()),
        }
    }

    /// Maps each value.
    #[must_use]
    pub fn map(self, mut f: impl FnMut(ValueId) -> ValueId) -> Self {
        match self {
            Self::Real(value) => Self::Real(f(value)),
            Self::Complex(re, im) => Self::Complex(f(re), f(im)),
        }
    }

    /// Combines the values of two elements of the same type.
    #[must_use]
    pub fn zip(self, other: Self, mut f: impl FnMut(ValueId, ValueId) -> ValueId) -> Self {
        match (self, other) {
            (Self::Real(a), Self::Real(b)) => Self::Real(f(a, b)),
            (Self::Complex(a, b), Self::Complex(c, d)) => Self::Complex(f(a, c), f(b, d)),
            _ => panic!("expected two elements of the same type"),
        }
    }

    /// Returns the number of lanes.
    pub fn lanes(self, b: &FunctionBuilder) -> u32 {
        match self {
            Self::Real(value) | Self::Complex(value, _) => b.ty(value).lanes,
        }
    }
}

/// Returns the scalar type of an element's register form, or of each part of a complex number.
pub fn register_type(element_type: PrimitiveType) -> ScalarType {
    use PrimitiveType::*;
    match element_type {
        Pred => ScalarType::Bool,
        F64 | C128 => ScalarType::F64,
        _ if element_type.real_part().is_floating_point() => ScalarType::F32,
        _ => memory_type(element_type),
    }
}

/// Returns the scalar type of an element in memory, or of each part of a complex number.
pub fn memory_type(element_type: PrimitiveType) -> ScalarType {
    use PrimitiveType::*;
    match element_type {
        S16 | U16 | F16 | Bf16 => ScalarType::I16,
        S32 | U32 => ScalarType::I32,
        S64 | U64 => ScalarType::I64,
        F32 | C64 => ScalarType::F32,
        F64 | C128 => ScalarType::F64,
        _ => ScalarType::I8,
    }
}

/// Converts a value from memory, or one part of a complex number, to its register form.
pub fn decode(b: &mut FunctionBuilder, element_type: PrimitiveType, raw: ValueId) -> ValueId {
    match element_type {
        PrimitiveType::Pred => {
            let zero = b.integer(b.ty(raw), 0);
            b.compare(Predicate::NotEqual, raw, zero)
        }
        t if t.is_subbyte_integer() => normalize(b, element_type, raw),
        t if is_narrow_float(t) => narrow::decode(b, element_type, raw),
        _ => raw,
    }
}

/// Converts a register, or one part of a complex number, to its memory form.
pub fn encode(b: &mut FunctionBuilder, element_type: PrimitiveType, value: ValueId) -> ValueId {
    match element_type {
        PrimitiveType::Pred => b.convert(ConvertOp::ZeroExtend, value, ScalarType::I8),
        t if is_narrow_float(t) => narrow::encode(b, element_type, value),
        _ => value,
    }
}

/// Wraps an integer narrower than a byte to its width, and rounds a float narrower than `F32` to
/// its type. Returns other values unchanged.
pub fn normalize(b: &mut FunctionBuilder, element_type: PrimitiveType, value: ValueId) -> ValueId {
    match element_type {
        t if t.is_subbyte_integer() && t.is_signed_integer() => {
            let shift = b.integer(b.ty(value), i64::from(8 - element_type.bit_width()));
            let high = b.binary(BinaryOp::ShiftLeft, value, shift);
            b.binary(BinaryOp::ShiftRightArithmetic, high, shift)
        }
        t if t.is_subbyte_integer() => {
            let mask = b.integer(b.ty(value), (1 << element_type.bit_width()) - 1);
            b.and(value, mask)
        }
        t if is_narrow_float(t) => narrow::round(b, element_type, value),
        _ => value,
    }
}

/// True if the type's values are `F32` in registers and narrower in memory.
pub(crate) fn is_narrow_float(element_type: PrimitiveType) -> bool {
    element_type.is_floating_point() && element_type.byte_size() < 4
}

/// Broadcasts a scalar to `lanes` lanes. Constants stay constants.
pub fn splat(b: &mut FunctionBuilder, value: ValueId, lanes: u32) -> ValueId {
    let ty = b.ty(value);
    if ty.lanes == lanes {
        return value;
    }
    match b.known_constant(value) {
        Some(constant) => b.value(Type::vector(ty.scalar, lanes), nest::Expression::Constant(constant)),
        None => b.splat(value, lanes),
    }
}
