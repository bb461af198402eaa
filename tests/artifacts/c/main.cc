// A C++ program that uses the C++ header, standalone or with the runtime's headers.

#include <cstdio>

#include "expect.h"
#include "layer.h"

int main() {
  Layer layer;
  for (int i = 0; i < 2; ++i) {
    for (int k = 0; k < 4; ++k) layer.arg_x_data()[4 * i + k] = layer_input(i, k);
  }
  if (!layer.Run()) {
    std::fprintf(stderr, "%s\n", layer.error_msg().c_str());
    return 1;
  }
  for (int i = 0; i < 2; ++i) {
    for (int j = 0; j < 3; ++j) {
      if (layer.result_y_data()[3 * i + j] != layer_output(0, i, j)) return 1;
    }
  }
  return 0;
}
