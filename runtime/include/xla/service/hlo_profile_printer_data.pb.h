// Forwarding header at the path that programs for TensorFlow's tfcompile include.

#ifndef TFCOMPILE_FORWARD_XLA_SERVICE_HLO_PROFILE_PRINTER_DATA_PB_H_
#define TFCOMPILE_FORWARD_XLA_SERVICE_HLO_PROFILE_PRINTER_DATA_PB_H_

#include "tfcompile/program_shape.h"

#endif  // TFCOMPILE_FORWARD_XLA_SERVICE_HLO_PROFILE_PRINTER_DATA_PB_H_
