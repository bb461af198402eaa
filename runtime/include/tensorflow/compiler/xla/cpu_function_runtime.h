// Forwarding header at the path that programs for TensorFlow's tfcompile include.

#ifndef TFCOMPILE_FORWARD_COMPILER_XLA_CPU_FUNCTION_RUNTIME_H_
#define TFCOMPILE_FORWARD_COMPILER_XLA_CPU_FUNCTION_RUNTIME_H_

#include "xla/cpu_function_runtime.h"

#endif  // TFCOMPILE_FORWARD_COMPILER_XLA_CPU_FUNCTION_RUNTIME_H_
