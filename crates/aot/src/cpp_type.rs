//! The C++ type of each element type.

use shape::PrimitiveType;

/// The type of an element in the header. Types that C++17 lacks are bits or plain structs; see `tfcompile/types.h`.
pub(crate) fn cpp_type(element_type: PrimitiveType) -> &'static str {
    match element_type {
        PrimitiveType::Pred => "bool",
        PrimitiveType::S2 | PrimitiveType::S4 | PrimitiveType::S8 => "::std::int8_t",
        PrimitiveType::S16 => "::std::int16_t",
        PrimitiveType::S32 => "::std::int32_t",
        PrimitiveType::S64 => "::std::int64_t",
        PrimitiveType::U2
        | PrimitiveType::U4
        | PrimitiveType::U8
        | PrimitiveType::F8e5m2
        | PrimitiveType::F8e4m3fn => "::std::uint8_t",
        PrimitiveType::U16 | PrimitiveType::F16 | PrimitiveType::Bf16 => "::std::uint16_t",
        PrimitiveType::U32 => "::std::uint32_t",
        PrimitiveType::U64 => "::std::uint64_t",
        PrimitiveType::F32 => "float",
        PrimitiveType::F64 => "double",
        PrimitiveType::C64 => "::tfcompile::complex64",
        PrimitiveType::C128 => "::tfcompile::complex128",
    }
}

/// The type of an element in C99. A pred is a byte, 0 or 1; complex numbers are structs that the C header defines.
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

/// What a reader must know about a type that stands in for another; `None` where the C++ type says it all.
pub(crate) fn remark(element_type: PrimitiveType) -> Option<&'static str> {
    match element_type {
        PrimitiveType::F16 => Some("IEEE half as bits; see tfcompile::HalfToFloat and FloatToHalf."),
        PrimitiveType::Bf16 => Some("bfloat16 as bits; see tfcompile::BFloat16ToFloat and FloatToBFloat16."),
        PrimitiveType::F8e5m2 => Some("8-bit floats as bits: 1 sign, 5 exponent, 2 fraction."),
        PrimitiveType::F8e4m3fn => Some("8-bit floats as bits: 1 sign, 4 exponent, 3 fraction, no infinity."),
        PrimitiveType::S2 | PrimitiveType::U2 => Some("2-bit integers, each in a byte of its own."),
        PrimitiveType::S4 | PrimitiveType::U4 => Some("4-bit integers, each in a byte of its own."),
        PrimitiveType::C64 => Some("Interleaved as std::complex<float>, whose pointers may point here."),
        PrimitiveType::C128 => Some("Interleaved as std::complex<double>, whose pointers may point here."),
        PrimitiveType::Pred
        | PrimitiveType::S8
        | PrimitiveType::S16
        | PrimitiveType::S32
        | PrimitiveType::S64
        | PrimitiveType::U8
        | PrimitiveType::U16
        | PrimitiveType::U32
        | PrimitiveType::U64
        | PrimitiveType::F32
        | PrimitiveType::F64 => None,
    }
}

/// As [`remark`], of what stands in C; there are no conversion functions there.
pub(crate) fn c_remark(element_type: PrimitiveType) -> Option<&'static str> {
    match element_type {
        PrimitiveType::Pred => Some("0 or 1."),
        PrimitiveType::F16 => Some("IEEE half as bits."),
        PrimitiveType::Bf16 => Some("bfloat16 as bits: the upper half of a float."),
        PrimitiveType::C64 | PrimitiveType::C128 => None,
        _ => remark(element_type),
    }
}

/// The alignment of an element in memory, in bytes: that of its parts for complex numbers.
pub(crate) fn alignment(element_type: PrimitiveType) -> usize {
    element_type.real_part().byte_size()
}

/// XLA's name of the enumerator: `F32`, `F8E4M3FN`.
pub(crate) fn enumerator(element_type: PrimitiveType) -> String {
    element_type.name().to_ascii_uppercase()
}
