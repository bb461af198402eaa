// Runs the compiled model once, on the zeros with which all arguments begin. @NAME@.h has typed
// accessors for arguments and results:
//
@ACCESSORS@
#include <cstdio>

#include "@NAME@.h"

int main() {
  static @CLASS@ model;
  if (!model.Run()) {
    std::fprintf(stderr, "%s\n", model.error_msg().c_str());
    return 1;
  }
  for (int i = 0; i < model.num_results(); ++i) std::printf("result %d: %d bytes\n", i, model.result_size(i));
  return 0;
}
