// Objects of a class that move between translation units, each of which has its own copy of the
// runtime's functions.

#include <cstdio>
#include <utility>

#include "expect.h"
#include "layer.h"

#define CHECK(condition)                                                    \
  do {                                                                      \
    if (!(condition)) {                                                     \
      std::fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);  \
      return 1;                                                             \
    }                                                                       \
  } while (0)

// In other_unit.cc.
ns::Layer Made();
bool Runs(ns::Layer layer);

int main() {
  ns::Layer made = Made();
  for (std::size_t i = 0; i < 2; ++i) {
    for (std::size_t k = 0; k < 4; ++k) made.arg_x(i, k) = layer_input(static_cast<int>(i), static_cast<int>(k));
  }
  CHECK(made.Run() && made.result_y(0, 0) == layer_output(0, 0, 0));
  ns::Layer own;
  CHECK(own.Run() && tfcompile_device_synchronize(own.device(), nullptr) == TFCOMPILE_DEVICE_OK);
  CHECK(Runs(std::move(own)));
  CHECK(made.Run() && made.result_y(0, 2) == layer_output(0, 0, 2));
  CHECK(Runs(std::move(made)));
  return 0;
}
