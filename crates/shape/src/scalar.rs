//! Native Rust types that hold elements, and a scalar of any element type.

use crate::PrimitiveType;
use half::{bf16, f16};

/// A Rust type with the memory representation of an element type.
pub trait NativeType: Copy {
    /// Corresponding element type.
    const TYPE: PrimitiveType;
    /// Reads a value from little-endian bytes. Panics unless there are exactly `TYPE.byte_size()`.
    fn read_le(bytes: &[u8]) -> Self;
    /// Appends the value's little-endian bytes.
    fn write_le(self, out: &mut Vec<u8>);
}

macro_rules! native {
    ($($native:ty => $variant:ident),* $(,)?) => {$(
        impl NativeType for $native {
            const TYPE: PrimitiveType = PrimitiveType::$variant;
            fn read_le(bytes: &[u8]) -> Self {
                Self::from_le_bytes(bytes.try_into().expect("byte count equal to the type's size"))
            }
            fn write_le(self, out: &mut Vec<u8>) {
                out.extend_from_slice(&self.to_le_bytes());
            }
        }
    )*};
}

native! {
    i8 => S8, i16 => S16, i32 => S32, i64 => S64,
    u8 => U8, u16 => U16, u32 => U32, u64 => U64,
    f16 => F16, bf16 => Bf16, f32 => F32, f64 => F64,
}

impl NativeType for bool {
    const TYPE: PrimitiveType = PrimitiveType::Pred;
    fn read_le(bytes: &[u8]) -> Self {
        bytes[0] != 0
    }
    fn write_le(self, out: &mut Vec<u8>) {
        out.push(u8::from(self));
    }
}

/// A complex number as its real and imaginary parts.
impl NativeType for [f32; 2] {
    const TYPE: PrimitiveType = PrimitiveType::C64;
    fn read_le(bytes: &[u8]) -> Self {
        [f32::read_le(&bytes[..4]), f32::read_le(&bytes[4..])]
    }
    fn write_le(self, out: &mut Vec<u8>) {
        self.into_iter().for_each(|part| part.write_le(out));
    }
}

/// A complex number as its real and imaginary parts.
impl NativeType for [f64; 2] {
    const TYPE: PrimitiveType = PrimitiveType::C128;
    fn read_le(bytes: &[u8]) -> Self {
        [f64::read_le(&bytes[..8]), f64::read_le(&bytes[8..])]
    }
    fn write_le(self, out: &mut Vec<u8>) {
        self.into_iter().for_each(|part| part.write_le(out));
    }
}

/// An element widened to the largest type of its kind; exact for every element type.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Scalar {
    /// `pred`.
    Pred(bool),
    /// `s2` to `s64`.
    Signed(i64),
    /// `u2` to `u64`.
    Unsigned(u64),
    /// `f8` to `f64`.
    Float(f64),
    /// `c64` and `c128`: real and imaginary parts.
    Complex(f64, f64),
}

impl Scalar {
    /// The value as an integer, if it is `pred` or an integer in the range of `i64`.
    pub fn as_i64(self) -> Option<i64> {
        match self {
            Self::Pred(value) => Some(value.into()),
            Self::Signed(value) => Some(value),
            Self::Unsigned(value) => value.try_into().ok(),
            Self::Float(_) | Self::Complex(..) => None,
        }
    }

    /// The nearest `f64`, unless the value is complex.
    pub fn as_f64(self) -> Option<f64> {
        match self {
            Self::Pred(value) => Some(f64::from(u8::from(value))),
            Self::Signed(value) => Some(value as f64),
            Self::Unsigned(value) => Some(value as f64),
            Self::Float(value) => Some(value),
            Self::Complex(..) => None,
        }
    }
}
