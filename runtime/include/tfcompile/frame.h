// The C interface of a compiled object: one function with one struct. Usable from C and C++.
//
// The frame contains all inputs and outputs of a call, so an object has no other interface and
// needs no library. New fields are appended, and `size` states which fields the caller knows.

#ifndef TFCOMPILE_FRAME_H_
#define TFCOMPILE_FRAME_H_

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// Version of the layout below, the value of `tfcompile_frame::version`.
#define TFCOMPILE_FRAME_VERSION 1

// Return value of a compiled function if a failed assertion must end the process
// (`--assert=abort`). The class of the C++ header prints the message and aborts. C and freestanding
// headers cannot print, so they return it.
#define TFCOMPILE_ABORT INT32_MIN

// An instance of a device program: see device.h.
struct tfcompile_device_instance;

// A piece of parallel work: processes items [begin, end) as worker `worker`. Returns 0, or nonzero
// to stop the call.
typedef int32_t (*tfcompile_parallel_body)(void* data, int64_t begin, int64_t end, int64_t worker);

// Processes items [0, count) by calling `body` on disjoint ranges that cover them, possibly
// concurrently. Returns when all are done: 0, or the first nonzero value that `body` returned. Any
// partition into ranges is permitted. Concurrent calls of `body` must have different workers, and
// every worker must be less than `max_workers`. Must not throw, because compiled code cannot be
// unwound.
typedef int32_t (*tfcompile_parallel_for)(void* context, int64_t count, tfcompile_parallel_body body, void* data);

struct tfcompile_frame {
  uint64_t size;                        // Size of this struct in the caller's version.
  uint32_t version;                     // TFCOMPILE_FRAME_VERSION.
  uint32_t reserved;                    // 0.
  void* const* args;                    // One buffer per argument: feeds, then variables.
                                        // Aligned as an element.
  void* const* results;                 // One buffer per result. A written variable shares
                                        // its argument's buffer.
  void* temps;                          // Aligned to 64 bytes. The leading persistent part
                                        // survives between calls.
  const void* constants;                // Aligned to 64 bytes.
  tfcompile_parallel_for parallel_for;  // Null: everything runs on the calling thread.
  void* context;                        // First argument of `parallel_for`.
  int64_t max_workers;                  // Number of workers, at least 1.
  void* scratch;                        // max_workers times the scratch size; null if that is 0.
  int64_t* profile_counters;            // Null: no counting.
  const char* error;                    // Out: a static message if the function returned nonzero.
  int64_t* dynamic_sizes;               // Out: actual sizes of bounded dimensions. Null if none.
  struct tfcompile_device_instance* device;  // Runs a program for a device. Null in programs for
                                             // processors.
};

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // TFCOMPILE_FRAME_H_
