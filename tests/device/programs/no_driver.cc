// Prints the error of a run on a machine without the driver.

#include <cstdio>

#include "layer.h"

int main() {
  ns::Layer layer;
  if (layer.Run()) return 1;
  std::printf("%s\n", layer.error_msg().c_str());
  return layer.device() == nullptr ? 0 : 1;
}
