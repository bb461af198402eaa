// Forwarding header at the path that programs for TensorFlow's tfcompile include.

#ifndef TFCOMPILE_FORWARD_CORE_PLATFORM_TYPES_H_
#define TFCOMPILE_FORWARD_CORE_PLATFORM_TYPES_H_

#include "tfcompile/types.h"

#endif  // TFCOMPILE_FORWARD_CORE_PLATFORM_TYPES_H_
