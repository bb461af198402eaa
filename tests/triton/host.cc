// Loads the backend as Triton Inference Server does, and drives it with requests that a client can
// hardly make: split and misaligned buffers, memory of GPUs, cancelled requests, failing calls.
//
//   host LIBRARY REPOSITORY      libtriton_tfcompile.so, and what scripts/triton/models.py wrote

#include <dlfcn.h>

#include <cmath>
#include <functional>
#include <thread>

#include "stand_in.h"

namespace {

// Ends the program, with a message that printf formats.
template <typename... Values>
[[noreturn]] void Fail(int line, const char* condition, const char* format = " ", Values... values) {
  std::fprintf(stderr, "host.cc:%d: failed: %s\n", line, condition);
  std::fprintf(stderr, format, values...);
  std::fprintf(stderr, "\n");
  std::exit(1);
}

#define CHECK(condition, ...) \
  if (!(condition)) Fail(__LINE__, #condition __VA_OPT__(, ) __VA_ARGS__)

// The entry points of a loaded backend.
struct Backend {
  void* library;

  explicit Backend(const char* path) : library(dlopen(path, RTLD_NOW | RTLD_LOCAL)) { CHECK(library, "%s", dlerror()); }
  ~Backend() { dlclose(library); }

  template <typename... Arguments>
  Answer Call(const char* name, Arguments... arguments) const {
    auto function = reinterpret_cast<Answer (*)(Arguments...)>(dlsym(library, name));
    CHECK(function, "%s", name);
    return function(arguments...);
  }
};

// Takes over an answer and returns its message, empty for success.
std::string Message(Answer answer) {
  if (!answer) return "";
  std::string message = answer->message;
  CHECK(!message.empty());
  TRITONSERVER_ErrorDelete(answer);
  return message;
}

void CheckNothingIsLeft() {
  CHECK(stand_in::errors == 0, "errors %d", stand_in::errors.load());
  CHECK(stand_in::messages == 0, "messages %d", stand_in::messages.load());
  CHECK(stand_in::responses == 0, "responses %d", stand_in::responses.load());
}

bool Contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

std::string repository;

TRITONBACKEND_Model ModelOf(const std::string& name, const std::string& config) {
  TRITONBACKEND_Model model;
  model.name = name;
  model.location = repository + "/" + name;
  model.config = config;
  return model;
}

// A loaded model with one instance.
struct Loaded {
  const Backend& backend;
  TRITONBACKEND_Model model;
  TRITONBACKEND_ModelInstance instance;

  Loaded(const Backend& backend, const std::string& name, const std::string& config)
      : backend(backend), model(ModelOf(name, config)), instance{&model} {
    std::string message = Message(backend.Call("TRITONBACKEND_ModelInitialize", &model));
    CHECK(message.empty(), "%s", message.c_str());
    message = Message(backend.Call("TRITONBACKEND_ModelInstanceInitialize", &instance));
    CHECK(message.empty(), "%s", message.c_str());
  }
  ~Loaded() {
    CHECK(Message(backend.Call("TRITONBACKEND_ModelInstanceFinalize", &instance)).empty());
    CHECK(Message(backend.Call("TRITONBACKEND_ModelFinalize", &model)).empty());
  }

  std::string Execute(std::vector<TRITONBACKEND_Request*> requests) {
    return Message(backend.Call("TRITONBACKEND_ModelInstanceExecute", &instance, requests.data(), static_cast<uint32_t>(requests.size())));
  }
};

TRITONBACKEND_Input FloatInput(const std::string& name, const std::vector<int64_t>& sizes, const std::vector<float>& values) {
  TRITONBACKEND_Input input{name, kFloat, sizes, {}};
  stand_in::Buffer buffer;
  buffer.memory.resize(4 * values.size());
  std::memcpy(buffer.memory.data(), values.data(), buffer.memory.size());
  input.buffers.push_back(buffer);
  return input;
}

std::vector<float> Floats(const stand_in::Output& output) {
  std::vector<float> values(output.bytes.size() / 4);
  std::memcpy(values.data(), output.bytes.data(), output.bytes.size());
  return values;
}

// A request to the model total_out = total_in + x, both with two columns.
TRITONBACKEND_Request Sum(int64_t rows, float first) {
  std::vector<float> x, total;
  for (int64_t k = 0; k < 2 * rows; ++k) {
    x.push_back(first + static_cast<float>(k));
    total.push_back(100.0f * static_cast<float>(k));
  }
  TRITONBACKEND_Request request;
  request.inputs = {FloatInput("x", {rows, 2}, x), FloatInput("total_in", {rows, 2}, total)};
  request.outputs = {"total_out"};
  return request;
}

void CheckSum(const TRITONBACKEND_Request& request, int64_t rows, float first) {
  CHECK(request.released == 1 && request.answers.size() == 1);
  const stand_in::Answered& answer = request.answers[0];
  CHECK(answer.code == -1, "%s", answer.message.c_str());
  const stand_in::Output& output = answer.outputs.at("total_out");
  CHECK(output.type == kFloat && output.sizes == (std::vector<int64_t>{rows, 2}));
  std::vector<float> values = Floats(output);
  CHECK(values.size() == static_cast<size_t>(2 * rows));
  for (size_t k = 0; k < values.size(); ++k) CHECK(values[k] == first + 101.0f * static_cast<float>(k));
  CHECK(request.reports.size() == 1 && request.reports[0].success);
  const uint64_t* times = request.reports[0].times;
  CHECK(times[0] > 0 && times[0] <= times[1] && times[1] <= times[2] && times[2] <= times[3]);
}

void CheckRefused(const TRITONBACKEND_Request& request, int code, const std::string& message) {
  CHECK(request.released == 1 && request.answers.size() == 1);
  CHECK(request.answers[0].code == code, "code %d: %s", request.answers[0].code, request.answers[0].message.c_str());
  CHECK(Contains(request.answers[0].message, message), "%s", request.answers[0].message.c_str());
  CHECK(request.reports.size() == 1 && !request.reports[0].success);
}

void TestVersions(const Backend& backend) {
  TRITONBACKEND_Backend object;
  stand_in::major = 2;
  CHECK(Contains(Message(backend.Call("TRITONBACKEND_Initialize", &object)), "version 2.19 of the backend interface"));
  stand_in::major = 1;
  CHECK(Message(backend.Call("TRITONBACKEND_Initialize", &object)).empty());
  TRITONBACKEND_BackendAttribute attributes;
  CHECK(Message(backend.Call("TRITONBACKEND_GetBackendAttribute", &object, &attributes)).empty());
  CHECK(attributes.kind == 1 && attributes.is_parallel);
}

void TestConfigurations(const Backend& backend) {
  {
    Loaded loaded(backend, "total", R"({"name": "total", "max_batch_size": 0})");
    const std::string& json = loaded.model.completed;
    for (const char* part : {R"("max_batch_size":64)", R"("dynamic_batching":{})", R"("name":"x")", R"("dims":[2])", R"("data_type":"TYPE_FP32")"}) {
      CHECK(Contains(json, part), "%s is missing in %s", part, json.c_str());
    }
  }
  TRITONBACKEND_Model model = ModelOf("total", "{}");
  model.completes = false;
  CHECK(Contains(Message(backend.Call("TRITONBACKEND_ModelInitialize", &model)), "model 'total', version 1: config.pbtxt has no input 'x'"));
  CHECK(model.state == nullptr && model.completed.empty());
  model = ModelOf("total", "not JSON");
  CHECK(Contains(Message(backend.Call("TRITONBACKEND_ModelInitialize", &model)), "configuration"));
  model = ModelOf("total", "{}");
  model.version = 3;
  CHECK(Contains(Message(backend.Call("TRITONBACKEND_ModelInitialize", &model)), "cannot read the directory"));
  model = ModelOf("total", R"({"default_model_filename": "other.so"})");
  CHECK(Contains(Message(backend.Call("TRITONBACKEND_ModelInitialize", &model)), "other.so"));
  Loaded loaded(backend, "total", "{}");
  TRITONBACKEND_ModelInstance instance{&loaded.model};
  instance.kind = 2;
  CHECK(Contains(Message(backend.Call("TRITONBACKEND_ModelInstanceInitialize", &instance)), "the program is for the processor"));
  CHECK(instance.state == nullptr);
}

void TestBatches(const Backend& backend) {
  Loaded loaded(backend, "total", "{}");
  TRITONBACKEND_Request a = Sum(1, 0.5f), b = Sum(3, 7.0f), c = Sum(60, -2.0f), d = Sum(1, 9.0f);
  CHECK(loaded.Execute({&a, &b, &c, &d}).empty());
  CheckSum(a, 1, 0.5f);
  CheckSum(b, 3, 7.0f);
  CheckSum(c, 60, -2.0f);
  CheckSum(d, 1, 9.0f);
  // 65 rows exceed the largest batch.
  CHECK(loaded.instance.runs == (std::vector<uint64_t>{64, 1}));
  CHECK(loaded.Execute({}).empty());
}

void TestBuffers(const Backend& backend) {
  Loaded loaded(backend, "total", "{}");
  TRITONBACKEND_Request split = Sum(3, 1.0f), misaligned = Sum(2, 4.0f), together = Sum(2, 6.0f), pinned = Sum(1, 8.0f);
  // In pieces of 5 bytes, with an empty one.
  const std::vector<char> all = split.inputs[0].buffers[0].memory;
  std::vector<stand_in::Buffer> pieces(1);
  for (size_t begin = 0; begin < all.size(); begin += 5) {
    pieces.push_back({{all.begin() + begin, all.begin() + std::min(begin + 5, all.size())}, 0, kCpu});
  }
  split.inputs[0].buffers = pieces;
  for (TRITONBACKEND_Input& input : misaligned.inputs) {
    input.buffers[0].memory.insert(input.buffers[0].memory.begin(), 'x');
    input.buffers[0].offset = 1;
  }
  pinned.inputs[1].buffers[0].place = kPinned;
  for (TRITONBACKEND_Request* request : {&split, &misaligned, &pinned}) CHECK(loaded.Execute({request}).empty());
  CheckSum(split, 3, 1.0f);
  CheckSum(misaligned, 2, 4.0f);
  CheckSum(pinned, 1, 8.0f);
  TRITONBACKEND_Request again = Sum(3, 1.0f);
  again.inputs[0].buffers = pieces;
  CHECK(loaded.Execute({&again, &together}).empty());
  CheckSum(again, 3, 1.0f);
  CheckSum(together, 2, 6.0f);
}

void TestRefusals(const Backend& backend) {
  Loaded loaded(backend, "total", "{}");
  TRITONBACKEND_Request good = Sum(2, 1.0f), on_gpu = Sum(1, 2.0f), to_gpu = Sum(1, 3.0f), cancelled = Sum(1, 4.0f);
  TRITONBACKEND_Request wrong_type = Sum(1, 5.0f), wrong_rank = Sum(1, 6.0f), wrong_size = Sum(1, 7.0f), too_few = Sum(2, 8.0f);
  TRITONBACKEND_Request missing = Sum(1, 9.0f), too_many = Sum(65, 10.0f), different = Sum(2, 11.0f), none = Sum(1, 12.0f);
  TRITONBACKEND_Request negative = Sum(1, 13.0f);
  on_gpu.inputs[1].buffers[0].place = kGpu;
  to_gpu.output_place = kGpu;
  cancelled.is_cancelled = true;
  wrong_type.inputs[0].type = kInt32;
  wrong_rank.inputs[0].sizes = {1, 2, 1};
  wrong_size.inputs[0].sizes = {1, 3};
  too_few.inputs[0].buffers[0].memory.resize(15);
  missing.inputs.pop_back();
  different.inputs[1] = Sum(3, 0.0f).inputs[1];
  none.outputs.clear();
  negative.inputs[0].sizes = {-1, 2};
  CHECK(loaded
            .Execute({&on_gpu, &to_gpu, &good, &cancelled, &wrong_type, &wrong_rank, &wrong_size, &too_few, &missing, &too_many, &different,
                      &none, &negative})
            .empty());
  CheckSum(good, 2, 1.0f);
  CheckRefused(on_gpu, kUnsupported, "input 'total_in' is in the memory of a GPU");
  CheckRefused(to_gpu, kUnsupported, "output 'total_out' is requested in the memory of a GPU");
  CheckRefused(cancelled, kCancelled, "cancelled");
  CheckRefused(wrong_type, kInvalid, "input 'x': expected elements of TYPE_FP32");
  CheckRefused(wrong_rank, kInvalid, "input 'x': expected 2 dimensions, got 3");
  CheckRefused(wrong_size, kInvalid, "input 'x': expected 2 in dimension 1, got 3");
  CheckRefused(too_few, kInvalid, "input 'x': expected 16 bytes, got 15");
  CheckRefused(missing, kInvalid, "total_in");
  CheckRefused(too_many, kInvalid, "expected 1 to 64 rows, got 65");
  CheckRefused(different, kInvalid, "input 'total_in': it has 3 rows, and another input has 2");
  CheckRefused(negative, kInvalid, "expected 1 to 64 rows, got -1");
  CHECK(none.answers.size() == 1 && none.answers[0].code == -1 && none.answers[0].outputs.empty());
}

// Softmax over two named dimensions: requests of different sizes must not share a run.
void TestSizes(const Backend& backend) {
  Loaded loaded(backend, "softmax_batched", R"({"max_batch_size": 8})");
  std::vector<TRITONBACKEND_Request> requests;
  const int64_t sizes[][2] = {{1, 3}, {2, 5}, {3, 3}, {1, 16}, {4, 5}, {4, 3}};
  for (const auto& [rows, columns] : sizes) {
    std::vector<float> x;
    for (int64_t k = 0; k < rows * columns; ++k) x.push_back(std::sin(static_cast<float>(k * columns)));
    TRITONBACKEND_Request request;
    request.inputs = {FloatInput("x", {rows, columns}, x)};
    request.outputs = {"y"};
    requests.push_back(request);
  }
  std::vector<TRITONBACKEND_Request*> all;
  for (TRITONBACKEND_Request& request : requests) all.push_back(&request);
  CHECK(loaded.Execute(all).empty());
  for (size_t r = 0; r < requests.size(); ++r) {
    const auto [rows, columns] = sizes[r];
    CHECK(requests[r].answers.at(0).code == -1, "%s", requests[r].answers[0].message.c_str());
    std::vector<float> y = Floats(requests[r].answers[0].outputs.at("y"));
    CHECK(y.size() == static_cast<size_t>(rows * columns));
    for (int64_t row = 0; row < rows; ++row) {
      double sum = 0;
      for (int64_t column = 0; column < columns; ++column) sum += std::exp(std::sin(static_cast<double>((row * columns + column) * columns)));
      for (int64_t column = 0; column < columns; ++column) {
        const double expected = std::exp(std::sin(static_cast<double>((row * columns + column) * columns))) / sum;
        CHECK(std::fabs(y[row * columns + column] - expected) < 1e-5);
      }
    }
  }
  CHECK(loaded.instance.runs == (std::vector<uint64_t>{8, 6, 1}));
}

// A failed assert concerns one of the requests that share a run.
void TestAsserts(const Backend& backend) {
  Loaded loaded(backend, "positive", R"({"max_batch_size": 16})");
  std::vector<TRITONBACKEND_Request> requests(3);
  for (size_t k = 0; k < requests.size(); ++k) {
    requests[k].inputs = {FloatInput("x", {1, 2}, {k == 1 ? -3.0f : 3.0f, 2.0f})};
    requests[k].outputs = {"y"};
  }
  CHECK(loaded.Execute({&requests[0], &requests[1], &requests[2]}).empty());
  CheckRefused(requests[1], kInvalid, "x must be positive");
  for (size_t k : {0, 2}) {
    CHECK(requests[k].answers.size() == 1 && requests[k].answers[0].code == -1);
    CHECK(Floats(requests[k].answers[0].outputs.at("y")) == (std::vector<float>{9.0f, 4.0f}));
  }
  CHECK(loaded.instance.runs == (std::vector<uint64_t>{1, 1}));
}

// Bytes other than 0 and 1 are true.
void TestBools(const Backend& backend) {
  Loaded loaded(backend, "types", "{}");
  TRITONBACKEND_Request request;
  const std::pair<const char*, std::pair<int, size_t>> inputs[] = {{"flag", {1, 1}}, {"i8", {6, 1}},   {"u8", {2, 1}},
                                                                   {"i16", {7, 2}},  {"u32", {4, 4}},  {"i64", {9, 8}},
                                                                   {"f16", {10, 2}}, {"bf16", {14, 2}}, {"f64", {12, 8}}};
  for (const auto& [name, type] : inputs) {
    request.inputs.push_back({name, type.first, {8, 3}, {{std::vector<char>(24 * type.second), 0, kCpu}}});
  }
  for (int k = 0; k < 24; ++k) request.inputs[0].buffers[0].memory[k] = static_cast<char>(k * 51);
  // The negation, and the conversion to int32.
  request.outputs = {"result0", "result9"};
  CHECK(loaded.Execute({&request}).empty());
  const std::vector<char>& negated = request.answers.at(0).outputs.at("result0").bytes;
  const std::vector<char>& converted = request.answers.at(0).outputs.at("result9").bytes;
  CHECK(negated.size() == 24 && converted.size() == 96);
  for (int k = 0; k < 24; ++k) {
    const bool is_true = static_cast<char>(k * 51) != 0;
    int32_t number;
    std::memcpy(&number, &converted[4 * k], 4);
    CHECK(negated[k] == !is_true && number == is_true, "%d: %d %d", k, negated[k], number);
  }
}

void TestStates(const Backend& backend) {
  Loaded loaded(backend, "total", R"({"max_batch_size": 8, "sequence_batching": {"state": [
    {"input_name": "total_in", "output_name": "total_out"}]}})");
  CHECK(!Contains(loaded.model.completed, "dynamic_batching"));
  TRITONBACKEND_Request a = Sum(1, 5.0f), b = Sum(1, 6.0f);
  b.outputs.clear();
  CHECK(loaded.Execute({&a, &b}).empty());
  CheckSum(a, 1, 5.0f);
  CHECK(Floats(a.states.at("total_out")) == (std::vector<float>{5.0f, 106.0f}));
  CHECK(Floats(b.states.at("total_out")) == (std::vector<float>{6.0f, 107.0f}));
  CHECK(b.answers.at(0).outputs.empty());
}

// Lets each call of a function of the server fail once, and returns how many there are.
int ForEachFailure(const std::function<void()>& run) {
  for (int number = 1;; ++number) {
    stand_in::calls = 0;
    stand_in::has_failed = 0;
    stand_in::failing = number;
    run();
    stand_in::failing = 0;
    CheckNothingIsLeft();
    if (!stand_in::has_failed) return number - 1;
  }
}

void TestFailures(const Backend& backend) {
  const char* config = R"({"max_batch_size": 8, "sequence_batching": {"state": [
    {"input_name": "total_in", "output_name": "total_out"}]}})";
  int loads = ForEachFailure([&] {
    TRITONBACKEND_Model model = ModelOf("total", config);
    const std::string message = Message(backend.Call("TRITONBACKEND_ModelInitialize", &model));
    CHECK(message.empty() != static_cast<bool>(stand_in::has_failed), "%s", message.c_str());
    CHECK(message.empty() || Contains(message, "injected"));
    CHECK((model.state != nullptr) == message.empty());
    stand_in::failing = 0;
    if (!message.empty()) return;
    TRITONBACKEND_ModelInstance instance{&model};
    CHECK(Message(backend.Call("TRITONBACKEND_ModelInstanceInitialize", &instance)).empty());
    CHECK(Message(backend.Call("TRITONBACKEND_ModelInstanceFinalize", &instance)).empty());
    CHECK(Message(backend.Call("TRITONBACKEND_ModelFinalize", &model)).empty());
  });
  Loaded loaded(backend, "total", config);
  int instances = ForEachFailure([&] {
    TRITONBACKEND_ModelInstance instance{&loaded.model};
    const std::string message = Message(backend.Call("TRITONBACKEND_ModelInstanceInitialize", &instance));
    CHECK((instance.state != nullptr) == message.empty());
    stand_in::failing = 0;
    if (!message.empty()) return;
    CHECK(Message(backend.Call("TRITONBACKEND_ModelInstanceFinalize", &instance)).empty());
  });
  int runs = ForEachFailure([&] {
    TRITONBACKEND_Request a = Sum(1, 1.0f), b = Sum(2, 2.0f);
    const std::string message = loaded.Execute({&a, &b});
    if (!message.empty()) {
      // Nothing was done, and the server keeps the requests.
      CHECK(a.answers.empty() && a.released == 0 && b.answers.empty() && b.released == 0);
      return;
    }
    int successes = 0, released = 0, answers = 0;
    for (TRITONBACKEND_Request* request : {&a, &b}) {
      CHECK(request->answers.size() <= 1 && request->released <= 1);
      answers += static_cast<int>(request->answers.size());
      released += request->released;
      for (const stand_in::Answered& answer : request->answers) successes += answer.code == -1;
    }
    // One call fails, so at most one request is without an answer, or is not released.
    CHECK(answers >= 1 && released >= 1 && answers + released >= 3);
    CHECK(successes >= 1);
  });
  CHECK(loads > 10 && instances > 5 && runs > 30, "%d %d %d", loads, instances, runs);
  std::printf("  failed once: %d calls of loading, %d of an instance, %d of a run\n", loads, instances, runs);
}

void TestThreads(const Backend& backend) {
  Loaded loaded(backend, "total", R"({"parameters": {"threads": {"string_value": "2"}}})");
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      TRITONBACKEND_ModelInstance instance{&loaded.model};
      CHECK(Message(backend.Call("TRITONBACKEND_ModelInstanceInitialize", &instance)).empty());
      for (int k = 0; k < 50; ++k) {
        const float first = static_cast<float>(100 * t + k);
        TRITONBACKEND_Request a = Sum(1 + k % 30, first), b = Sum(2, first);
        TRITONBACKEND_Request* requests[] = {&a, &b};
        CHECK(Message(backend.Call("TRITONBACKEND_ModelInstanceExecute", &instance, &requests[0], uint32_t{2})).empty());
        CheckSum(a, 1 + k % 30, first);
        CheckSum(b, 2, first);
      }
      CHECK(Message(backend.Call("TRITONBACKEND_ModelInstanceFinalize", &instance)).empty());
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  repository = argv[2];
  for (int round = 0; round < 2; ++round) {
    Backend backend(argv[1]);
    TestVersions(backend);
    for (auto test : {TestConfigurations, TestBatches, TestBuffers, TestRefusals, TestSizes, TestAsserts, TestBools, TestStates, TestFailures,
                      TestThreads}) {
      test(backend);
      CheckNothingIsLeft();
    }
    TRITONBACKEND_Backend object;
    CHECK(Message(backend.Call("TRITONBACKEND_Finalize", &object)).empty());
  }
  for (const std::string& line : stand_in::log) CHECK(!Contains(line, "has a bug"), "%s", line.c_str());
  std::printf("host: all tests passed\n");
}
