/* The C headers of several models in one program, which is C99 and C++ alike. */

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "add_c.h"
#include "constant_c.h"
#include "counter_c.h"
#include "far_c.h"
#include "matmul_and_add_c.h"
#include "scale_c.h"
#include "train_c.h"
#include "types_c.h"
/* Twice, and beside the runtime's own header, which has the same frame. */
#include "add_c.h"
#include "tfcompile/frame.h"

#define CHECK(condition)                                                 \
  do {                                                                   \
    if (!(condition)) {                                                  \
      fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);    \
      exit(1);                                                           \
    }                                                                    \
  } while (0)

static unsigned char add_memory[ENTRY_ADDCOMP_ARENA_BYTES + 1];

static void add(void) {
  /* Any memory will do, however it is aligned. */
  entry_addcomp_state* const state = entry_addcomp_init(add_memory + 1);
  const int32_t mine = 40;
  CHECK(entry_addcomp_init(NULL) == NULL);
  CHECK(state->memory == add_memory + 1);
  CHECK((unsigned char*)entry_addcomp_result0(state) + 64 <= add_memory + sizeof add_memory);
  CHECK(ENTRY_ADDCOMP_NUM_ARGS == 2 && ENTRY_ADDCOMP_NUM_RESULTS == 1 && ENTRY_ADDCOMP_NUM_VARIABLES == 0);
  CHECK(*entry_addcomp_arg0(state) == 0);
  *entry_addcomp_arg0(state) = 1;
  *entry_addcomp_arg1(state) = 2;
  CHECK(entry_addcomp_run(state) == 0 && entry_addcomp_error(state)[0] == 0);
  CHECK(*entry_addcomp_result0(state) == 3);
  entry_addcomp_set_arg1(state, &mine);
  CHECK(entry_addcomp_run(state) == 0 && *entry_addcomp_result0(state) == 41);
  entry_addcomp_set_arg1(state, NULL);
  CHECK(entry_addcomp_run(state) == 0 && *entry_addcomp_result0(state) == 3);
}

/* Two workers, one item each, one after the other. */
static int32_t two_workers(void* context, int64_t count, tfcompile_parallel_body body, void* data) {
  int32_t status = 0;
  int64_t i;
  ++*(int*)context;
  for (i = 0; i < count && status == 0; ++i) status = body(data, i, i + 1, i % 2);
  return status;
}

static void matmul_and_add(void) {
  const size_t dims[] = MATMUL_arg_x_DIMS;
  const float x[4] = {1, 2, 3, 4}, y[4] = {5, 6, 7, 8};
  unsigned char scratch[2 * MATMUL_SCRATCH_BYTES + 64];
  unsigned char* const aligned = scratch + (64 - (uintptr_t)scratch % 64) % 64;
  matmul_args args;
  matmul_results results;
  int calls = 0;
  matmul_state* const state = MATMUL_CREATE();
  CHECK(state != NULL && sizeof dims == MATMUL_arg_x_RANK * sizeof dims[0] && dims[0] == 2 && dims[1] == 2);
  CHECK(MATMUL_arg_y_INDEX == 1 && MATMUL_arg_y_COUNT == 4 && MATMUL_arg_y_BYTES == 16);
  args.arg_x = x;
  args.arg_y = y;
  CHECK(matmul_call(state, &args, &results) == 0);
  CHECK(results.result_x_y_prod[0] == 19 && results.result_x_y_prod[3] == 50 && results.result_x_y_sum[3] == 12);
  CHECK(matmul_set_parallel_for(state, two_workers, &calls, 2, NULL) != 0);
  CHECK(matmul_set_parallel_for(state, two_workers, &calls, 2, aligned + 1) != 0);
  CHECK(matmul_set_parallel_for(state, two_workers, &calls, 2, aligned) == 0);
  memset(scratch, 0, sizeof scratch);
  CHECK(matmul_run(state) == 0 && calls == 1 && matmul_result_x_y_prod(state)[2] == 43);
  CHECK(matmul_set_parallel_for(state, NULL, NULL, 0, NULL) == 0);
  CHECK(matmul_run(state) == 0 && calls == 1 && matmul_result_x_y_prod(state)[2] == 43);
  CHECK(matmul_profile_counters(state)[0] == 3 && matmul_profile_counters(state)[1] == 0);
  MATMUL_DESTROY(state);
}

static void train(void) {
  const float other[3] = {1, 2, 3};
  float kernel[3] = {10, 10, 10};
  entry_train_state* state;
  static unsigned char memory[ENTRY_TRAIN_ARENA_BYTES];
  /* What must be zero at first becomes so. */
  memset(memory, 0xff, sizeof memory);
  state = entry_train_init(memory);
  CHECK(*entry_train_var_layer_kernel_3(state) == 0);
  entry_train_set_var_layer_kernel(state, other);
  entry_train_set_var_layer_kernel_2(state, kernel);
  *entry_train_arg_step_size(state) = 2;
  CHECK(entry_train_run(state) == 0);
  CHECK(kernel[0] == 8 && kernel[2] == 4 && entry_train_var_layer_kernel_2(state) == kernel);
  CHECK(*entry_train_var_layer_kernel_3(state) == 0.5f && *entry_train_result_class(state) == 1);
  CHECK(entry_train_run(state) == 0 && kernel[2] == -2 && *entry_train_result_class(state) == 2);
  /* Back to the state's own memory, which the runs above left alone. */
  entry_train_set_var_layer_kernel_2(state, NULL);
  CHECK(entry_train_run(state) == 0 && kernel[2] == -2 && entry_train_var_layer_kernel_2(state)[2] == -6);
  *entry_train_arg_step_size(state) = -1;
  CHECK(entry_train_run(state) == 7 && strcmp(entry_train_error(state), "the step is negative") == 0);
  *entry_train_arg_step_size(state) = 0;
  CHECK(entry_train_run(state) == 0 && entry_train_error(state)[0] == 0);
}

static void types(void) {
  static unsigned char memory[ENTRY_TYPES_ARENA_BYTES];
  entry_types_state* const state = entry_types_init(memory);
  entry_types_arg_pred(state)[1] = 1;
  entry_types_arg_c64(state)[1].real = 3;
  entry_types_arg_c64(state)[1].imag = 4;
  entry_types_arg_bf16(state)[0] = 0x3f80;
  CHECK(entry_types_run(state) == 0);
  CHECK(entry_types_result_c64(state)[1].imag == 4 && entry_types_result_bf16(state)[0] == 0x3f80);
  CHECK(ENTRY_TYPES_arg_scalar_RANK == 0 && ENTRY_TYPES_arg_empty_COUNT == 0);
}

/* The bytes of a file, aligned to 64. */
static const unsigned char* slurp(const char* path, size_t* size) {
  static unsigned char rooms[8][4096 + 64];
  static int used = 0;
  unsigned char* bytes = rooms[used++];
  FILE* const file = fopen(path, "rb");
  CHECK(file != NULL);
  bytes += (64 - (uintptr_t)bytes % 64) % 64;
  *size = fread(bytes, 1, 4096, file);
  fclose(file);
  return bytes;
}

static void constants_in_a_file(void) {
  static unsigned char memory[SCALE_MODEL_ARENA_BYTES];
  scale_model_state* const state = scale_model_init(memory);
  size_t size;
  const unsigned char* file;
  float* const x = scale_model_arg_x(state);
  x[0] = x[1] = x[2] = x[3] = 2;
  CHECK(scale_model_run(state) != 0 && strstr(scale_model_error(state), "scale_model_set_constants") != NULL);
  file = slurp("first.weights", &size);
  CHECK(scale_model_set_constants(state, file, size) == NULL);
  CHECK(scale_model_run(state) == 0 && scale_model_result_y(state)[3] == 8);
  CHECK(strstr(scale_model_set_constants(state, file, size - 1), "truncated") != NULL);
  CHECK(strstr(scale_model_set_constants(state, file, 63), "truncated within its header") != NULL);
  CHECK(strstr(scale_model_set_constants(state, file + 1, size - 1), "TFCCONST") != NULL);
  CHECK(scale_model_set_constants(state, NULL, 0) != NULL);
  file = slurp("other_layout.weights", &size);
  CHECK(strstr(scale_model_set_constants(state, file, size), "other code") != NULL);
  file = slurp("other_version.weights", &size);
  CHECK(strstr(scale_model_set_constants(state, file, size), "version") != NULL);
  CHECK(scale_model_run(state) == 0 && scale_model_result_y(state)[3] == 8);
  file = slurp("second.weights", &size);
  CHECK(scale_model_set_constants(state, file, size) == NULL);
  CHECK(scale_model_run(state) == 0 && scale_model_result_y(state)[3] == 80);
}

static void far_constants(void) {
  static unsigned char memory[ENTRY_FAR_ARENA_BYTES];
  entry_far_state* const state = entry_far_init(memory);
  *entry_far_arg0(state) = 1;
  CHECK(entry_far_run(state) == 0 && *entry_far_result0(state) == 1.25f);
}

static void little(void) {
  static unsigned char constant_memory[ENTRY_CONSTANT_ARENA_BYTES], counter_memory[ENTRY_COUNTER_ARENA_BYTES];
  entry_constant_state* const constant = entry_constant_init(constant_memory);
  entry_counter_state* const counter = entry_counter_init(counter_memory);
  entry_constant_results results;
  entry_counter_args args;
  float mine = 7;
  CHECK(entry_constant_call(constant, &results) == 0 && *results.result0 == 42);
  CHECK(entry_counter_run(counter) == 0 && *entry_counter_var_count(counter) == 1);
  args.var_count = &mine;
  CHECK(entry_counter_call(counter, &args) == 0 && mine == 8);
  args.var_count = NULL;
  CHECK(entry_counter_call(counter, &args) == 0 && *entry_counter_var_count(counter) == 2 && mine == 8);
}

int main(void) {
  add();
  matmul_and_add();
  train();
  types();
  constants_in_a_file();
  far_constants();
  little();
  return 0;
}
