// Models with named dimensions: sizes, ranges, and accessors with true sizes.

#include <string>
#include <type_traits>
#include <utility>

#include "check.h"
#include BATCHED_HEADER
#include SEQUENCES_HEADER

// Static: freestanding classes contain their memory.
static ns::Batched model;
static Sequences sequences;

static bool Reports(const char* expected) { return std::string(model.error_msg()) == expected; }

static void Rows(std::int64_t rows, float scale) {
  CHECK(model.batch() == rows && model.arg_x_count() == 3 * rows && model.arg_x_size() == 12 * rows);
  CHECK(model.arg0_dim_size(0) == rows && model.arg_x_dim_size(0) == rows && model.arg_x_dim_size(1) == 3);
  CHECK(model.result_y_count() == 3 * rows && model.result0_size() == 12 * rows);
  CHECK(model.result_y_dim_size(0) == rows && model.result_y_dim_size(1) == 3 && model.dynamic_sizes()[0] == rows);
  for (std::size_t i = 0; i < static_cast<std::size_t>(rows); ++i) {
    for (std::size_t j = 0; j < 3; ++j) CHECK(model.result_y(i, j) == scale * static_cast<float>(3 * i + j));
  }
}

int main() {
  static_assert(ns::Batched::kBatchMin == 1 && ns::Batched::kBatchMax == 8, "range");
  static_assert(ns::Batched::kNumArgs == 4 && ns::Batched::ArgSize(0) == 96, "all arguments");
  static_assert(std::is_same<decltype(model.batch()), std::int64_t>::value, "typed");
  CHECK(model.batch() == 8 && model.arg_x_count() == 24);
  for (int i = 0; i < 24; ++i) model.arg_x_data()[i] = static_cast<float>(i);
  model.arg_scale() = 2;
  CHECK(model.Run());
  Rows(8, 2);
  for (int rows = 1; rows <= 8; ++rows) {
    model.arg_scale() = static_cast<float>(rows);
    CHECK(model.set_batch(rows) && model.Run() && Reports(""));
    Rows(rows, static_cast<float>(rows));
  }
  model.arg_scale() = 3;
  CHECK(model.Run(5));
  Rows(5, 3);
  CHECK(model.var_runs() == 10);

  // A size out of range changes nothing but the message.
  const std::int64_t outside[] = {0, -1, 9, INT64_C(1) << 32, (INT64_C(1) << 32) + 3, INT64_MIN, INT64_MAX};
  for (std::int64_t size : outside) {
    CHECK(!model.set_batch(size));
    CHECK(!model.Run() && Reports("batch is out of range: 1..8"));
    CHECK(!model.Run(size) && Reports("batch is out of range: 1..8"));
    Rows(5, 3);
  }
  CHECK(model.var_runs() == 10);
  CHECK(model.Run(2) && Reports(""));
  Rows(2, 3);

  // Two sizes, names that are not identifiers, and a dimension that is not the first.
  static_assert(Sequences::kDimClassMax == 8 && Sequences::kPastTokensMin == 0, "ranges");
  CHECK(sequences.dim_class() == 8 && sequences.past_tokens() == 4);
  CHECK(sequences.set_dim_class(2) && sequences.set_past_tokens(3));
  CHECK(sequences.arg_q_count() == 6 && sequences.arg_q_size() == 8 && sequences.arg_q_dim_size(1) == 3);
  for (std::size_t i = 0; i < 2; ++i) sequences.arg_x(i, 0) = static_cast<float>(10 * (i + 1));
  const float values[8] = {0, 0.5f, 1, 1.5f, 2, 2.5f, 3, 3.5f};  // The integers 1 to 8.
  sequences.quantize_arg_q(values);
  CHECK(sequences.Run());
  CHECK(sequences.result0_dim_size(0) == 2 && sequences.result0_dim_size(1) == 3 && sequences.result0_count() == 6);
  CHECK(sequences.result0(1, 2) == 23 && sequences.result0(0, 0) == 11);
  CHECK(sequences.result_s_count() == 3 && sequences.result_s(2) == 8);
  float reals[4] = {-1, -1, -1, -1};
  sequences.dequantize_result_s(reals);
  CHECK(reals[0] == 2.5f && reals[2] == 3.5f && reals[3] == -1);
  // Each size has its own error.
  CHECK(!sequences.set_dim_class(0) && !sequences.set_past_tokens(5) && sequences.set_past_tokens(0));
  CHECK(!sequences.Run() && std::string(sequences.error_msg()) == "class is out of range: 1..8");
  CHECK(sequences.set_dim_class(8) && sequences.Run());
  CHECK(sequences.result_s_count() == 0 && sequences.result0_dim_size(0) == 8 && sequences.result0_count() == 0);

#ifdef HOSTED
  // Sizes move along, belong to the object if the caller owns the arguments, and can be looked up.
  CHECK(model.LookupArgIndex("batch") == 2 && model.num_args() == 4);
  ns::Batched moved(std::move(model));
  CHECK(moved.batch() == 2 && moved.set_batch(7) && moved.Run() && moved.result_y_count() == 21);
  ns::Batched other(ns::Batched::AllocMode::RESULTS_PROFILES_AND_TEMPS_ONLY);
  float x[24] = {1, 2, 3}, scale = 4, runs = 0;
  other.set_arg_x_data(x);
  other.set_arg_scale_data(&scale);
  CHECK(!other.Run());
  other.set_var_runs_data(&runs);
  CHECK(other.Run(1) && other.result_y(0, 2) == 12 && runs == 1 && other.result_y_count() == 3);
  other = std::move(moved);
  CHECK(other.batch() == 7 && other.Run() && other.result_y_dim_size(0) == 7);
#endif
  return 0;
}
