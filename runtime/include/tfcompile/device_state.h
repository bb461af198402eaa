// The device of a computation in C: opened by the first run, with the program loaded on it. Used by
// the C headers of programs for GPUs. C99 and C++17.

#ifndef TFCOMPILE_DEVICE_STATE_H_
#define TFCOMPILE_DEVICE_STATE_H_

#include <stddef.h>
#include <stdint.h>

#include "tfcompile/device.h"
#include "tfcompile/frame.h"

#ifdef __cplusplus
extern "C" {
#endif

// All zero initially, except for the kind of the device in the options.
struct tfcompile_device_state {
  struct tfcompile_device_options options;
  struct tfcompile_device* device;
  const void* constants;  // Those of the program that is loaded.
  struct tfcompile_device_error error;
};

// Stores the message of the error in the frame. Returns its number, which is not 0: for a failed
// assertion of the graph, the assertion's own.
static inline int32_t tfcompile_device_state_fail(struct tfcompile_device_state* state, struct tfcompile_frame* frame) {
  frame->error = state->error.text;
  if (state->error.status == TFCOMPILE_DEVICE_CHECK_FAILED && state->error.code != 0) return state->error.code;
  return state->error.status != TFCOMPILE_DEVICE_OK ? state->error.status : 1;
}

// Opens the device. Returns 0 on success.
static inline int32_t tfcompile_device_state_open(struct tfcompile_device_state* state, struct tfcompile_frame* frame) {
  frame->error = NULL;
  if (state->device == NULL) state->device = tfcompile_device_open(&state->options, &state->error);
  return state->device != NULL ? 0 : tfcompile_device_state_fail(state, frame);
}

// Opens the device and loads the program with the frame's constants. Returns 0 on success.
static inline int32_t tfcompile_device_state_load(struct tfcompile_device_state* state, struct tfcompile_frame* frame,
                                                  const void* program) {
  const int32_t status = tfcompile_device_state_open(state, frame);
  if (status != 0) return status;
  if (frame->device != NULL && frame->constants == state->constants) return 0;
  tfcompile_device_instance_destroy(frame->device);
  frame->device = tfcompile_device_instance_create(state->device, program, frame->constants, &state->error);
  state->constants = frame->constants;
  return frame->device != NULL ? 0 : tfcompile_device_state_fail(state, frame);
}

// Closes the device. The next run opens it again.
static inline void tfcompile_device_state_close(struct tfcompile_device_state* state, struct tfcompile_frame* frame) {
  tfcompile_device_instance_destroy(frame->device);
  frame->device = NULL;
  if (state->device != NULL) tfcompile_device_close(state->device);
  state->device = NULL;
}

// Selects the device by its number. Returns 0 on success.
static inline int32_t tfcompile_device_state_select(struct tfcompile_device_state* state, struct tfcompile_frame* frame,
                                                    int32_t ordinal) {
  frame->error = NULL;
  if (state->device != NULL) {
    frame->error = "the device is already open: select it before the first run";
    return 1;
  }
  state->options.ordinal = ordinal;
  return 0;
}

// Address of an argument or result for an asynchronous run: `chosen` if not 0, else the instance's.
// Requires a loaded program. Returns 0 on failure.
static inline tfcompile_device_address tfcompile_device_state_address(struct tfcompile_device_state* state,
                                                                      struct tfcompile_frame* frame,
                                                                      tfcompile_device_address chosen, int is_result,
                                                                      uint32_t index) {
  tfcompile_device_address address = chosen;
  if (chosen != 0) return chosen;
  state->error.status = TFCOMPILE_DEVICE_OK;
  address = is_result ? tfcompile_device_instance_result(frame->device, index, &state->error)
                      : tfcompile_device_instance_argument(frame->device, index, &state->error);
  if (state->error.status != TFCOMPILE_DEVICE_OK) (void)tfcompile_device_state_fail(state, frame);
  return address;
}

// Starts a run on a stream. `chosen` has the caller's addresses of all arguments, then of all
// results; zeros are replaced by the instance's. Requires a loaded program. Returns 0 on success.
static inline int32_t tfcompile_device_state_enqueue(struct tfcompile_device_state* state,
                                                     struct tfcompile_frame* frame, tfcompile_device_address* addresses,
                                                     const tfcompile_device_address* chosen, uint32_t arguments,
                                                     uint32_t results, void* stream) {
  uint32_t i;
  for (i = 0; i < arguments + results; ++i) {
    const int is_result = i >= arguments;
    addresses[i] = tfcompile_device_state_address(state, frame, chosen[i], is_result, is_result ? i - arguments : i);
    if (frame->error != NULL) return tfcompile_device_state_fail(state, frame);
  }
  if (tfcompile_device_instance_enqueue(frame->device, addresses, addresses + arguments, 0, stream, &state->error) ==
      TFCOMPILE_DEVICE_OK) {
    return 0;
  }
  return tfcompile_device_state_fail(state, frame);
}

// Waits for the last run on device memory. Returns 0 if it succeeded.
static inline int32_t tfcompile_device_state_finish(struct tfcompile_device_state* state,
                                                    struct tfcompile_frame* frame) {
  frame->error = NULL;
  if (frame->device == NULL) return 0;
  if (tfcompile_device_instance_finish(frame->device, &state->error) == TFCOMPILE_DEVICE_OK) return 0;
  return tfcompile_device_state_fail(state, frame);
}

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // TFCOMPILE_DEVICE_STATE_H_
