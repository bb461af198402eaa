/* A C program (or C++: the same text) over the C header, in static memory and in allocated memory. */

#include <stdio.h>
#include <stdlib.h>

#include "expect.h"
#include "layer_c.h"

static unsigned char memory[LAYER_ARENA_BYTES];

static int check(layer_state* state) {
  int i, j, k, wrong = 0;
  if (state == NULL) return 1;
  for (i = 0; i < 2; ++i) {
    for (k = 0; k < 4; ++k) layer_arg_x(state)[4 * i + k] = layer_input(i, k);
  }
  if (layer_run(state) != 0) {
    fprintf(stderr, "%s\n", layer_error(state));
    return 1;
  }
  for (i = 0; i < 2; ++i) {
    for (j = 0; j < 3; ++j) {
      const float got = layer_result_y(state)[3 * i + j], want = layer_output(0, i, j);
      if (got != want) fprintf(stderr, "y[%d][%d] is %f, not %f\n", i, j, (double)got, (double)want);
      wrong += got != want;
    }
  }
  return wrong;
}

int main(void) {
  layer_state* const allocated = LAYER_CREATE();
  const size_t dims[] = LAYER_arg_x_DIMS;
  int wrong = check(layer_init(memory)) + check(allocated);
  LAYER_DESTROY(allocated);
  wrong += dims[0] != 2 || dims[1] != 4 || LAYER_result_y_COUNT != 6;
  return wrong != 0;
}
