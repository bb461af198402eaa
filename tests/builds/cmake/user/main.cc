// The checkpoint contains 42, so 1 becomes 43.

#include "frozen.h"

int main() {
  Frozen frozen;
  frozen.arg0() = 1;
  return frozen.Run() && frozen.result0() == 43 ? 0 : 1;
}
