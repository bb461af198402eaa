// Stands at this path for programs written for TensorFlow's tfcompile.

#ifndef TFCOMPILE_FORWARD_TF2XLA_XLA_COMPILED_CPU_FUNCTION_H_
#define TFCOMPILE_FORWARD_TF2XLA_XLA_COMPILED_CPU_FUNCTION_H_

#include "tfcompile/xla_compiled_cpu_function.h"

#endif  // TFCOMPILE_FORWARD_TF2XLA_XLA_COMPILED_CPU_FUNCTION_H_
