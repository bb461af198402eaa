// Functions of one object share variables, and read their weights from a file.

#include <string>

#include "check.h"
#include "counter.h"

int main() {
  models::Counter counter;
  CHECK(!counter.add().Run() && counter.add().error_msg().find("not loaded") != std::string::npos);
  std::string error;
  CHECK(!models::Counter::LoadDefaultConstants("nowhere.constants", &error));
  CHECK(error.find("nowhere.constants") != std::string::npos);
  CHECK(models::Counter::LoadDefaultConstants("counter.constants", &error));

  // x = run * (0, 1, 2, 3) times the rows 3k, 3k + 1, 3k + 2 of the weights.
  const float products[] = {42, 48, 54};
  for (int run = 1; run <= 2; ++run) {
    for (int k = 0; k < 4; ++k) counter.add().arg_x(0, static_cast<std::size_t>(k)) = static_cast<float>(run * k);
    CHECK(counter.add().Run() && counter.show().Run());
    const float total = run == 1 ? 1 : 3;
    for (std::size_t j = 0; j < 3; ++j) {
      CHECK(counter.add().result_product(0, j) == static_cast<float>(run) * products[j]);
      CHECK(counter.show().result_twice(0, j) == 2 * total * products[j]);
    }
  }
  CHECK(counter.add().var_total_data() == counter.show().var_total_data());
  return 0;
}
