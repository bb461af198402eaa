// Thread pools: our own, and callers of a frame's parallel_for.

#include <atomic>
#include <thread>
#include <vector>

#include "check.h"
#include "matmul_and_add.h"
#include "tfcompile/thread_pool.h"

namespace {

struct Work {
  explicit Work(std::int64_t count) : done(static_cast<std::size_t>(count)), busy(16) {}

  static std::int32_t Body(void* data, std::int64_t begin, std::int64_t end, std::int64_t worker) {
    Work& work = *static_cast<Work*>(data);
    // No other thread is this worker now.
    if (work.busy[static_cast<std::size_t>(worker)].exchange(1) != 0) return 99;
    for (std::int64_t i = begin; i < end; ++i) work.done[static_cast<std::size_t>(i)].fetch_add(1);
    work.busy[static_cast<std::size_t>(worker)].store(0);
    return begin <= work.fail_at && work.fail_at < end ? 5 : 0;
  }

  std::vector<std::atomic<int>> done;
  std::vector<std::atomic<int>> busy;
  std::int64_t fail_at = -1;
};

void EveryItemOnce(tfcompile::ThreadPool& pool) {
  for (const std::int64_t count : {0, 1, 2, 3, 7, 64, 1000, 100003}) {
    Work work(count);
    CHECK(pool.ParallelFor(count, &Work::Body, &work) == 0);
    for (const std::atomic<int>& done : work.done) CHECK(done.load() == 1);
  }
}

void ManyShortRounds(tfcompile::ThreadPool& pool) {
  Work work(8);
  for (int round = 0; round < 20000; ++round) CHECK(pool.ParallelFor(8, &Work::Body, &work) == 0);
  for (const std::atomic<int>& done : work.done) CHECK(done.load() == 20000);
}

void ErrorsComeBack(tfcompile::ThreadPool& pool) {
  Work work(100);
  work.fail_at = 50;
  CHECK(pool.ParallelFor(100, &Work::Body, &work) == 5);
  work.fail_at = -1;
  CHECK(pool.ParallelFor(100, &Work::Body, &work) == 0);
}

void OnePoolForManyThreads(tfcompile::ThreadPool& pool) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&pool] {
      foo::bar::MatMulAndAddComp muladd;
      tfcompile::SetThreadPool(muladd, &pool);
      for (int round = 0; round < 3000; ++round) {
        muladd.arg0(1, 0) = static_cast<float>(round);
        muladd.arg1(0, 1) = 2;
        CHECK(muladd.Run());
        CHECK(muladd.result0(1, 1) == static_cast<float>(2 * round));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace

int main() {
  for (const int workers : {1, 2, 3, 8}) {
    tfcompile::ThreadPool pool(workers);
    CHECK(pool.num_workers() == workers);
    EveryItemOnce(pool);
    ManyShortRounds(pool);
    ErrorsComeBack(pool);
    OnePoolForManyThreads(pool);
  }
  foo::bar::MatMulAndAddComp muladd;
  {
    tfcompile::ThreadPool pool;
    tfcompile::SetThreadPool(muladd, &pool);
    muladd.arg0(0, 0) = 3;
    muladd.arg1(0, 0) = 4;
    CHECK(muladd.Run() && muladd.result0(0, 0) == 12);
    tfcompile::SetThreadPool(muladd, nullptr);
  }
  muladd.arg1(0, 0) = 5;
  CHECK(muladd.Run() && muladd.result0(0, 0) == 15);
  return 0;
}
