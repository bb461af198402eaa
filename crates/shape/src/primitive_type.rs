//! Element types of arrays, with XLA's names and numbers.

use std::fmt;
use std::str::FromStr;

/// An element type. Discriminants are the numbers of XLA's `PrimitiveType` proto enum, except for
/// the `f6` types, which StableHLO has and XLA does not ([`PrimitiveType::is_xlas`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
#[expect(missing_docs, reason = "the names are the documentation")]
pub enum PrimitiveType {
    Pred = 1,
    S8 = 2,
    S16 = 3,
    S32 = 4,
    S64 = 5,
    U8 = 6,
    U16 = 7,
    U32 = 8,
    U64 = 9,
    F16 = 10,
    F32 = 11,
    F64 = 12,
    C64 = 15,
    Bf16 = 16,
    C128 = 18,
    F8e5m2 = 19,
    F8e4m3fn = 20,
    S4 = 21,
    U4 = 22,
    F8e4m3b11fnuz = 23,
    F8e5m2fnuz = 24,
    F8e4m3fnuz = 25,
    S2 = 26,
    U2 = 27,
    F8e4m3 = 28,
    F8e3m4 = 29,
    S1 = 30,
    U1 = 31,
    F4e2m1fn = 32,
    F8e8m0fnu = 33,
    F6e2m3fn = 128,
    F6e3m2fn = 129,
}

use PrimitiveType::*;

impl PrimitiveType {
    /// Every element type, in the order of XLA's numbers.
    pub const ALL: [Self; 32] = [
        Pred,
        S8,
        S16,
        S32,
        S64,
        U8,
        U16,
        U32,
        U64,
        F16,
        F32,
        F64,
        C64,
        Bf16,
        C128,
        F8e5m2,
        F8e4m3fn,
        S4,
        U4,
        F8e4m3b11fnuz,
        F8e5m2fnuz,
        F8e4m3fnuz,
        S2,
        U2,
        F8e4m3,
        F8e3m4,
        S1,
        U1,
        F4e2m1fn,
        F8e8m0fnu,
        F6e2m3fn,
        F6e3m2fn,
    ];

    /// XLA's name in HLO text, such as `f32`, `pred`, or `f8e4m3fn`.
    pub fn name(self) -> &'static str {
        match self {
            Pred => "pred",
            S1 => "s1",
            S2 => "s2",
            S4 => "s4",
            S8 => "s8",
            S16 => "s16",
            S32 => "s32",
            S64 => "s64",
            U1 => "u1",
            U2 => "u2",
            U4 => "u4",
            U8 => "u8",
            U16 => "u16",
            U32 => "u32",
            U64 => "u64",
            F4e2m1fn => "f4e2m1fn",
            F6e2m3fn => "f6e2m3fn",
            F6e3m2fn => "f6e3m2fn",
            F8e3m4 => "f8e3m4",
            F8e4m3 => "f8e4m3",
            F8e4m3b11fnuz => "f8e4m3b11fnuz",
            F8e4m3fnuz => "f8e4m3fnuz",
            F8e5m2fnuz => "f8e5m2fnuz",
            F8e8m0fnu => "f8e8m0fnu",
            F8e5m2 => "f8e5m2",
            F8e4m3fn => "f8e4m3fn",
            F16 => "f16",
            Bf16 => "bf16",
            F32 => "f32",
            F64 => "f64",
            C64 => "c64",
            C128 => "c128",
        }
    }

    /// Size of one element in memory, in bytes. Types narrower than a byte take one byte each, as
    /// in XLA's CPU literals.
    pub const fn byte_size(self) -> usize {
        match self {
            S16 | U16 | F16 | Bf16 => 2,
            S32 | U32 | F32 => 4,
            S64 | U64 | F64 | C64 => 8,
            C128 => 16,
            _ => 1,
        }
    }

    /// Width of the value in bits: `4` for `s4`, `1` for `pred`.
    pub const fn bit_width(self) -> u32 {
        match self {
            Pred | S1 | U1 => 1,
            S2 | U2 => 2,
            S4 | U4 | F4e2m1fn => 4,
            F6e2m3fn | F6e3m2fn => 6,
            _ => self.byte_size() as u32 * 8,
        }
    }

    /// True for `f4e2m1fn` to `f64`, but not for complex types.
    pub const fn is_floating_point(self) -> bool {
        self.float_format().is_some()
    }

    /// True for floating-point types of at most one byte.
    pub const fn is_minifloat(self) -> bool {
        self.is_floating_point() && self.byte_size() == 1
    }

    /// True for integers narrower than a byte.
    pub fn is_subbyte_integer(self) -> bool {
        self.is_integer() && self.bit_width() < 8
    }

    /// True if XLA has the type, so that its text and messages may contain it.
    pub fn is_xlas(self) -> bool {
        (self as u8) < 128
    }

    /// True for `c64` and `c128`.
    pub fn is_complex(self) -> bool {
        matches!(self, C64 | C128)
    }

    /// True for `s1` to `s64`.
    pub fn is_signed_integer(self) -> bool {
        matches!(self, S1 | S2 | S4 | S8 | S16 | S32 | S64)
    }

    /// True for `u1` to `u64`, but not for `pred`.
    pub fn is_unsigned_integer(self) -> bool {
        matches!(self, U1 | U2 | U4 | U8 | U16 | U32 | U64)
    }

    /// True for signed and unsigned integers, but not for `pred`.
    pub fn is_integer(self) -> bool {
        self.is_signed_integer() || self.is_unsigned_integer()
    }

    /// Type of the parts of a complex number. Any other type is returned unchanged.
    pub fn real_part(self) -> Self {
        match self {
            C64 => F32,
            C128 => F64,
            other => other,
        }
    }
}

impl fmt::Display for PrimitiveType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for PrimitiveType {
    type Err = ();

    fn from_str(name: &str) -> Result<Self, ()> {
        Self::ALL.into_iter().find(|t| t.name() == name).ok_or(())
    }
}
