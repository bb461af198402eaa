//! C++ and C types of the element types.

use shape::PrimitiveType;

/// Returns the C++ type of an element. Types that do not exist in C++17 are raw bits or plain
/// structs; see `tfcompile/types.h`.
pub(crate) fn cpp_type(element_type: PrimitiveType) -> &'static str {
    match element_type {
        PrimitiveType::Pred => "bool",
        PrimitiveType::S16 => "::std::int16_t",
        PrimitiveType::S32 => "::std::int32_t",
        PrimitiveType::S64 => "::std::int64_t",
        PrimitiveType::U16 | PrimitiveType::F16 | PrimitiveType::Bf16 => "::std::uint16_t",
        PrimitiveType::U32 => "::std::uint32_t",
        PrimitiveType::U64 => "::std::uint64_t",
        PrimitiveType::F32 => "float",
        PrimitiveType::F64 => "double",
        PrimitiveType::C64 => "::tfcompile::complex64",
        PrimitiveType::C128 => "::tfcompile::complex128",
        byte if byte.is_signed_integer() => "::std::int8_t",
        _ => "::std::uint8_t",
    }
}

/// Returns the C99 type of an element. A predicate is a byte, 0 or 1. Complex numbers are structs
/// that the C header defines.
pub(crate) fn c_type(element_type: PrimitiveType) -> &'static str {
    match element_type {
        PrimitiveType::Pred => "uint8_t",
        PrimitiveType::C64 => "tfcompile_complex64",
        PrimitiveType::C128 => "tfcompile_complex128",
        _ => {
            let name = cpp_type(element_type);
            name.strip_prefix("::std::").unwrap_or(name)
        }
    }
}

/// Returns a remark about a C++ type that represents another type; `None` if the C++ type is exact.
pub(crate) fn remark(element_type: PrimitiveType) -> Option<&'static str> {
    use PrimitiveType::*;
    match element_type {
        F16 => Some("IEEE half as bits; see tfcompile::HalfToFloat and FloatToHalf."),
        Bf16 => Some("bfloat16 as bits; see tfcompile::BFloat16ToFloat and FloatToBFloat16."),
        F8e5m2 => Some("8-bit floats as bits: 1 sign, 5 exponent, 2 fraction."),
        F8e4m3 => Some("8-bit floats as bits: 1 sign, 4 exponent, 3 fraction."),
        F8e3m4 => Some("8-bit floats as bits: 1 sign, 3 exponent, 4 fraction."),
        F8e4m3fn => Some("8-bit floats as bits: 1 sign, 4 exponent, 3 fraction, no infinity."),
        F8e5m2fnuz => {
            Some("8-bit floats as bits: 1 sign, 5 exponent (bias 16), 2 fraction, no infinity, no -0.")
        }
        F8e4m3fnuz => {
            Some("8-bit floats as bits: 1 sign, 4 exponent (bias 8), 3 fraction, no infinity, no -0.")
        }
        F8e4m3b11fnuz => {
            Some("8-bit floats as bits: 1 sign, 4 exponent (bias 11), 3 fraction, no infinity, no -0.")
        }
        F8e8m0fnu => Some("Powers of two as bits: 8 exponent, no sign; 255 is NaN."),
        F6e3m2fn => {
            Some("6-bit floats as bits, one per byte: 1 sign, 3 exponent, 2 fraction, no infinity, no NaN.")
        }
        F6e2m3fn => {
            Some("6-bit floats as bits, one per byte: 1 sign, 2 exponent, 3 fraction, no infinity, no NaN.")
        }
        F4e2m1fn => {
            Some("4-bit floats as bits, one per byte: 1 sign, 2 exponent, 1 fraction, no infinity, no NaN.")
        }
        S1 | U1 => Some("1-bit integers, one per byte."),
        S2 | U2 => Some("2-bit integers, one per byte."),
        S4 | U4 => Some("4-bit integers, one per byte."),
        C64 => Some("Interleaved like std::complex<float>; pointers to that may point to this."),
        C128 => Some("Interleaved like std::complex<double>; pointers to that may point to this."),
        Pred | S8 | S16 | S32 | S64 | U8 | U16 | U32 | U64 | F32 | F64 => None,
    }
}

/// Returns the remark for C, where no conversion functions exist; see [`remark`].
pub(crate) fn c_remark(element_type: PrimitiveType) -> Option<&'static str> {
    match element_type {
        PrimitiveType::Pred => Some("0 or 1."),
        PrimitiveType::F16 => Some("IEEE half as bits."),
        PrimitiveType::Bf16 => Some("bfloat16 as bits: the upper half of a float."),
        PrimitiveType::C64 | PrimitiveType::C128 => None,
        _ => remark(element_type),
    }
}

/// Returns the alignment of an element in bytes. For complex numbers, this is the alignment of a
/// part.
pub(crate) fn alignment(element_type: PrimitiveType) -> usize {
    element_type.real_part().byte_size()
}

/// Returns XLA's name of the enumerator, such as `F32` or `F8E4M3FN`.
pub(crate) fn enumerator(element_type: PrimitiveType) -> String {
    element_type.name().to_ascii_uppercase()
}
