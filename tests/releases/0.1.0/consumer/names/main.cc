// Names that are not C++ identifiers, and two that map to the same one. Valid names do not change.

#include "check.h"
#include "names.h"

int main() {
  Names names;
  names.arg_tower_x_0_2(1) = 5;
  names.arg_tower_x_0(1) = 6;
  names.arg_class() = 3;
  CHECK(names.Run());
  CHECK(names.arg0(1) == 5 && names.arg1(1) == 6);
  CHECK(names.result_tower_sum(0) == 0 && names.result_tower_sum(1) == 11);
  CHECK(names.result_int(1) == 33);
  CHECK(names.LookupArgIndex("tower/x:0") == 0 && names.LookupArgIndex("tower_x_0") == 1);
  CHECK(names.LookupResultIndex("tower/sum") == 0 && names.LookupResultIndex("int") == 1);
  return 0;
}
