// A program from TensorFlow's documentation of tfcompile: its includes, an Eigen pool,
// foo::bar::MatMulComp.

#define EIGEN_USE_THREADS
#define EIGEN_USE_CUSTOM_THREAD_POOL

#include <algorithm>
#include <iostream>

#include "third_party/eigen3/unsupported/Eigen/CXX11/Tensor"
#include "third_party/tensorflow/compiler/aot/tests/test_graph_tfmatmul.h"
#include "tfcompile/eigen_thread_pool.h"

int main() {
  Eigen::ThreadPool pool(2);
  Eigen::ThreadPoolDevice device(&pool, pool.NumThreads());

  foo::bar::MatMulComp matmul;
  matmul.set_thread_pool(&device);

  const float args[12] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
  std::copy(args + 0, args + 6, matmul.arg0_data());
  std::copy(args + 6, args + 12, matmul.arg1_data());
  matmul.Run();
  if (matmul.result0(0, 0) != 58) {
    std::cout << "0,0 should be 58, but is " << matmul.result0(0, 0) << std::endl;
    return 1;
  }

  // The same on the pool. Reads one element per row and column.
  tfcompile::SetThreadPool(matmul, &device);
  matmul.arg0(1, 2) = 60;
  if (!matmul.Run() || matmul.result0(0, 1) != 64 || matmul.result0(1, 0) != 733 || matmul.result0(1, 1) != 802) {
    std::cout << "the second product is wrong: " << matmul.error_msg() << std::endl;
    return 1;
  }
  return 0;
}
