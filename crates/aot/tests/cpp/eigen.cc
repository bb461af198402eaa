// Eigen's pool behind a computation, and a pool that has no thread to spare.

#define EIGEN_USE_THREADS
#define EIGEN_USE_CUSTOM_THREAD_POOL

#include "third_party/eigen3/unsupported/Eigen/CXX11/Tensor"

#include "check.h"
#include "matmul_and_add.h"
#include "tfcompile/eigen_thread_pool.h"

namespace {

void RunOften(foo::bar::MatMulAndAddComp& muladd) {
  for (int round = 0; round < 2000; ++round) {
    muladd.arg0(1, 0) = static_cast<float>(round);
    muladd.arg1(0, 1) = 2;
    CHECK(muladd.Run());
    CHECK(muladd.result0(1, 1) == static_cast<float>(2 * round));
  }
}

}  // namespace

int main() {
  Eigen::ThreadPool pool(2);
  Eigen::ThreadPoolDevice device(&pool, pool.NumThreads());

  foo::bar::MatMulAndAddComp muladd;
  muladd.set_thread_pool(&device);
  CHECK(muladd.run_options()->intra_op_thread_pool() == &device);
  RunOften(muladd);
  tfcompile::SetThreadPool(muladd, &device);
  RunOften(muladd);

  // Called from the only thread of its pool: nobody else will come to help.
  Eigen::ThreadPool lonely(1);
  Eigen::ThreadPoolDevice lonely_device(&lonely, 1);
  tfcompile::SetThreadPool(muladd, &lonely_device);
  Eigen::Barrier barrier(1);
  lonely.Schedule([&] {
    RunOften(muladd);
    barrier.Notify();
  });
  barrier.Wait();
  return 0;
}
