// Results have the size that the caller chose, or one that follows from the values of a run.

#include <cstdint>

#include "check.h"
#include "chosen.h"
#include "rows.h"

namespace {

// Whole numbers, so that sums are exact in any order.
float X(int i, int k) { return static_cast<float>((7 * i + k) % 11); }
float W(int k, int j) { return static_cast<float>((3 * k + 5 * j) % 7 - 3); }
float Z(int i, int j) { return static_cast<float>(i * j); }

void CheckRows(models::Rows& rows, int count) {
  CHECK(rows.set_batch(count) && rows.batch() == count);
  CHECK(rows.arg_x_count() == 16 * count && rows.arg_z_size() == 32 * count);
  for (int i = 0; i < count; ++i) {
    for (int k = 0; k < 16; ++k) rows.arg_x_data()[16 * i + k] = X(i, k);
    for (int j = 0; j < 8; ++j) rows.arg_z_data()[8 * i + j] = Z(i, j);
  }
  CHECK(rows.Run());
  CHECK(rows.result0_dim_size(0) == count && rows.result_result0_count() == 8 * count);
  for (int i = 0; i < count; ++i) {
    for (int j = 0; j < 8; ++j) {
      float sum = Z(i, j);
      for (int k = 0; k < 16; ++k) sum += X(i, k) * W(k, j);
      CHECK(rows.result_result0_data()[8 * i + j] == sum);
    }
  }
}

}  // namespace

int main() {
  static_assert(models::Rows::kBatchMin == 1 && models::Rows::kBatchMax == 64, "the range of the model");
  models::Rows rows;
  for (int k = 0; k < 16; ++k) {
    for (int j = 0; j < 8; ++j) rows.arg_w_data()[8 * k + j] = W(k, j);
  }
  for (const int count : {64, 1, 7, 33}) CheckRows(rows, count);
  CHECK(!rows.Run(65) && rows.error_msg() == "batch is out of range: 1..64");
  CHECK(!rows.Run(0) && rows.batch() == 33);

  // Places of the elements that are not 0: two of them, then none.
  models::Chosen chosen;
  const std::int32_t x[] = {0, 7, 0, 0, 9};
  for (int i = 0; i < 5; ++i) chosen.arg_x_data()[i] = x[i];
  CHECK(chosen.Run());
  CHECK(chosen.result_places_dim_size(0) == 2 && chosen.result_places_dim_size(1) == 1);
  CHECK(chosen.result_places(0, 0) == 1 && chosen.result_places(1, 0) == 4);
  for (int i = 0; i < 5; ++i) chosen.arg_x_data()[i] = 0;
  CHECK(chosen.Run() && chosen.result_places_dim_size(0) == 0);
  return 0;
}
