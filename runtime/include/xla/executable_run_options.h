// Forwarding header at the path that programs for TensorFlow's tfcompile include.

#ifndef TFCOMPILE_FORWARD_XLA_EXECUTABLE_RUN_OPTIONS_H_
#define TFCOMPILE_FORWARD_XLA_EXECUTABLE_RUN_OPTIONS_H_

#include "tfcompile/xla_compiled_cpu_function.h"

#endif  // TFCOMPILE_FORWARD_XLA_EXECUTABLE_RUN_OPTIONS_H_
