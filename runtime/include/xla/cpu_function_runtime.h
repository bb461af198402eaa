// Stands at this path for programs written for TensorFlow's tfcompile: how buffers are aligned.

#ifndef TFCOMPILE_FORWARD_XLA_CPU_FUNCTION_RUNTIME_H_
#define TFCOMPILE_FORWARD_XLA_CPU_FUNCTION_RUNTIME_H_

#include <cstddef>

namespace xla {
namespace cpu_function_runtime {
inline namespace tfcompile_v1 {

// Of the buffers that an object owns.
constexpr ::std::size_t Align() { return 64; }

// What callers of the original align their own buffers to. A compiled object needs only the alignment of an element.
constexpr ::std::size_t MinAlign() { return 16; }

}  // namespace tfcompile_v1
}  // namespace cpu_function_runtime
}  // namespace xla

#endif  // TFCOMPILE_FORWARD_XLA_CPU_FUNCTION_RUNTIME_H_
