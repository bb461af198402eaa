// Hand-written entry functions for the headers of tests/fixtures, in place of a compiled object.

#include <string.h>

#include "tfcompile/frame.h"

// Constants of every fixture. entry_train reads the first float.
#define CONSTANTS(entry) _Alignas(64) const unsigned char entry##_constants[64]

CONSTANTS(entry_addcomp);
int32_t entry_addcomp(struct tfcompile_frame* frame) {
  if (frame->size < sizeof(struct tfcompile_frame) || frame->version != 1) return 1;
  *(int32_t*)frame->results[0] = *(const int32_t*)frame->args[0] + *(const int32_t*)frame->args[1];
  return 0;
}

CONSTANTS(entry_matmulandaddcomp);

// Computes one row of both results. Each worker keeps its sums in its own scratch memory.
static int32_t Row(void* data, int64_t begin, int64_t end, int64_t worker) {
  struct tfcompile_frame* frame = data;
  const float* x = frame->args[0];
  const float* y = frame->args[1];
  float* sums = (float*)((char*)frame->scratch + 64 * worker);
  if (worker < 0 || worker >= frame->max_workers) return 2;
  for (int64_t row = begin; row < end; ++row) {
    for (int column = 0; column < 2; ++column) {
      sums[column] = x[2 * row] * y[column] + x[2 * row + 1] * y[2 + column];
      ((float*)frame->results[1])[2 * row + column] = x[2 * row + column] + y[2 * row + column];
    }
    memcpy((float*)frame->results[0] + 2 * row, sums, 2 * sizeof(float));
  }
  return 0;
}

int32_t entry_matmulandaddcomp(struct tfcompile_frame* frame) {
  if (frame->profile_counters != 0) frame->profile_counters[0] += 1;
  if ((uintptr_t)frame->scratch % 64 != 0) return 3;
  if (frame->parallel_for != 0) return frame->parallel_for(frame->context, 2, Row, frame);
  return Row(frame, 0, 2, 0);
}

// args: step, kernel (written), other (read), bias (written); constants: 0.5.
_Alignas(64) const unsigned char entry_train_constants[64] = {0, 0, 0, 0x3f};
int32_t entry_train(struct tfcompile_frame* frame) {
  const float step = *(const float*)frame->args[0];
  float* kernel = frame->args[1];
  const float* other = frame->args[2];
  float* bias = frame->args[3];
  int64_t* runs = frame->temps;
  if ((uintptr_t)frame->temps % 64 != 0 || (uintptr_t)frame->constants % 64 != 0) return 1;
  if (frame->results[1] != kernel || frame->results[2] != bias) return 1;
  if (step < 0) {
    frame->error = "the step is negative";
    return 7;
  }
  memset((char*)frame->temps + 8, 0xff, 192);
  for (int i = 0; i < 3; ++i) ((float*)frame->results[1])[i] = kernel[i] - step * other[i];
  ((float*)frame->results[2])[0] += *(const float*)frame->constants;
  *runs += 1;
  *(float*)frame->results[0] = (float)*runs;
  return 0;
}

// Copies bf16 and c64 to the results. The feeds are in the order of XLA's element types.
CONSTANTS(entry_types);
int32_t entry_types(struct tfcompile_frame* frame) {
  enum { kC64 = 12, kBf16 = 13 };
  memcpy(frame->results[0], frame->args[kBf16], 4);
  memcpy(frame->results[1], frame->args[kC64], 16);
  return 0;
}

// result = x * constants. The symbol of embedded constants exists in every object, but is unused
// here.
CONSTANTS(entry_scale);
int32_t entry_scale(struct tfcompile_frame* frame) {
  if (frame->constants == 0 || (uintptr_t)frame->constants % 64 != 0) return 1;
  for (int i = 0; i < 4; ++i) {
    ((float*)frame->results[0])[i] = ((const float*)frame->args[0])[i] * ((const float*)frame->constants)[i];
  }
  return 0;
}

// Constants reached through a pointer. The function adds the first one.
_Alignas(64) static const float far_away[16] = {0.25f};
const void* const entry_far_constants_pointer = far_away;
int32_t entry_far(struct tfcompile_frame* frame) {
  *(float*)frame->results[0] = *(const float*)frame->args[0] + *(const float*)frame->constants;
  return 0;
}

CONSTANTS(entry_constant);
int32_t entry_constant(struct tfcompile_frame* frame) {
  *(int32_t*)frame->results[0] = 42;
  return 0;
}

CONSTANTS(entry_counter);
int32_t entry_counter(struct tfcompile_frame* frame) {
  if (frame->results[0] != frame->args[0]) return 1;
  *(float*)frame->results[0] += 1;
  return 0;
}

// Only variables, which the function leaves unchanged.
CONSTANTS(entry_state);
int32_t entry_state(struct tfcompile_frame* frame) { return frame->version == 1 ? 0 : 1; }

// y = x, element by element; the variable w is doubled.
CONSTANTS(entry_quantized);
int32_t entry_quantized(struct tfcompile_frame* frame) {
  memcpy(frame->results[0], frame->args[0], 6);
  if (frame->results[2] != frame->args[4]) return 1;
  for (int i = 0; i < 2; ++i) ((int16_t*)frame->results[2])[i] *= 2;
  return 0;
}

// args: x, scale, the number of rows of x, the number of runs.
CONSTANTS(entry_batched);
int32_t entry_batched(struct tfcompile_frame* frame) {
  const float* x = frame->args[0];
  const float scale = *(const float*)frame->args[1];
  const int32_t rows = *(const int32_t*)frame->args[2];
  float* y = frame->results[0];
  if (rows < 1 || rows > 8) {
    frame->error = "batch is out of range: 1..8";
    return 1;
  }
  for (int i = 0; i < 24; ++i) y[i] = i < 3 * rows ? scale * x[i] : -1;
  *(float*)frame->results[1] += 1;
  frame->dynamic_sizes[0] = rows;
  return 0;
}

// args: x, q, the number of rows of x, the number of columns of q.
CONSTANTS(entry_sequences);
int32_t entry_sequences(struct tfcompile_frame* frame) {
  const float* x = frame->args[0];
  const int8_t* q = frame->args[1];
  const int32_t rows = *(const int32_t*)frame->args[2];
  const int32_t columns = *(const int32_t*)frame->args[3];
  float* z = frame->results[0];
  int8_t* s = frame->results[1];
  for (int i = 0; i < rows; ++i) {
    for (int j = 0; j < columns; ++j) z[4 * i + j] = x[3 * i] + (float)q[j];
  }
  for (int j = 0; j < columns; ++j) s[j] = (int8_t)(q[4 + j] + 1);
  frame->dynamic_sizes[0] = rows;
  frame->dynamic_sizes[1] = columns;
  frame->dynamic_sizes[2] = columns;
  return 0;
}
