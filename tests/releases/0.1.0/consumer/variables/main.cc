// A written and a read-only variable: kernel += scale * step, in the object's memory and in the
// caller's.

#include "check.h"
#include "train.h"

namespace {

void OwnMemory() {
  ns::Train train;
  for (std::size_t i = 0; i < 3; ++i) train.var_layer_kernel(i) = 10;
  const float scale[3] = {1, 2, 3};
  train.set_var_layer_scale_data(scale);
  train.arg0() = 2;
  CHECK(train.Run());
  CHECK(train.result_before(0) == 10 && train.result_before(2) == 30);
  CHECK(train.result_after(0) == 12 && train.result_after(1) == 14 && train.result_after(2) == 16);
  CHECK(train.var_layer_kernel(0) == 12 && train.var_layer_kernel(2) == 16);
  CHECK(train.Run());
  CHECK(train.result_before(1) == 28 && train.var_layer_kernel(1) == 18);
  CHECK(train.var_layer_scale(1) == 2);
}

void MemoryOfTheCaller() {
  ns::Train train(ns::Train::AllocMode::RESULTS_PROFILES_AND_TEMPS_ONLY);
  float step = -1;
  float kernel[3] = {1, 1, 1};
  const float scale[3] = {0.5f, 0, -0.5f};
  CHECK(!train.Run() && !train.error_msg().empty());
  train.set_arg0_data(&step);
  train.set_var_layer_kernel_data(kernel);
  train.set_var_layer_scale_data(scale);
  CHECK(train.Run() && train.error_msg().empty());
  CHECK(kernel[0] == 0.5f && kernel[1] == 1 && kernel[2] == 1.5f);
  // The result of a written variable is the variable itself, in any memory.
  CHECK(train.result_data(2) == kernel && train.results()[2] == kernel);
  float other[3] = {0, 0, 0};
  train.set_var_layer_kernel_data(other);
  CHECK(train.Run());
  CHECK(other[2] == 0.5f && kernel[2] == 1.5f && train.var_layer_kernel_data() == other);
}

}  // namespace

int main() {
  static_assert(ns::Train::kNumArgs == 3 && ns::Train::kNumResults == 3 && ns::Train::kNumVariables == 2, "counts");
  OwnMemory();
  MemoryOfTheCaller();
  ns::Train train;
  CHECK(train.LookupVariableIndex("layer/kernel") == 1 && train.LookupVariableIndex("layer/scale") == 2);
  return 0;
}
