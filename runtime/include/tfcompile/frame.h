// The C interface of a compiled object: one function over one struct. Usable from C and C++.
//
// Everything that a call of the compiled function needs or gives back passes through the frame, so an object has no
// other interface and needs no library. New fields are appended, and `size` says which the caller knows.

#ifndef TFCOMPILE_FRAME_H_
#define TFCOMPILE_FRAME_H_

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// The layout described here; what `tfcompile_frame::version` holds.
#define TFCOMPILE_FRAME_VERSION 1

// What a compiled function returns where a failed assert is to end the process (`--assert=abort`). The class of the C++
// header prints the message and aborts; C and freestanding headers, which have nothing to print with, return it.
#define TFCOMPILE_ABORT INT32_MIN

// A piece of parallel work: does items [begin, end) as worker `worker`. Returns 0, or non-zero to stop the call.
typedef int32_t (*tfcompile_parallel_body)(void* data, int64_t begin, int64_t end, int64_t worker);

// Does items [0, count) by calling `body` on disjoint ranges that cover them, at the same time if it likes, and returns
// when all are done: 0, or the first non-zero value that `body` returned. The ranges may be any; two calls of `body`
// that overlap in time have different workers, and every worker is less than `max_workers`. Throws nothing: compiled
// code cannot be unwound.
typedef int32_t (*tfcompile_parallel_for)(void* context, int64_t count, tfcompile_parallel_body body, void* data);

struct tfcompile_frame {
  uint64_t size;                        // Bytes of this struct as the caller knows it.
  uint32_t version;                     // TFCOMPILE_FRAME_VERSION.
  uint32_t reserved;                    // 0.
  void* const* args;                    // One buffer for each argument: feeds, then variables. Aligned as an element.
  void* const* results;                 // One buffer for each result. That of a written variable is its argument's.
  void* temps;                          // Aligned to 64 bytes. Its leading persistent part lives on between calls.
  const void* constants;                // Aligned to 64 bytes.
  tfcompile_parallel_for parallel_for;  // Null: everything runs on the calling thread.
  void* context;                        // The first argument of `parallel_for`.
  int64_t max_workers;                  // At least 1.
  void* scratch;                        // max_workers times the scratch size; null if that size is 0.
  int64_t* profile_counters;            // Null: don't count.
  const char* error;                    // Out: a static message if the function returned non-zero.
  int64_t* dynamic_sizes;               // Out: true sizes of bounded dimensions. Null if there are none.
};

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // TFCOMPILE_FRAME_H_
