/* C headers of two graphs in a program that has nothing but the kernel beneath it. */

#include "expect.h"
#include "layer_c.h"
#include "splits_c.h"
#include "start.h"

static unsigned char layer_memory[LAYER_ARENA_BYTES];
static unsigned char splits_memory[SPLITS_ARENA_BYTES];

static int check_layer(void) {
  layer_state* const state = layer_init(layer_memory);
  int i, j, k, wrong = 0;
  for (i = 0; i < 2; ++i) {
    for (k = 0; k < 4; ++k) layer_arg_x(state)[4 * i + k] = layer_input(i, k);
  }
  if (layer_run(state) != 0) return 1;
  for (i = 0; i < 2; ++i) {
    for (j = 0; j < 3; ++j) wrong += layer_result_y(state)[3 * i + j] != layer_output(0, i, j);
  }
  return wrong;
}

/* The recorded answer of TensorFlow for the oracle's graph. */
static int check_splits(void) {
  const float x[4] = {1, 2, 3, 4}, y[4] = {10, 20, 30, 40};
  const float want[4] = {7.8637556e+10f, 1.3427468e+11f, 1.9274172e+12f, 3.2996474e+12f};
  splits_args args;
  splits_results results;
  int i, wrong = 0;
  args.arg0 = x;
  args.arg1 = y;
  if (splits_call(splits_init(splits_memory), &args, &results) != 0) return 1;
  for (i = 0; i < 4; ++i) {
    const float ratio = results.result0[i] / want[i];
    wrong += !(ratio > 0.999999f && ratio < 1.000001f);
  }
  return wrong;
}

int check(void) { return check_layer() + 16 * check_splits(); }
