// Trains one experiment: generates learnable data, initializes the variables by name, and runs
// steps.
//
//   train STEPS        prints the first and last loss and nanoseconds per step
//
// Fails if the loss does not decrease.
//
// It uses only the information that the header has for every model: names and shapes of arguments.

#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "model.h"

namespace {

using Step = experiment::Step;
using xla::tfcompile_v1::ShapeProto;

constexpr int kFeeds = 2;    // x and y; all other arguments are variables.
constexpr int kBatches = 4;  // Used cyclically.

// Pseudorandom numbers from 0 to 1, the same in every run.
class Random {
 public:
  double Next() {
    state_ = state_ * 6364136223846793005u + 1442695040888963407u;
    return static_cast<double>(state_ >> 40) / 16777216.0;
  }
  double Between(double low, double high) { return low + (high - low) * Next(); }

 private:
  std::uint64_t state_ = 7;
};

bool EndsWith(const std::string& name, const std::string& end) {
  return name.size() >= end.size() && name.compare(name.size() - end.size(), end.size(), end) == 0;
}

std::int64_t Count(const ShapeProto& shape) {
  std::int64_t count = 1;
  for (int i = 0; i < shape.dimensions_size(); ++i) count *= shape.dimensions(i);
  return count;
}

// Returns the value of TensorFlow's initializer for a variable of this name.
void Start(const std::string& name, const ShapeProto& shape, float* values, Random& random) {
  const std::int64_t count = Count(shape);
  const int rank = shape.dimensions_size();
  double fan = 1;
  if (rank > 1) {
    const double inputs = static_cast<double>(count / shape.dimensions(rank - 1));
    fan = inputs + static_cast<double>(count / shape.dimensions(rank - 2));
  }
  const double limit = std::sqrt(6.0 / fan);
  for (std::int64_t i = 0; i < count; ++i) {
    double value = 0;
    if (EndsWith(name, "kernel")) value = random.Between(-limit, limit);
    if (EndsWith(name, "gamma") || EndsWith(name, "moving_variance")) value = 1;
    if (EndsWith(name, "beta1_power")) value = 0.9;
    if (EndsWith(name, "beta2_power")) value = 0.999;
    values[i] = static_cast<float>(value);
  }
}

struct Batch {
  std::vector<float> x;
  std::vector<float> one_hot;
  std::vector<std::int32_t> classes;
};

// Random rows. The class of a row is the index of the largest of its fixed sums; the class of a
// time step is the interval of its number.
Batch MakeBatch(const ShapeProto& x, const ShapeProto& y, Random& random, std::vector<double>& weights) {
  Batch batch;
  batch.x.resize(static_cast<std::size_t>(Count(x)));
  for (float& value : batch.x) value = static_cast<float>(random.Between(-1, 1));
  if (y.element_type() == xla::tfcompile_v1::S32) {
    for (float value : batch.x) batch.classes.push_back(static_cast<std::int32_t>((value + 1) * 9.99));
    return batch;
  }
  const std::size_t rows = static_cast<std::size_t>(y.dimensions(0));
  const std::size_t classes = static_cast<std::size_t>(y.dimensions(1));
  const std::size_t columns = batch.x.size() / rows;
  while (weights.size() < classes * columns) weights.push_back(random.Between(-1, 1));
  batch.one_hot.resize(rows * classes);
  for (std::size_t row = 0; row < rows; ++row) {
    std::size_t best = 0;
    double highest = -1e30;
    for (std::size_t c = 0; c < classes; ++c) {
      double sum = 0;
      for (std::size_t i = 0; i < columns; ++i) {
        sum += weights[c * columns + i] * static_cast<double>(batch.x[row * columns + i]);
      }
      if (sum > highest) highest = sum, best = c;
    }
    batch.one_hot[row * classes + best] = 1;
  }
  return batch;
}

}  // namespace

int main(int argc, char** argv) {
  const int steps = argc > 1 ? std::atoi(argv[1]) : 0;
  if (steps < 2 * kBatches) {
    std::fprintf(stderr, "usage: train STEPS, at least %d\n", 2 * kBatches);
    return 2;
  }
  Step step;
  const auto* shape = step.ProgramShape();
  Random random;
  for (int i = kFeeds; i < shape->parameters_size(); ++i) {
    Start(shape->parameter_names(i), shape->parameters(i), static_cast<float*>(step.arg_data(i)), random);
  }
  std::vector<double> weights;
  std::vector<Batch> batches;
  for (int i = 0; i < kBatches; ++i) {
    batches.push_back(MakeBatch(shape->parameters(0), shape->parameters(1), random, weights));
  }
  double first = 0, last = 0;
  std::chrono::nanoseconds spent{0};
  for (int i = 0; i < steps; ++i) {
    const Batch& batch = batches[static_cast<std::size_t>(i % kBatches)];
    step.set_arg0_data(batch.x.data());
    step.set_arg1_data(batch.classes.empty() ? static_cast<const void*>(batch.one_hot.data()) : batch.classes.data());
    const auto start = std::chrono::steady_clock::now();
    if (!step.Run()) {
      std::fprintf(stderr, "step %d: %s\n", i, step.error_msg().c_str());
      return 1;
    }
    spent += std::chrono::steady_clock::now() - start;
    const double loss = static_cast<double>(step.result0());
    if (i < kBatches) first += loss / kBatches;
    if (i >= steps - kBatches) last += loss / kBatches;
  }
  std::printf("%10.0f %9.4f %9.4f\n", static_cast<double>(spent.count()) / steps, first, last);
  if (!(last < first)) {
    std::fprintf(stderr, "the loss does not decrease\n");
    return 1;
  }
  return 0;
}
