// Results have the same bits on one thread, with a pool of any size, with the program's own
// parallel_for, and when several objects share a pool. Without a pool, Run() does not allocate. If
// the system refuses to start a thread, a pool has fewer workers.

#include <atomic>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <thread>
#include <vector>

#include <sys/resource.h>
#include <unistd.h>

#include "check.h"
#include "layer.h"
#include "tfcompile/thread_pool.h"

namespace {
std::atomic<long> allocations{0};
}

void* operator new(std::size_t bytes) {
  ++allocations;
  void* const memory = std::malloc(bytes == 0 ? 1 : bytes);
  if (memory == nullptr) std::abort();
  return memory;
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

namespace {

// Small whole numbers, so that every order of summation yields the same exact result.
void Fill(Layer& layer) {
  for (std::size_t i = 0; i < 300; ++i) {
    for (std::size_t k = 0; k < 257; ++k) layer.arg_x(i, k) = static_cast<float>((i * 7 + k * 3) % 11) - 5;
  }
  for (std::size_t k = 0; k < 257; ++k) {
    for (std::size_t j = 0; j < 310; ++j) layer.arg_y(k, j) = static_cast<float>((k * 5 + j * 2) % 13) - 6;
  }
}

float Expected(const Layer& layer, std::size_t i, std::size_t j) {
  double sum = 0;
  for (std::size_t k = 0; k < 257; ++k) sum += static_cast<double>(layer.arg_x(i, k)) * layer.arg_y(k, j);
  return sum > 0 ? static_cast<float>(sum) : 0;
}

void MakeFractional(Layer& layer) {
  for (int i = 0; i < layer.arg_x_count(); ++i) layer.arg_x_data()[i] *= 0.37f;
}

bool SameResults(const Layer& a, const Layer& b) {
  return std::memcmp(a.result_relu_data(), b.result_relu_data(), static_cast<std::size_t>(a.result_relu_size())) == 0 &&
         std::memcmp(a.result_tanh_data(), b.result_tanh_data(), static_cast<std::size_t>(a.result_tanh_size())) == 0 &&
         std::memcmp(a.result_sums_data(), b.result_sums_data(), static_cast<std::size_t>(a.result_sums_size())) == 0;
}

// A parallel_for of a program without our pool: runs the last item first, each as one of three
// workers.
struct Backwards {
  std::int64_t items = 0;
  std::int32_t status = 0;
};

std::int32_t RunBackwards(void* context, std::int64_t count, tfcompile_parallel_body body, void* data) {
  Backwards& backwards = *static_cast<Backwards*>(context);
  for (std::int64_t i = count - 1; i >= 0; --i) {
    if (body(data, i, i + 1, i % 3) != 0) return -1;
    ++backwards.items;
  }
  return backwards.status;
}

void CheckValues(const Layer& layer) {
  for (std::size_t i = 0; i < 300; ++i) {
    for (std::size_t j = 0; j < 310; ++j) CHECK(layer.result_relu(i, j) == Expected(layer, i, j));
    double sum = 0;
    for (std::size_t k = 0; k < 257; ++k) {
      const double wanted = std::tanh(static_cast<double>(layer.arg_x(i, k)));
      CHECK(std::fabs(layer.result_tanh(i, k) - wanted) < 1e-6);
      sum += wanted;
    }
    CHECK(std::fabs(layer.result_sums(i) - sum) < 1e-4);
  }
}

#if defined(__cpp_exceptions) && !defined(__SANITIZE_THREAD__)
// Allows the process this many more bytes of address space.
void AllowMore(rlim_t bytes) {
  std::FILE* const file = std::fopen("/proc/self/statm", "r");
  CHECK(file != nullptr);
  unsigned long pages = 0;
  CHECK(std::fscanf(file, "%lu", &pages) == 1);
  std::fclose(file);
  rlimit limit;
  CHECK(getrlimit(RLIMIT_AS, &limit) == 0);
  limit.rlim_cur = static_cast<rlim_t>(pages) * static_cast<rlim_t>(sysconf(_SC_PAGESIZE)) + bytes;
  CHECK(setrlimit(RLIMIT_AS, &limit) == 0);
}
#endif

}  // namespace

int main() {
  Layer serial;
  Fill(serial);
  const long before = allocations;
  CHECK(serial.Run());
  CHECK(allocations == before);
  CheckValues(serial);
  // These sums depend on the order.
  MakeFractional(serial);
  CHECK(serial.Run());

  Layer own;
  Fill(own);
  MakeFractional(own);
  Backwards backwards;
  own.set_parallel_for(&RunBackwards, &backwards, 3);
  CHECK(own.Run() && SameResults(own, serial));
  CHECK(backwards.items > 3);
  backwards.status = 7;
  CHECK(!own.Run() && !own.error_msg().empty());
  own.set_parallel_for(nullptr, nullptr, 1);
  CHECK(own.Run() && own.error_msg().empty());

  for (const int workers : {1, 2, 3, 5}) {
    tfcompile::ThreadPool pool(workers);
    std::vector<std::thread> threads;
    for (int t = 0; t < 2; ++t) {
      threads.emplace_back([&] {
        Layer layer;
        layer.set_thread_pool(&pool);
        Fill(layer);
        MakeFractional(layer);
        for (int round = 0; round < 3; ++round) {
          CHECK(layer.Run());
          CHECK(SameResults(layer, serial));
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
  }

  // ThreadSanitizer needs memory of its own. Without exceptions, the process ends.
#if defined(__cpp_exceptions) && !defined(__SANITIZE_THREAD__)
  {
    Layer layer;
    Fill(layer);
    MakeFractional(layer);
    // Room for less than the stacks of 1000 threads.
    AllowMore(rlim_t{256} << 20);
    tfcompile::ThreadPool pool(1000);
    CHECK(pool.num_workers() >= 1 && pool.num_workers() < 1000);
    layer.set_thread_pool(&pool);
    CHECK(layer.Run() && SameResults(layer, serial));
  }
#endif
  return 0;
}
