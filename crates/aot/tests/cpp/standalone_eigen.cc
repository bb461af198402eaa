// A standalone header in a program that uses Eigen's threads.

#define EIGEN_USE_THREADS
#include <eigen3/unsupported/Eigen/CXX11/Tensor>

#include "matmul_and_add_standalone.h"

#include "check.h"

int main() {
  Eigen::ThreadPool pool(2);
  const Eigen::ThreadPoolDevice device(&pool, 2);
  foo::bar::MatMulAndAddComp matmul;
  matmul.set_thread_pool(&device);
  for (int i = 0; i < 4; ++i) matmul.arg_x_data()[i] = matmul.arg_y_data()[i] = 1;
  CHECK(matmul.Run() && matmul.result_x_y_prod(1, 1) == 2);
  CHECK(tensorflow::XlaCompiledCpuFunction::eigen_pool_user() != nullptr);
  return 0;
}
