// Compatibility header for programs written for the first releases of TensorFlow's tfcompile:
// allocates one block of memory for several buffers.

#ifndef TFCOMPILE_FORWARD_AOT_RUNTIME_H_
#define TFCOMPILE_FORWARD_AOT_RUNTIME_H_

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>

#include "tfcompile/xla_compiled_cpu_function.h"

namespace tensorflow {
namespace tfcompile {
namespace runtime {
inline namespace tfcompile_v1 {

// Alignment of each buffer.
static constexpr ::std::size_t kAlign = 64;

// Returns the total size of `n` buffers, each rounded up to kAlign. A size of -1 means that the
// buffer is absent.
inline ::std::size_t aligned_buffer_bytes(const ::std::intptr_t* sizes, ::std::size_t n) {
  ::std::size_t total = 0;
  for (::std::size_t i = 0; i < n; ++i) {
    if (sizes[i] != -1) total += (static_cast<::std::size_t>(sizes[i]) + kAlign - 1) / kAlign * kAlign;
  }
  return total;
}

// Allocates all `n` buffers at once and sets bufs[i], which is null where the size is -1. Returns
// the argument for FreeContiguous, or null if there is nothing to allocate. Zeroes the memory if
// `annotate_initialized` is set.
inline void* MallocContiguousBuffers(const ::std::intptr_t* sizes, ::std::size_t n, void** bufs,
                                     bool annotate_initialized) {
  const ::std::size_t total = aligned_buffer_bytes(sizes, n);
  unsigned char* const block = total == 0 ? nullptr : static_cast<unsigned char*>(::operator new(total + kAlign));
  unsigned char* place = block;
  if (block != nullptr) {
    if (annotate_initialized) ::std::memset(block, 0, total + kAlign);
    place += (kAlign - reinterpret_cast<::std::uintptr_t>(block) % kAlign) % kAlign;
  }
  for (::std::size_t i = 0; i < n; ++i) {
    bufs[i] = sizes[i] == -1 ? nullptr : place;
    if (sizes[i] > 0) place += (static_cast<::std::size_t>(sizes[i]) + kAlign - 1) / kAlign * kAlign;
  }
  return block;
}

// Frees memory from MallocContiguousBuffers.
inline void FreeContiguous(void* contiguous) { ::operator delete(contiguous); }

}  // namespace tfcompile_v1
}  // namespace runtime
}  // namespace tfcompile
}  // namespace tensorflow

#endif  // TFCOMPILE_FORWARD_AOT_RUNTIME_H_
