// Standalone headers together with separate ones, in either order.

#include "train_standalone.h"
#include "add.h"
#include "scale_standalone.h"
#include "tfcompile/thread_pool.h"
#include "matmul_and_add.h"

#include "check.h"

int main() {
  AddComp add;
  add.arg1() = 2;
  CHECK(add.Run() && add.result0() == 2);
  tfcompile::ThreadPool pool(2);
  foo::bar::MatMulAndAddComp matmul;
  tfcompile::SetThreadPool(matmul, &pool);
  CHECK(matmul.Run());
  ns::Train train;
  CHECK(train.Run());
  return 0;
}
