/* Weights in memory, given to the C header's functions. */

#include <stdio.h>
#include <stdlib.h>

#include "expect.h"
#include "layer_c.h"

#define CHECK(condition)                                              \
  do {                                                                \
    if (!(condition)) {                                               \
      fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition); \
      return 1;                                                       \
    }                                                                 \
  } while (0)

static unsigned char memory[LAYER_ARENA_BYTES];
static unsigned char first[4096 + 64], again[4096 + 64], other[4096 + 64];

/* Reads a file to memory aligned to 64. */
static const unsigned char* slurp(const char* path, unsigned char* room, size_t* size) {
  FILE* const file = fopen(path, "rb");
  room += (64 - (uintptr_t)room % 64) % 64;
  if (file == NULL) return NULL;
  *size = fread(room, 1, 4096, file);
  fclose(file);
  return room;
}

static int gives(layer_state* state, int trained_again) {
  int i, j;
  if (layer_run(state) != 0) return 0;
  for (i = 0; i < 2; ++i) {
    for (j = 0; j < 3; ++j) {
      if (layer_result_y(state)[3 * i + j] != layer_output(trained_again, i, j)) return 0;
    }
  }
  return 1;
}

int main(void) {
  layer_state* const state = layer_init(memory);
  size_t first_size = 0, again_size = 0, other_size = 0;
  const unsigned char* const first_file = slurp("layer.constants", first, &first_size);
  const unsigned char* const again_file = slurp("again/layer.constants", again, &again_size);
  const unsigned char* const other_file = slurp("another_kind/layer.constants", other, &other_size);
  int i, k;
  for (i = 0; i < 2; ++i) {
    for (k = 0; k < 4; ++k) layer_arg_x(state)[4 * i + k] = layer_input(i, k);
  }
  CHECK(layer_run(state) != 0 && layer_error(state)[0] != 0);
  CHECK(layer_set_constants(state, first_file, first_size) == NULL && gives(state, 0));
  CHECK(layer_set_constants(state, other_file, other_size) != NULL && gives(state, 0));
  CHECK(layer_set_constants(state, again_file, again_size) == NULL && gives(state, 1));
  return 0;
}
