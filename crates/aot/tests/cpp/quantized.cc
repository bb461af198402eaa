// A model with quantized arrays: scales, zero points, and conversions from and to floats.

#include <cmath>
#include <type_traits>

#include "check.h"
#include QUANTIZED_HEADER

// Static: a freestanding class contains its memory.
static Quantized model;

int main() {
  static_assert(Quantized::arg_x_scale() == 0.5f && Quantized::arg_x_zero_point() == -3, "by name");
  static_assert(Quantized::arg0_scale() == 0.5f && Quantized::arg1_zero_point() == 255, "by position");
  static_assert(Quantized::arg_bias_scale() == 0.125f && Quantized::var_r_zero_point() == 128, "without conversions");
  static_assert(Quantized::result_y_scale() == 0.25f && Quantized::result0_zero_point() == 4, "results");
  static_assert(Quantized::var_w_scale() == 1.0f / 32768, "nearest float");
  static_assert(std::is_same<decltype(model.arg_x_data()), std::int8_t*>::value, "typed");
  model.arg_x_scale_2() = 1.5f;  // The feed x_scale.
  CHECK(model.arg2() == 1.5f);

  // In steps of 0.5: -2.5, 0.5, 0.4, -0.5, and both ends.
  const float x[6] = {-1.25f, 0.25f, 0.2f, -0.25f, 1e30f, -INFINITY};
  model.quantize_arg_x(x);
  const int expected[6] = {-6, -2, -3, -4, 127, -128};
  for (int i = 0; i < 6; ++i) CHECK(model.arg_x_data()[i] == expected[i]);
  const float not_a_number[6] = {NAN, 65.0f, 64.75f, 64.7f, -62.5f, -62.2f};
  model.quantize_arg0(not_a_number);
  const int ends[6] = {-3, 127, 127, 126, -128, -127};
  for (int i = 0; i < 6; ++i) CHECK(model.arg_x_data()[i] == ends[i]);
  const float u = -25.5f;
  model.quantize_arg1(&u);
  CHECK(model.arg1() == 0);
  const float w[2] = {-1.0f, 0.25f};
  model.quantize_var_w(w);
  CHECK(model.var_w(0) == -32768 && model.var_w(1) == 8192);
  model.var_w(0) = -4;

  model.quantize_arg_x(x);
  CHECK(model.Run());
  float y[6];
  model.dequantize_result_y(y);
  // 0.25 * (stored - 4).
  const float real[6] = {-2.5f, -1.5f, -1.75f, -2.0f, 30.75f, -33.0f};
  for (int i = 0; i < 6; ++i) CHECK(y[i] == real[i]);
  float new_w[2];
  model.dequantize_var_w(new_w);
  CHECK(new_w[0] == -8.0f / 32768 && new_w[1] == 0.5f);
  static std::uint8_t r[2] = {0, 129};
  model.set_var_r_data(r);
  float real_r[2];
  model.dequantize_var_r(real_r);
  CHECK(real_r[0] == -256.0f && real_r[1] == 2.0f);
  model.dequantize_result1(nullptr);  // No elements.
  return 0;
}
