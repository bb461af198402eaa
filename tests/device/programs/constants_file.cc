// Runs a layer whose weights are in a file on device 0, and replaces the weights between runs.

#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>

#include "expect.h"
#include "layer.h"

#define CHECK(condition)                                                    \
  do {                                                                      \
    if (!(condition)) {                                                     \
      std::fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);  \
      return 1;                                                             \
    }                                                                       \
  } while (0)

namespace {

bool IsExpected(const float* y, float factor) {
  for (int i = 0; i < 2; ++i) {
    for (int j = 0; j < 3; ++j) {
      if (y[i * 3 + j] != factor * layer_output(0, i, j)) return false;
    }
  }
  return true;
}

// Contents of the file with all numbers multiplied by a power of two, in memory of its own.
std::string Scaled(const std::string& path, float factor) {
  std::ifstream file(path, std::ios::binary);
  std::string bytes{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  for (std::size_t at = 64; at + 4 <= bytes.size(); at += 4) {
    float number;
    std::memcpy(&number, &bytes[at], 4);
    number *= factor;
    std::memcpy(&bytes[at], &number, 4);
  }
  return bytes;
}

}  // namespace

int main() {
  ns::Layer layer;
  for (int i = 0; i < 2; ++i) {
    for (int k = 0; k < 4; ++k) layer.arg_x(static_cast<std::size_t>(i), static_cast<std::size_t>(k)) = layer_input(i, k);
  }
  CHECK(!layer.Run() && layer.error_msg().find("LoadConstants") != std::string::npos);
  CHECK(!layer.RunAsync() && layer.arg_device_data(0) == nullptr);
  std::string error;
  CHECK(ns::Layer::LoadDefaultConstants("layer.constants", &error));
  CHECK(layer.Run() && IsExpected(layer.result_y_data(), 1));
  CHECK(layer.CopyToArg(0, layer.arg_x_data()) && layer.set_arg_resident(0, true) && layer.Run());

  // The weights of one object, at several addresses and again at the same.
  for (const float factor : {2.0f, 4.0f, 8.0f}) {
    const std::string scaled = Scaled("layer.constants", factor);
    CHECK(layer.SetConstants(scaled.data(), scaled.size()));
    CHECK(layer.Run() && IsExpected(layer.result_y_data(), factor));
  }
  CHECK(!layer.LoadConstants("missing.constants") && !layer.error_msg().empty());
  CHECK(layer.Run() && layer.error_msg().empty() && IsExpected(layer.result_y_data(), 8));
  layer.UseDefaultConstants();
  float y[6];
  CHECK(layer.CopyToArg(0, layer.arg_x_data()) && layer.RunAsync() && layer.Synchronize());
  CHECK(layer.CopyFromResult(0, y) && IsExpected(y, 1));
  return 0;
}
