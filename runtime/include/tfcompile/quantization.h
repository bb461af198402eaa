// Real numbers and the integers of quantized arrays: real = scale * (stored - zero point). Usable
// from C and C++; needs no library.

#ifndef TFCOMPILE_QUANTIZATION_H_
#define TFCOMPILE_QUANTIZATION_H_

#include <stdint.h>

// Returns the integer from `low` to `high` for a real number, as the operator QUANTIZE of
// TensorFlow Lite does: value / scale is rounded to the nearest integer, halves away from zero.
// Numbers beyond the range become its nearest end, and NaN becomes the zero point. The zero point
// is in the range, which has at most 2^16 integers.
static inline int32_t tfcompile_quantize(float value, float scale, int32_t zero_point, int32_t low, int32_t high) {
  const float steps = value / scale;
  int32_t whole;
  float rest;
  if (steps >= (float)(high - zero_point)) return high;
  if (steps <= (float)(low - zero_point)) return low;
  if (steps != steps) return zero_point;
  // Adding 0.5 before truncation would round 0.49999997 up.
  whole = (int32_t)steps;
  rest = steps - (float)whole;
  if (rest >= 0.5f) ++whole;
  if (rest <= -0.5f) --whole;
  return zero_point + whole;
}

// Returns the real number that an integer stands for.
static inline float tfcompile_dequantize(int32_t stored, float scale, int32_t zero_point) {
  return scale * (float)(stored - zero_point);
}

#endif  // TFCOMPILE_QUANTIZATION_H_
