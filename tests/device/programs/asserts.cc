// Effects of a failed assertion in the graph on device 0: a failed run with a message, or the end
// of the process if the program has an argument: `run` or `async`.

#include <cstdio>
#include <cstring>
#include <string>

#include "aborting.h"
#include "reported.h"

#define CHECK(condition)                                                    \
  do {                                                                      \
    if (!(condition)) {                                                     \
      std::fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);  \
      return 1;                                                             \
    }                                                                       \
  } while (0)

namespace {

const float kGood[3] = {4, 5, 6};
const float kBad[3] = {-1, 0, 1};

int Abort(bool is_async) {
  Aborting aborting;
  std::memcpy(aborting.arg_x_data(), kBad, sizeof kBad);
  if (is_async) {
    CHECK(aborting.CopyToArg(0, kBad) && aborting.RunAsync());
    aborting.Synchronize();
  } else {
    aborting.Run();
  }
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1) return Abort(std::strcmp(argv[1], "async") == 0);
  const std::string message = "assertion failed: [x must be positive] [float[3]] [0] (node 'check/Assert')";
  Reported reported;
  for (int i = 0; i < 2; ++i) {
    std::memcpy(reported.arg_x_data(), kBad, sizeof kBad);
    CHECK(!reported.Run() && reported.error_msg() == message);
    std::memcpy(reported.arg_x_data(), kGood, sizeof kGood);
    CHECK(reported.Run() && reported.error_msg().empty() && reported.result_root_data()[0] == 2);
    CHECK(reported.CopyToArg(0, kBad) && reported.RunAsync());
    CHECK(!reported.Synchronize() && reported.error_msg() == message);
    CHECK(reported.CopyToArg(0, kGood) && reported.RunAsync() && reported.Synchronize());
    CHECK(reported.error_msg().empty());
  }
  return 0;
}
