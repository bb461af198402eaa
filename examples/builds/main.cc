// Calls a compiled layer: y = relu(x w + b) for two rows of four features.

#include <cstdio>

#include "layer.h"
#include "tfcompile/thread_pool.h"

int main() {
  example::Layer layer;
  tfcompile::ThreadPool pool(2);
  layer.set_thread_pool(&pool);
  for (int i = 0; i < layer.arg_x_count(); ++i) layer.arg_x_data()[i] = i < 4 ? 1.0f : 0.0f;
  if (!layer.Run()) {
    std::fprintf(stderr, "%s\n", layer.error_msg().c_str());
    return 1;
  }
  for (int row = 0; row < 2; ++row) {
    std::printf("%g %g %g\n", layer.result_y(row, 0), layer.result_y(row, 1), layer.result_y(row, 2));
  }
}
