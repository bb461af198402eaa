// The runtime of GPUs for the module `device`: functions with external names over the headers.

#if !defined(_GNU_SOURCE) && defined(__linux__)
#define _GNU_SOURCE
#endif

#include <stdlib.h>

#include "tfcompile/device_state.h"

struct tfcompile_device_state* tfcompile_rust_device_create(int32_t kind);
void tfcompile_rust_device_destroy(struct tfcompile_device_state* state, struct tfcompile_frame* frame);
void tfcompile_rust_device_close(struct tfcompile_device_state* state, struct tfcompile_frame* frame);
int32_t tfcompile_rust_device_select(struct tfcompile_device_state* state, struct tfcompile_frame* frame,
                                     int32_t ordinal);
int32_t tfcompile_rust_device_load(struct tfcompile_device_state* state, struct tfcompile_frame* frame,
                                   const void* program);

struct tfcompile_device_state* tfcompile_rust_device_create(int32_t kind) {
  struct tfcompile_device_state* const state =
      (struct tfcompile_device_state*)calloc(1, sizeof(struct tfcompile_device_state));
  if (state != NULL) state->options.kind = kind;
  return state;
}

void tfcompile_rust_device_destroy(struct tfcompile_device_state* state, struct tfcompile_frame* frame) {
  if (state == NULL) return;
  tfcompile_device_state_close(state, frame);
  free(state);
}

void tfcompile_rust_device_close(struct tfcompile_device_state* state, struct tfcompile_frame* frame) {
  if (state != NULL) tfcompile_device_state_close(state, frame);
}

int32_t tfcompile_rust_device_select(struct tfcompile_device_state* state, struct tfcompile_frame* frame,
                                     int32_t ordinal) {
  return tfcompile_device_state_select(state, frame, ordinal);
}

int32_t tfcompile_rust_device_load(struct tfcompile_device_state* state, struct tfcompile_frame* frame,
                                   const void* program) {
  return tfcompile_device_state_load(state, frame, program);
}
