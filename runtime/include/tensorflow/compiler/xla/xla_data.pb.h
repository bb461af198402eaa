// Forwarding header at the path that programs for TensorFlow's tfcompile include.

#ifndef TFCOMPILE_FORWARD_COMPILER_XLA_XLA_DATA_PB_H_
#define TFCOMPILE_FORWARD_COMPILER_XLA_XLA_DATA_PB_H_

#include "tfcompile/program_shape.h"

#endif  // TFCOMPILE_FORWARD_COMPILER_XLA_XLA_DATA_PB_H_
