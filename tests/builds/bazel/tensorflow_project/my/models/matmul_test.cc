// Uses the generated classes as TensorFlow's own test does, with a pool of Eigen's threads.

#define EIGEN_USE_THREADS

#include <cstdio>
#include <cstdlib>

#include "my/models/test_graph_tfadd_with_ckpt_saver.h"
#include "my/models/test_graph_tfmatmul.h"
#include "my/models/test_graph_tfmatmulandadd_with_profiling.h"
#include "third_party/eigen3/unsupported/Eigen/CXX11/Tensor"

#define EXPECT(what)                                         \
  do {                                                       \
    if (!(what)) {                                           \
      std::fprintf(stderr, "%d: %s\n", __LINE__, #what);     \
      std::exit(1);                                          \
    }                                                        \
  } while (false)

int main() {
  Eigen::ThreadPool pool(2);
  Eigen::ThreadPoolDevice device(&pool, pool.NumThreads());

  foo::bar::MatMulComp matmul;
  matmul.set_thread_pool(&device);
  const float args[12] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
  for (int i = 0; i < 6; ++i) {
    matmul.arg0_data()[i] = args[i];
    matmul.arg1_data()[i] = args[6 + i];
  }
  EXPECT(matmul.Run());
  EXPECT(matmul.result0(0, 0) == 58 && matmul.result0(0, 1) == 64);
  EXPECT(matmul.result0(1, 0) == 139 && matmul.result0(1, 1) == 154);

  AddWithCkptSaverComp add;
  add.set_thread_pool(&device);
  add.arg0() = 111;
  EXPECT(add.Run());
  EXPECT(add.result0() == 153);

  foo::bar::MatMulAndAddCompWithProfiling both;
  both.set_thread_pool(&device);
  EXPECT(both.LookupArgIndex("y") == 1 && both.LookupResultIndex("x_y_sum") == 1);
  EXPECT(both.ProgramShape() != nullptr);
  EXPECT(both.hlo_profiling_enabled());
  for (int i = 0; i < 4; ++i) {
    both.arg_x_data()[i] = static_cast<float>(i + 1);
    both.arg_y_data()[i] = static_cast<float>(10 * (i + 1));
  }
  EXPECT(both.Run());
  EXPECT(both.result_x_y_prod(0, 0) == 70 && both.result_x_y_sum(1, 1) == 44);
  return 0;
}
