// Handwritten digits: a network learns them in compiled code and is tested on digits that it has
// not seen.
//
//   digits CSV [--compile-ms=N] [--object=FILE]...
//
// CSV has a digit in each line: 64 counts from 0 to 16, an 8x8 image, and the digit itself. Train
// is one step of gradient descent, compiled from train.pbtxt; Classify is the network alone,
// compiled from classify.pbtxt. The weights live in Train's memory, and Classify reads them there.
// The options only add figures to the report.

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "classify.h"
#include "train.h"

namespace {

constexpr int kPixels = 64;
constexpr int kWidth = 8;
constexpr int kHidden = 64;
constexpr int kClasses = 10;
constexpr int kBatch = 32;
constexpr int kEpochs = 60;
constexpr int kMinDigits = 200;
constexpr int kDrawn = 6;
static_assert(digits::Train::ArgSize(0) == kBatch * kPixels * static_cast<int>(sizeof(float)), "images of a batch");

struct Digit {
  float pixels[kPixels];  // From 0 (empty) to 1.
  int label;
};

[[noreturn]] void Fail(const std::string& message) {
  std::fprintf(stderr, "digits: %s\n", message.c_str());
  std::exit(1);
}

// A small generator with the same numbers on every platform (SplitMix64).
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}

  std::uint64_t Next() {
    std::uint64_t z = state_ += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }

  // Returns a number in [0, bound). The bias is negligible for small bounds.
  std::size_t Below(std::size_t bound) { return static_cast<std::size_t>(Next() % bound); }

  // Returns a number in [-1, 1).
  float Signed() { return static_cast<float>(static_cast<double>(Next() >> 40) / (1 << 23) - 1.0); }

  template <class T>
  void Shuffle(std::vector<T>& items) {
    for (std::size_t i = items.size(); i > 1; --i) std::swap(items[i - 1], items[Below(i)]);
  }

 private:
  std::uint64_t state_;
};

// Parses the numbers of one line. On an error, reports the line and the reason.
Digit ParseLine(const std::string& path, int number, const char* text) {
  const std::string where = path + ":" + std::to_string(number) + ": ";
  Digit digit = {};
  for (int column = 0; column <= kPixels; ++column) {
    char* end = nullptr;
    const long value = std::strtol(text, &end, 10);
    if (end == text) Fail(where + "column " + std::to_string(column + 1) + " of 65 is not a whole number");
    const long largest = column < kPixels ? 16 : kClasses - 1;
    if (value < 0 || value > largest) {
      Fail(where + (column < kPixels ? "a count is not in 0 to 16: " : "the digit is not in 0 to 9: ") +
           std::to_string(value));
    }
    if (column < kPixels) {
      digit.pixels[column] = static_cast<float>(value) / 16;
    } else {
      digit.label = static_cast<int>(value);
    }
    while (*end == ' ' || *end == '\r') ++end;
    const char expected = column < kPixels ? ',' : '\0';
    if (*end != expected) {
      Fail(where + (column < kPixels ? "expected a comma after column " + std::to_string(column + 1)
                                     : "more than 65 columns"));
    }
    text = end + 1;
  }
  return digit;
}

std::vector<Digit> ReadDigits(const std::string& path) {
  std::FILE* file = std::fopen(path.c_str(), "rb");
  if (file == nullptr) Fail(path + ": " + std::strerror(errno));
  std::vector<Digit> digits;
  std::string line;
  int number = 1;
  for (;;) {
    const int c = std::fgetc(file);
    if (c != '\n' && c != EOF) {
      if (c == '\0') Fail(path + ":" + std::to_string(number) + ": unexpected zero byte in a text file");
      line.push_back(static_cast<char>(c));
      if (line.size() > 1000) Fail(path + ":" + std::to_string(number) + ": the line is too long for 65 numbers");
      continue;
    }
    if (line.find_first_not_of(" \r") != std::string::npos) digits.push_back(ParseLine(path, number, line.c_str()));
    if (c == EOF) break;
    line.clear();
    ++number;
  }
  const bool failed = std::ferror(file) != 0;
  std::fclose(file);
  if (failed) Fail(path + ": cannot be read");
  if (digits.size() < kMinDigits) {
    Fail(path + ": " + std::to_string(digits.size()) + " digits are too few to learn from and to test with; " +
         std::to_string(kMinDigits) + " would do");
  }
  return digits;
}

void Run(tensorflow::XlaCompiledCpuFunction& computation) {
  if (!computation.Run()) Fail("the compiled code failed: " + computation.error_msg());
}

// Uniform values, wide enough to keep their magnitude through the layer. Biases are initially zero.
void InitializeKernel(Random& random, float* kernel, int count, int inputs, int outputs) {
  const float limit = std::sqrt(6.0f / static_cast<float>(inputs + outputs));
  for (int i = 0; i < count; ++i) kernel[i] = limit * random.Signed();
}

double SecondsSince(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// Trains on `digits` and returns nanoseconds per step.
double Learn(digits::Train& train, Random& random, std::vector<Digit> digits) {
  InitializeKernel(random, train.var_hidden_kernel_data(), train.var_hidden_kernel_count(), kPixels, kHidden);
  InitializeKernel(random, train.var_logits_kernel_data(), train.var_logits_kernel_count(), kHidden, kClasses);
  double seconds = 0;
  std::size_t steps = 0;
  for (int epoch = 0; epoch < kEpochs; ++epoch) {
    // Starts with large steps and ends with small ones.
    train.arg_learning_rate() = epoch < kEpochs * 2 / 3 ? 0.5f : 0.1f;
    random.Shuffle(digits);
    double loss = 0;
    const std::size_t batches = digits.size() / kBatch;
    for (std::size_t batch = 0; batch < batches; ++batch) {
      for (std::size_t i = 0; i < kBatch; ++i) {
        const Digit& digit = digits[batch * kBatch + i];
        std::memcpy(&train.arg_images(i, 0), digit.pixels, sizeof digit.pixels);
        train.arg_labels(i) = digit.label;
      }
      const auto start = std::chrono::steady_clock::now();
      Run(train);
      seconds += SecondsSince(start);
      loss += train.result_loss();
    }
    steps += batches;
    if (epoch == 0 || (epoch + 1) % 15 == 0) {
      std::printf("epoch %2d  loss %.4f\n", epoch + 1, loss / static_cast<double>(batches));
    }
  }
  return seconds * 1e9 / static_cast<double>(steps);
}

// Returns the digit that the network recognizes. Its certainty is classify.result_probabilities(0,
// digit).
int Classified(digits::Classify& classify, const Digit& digit) {
  classify.set_arg_image_data(digit.pixels);
  Run(classify);
  return classify.result_digit();
}

// Draws digits side by side with the network's answers.
void Draw(digits::Classify& classify, const std::vector<Digit>& digits) {
  static const char kShades[] = " .:-=+*#%@";
  const std::size_t count = std::min<std::size_t>(kDrawn, digits.size());
  std::printf("\n");
  for (int row = 0; row < kWidth; ++row) {
    for (std::size_t i = 0; i < count; ++i) {
      for (int column = 0; column < kWidth; ++column) {
        const char shade = kShades[static_cast<int>(digits[i].pixels[row * kWidth + column] * 9)];
        std::printf("%c%c", shade, shade);
      }
      std::printf("  ");
    }
    std::printf("\n");
  }
  for (std::size_t i = 0; i < count; ++i) {
    const int digit = Classified(classify, digits[i]);
    const float certainty = classify.result_probabilities(0, static_cast<std::size_t>(digit));
    char text[32];
    std::snprintf(text, sizeof text, "%d is a %d? %3.0f %%", digits[i].label, digit, 100.0 * certainty);
    std::printf("%-18s", text);
  }
  std::printf("\n\n");
}

// Returns the size of a file in bytes, or -1 if it does not exist.
long FileSize(const char* path) {
  std::FILE* file = std::fopen(path, "rb");
  if (file == nullptr) return -1;
  const long size = std::fseek(file, 0, SEEK_END) == 0 ? std::ftell(file) : -1;
  std::fclose(file);
  return size;
}

struct Options {
  std::string csv;
  std::string compile_ms;
  std::vector<std::string> objects;
};

Options ParseOptions(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word.rfind("--compile-ms=", 0) == 0) {
      options.compile_ms = word.substr(13);
    } else if (word.rfind("--object=", 0) == 0) {
      options.objects.push_back(word.substr(9));
    } else if (word.rfind("--", 0) == 0 || !options.csv.empty()) {
      Fail("unexpected '" + word + "'; usage: digits CSV [--compile-ms=N] [--object=FILE]...");
    } else {
      options.csv = word;
    }
  }
  if (options.csv.empty()) Fail("usage: digits CSV [--compile-ms=N] [--object=FILE]...");
  return options;
}

void Report(const Options& options, const char* program, double ns_train, double ns_classify) {
  for (const std::string& object : options.objects) {
    std::printf("object   %8ld bytes  %s\n", FileSize(object.c_str()), object.c_str());
  }
  std::printf("binary   %8ld bytes\n", FileSize(program));
  if (!options.compile_ms.empty()) std::printf("compile  %8s ms     both graphs\n", options.compile_ms.c_str());
  std::printf("train    %8.0f ns     a call, %d digits\n", ns_train, kBatch);
  std::printf("classify %8.0f ns     a call, 1 digit\n", ns_classify);
}

}  // namespace

int main(int argc, char** argv) {
  const Options options = ParseOptions(argc, argv);
  std::vector<Digit> digits = ReadDigits(options.csv);
  Random random(20);
  random.Shuffle(digits);
  const std::size_t tested = digits.size() / 5;
  const std::vector<Digit> test(digits.begin(), digits.begin() + static_cast<std::ptrdiff_t>(tested));
  digits.erase(digits.begin(), digits.begin() + static_cast<std::ptrdiff_t>(tested));
  std::printf("%zu digits to learn from, %zu to be tested on\n", digits.size(), test.size());

  digits::Train train;
  const double ns_train = Learn(train, random, digits);

  digits::Classify classify;
  classify.set_var_hidden_kernel_data(train.var_hidden_kernel_data());
  classify.set_var_hidden_bias_data(train.var_hidden_bias_data());
  classify.set_var_logits_kernel_data(train.var_logits_kernel_data());
  classify.set_var_logits_bias_data(train.var_logits_bias_data());
  Draw(classify, test);

  std::size_t right = 0;
  const auto start = std::chrono::steady_clock::now();
  for (const Digit& digit : test) right += Classified(classify, digit) == digit.label;
  const double ns_classify = SecondsSince(start) * 1e9 / static_cast<double>(test.size());
  Report(options, argv[0], ns_train, ns_classify);
  std::printf("accuracy: %.1f %%\n", 100.0 * static_cast<double>(right) / static_cast<double>(test.size()));
  return 0;
}
