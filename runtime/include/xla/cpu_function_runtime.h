// Forwarding header at the path that programs for TensorFlow's tfcompile include: buffer alignment.

#ifndef TFCOMPILE_FORWARD_XLA_CPU_FUNCTION_RUNTIME_H_
#define TFCOMPILE_FORWARD_XLA_CPU_FUNCTION_RUNTIME_H_

#include <cstddef>

namespace xla {
namespace cpu_function_runtime {
inline namespace tfcompile_v1 {

// Alignment of the buffers that an object owns.
constexpr ::std::size_t Align() { return 64; }

// Alignment that TensorFlow requires of callers' buffers. A compiled object needs only element
// alignment.
constexpr ::std::size_t MinAlign() { return 16; }

}  // namespace tfcompile_v1
}  // namespace cpu_function_runtime
}  // namespace xla

#endif  // TFCOMPILE_FORWARD_XLA_CPU_FUNCTION_RUNTIME_H_
