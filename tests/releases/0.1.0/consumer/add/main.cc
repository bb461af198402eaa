// The smallest program: adds two numbers in the object's memory and in the caller's.

#include "add.h"
#include "check.h"

int main() {
  static_assert(AddComp::kNumArgs == 2 && AddComp::kNumResults == 1 && AddComp::kNumVariables == 0, "counts");
  AddComp add;
  CHECK(add.arg0_data() == add.arg_data(0) && add.arg1_data() == add.arg_data(1));
  add.arg0() = 1;
  add.arg1() = 2;
  CHECK(add.Run() && add.error_msg().empty());
  CHECK(add.result0() == 3 && add.result0_data() == add.result_data(0));
  add.arg0_data()[0] = 123;
  add.arg1_data()[0] = 456;
  CHECK(add.Run() && add.result0() == 579);
  const AddComp& constant = add;
  CHECK(constant.arg0() == 123 && constant.result0_data()[0] == 579);
  CHECK(add.arg0_size() == 4 && add.arg0_count() == 1 && add.result0_size() == 4 && AddComp::ArgSize(1) == 4);
  // Wraps around, as TensorFlow's integers do.
  add.arg0() = 2147483647;
  add.arg1() = 1;
  CHECK(add.Run() && add.result0() == -2147483647 - 1);

  AddComp other(AddComp::AllocMode::RESULTS_PROFILES_AND_TEMPS_ONLY);
  // Aligned only as an int.
  alignas(64) int numbers[3] = {0, 10, 32};
  other.set_arg0_data(&numbers[1]);
  other.set_arg1_data(&numbers[2]);
  CHECK(other.Run() && other.result0() == 42);
  CHECK(numbers[1] == 10 && numbers[2] == 32);
  CHECK(!other.HasNameIndices() && other.ProgramShape() == nullptr);
  return 0;
}
