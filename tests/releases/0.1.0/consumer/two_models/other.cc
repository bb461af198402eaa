// The other translation unit.

#include "add.h"
#include "matmul_and_add.h"

int SumElsewhere(int x, int y) {
  AddComp add;
  foo::bar::MatMulAndAddComp muladd;
  add.arg0() = x;
  add.arg1() = y;
  muladd.arg_x(0, 0) = static_cast<float>(x);
  muladd.arg_y(0, 0) = static_cast<float>(y);
  if (!add.Run() || !muladd.Run()) return -1;
  return static_cast<float>(add.result0()) == muladd.result_x_y_sum(0, 0) ? add.result0() : -1;
}
