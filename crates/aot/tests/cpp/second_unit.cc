// Another translation unit of the program in models.cc: several units may include a header.

#include "add.h"
#include "tensorflow/compiler/aot/runtime.h"
#include "tensorflow/compiler/tf2xla/xla_compiled_cpu_function.h"
#include "tensorflow/core/platform/types.h"
#include "train.h"
#include "xla/cpu_function_runtime.h"
#include "xla/xla_data.pb.h"

bool SecondUnit() {
  namespace runtime = tensorflow::tfcompile::runtime;
  const std::intptr_t sizes[3] = {4, -1, 100};
  void* buffers[3];
  void* const block = runtime::MallocContiguousBuffers(sizes, 3, buffers, true);
  const bool fine = runtime::aligned_buffer_bytes(sizes, 3) == 192 && buffers[1] == nullptr &&
                    static_cast<char*>(buffers[2]) - static_cast<char*>(buffers[0]) == 64 &&
                    reinterpret_cast<std::uintptr_t>(buffers[0]) % xla::cpu_function_runtime::Align() == 0;
  runtime::FreeContiguous(block);
  AddComp add;
  ns::Train train;
  return fine && add.Run() && train.Run() && xla::F32 == 11;
}
