// A computation on Eigen's pool, including a pool without a free thread. TensorFlow's path of
// Eigen's header also provides the adapter.

#define EIGEN_USE_THREADS
#define EIGEN_USE_CUSTOM_THREAD_POOL

#include "third_party/eigen3/unsupported/Eigen/CXX11/Tensor"

#include <atomic>
#include <functional>
#include <utility>

#include "check.h"
#include "matmul_and_add.h"

namespace {

// Counts the scheduled tasks.
class CountingPool : public Eigen::ThreadPoolInterface {
 public:
  explicit CountingPool(int threads) : pool_(threads) {}
  void Schedule(std::function<void()> work) override {
    ++count;
    pool_.Schedule(std::move(work));
  }
  int NumThreads() const override { return pool_.NumThreads(); }
  int CurrentThreadId() const override { return pool_.CurrentThreadId(); }

  std::atomic<int> count{0};

 private:
  Eigen::ThreadPool pool_;
};

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
  CountingPool pool(2);
  Eigen::ThreadPoolDevice device(&pool, pool.NumThreads());

  foo::bar::MatMulAndAddComp muladd;
  RunOften(muladd);
  CHECK(pool.count == 0);
  muladd.set_thread_pool(&device);
  CHECK(muladd.run_options()->intra_op_thread_pool() == &device);
  RunOften(muladd);
  CHECK(pool.count >= 2000);
  muladd.set_thread_pool(nullptr);
  const int before = pool.count;
  RunOften(muladd);
  CHECK(pool.count == before);
  tfcompile::SetThreadPool(muladd, &device);
  RunOften(muladd);
  CHECK(pool.count > before);

  // Called from the only thread of its pool, so no other thread can help.
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
