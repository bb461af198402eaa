/* The C headers of models with named dimensions, which are C99 and C++ alike. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "batched_c.h"
#include "sequences_c.h"

#define CHECK(condition)                                                 \
  do {                                                                   \
    if (!(condition)) {                                                  \
      fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);    \
      exit(1);                                                           \
    }                                                                    \
  } while (0)

static unsigned char memory[BATCHED_ARENA_BYTES];
static unsigned char more_memory[ENTRY_SEQUENCES_ARENA_BYTES];

static void check_rows(const batched_state* state, int rows, float scale) {
  int i;
  CHECK(batched_batch(state) == rows && batched_arg_x_dim_size(state, 0) == rows && batched_arg_x_dim_size(state, 1) == 3);
  CHECK(batched_result_y_dim_size(state, 0) == rows && batched_result_y_dim_size(state, 1) == 3);
  for (i = 0; i < 3 * rows; ++i) CHECK(batched_result_y(state)[i] == scale * (float)i);
}

static void check_batched(void) {
  const int64_t outside[] = {0, -1, 9, (INT64_C(1) << 32) + 3, INT64_MAX};
  batched_state* state;
  batched_args args;
  batched_results results;
  float x[24], scale = 5;
  int i, rows;
  memset(memory, 0xa5, sizeof(memory));
  state = batched_init(memory);
  CHECK(BATCHED_batch_MIN == 1 && BATCHED_batch_MAX == 8 && batched_batch(state) == 8);
  for (i = 0; i < 24; ++i) batched_arg_x(state)[i] = x[i] = (float)i;
  for (rows = 8; rows >= 1; --rows) {
    *batched_arg_scale(state) = (float)rows;
    CHECK(batched_set_batch(state, rows) == 0 && batched_run(state) == 0 && batched_error(state)[0] == 0);
    check_rows(state, rows, (float)rows);
  }
  for (i = 0; i < 5; ++i) {
    CHECK(batched_set_batch(state, outside[i]) != 0 && batched_run(state) != 0);
    CHECK(strcmp(batched_error(state), "batch is out of range: 1..8") == 0);
    check_rows(state, 1, 1);
  }
  CHECK(batched_set_batch(state, 3) == 0 && batched_run(state) == 0);
  check_rows(state, 3, 1);
  args.arg_x = x;
  args.arg_scale = &scale;
  args.var_runs = NULL;
  args.batch = 6;
  CHECK(batched_call(state, &args, &results) == 0 && results.result_y == batched_result_y(state));
  check_rows(state, 6, 5);
  args.batch = 9;
  CHECK(batched_call(state, &args, &results) != 0);
  CHECK(strcmp(batched_error(state), "batch is out of range: 1..8") == 0);
  check_rows(state, 6, 5);
  CHECK(*batched_var_runs(state) == 10);
}

int main(void) {
  const float values[8] = {0, 0.5f, 1, 1.5f, 2, 2.5f, 3, 3.5f}; /* The integers 1 to 8. */
  float reals[4] = {-1, -1, -1, -1};
  entry_sequences_state* state;
  check_batched();
  state = entry_sequences_init(more_memory);
  CHECK(entry_sequences_dim_class(state) == 8 && entry_sequences_past_tokens(state) == 4);
  CHECK(entry_sequences_set_dim_class(state, 2) == 0 && entry_sequences_set_past_tokens(state, 3) == 0);
  CHECK(entry_sequences_arg_q_dim_size(state, 1) == 3 && ENTRY_SEQUENCES_arg_q_COUNT == 8);
  entry_sequences_arg_x(state)[3] = 20;
  entry_sequences_quantize_arg_q(state, values);
  CHECK(entry_sequences_run(state) == 0);
  CHECK(entry_sequences_result0_dim_size(state, 0) == 2 && entry_sequences_result0_dim_size(state, 1) == 3);
  CHECK(entry_sequences_result0(state)[4 + 2] == 23 && entry_sequences_result_s(state)[2] == 8);
  entry_sequences_dequantize_result_s(state, reals);
  CHECK(reals[2] == 3.5f && reals[3] == -1);
  return 0;
}
