// Forwarding header at the path that programs for TensorFlow's tfcompile include.

#ifndef TFCOMPILE_FORWARD_XLA_SERVICE_HLO_PROFILE_PRINTER_H_
#define TFCOMPILE_FORWARD_XLA_SERVICE_HLO_PROFILE_PRINTER_H_

#include "tfcompile/hlo_profile_printer.h"

#endif  // TFCOMPILE_FORWARD_XLA_SERVICE_HLO_PROFILE_PRINTER_H_
