/* The C header of a model with quantized arrays, which is C99 and C++ alike. */

#include <stdio.h>
#include <stdlib.h>

#include "quantized_c.h"

#define CHECK(condition)                                                 \
  do {                                                                   \
    if (!(condition)) {                                                  \
      fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);    \
      exit(1);                                                           \
    }                                                                    \
  } while (0)

static unsigned char memory[ENTRY_QUANTIZED_ARENA_BYTES];

int main(void) {
  static const float x[6] = {-1.25f, 0.25f, 0.2f, -0.25f, 1e30f, -1e30f};
  static const int stored[6] = {-6, -2, -3, -4, 127, -128};
  /* 0.25 * (stored - 4). */
  static const float real[6] = {-2.5f, -1.5f, -1.75f, -2.0f, 30.75f, -33.0f};
  static const float w[2] = {-1.0f, 0.25f};
  entry_quantized_state* const state = entry_quantized_init(memory);
  float y[6], u = -25.5f, new_w[2];
  int i;
  CHECK(ENTRY_QUANTIZED_arg_x_SCALE == 0.5f && ENTRY_QUANTIZED_arg_x_ZERO_POINT == -3);
  CHECK(ENTRY_QUANTIZED_arg_bias_SCALE == 0.125f && ENTRY_QUANTIZED_result1_ZERO_POINT == 7);
  entry_quantized_quantize_arg_x(state, x);
  for (i = 0; i < 6; ++i) CHECK(entry_quantized_arg_x(state)[i] == stored[i]);
  entry_quantized_quantize_arg1(state, &u);
  CHECK(*entry_quantized_arg1(state) == 0);
  entry_quantized_quantize_var_w(state, w);
  CHECK(entry_quantized_var_w(state)[0] == -32768 && entry_quantized_var_w(state)[1] == 8192);
  entry_quantized_var_w(state)[0] = -4;
  CHECK(entry_quantized_run(state) == 0);
  entry_quantized_dequantize_result_y(state, y);
  for (i = 0; i < 6; ++i) CHECK(y[i] == real[i]);
  entry_quantized_dequantize_var_w(state, new_w);
  CHECK(new_w[0] == -8.0f / 32768 && new_w[1] == 0.5f);
  entry_quantized_dequantize_result1(state, y);
  return 0;
}
