// Tests the effects of tf_library's parameters on a program, with values computed by hand.

#include <cstdio>
#include <cstdlib>

#include "dependency.h"
#include "one_file.h"
#include "profiled.h"
#include "saved.h"
#include "several_files.h"

#define EXPECT(what)                                     \
  do {                                                   \
    if (!(what)) {                                       \
      std::fprintf(stderr, "%d: %s\n", __LINE__, #what); \
      std::exit(1);                                      \
    }                                                    \
  } while (false)

int main() {
  OneFile one;
  one.arg0_data()[0] = 111;
  EXPECT(one.Run() && one.result0_data()[0] == 153);

  ns::SeveralFiles several;
  for (int i = 0; i < 3; ++i) several.arg_x(0, i) = i + 1.0f;
  EXPECT(several.Run());
  // 2 (1 w0j + 2 w1j + 3 w2j) + 0.5, where wij = 4 i + j.
  for (int j = 0; j < 4; ++j) EXPECT(several.result_out(0, j) == 2.0f * (2 * (4 + j) + 3 * (8 + j) + j) + 0.5f);
  EXPECT(several.LookupArgIndex("x") == 0 && several.LookupArgIndex("y") == -1);
  EXPECT(several.hlo_profiling_enabled());

  Profiled profiled;
  EXPECT(profiled.hlo_profiling_enabled() && profiled.Run() && profiled.profile_counters()[0] > 0);

  Saved saved;
  EXPECT(saved.Run() && saved.ProgramShape() != nullptr && kDependency);
  EXPECT(!saved.hlo_profiling_enabled() && saved.LookupArgIndex("x") == -1);
}
