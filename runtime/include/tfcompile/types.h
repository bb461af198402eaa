// Conversions of element types that C++17 does not have.
//
// f16 and bf16 are uint16_t with the raw bits, and f8e5m2 and f8e4m3fn are uint8_t with the raw
// bits. The functions below convert f16 and bf16. Complex numbers are plain structs with the layout
// of std::complex (see complex.h). Integers narrower than a byte occupy one byte: int8_t or
// uint8_t.

#ifndef TFCOMPILE_TYPES_H_
#define TFCOMPILE_TYPES_H_

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "tfcompile/complex.h"

namespace tfcompile {

static_assert(sizeof(bool) == 1, "a predicate must have one byte");

// Converts a bfloat16 to float. Exact.
inline float BFloat16ToFloat(::std::uint16_t bits) {
  const ::std::uint32_t wide = static_cast<::std::uint32_t>(bits) << 16;
  float value;
  ::std::memcpy(&value, &wide, sizeof value);
  return value;
}

// Converts a float to the nearest bfloat16, ties to even. NaN stays NaN.
inline ::std::uint16_t FloatToBFloat16(float value) {
  ::std::uint32_t bits;
  ::std::memcpy(&bits, &value, sizeof bits);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return static_cast<::std::uint16_t>((bits >> 16) | 0x0040u);
  bits += 0x7fffu + ((bits >> 16) & 1u);
  return static_cast<::std::uint16_t>(bits >> 16);
}

// Converts an IEEE half to float. Exact.
inline float HalfToFloat(::std::uint16_t bits) {
  const ::std::uint32_t sign = static_cast<::std::uint32_t>(bits & 0x8000u) << 16;
  const ::std::uint32_t magnitude = bits & 0x7fffu;
  if (magnitude < 0x0400u) {
    // Zero or subnormal: a multiple of 2^-24.
    const float value = static_cast<float>(magnitude) * 5.9604644775390625e-8f;
    return sign != 0 ? -value : value;
  }
  // Infinity and NaN keep an exponent of ones. Other values change from bias 15 to bias 127.
  const ::std::uint32_t bias = magnitude >= 0x7c00u ? 0x70000000u : 0x38000000u;
  const ::std::uint32_t wide = sign | ((magnitude << 13) + bias);
  float value;
  ::std::memcpy(&value, &wide, sizeof value);
  return value;
}

// Converts a float to the nearest IEEE half, ties to even. Overflow yields infinity; NaN stays NaN.
inline ::std::uint16_t FloatToHalf(float value) {
  ::std::uint32_t bits;
  ::std::memcpy(&bits, &value, sizeof bits);
  const ::std::uint16_t sign = static_cast<::std::uint16_t>((bits >> 16) & 0x8000u);
  bits &= 0x7fffffffu;
  if (bits > 0x7f800000u) return static_cast<::std::uint16_t>(sign | 0x7e00u | ((bits >> 13) & 0x01ffu));
  if (bits >= 0x477ff000u) return static_cast<::std::uint16_t>(sign | 0x7c00u);
  if (bits < 0x33000001u) return sign;
  // A normal result drops 13 bits. A subnormal one drops more, and its leading one is no longer
  // implied.
  ::std::uint32_t shift = 13;
  ::std::uint32_t significand = bits - 0x38000000u;
  if (bits < 0x38800000u) {
    shift = 126 - (bits >> 23);
    significand = (bits & 0x007fffffu) | 0x00800000u;
  }
  const ::std::uint32_t kept = significand >> shift;
  const ::std::uint32_t rest = significand & ((1u << shift) - 1u);
  const ::std::uint32_t half = 1u << (shift - 1);
  const ::std::uint32_t up = rest > half || (rest == half && (kept & 1u) != 0) ? 1u : 0u;
  return static_cast<::std::uint16_t>(sign | (kept + up));
}

}  // namespace tfcompile

// Type names that programs expect from TensorFlow's headers.
namespace tensorflow {

using int8 = ::std::int8_t;
using int16 = ::std::int16_t;
using int32 = ::std::int32_t;
using int64 = ::std::int64_t;
using uint8 = ::std::uint8_t;
using uint16 = ::std::uint16_t;
using uint32 = ::std::uint32_t;
using uint64 = ::std::uint64_t;

}  // namespace tensorflow

#endif  // TFCOMPILE_TYPES_H_
