// Floats become quantized arguments, and quantized results become floats.

#include <cmath>

#include "check.h"
#include "maximum.h"

int main() {
  using models::Maximum;
  static_assert(Maximum::arg0_scale() == 0.05f && Maximum::arg0_zero_point() == 3, "the scale of the model");
  static_assert(Maximum::result_model_maximum_scale() == 0.05f, "the scale of the model");
  Maximum maximum;
  float x[24];
  for (float& value : x) value = 0.5f;
  const float y[4] = {0, 1, -1, 100};
  maximum.quantize_arg0(x);
  maximum.quantize_arg_serving_default_input_2_0(y);
  CHECK(maximum.Run());
  // 0.5 becomes 0.5 / 0.05 + 3 = 13, and y becomes 3, 23, -17, and 127, the greatest byte.
  const int stored[] = {13, 23, 13, 127};
  float real[24];
  maximum.dequantize_result0(real);
  for (int i = 0; i < 24; ++i) {
    CHECK(maximum.result_model_maximum_data()[i] == stored[i % 4]);
    CHECK(std::fabs(real[i] - 0.05f * static_cast<float>(stored[i % 4] - 3)) < 1e-6f);
  }
  return 0;
}
