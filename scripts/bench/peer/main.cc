// Runs the compiled class `Comp` for the bench harness: fills the arguments, calls once, writes the
// results, and then serves the harness's protocol. With -DONLY_RUN, it is the smallest program that
// uses the class, for size measurements.

#include "model.h"

#ifdef ONLY_RUN

int main() {
  static Comp comp;
  return comp.Run() ? 0 : 1;
}

#else

#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>

#include "benchloop.h"
#include "tfcompile/thread_pool.h"

int main(int argc, char** argv) {
  if (argc < 5) return 2;
  const std::string model = argv[1], out = argv[4];
  const int threads = std::atoi(argv[3]);
  const Sig signature = read_sig(model);
  static Comp comp;
  std::unique_ptr<tfcompile::ThreadPool> pool;
  if (threads > 1) {
    pool = std::make_unique<tfcompile::ThreadPool>(threads);
    comp.set_thread_pool(pool.get());
  }
  std::size_t number = 0;
  for (const auto* group : {&signature.in, &signature.var}) {
    for (const auto& argument : *group) {
      const auto bytes = slurp(model + "/" + argument.file);
      if (static_cast<std::size_t>(comp.arg_size(number)) != bytes.size()) {
        std::fprintf(stderr, "argument %zu: %zu bytes in the file\n", number, bytes.size());
        return 2;
      }
      std::memcpy(comp.arg_data(number++), bytes.data(), bytes.size());
    }
  }
  if (!comp.Run()) {
    std::fprintf(stderr, "Run: %s\n", comp.error_msg().c_str());
    return 3;
  }
  for (std::size_t k = 0; k < signature.out.size(); ++k) {
    spew(out + "/out" + std::to_string(k) + ".bin", comp.result_data(k), signature.out[k].bytes);
  }
  bench_serve([&] {
    if (!comp.Run()) std::abort();
  });
}

#endif
