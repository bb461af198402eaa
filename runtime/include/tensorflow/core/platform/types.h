// Stands at this path for programs written for TensorFlow's tfcompile.

#ifndef TFCOMPILE_FORWARD_CORE_PLATFORM_TYPES_H_
#define TFCOMPILE_FORWARD_CORE_PLATFORM_TYPES_H_

#include "tfcompile/types.h"

#endif  // TFCOMPILE_FORWARD_CORE_PLATFORM_TYPES_H_
