// Freestanding classes of two graphs in a program that uses only the kernel.

#include "expect.h"
#include "layer.h"
#include "splits.h"
#include "start.h"

namespace {

Layer layer;
Splits splits;

static_assert(Layer::kArenaBytes >= sizeof(float) * (2 * 4 + 2 * 3), "arguments and results are in the arena");
static_assert(sizeof(Layer) < Layer::kArenaBytes + 256, "and little else is in an object");

int CheckLayer() {
  for (int i = 0; i < 2; ++i) {
    for (int k = 0; k < 4; ++k) layer.arg_x_data()[4 * i + k] = layer_input(i, k);
  }
  if (!layer.Run()) return 1;
  int wrong = 0;
  for (std::size_t i = 0; i < 2; ++i) {
    for (std::size_t j = 0; j < 3; ++j) {
      wrong += layer.result_y(i, j) != layer_output(0, static_cast<int>(i), static_cast<int>(j));
    }
  }
  return wrong;
}

// TensorFlow's recorded answer for the oracle's graph.
int CheckSplits() {
  const float x[4] = {1, 2, 3, 4}, y[4] = {10, 20, 30, 40};
  const float want[4] = {7.8637556e+10f, 1.3427468e+11f, 1.9274172e+12f, 3.2996474e+12f};
  splits.set_arg0_data(x);
  splits.set_arg1_data(y);
  if (!splits.Run()) return 1;
  int wrong = 0;
  for (int i = 0; i < 4; ++i) {
    const float ratio = splits.result0_data()[i] / want[i];
    wrong += !(ratio > 0.999999f && ratio < 1.000001f);
  }
  return wrong;
}

}  // namespace

int check() { return CheckLayer() + 16 * CheckSplits(); }
