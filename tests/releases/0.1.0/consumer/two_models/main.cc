// Two models in one program, each header in two translation units. Also tests names and the program
// shape.

#include <string>

#include "add.h"
#include "check.h"
#include "matmul_and_add.h"

int SumElsewhere(int x, int y);  // Defined in other.cc.

namespace {

void NamesAndShape(const foo::bar::MatMulAndAddComp& muladd) {
  CHECK(muladd.HasNameIndices());
  CHECK(muladd.LookupArgIndex("x") == 0 && muladd.LookupArgIndex("y") == 1);
  CHECK(muladd.LookupArgIndex("") == -1 && muladd.LookupArgIndex("x_hold") == -1);
  CHECK(muladd.LookupResultIndex("x_y_sum") == 1 && muladd.LookupResultIndex("x") == -1);
  CHECK(muladd.LookupVariableIndex("x") == -1);
  CHECK(std::string(muladd.GetArgName(1)) == "y" && std::string(muladd.GetResultName(0)) == "x_y_prod");

  const xla::ProgramShapeProto* shape = muladd.ProgramShape();
  CHECK(shape != nullptr && shape->parameters_size() == 2);
  for (int i = 0; i < 2; ++i) {
    const auto& parameter = shape->parameters(i);
    CHECK(parameter.element_type() == xla::F32 && parameter.dimensions_size() == 2);
    CHECK(parameter.dimensions(0) == 2 && parameter.dimensions(1) == 2);
  }
  CHECK(shape->result().element_type() == xla::TUPLE && shape->result().tuple_shapes_size() == 2);
  CHECK(shape->result().tuple_shapes(1).dimensions(1) == 2);
}

}  // namespace

int main() {
  AddComp add;
  foo::bar::MatMulAndAddComp muladd;
  add.arg0() = 3;
  add.arg1() = 4;
  for (int i = 0; i < 4; ++i) {
    muladd.arg_x_data()[i] = static_cast<float>(i + 1);
    muladd.arg_y_data()[i] = static_cast<float>(i + 5);
  }
  CHECK(add.Run() && muladd.Run());
  CHECK(add.result0() == 7);
  CHECK(muladd.result_x_y_prod(0, 0) == 19 && muladd.result_x_y_prod(0, 1) == 22);
  CHECK(muladd.result0(1, 0) == 43 && muladd.result0(1, 1) == 50);
  CHECK(muladd.result_x_y_sum(0, 0) == 6 && muladd.result1(1, 1) == 12);
  CHECK(SumElsewhere(20, 22) == 42);
  NamesAndShape(muladd);
  return 0;
}
