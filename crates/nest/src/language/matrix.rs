//! Products of matrices that the threads of a warp hold together.

use super::ScalarType;

/// The types of a product of matrices that a warp computes.
///
/// `A` has 16 rows, `B` has 8 columns, and there are 8 words of summands: 16 summands of 2 bytes,
/// 32 of 1 byte, or 8 of 4 bytes. The first element of a word is in its lowest bits. With `g =
/// thread / 4` and `t = thread % 4` of the thread's number in its warp, and `s` elements per word,
/// the elements are (PTX ISA, "Matrix fragments for mma.m16n8k16", "m16n8k32", and "m16n8k8"):
///
/// | word | of `A`: row, first summand | of `B`: first summand, column | of `C`: row, column |
/// |---|---|---|---|
/// | 0 | `g`, `t * s` | `t * s`, `g` | `g`, `t * 2` |
/// | 1 | `g + 8`, `t * s` | `t * s + 4 * s`, `g` | `g`, `t * 2 + 1` |
/// | 2 | `g`, `t * s + 4 * s` | | `g + 8`, `t * 2` |
/// | 3 | `g + 8`, `t * s + 4 * s` | | `g + 8`, `t * 2 + 1` |
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MatrixKind {
    /// Products of `f16`, sums of `F32`.
    F16,
    /// Products of `bf16`, sums of `F32`.
    Bf16,
    /// Products of signed bytes, sums of `I32`, which wrap.
    S8,
    /// Products of `F32`s, of which the lowest 13 bits do not count, with sums of `F32`.
    Tf32,
}

impl MatrixKind {
    /// The type of a sum.
    pub const fn sum(self) -> ScalarType {
        match self {
            Self::F16 | Self::Bf16 | Self::Tf32 => ScalarType::F32,
            Self::S8 => ScalarType::I32,
        }
    }

    /// Bytes of an element of `A` and `B`.
    pub const fn element_bytes(self) -> u32 {
        match self {
            Self::F16 | Self::Bf16 => 2,
            Self::S8 => 1,
            Self::Tf32 => 4,
        }
    }
}
