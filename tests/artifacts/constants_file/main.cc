// Weights from files: of the compiled graph, of the same network after another training, and of
// other networks.

#include <cstdio>
#include <string>

#include "expect.h"
#include "layer.h"

#define CHECK(condition)                                                   \
  do {                                                                     \
    if (!(condition)) {                                                    \
      std::fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition); \
      return 1;                                                            \
    }                                                                      \
  } while (false)

static bool Gives(Layer& layer, int again) {
  if (!layer.Run()) return false;
  for (int i = 0; i < 2; ++i) {
    for (int j = 0; j < 3; ++j) {
      if (layer.result_y_data()[3 * i + j] != layer_output(again, i, j)) return false;
    }
  }
  return true;
}

int main() {
  Layer layer, other;
  for (int i = 0; i < 2; ++i) {
    for (int k = 0; k < 4; ++k) {
      layer.arg_x_data()[4 * i + k] = other.arg_x_data()[4 * i + k] = layer_input(i, k);
    }
  }
  CHECK(!layer.Run() && layer.error_msg().find("not loaded") != std::string::npos);
  std::string error;
  CHECK(Layer::LoadDefaultConstants("layer.constants", &error));
  CHECK(Gives(layer, 0) && Gives(other, 0));
  CHECK(other.LoadConstants("again/layer.constants"));
  CHECK(Gives(other, 1) && Gives(layer, 0));
  for (const char* path : {"without_bias/layer.constants", "another_kind/layer.constants"}) {
    CHECK(!layer.LoadConstants(path) && layer.error_msg().find("for other code") != std::string::npos);
    CHECK(!Layer::LoadDefaultConstants(path, &error) && error.find(path) != std::string::npos);
    CHECK(Gives(layer, 0));
  }
  CHECK(Layer::LoadDefaultConstants("again/layer.constants") && Gives(layer, 1));
  return 0;
}
