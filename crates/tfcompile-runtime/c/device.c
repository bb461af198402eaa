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
int32_t tfcompile_rust_device_own(struct tfcompile_device_state* state, struct tfcompile_frame* frame);
int32_t tfcompile_rust_device_address(struct tfcompile_device_state* state, struct tfcompile_frame* frame,
                                      int32_t is_result, uint32_t index, uint64_t* address);
int32_t tfcompile_rust_device_start(struct tfcompile_device_state* state, struct tfcompile_frame* frame,
                                    const uint64_t* arguments, size_t argument_count, const uint64_t* results,
                                    size_t result_count, void* stream);
int32_t tfcompile_rust_device_finish(struct tfcompile_device_state* state, struct tfcompile_frame* frame,
                                     int64_t* sizes, size_t size_count);
int32_t tfcompile_rust_device_copy(struct tfcompile_device_state* state, struct tfcompile_frame* frame, int32_t is_out,
                                   void* host, uint64_t address, uint64_t bytes, void* stream);
int32_t tfcompile_rust_device_resident(struct tfcompile_device_state* state, struct tfcompile_frame* frame,
                                       uint32_t argument, int32_t is_resident);
void* tfcompile_rust_device_stream(const struct tfcompile_frame* frame);
void* tfcompile_rust_device_context(const struct tfcompile_device_state* state);

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

// Converts a status of device.h.
static int32_t result(struct tfcompile_device_state* state, struct tfcompile_frame* frame, int32_t status) {
  frame->error = NULL;
  return status == TFCOMPILE_DEVICE_OK ? 0 : tfcompile_device_state_fail(state, frame);
}

// Allocates the program's own arguments and results, all zero, before anything else uses them: Rust
// may read each of them as a `bool`. If that fails, the program is loaded again by the next call.
int32_t tfcompile_rust_device_own(struct tfcompile_device_state* state, struct tfcompile_frame* frame) {
  struct tfcompile_device_instance* const instance = frame->device;
  int32_t status = TFCOMPILE_DEVICE_OK;
  if (instance->own != 0) return 0;
  (void)tfcompile_device_instance_sizes(instance, &state->error);
  status = state->error.status;
  if (status == TFCOMPILE_DEVICE_OK) {
    status = tfcompile_device_zero(state->device, instance->own, instance->own_bytes, NULL, &state->error);
  }
  if (status != TFCOMPILE_DEVICE_OK) {
    tfcompile_device_instance_destroy(instance);
    frame->device = NULL;
  }
  return result(state, frame, status);
}

// Stores the address of the program's own argument or result.
int32_t tfcompile_rust_device_address(struct tfcompile_device_state* state, struct tfcompile_frame* frame,
                                      int32_t is_result, uint32_t index, uint64_t* address) {
  const int32_t status = tfcompile_rust_device_own(state, frame);
  if (status != 0) return status;
  *address = is_result != 0 ? tfcompile_device_instance_result(frame->device, index, &state->error)
                            : tfcompile_device_instance_argument(frame->device, index, &state->error);
  return result(state, frame, state->error.status);
}

// Starts a run on the caller's addresses, and on the program's own where they are 0 or missing.
int32_t tfcompile_rust_device_start(struct tfcompile_device_state* state, struct tfcompile_frame* frame,
                                    const uint64_t* arguments, size_t argument_count, const uint64_t* results,
                                    size_t result_count, void* stream) {
  struct tfcompile_device_instance* const instance = frame->device;
  const struct tfcompile_program* const program = &instance->loaded->program;
  uint64_t* const addresses = (uint64_t*)calloc(instance->bound_count, sizeof(uint64_t));
  int32_t status = addresses != NULL ? 0 : result(state, frame, tfcompile_device_fail_host(&state->error, "a run"));
  uint32_t i;
  // The sizes of bounded dimensions are always the program's own.
  if (status == 0 && program->size_count > 0) status = tfcompile_rust_device_own(state, frame);
  for (i = 0; status == 0 && i + 1 < instance->bound_count; ++i) {
    const int32_t is_result = i >= program->argument_count;
    const uint32_t index = is_result ? i - program->argument_count : i;
    // The result of a variable has the address of the argument.
    if (tfcompile_instance_bytes(instance, i) == 0 || tfcompile_instance_shared(instance, i) != 0) continue;
    if (!is_result && index < argument_count) addresses[i] = arguments[index];
    if (is_result && index < result_count) addresses[i] = results[index];
    if (addresses[i] == 0) status = tfcompile_rust_device_address(state, frame, is_result, index, &addresses[i]);
  }
  if (status == 0) {
    status = result(state, frame,
                    tfcompile_device_instance_enqueue(instance, addresses, addresses + program->argument_count, 0,
                                                      stream, &state->error));
  }
  free(addresses);
  return status;
}

// Waits for the last run on device memory, and copies the sizes of bounded dimensions.
int32_t tfcompile_rust_device_finish(struct tfcompile_device_state* state, struct tfcompile_frame* frame,
                                     int64_t* sizes, size_t size_count) {
  const int32_t status = tfcompile_device_state_finish(state, frame);
  uint64_t from;
  if (status != 0 || frame->device == NULL || size_count != frame->device->loaded->program.size_count) return status;
  if (size_count == 0 || frame->device->own == 0) return 0;
  from = tfcompile_device_instance_sizes(frame->device, &state->error);
  return result(state, frame,
                tfcompile_device_copy_out(state->device, sizes, from, size_count * sizeof *sizes, NULL, &state->error));
}

// Copies on a stream. With a null one, copies after the last run, and is done on return.
int32_t tfcompile_rust_device_copy(struct tfcompile_device_state* state, struct tfcompile_frame* frame, int32_t is_out,
                                   void* host, uint64_t address, uint64_t bytes, void* stream) {
  int32_t status = TFCOMPILE_DEVICE_OK;
  if (stream == NULL) status = tfcompile_device_instance_finish(frame->device, &state->error);
  if (status == TFCOMPILE_DEVICE_CHECK_FAILED) status = TFCOMPILE_DEVICE_OK;
  if (status == TFCOMPILE_DEVICE_OK) {
    status = is_out ? tfcompile_device_copy_out(state->device, host, address, bytes, stream, &state->error)
                    : tfcompile_device_copy_in(state->device, address, host, bytes, stream, &state->error);
  }
  return result(state, frame, status);
}

int32_t tfcompile_rust_device_resident(struct tfcompile_device_state* state, struct tfcompile_frame* frame,
                                       uint32_t argument, int32_t is_resident) {
  const int32_t status = tfcompile_rust_device_own(state, frame);
  if (status != 0) return status;
  return result(state, frame,
                tfcompile_device_instance_set_resident(frame->device, argument, is_resident, &state->error));
}

void* tfcompile_rust_device_stream(const struct tfcompile_frame* frame) {
  return tfcompile_device_instance_stream(frame->device);
}

void* tfcompile_rust_device_context(const struct tfcompile_device_state* state) {
  return tfcompile_device_native_context(state->device);
}
