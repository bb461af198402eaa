// Standalone headers, with no runtime header on the include path. Several headers are in one
// program, including the thread pool.

#define TFCOMPILE_WITH_THREAD_POOL
#include "add_standalone.h"
#include "scale_standalone.h"
#include "train_standalone.h"

#include "check.h"

int main() {
  AddComp add;
  add.arg0() = 1;
  add.arg1() = 2;
  CHECK(add.Run() && add.result0() == 3);
  tfcompile::ThreadPool pool(2);
  tfcompile::SetThreadPool(add, &pool);
  CHECK(add.Run() && add.result0() == 3);
  ns::Train train;
  CHECK(train.Run() && train.result_class() == 1);
  Scale scale;
  scale.arg_x(0) = 3;
  CHECK(!scale.Run() && scale.LoadConstants("second.weights") && scale.Run() && scale.result_y(0) == 30);
  return 0;
}
