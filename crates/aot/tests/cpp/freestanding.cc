// Freestanding classes, in a program that uses a library only to report errors. Also includes the C
// headers, which have the same frame.

#include "check.h"

#include "constant_freestanding.h"
#include "counter_freestanding.h"
#include "far_freestanding.h"
#include "matmul_and_add_freestanding.h"
#include "scale_freestanding.h"
#include "train_freestanding.h"
#include "types_freestanding.h"

#include "scale_c.h"
#include "train_c.h"

namespace {

bool Contains(const char* text, const char* part) {
  for (; *text != 0; ++text) {
    int i = 0;
    while (part[i] != 0 && text[i] == part[i]) ++i;
    if (part[i] == 0) return true;
  }
  return false;
}

std::int32_t TwoWorkers(void* context, std::int64_t count, tfcompile_parallel_body body, void* data) {
  ++*static_cast<int*>(context);
  std::int32_t status = 0;
  for (std::int64_t i = 0; i < count && status == 0; ++i) status = body(data, i, i + 1, i % 2);
  return status;
}

foo::bar::MatMulAndAddComp matmul;
ns::Train train;
Types types;
Scale scale;
Far far_away;
Constant constant;
Counter counter;

void MatMul() {
  static_assert(foo::bar::MatMulAndAddComp::kScratchBytes == 64 && foo::bar::MatMulAndAddComp::ArgSize(1) == 16, "");
  const float y[4] = {5, 6, 7, 8};
  for (int i = 0; i < 4; ++i) matmul.arg_x_data()[i] = static_cast<float>(i + 1);
  matmul.set_arg_y_data(y);
  CHECK(matmul.Run() && matmul.error_msg()[0] == 0);
  CHECK(matmul.result_x_y_prod(0, 0) == 19 && matmul.result_x_y_sum(1, 1) == 12);
  int calls = 0;
  alignas(64) static unsigned char scratch[2 * 64];
  CHECK(!matmul.set_parallel_for(&TwoWorkers, &calls, 2, nullptr));
  CHECK(!matmul.set_parallel_for(&TwoWorkers, &calls, 2, scratch + 1));
  CHECK(matmul.set_parallel_for(&TwoWorkers, &calls, 2, scratch));
  CHECK(matmul.Run() && calls == 1 && matmul.result_x_y_prod(1, 0) == 43);
  CHECK(matmul.set_parallel_for(nullptr, nullptr, 1, nullptr));
  CHECK(matmul.Run() && calls == 1 && matmul.result_x_y_prod(1, 0) == 43);
  CHECK(matmul.profile_counters()[0] == 3);
}

void Variables() {
  static_assert(ns::Train::kArenaBytes >= 32 + 4 + 200 && ns::Train::kArenaBytes % 64 == 0, "");
  static_assert(sizeof(ns::Train) >= ns::Train::kArenaBytes, "");
  const float other[3] = {1, 2, 3};
  float kernel[3] = {10, 10, 10};
  train.set_var_layer_kernel_data(other);
  train.set_var_layer_kernel_2_data(kernel);
  train.arg_step_size() = 2;
  CHECK(train.Run() && kernel[0] == 8 && train.result_data(1) == kernel && train.result_class() == 1);
  CHECK(train.Run() && kernel[2] == -2 && train.var_layer_kernel_3() == 1.0f && train.result_class() == 2);
  train.arg_step_size() = -1;
  CHECK(!train.Run() && Contains(train.error_msg(), "the step is negative"));
  train.arg_step_size() = 0;
  CHECK(train.Run() && train.error_msg()[0] == 0);
}

void Constants() {
  unsigned char* const file = static_cast<unsigned char*>(std::aligned_alloc(64, 4096));
  const auto load = [&](const char* path) -> std::size_t {
    std::FILE* const in = std::fopen(path, "rb");
    CHECK(in != nullptr);
    const std::size_t size = std::fread(file, 1, 4096, in);
    std::fclose(in);
    return size;
  };
  scale.arg_x(3) = 2;
  CHECK(!scale.Run() && Contains(scale.error_msg(), "SetConstants"));
  CHECK(scale.SetConstants(file, load("first.weights")) && scale.Run() && scale.result_y(3) == 8);
  CHECK(!scale.SetConstants(file + 1, 100));
  CHECK(scale.SetConstants(file, load("second.weights")) && scale.Run() && scale.result_y(3) == 80);
  CHECK(!scale.SetConstants(file, load("other_layout.weights")) && Contains(scale.error_msg(), "other code"));
  CHECK(!scale.SetConstants(file, load("cut.weights")) && Contains(scale.error_msg(), "truncated"));
  std::free(file);
}

}  // namespace

int main() {
  MatMul();
  Variables();
  Constants();
  types.arg_pred(1) = true;
  types.arg_c64(1).imag = 4;
  CHECK(types.Run() && types.result_c64(1).imag == 4);
  CHECK(constant.Run() && constant.result0() == 42);
  float mine = 7;
  CHECK(counter.Run() && counter.var_count() == 1 && counter.result_data(0) == counter.var_count_data());
  counter.set_var_count_data(&mine);
  CHECK(counter.Run() && mine == 8);
  far_away.arg0() = 1;
  CHECK(far_away.Run() && far_away.result0() == 1.25f);
  return 0;
}
