// The results have the same bits on one thread, with a pool of any size, and when several objects share a pool.

#include <cstring>
#include <thread>
#include <vector>

#include "check.h"
#include "layer.h"
#include "tfcompile/thread_pool.h"

namespace {

// Small whole numbers, so that every order of summation gives the same, exactly known result.
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

}  // namespace

int main() {
  Layer serial;
  Fill(serial);
  CHECK(serial.Run());
  for (std::size_t i = 0; i < 300; ++i) {
    for (std::size_t j = 0; j < 310; ++j) CHECK(serial.result_relu(i, j) == Expected(serial, i, j));
  }
  // Now sums that do depend on the order.
  MakeFractional(serial);
  CHECK(serial.Run());
  const std::size_t bytes = static_cast<std::size_t>(serial.result_relu_size());
  for (const int workers : {1, 2, 3, 5}) {
    tfcompile::ThreadPool pool(workers);
    std::vector<std::thread> threads;
    for (int t = 0; t < 2; ++t) {
      threads.emplace_back([&] {
        Layer layer;
        tfcompile::SetThreadPool(layer, &pool);
        Fill(layer);
        MakeFractional(layer);
        for (int round = 0; round < 3; ++round) {
          CHECK(layer.Run());
          CHECK(std::memcmp(layer.result_relu_data(), serial.result_relu_data(), bytes) == 0);
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
  }
  return 0;
}
