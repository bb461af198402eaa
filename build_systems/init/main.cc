// Runs the compiled model once, on zeros. @NAME@.h has typed accessors for arguments and results:
//
@ACCESSORS@
#include <cstdio>
#include <cstring>

#include "@NAME@.h"

int main() {
  static @CLASS@ model;
  for (int i = 0; i < model.num_args(); ++i) {
    std::memset(model.arg_data(i), 0, static_cast<std::size_t>(model.arg_size(i)));
  }
  if (!model.Run()) {
    std::fprintf(stderr, "%s\n", model.error_msg().c_str());
    return 1;
  }
  for (int i = 0; i < model.num_results(); ++i) std::printf("result %d: %d bytes\n", i, model.result_size(i));
  return 0;
}
