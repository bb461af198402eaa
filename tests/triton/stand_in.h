// A stand-in for Triton Inference Server: the objects and functions that a backend uses, in memory.
//
// It counts live objects, so that tests see leaks, and lets any call fail. The program must export
// its symbols (-rdynamic), because the backend finds them in the process.

#ifndef TFCOMPILE_TESTS_TRITON_STAND_IN_H_
#define TFCOMPILE_TESTS_TRITON_STAND_IN_H_

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

struct TRITONSERVER_Error {
  int code;
  std::string message;
};

struct TRITONSERVER_Message {
  std::string json;
};

using Answer = TRITONSERVER_Error*;

enum : int { kInternal = 1, kNotFound = 2, kInvalid = 3, kUnsupported = 5, kCancelled = 7 };
enum : int { kBool = 1, kUint8 = 2, kInt32 = 8, kFloat = 11 };
enum : int { kCpu = 0, kPinned = 1, kGpu = 2 };

// State of the stand-in that tests read and set.
namespace stand_in {

inline std::atomic<int> errors{0}, messages{0}, responses{0}, calls{0};
// Number of the call that fails, counted from 1; 0 for none.
inline std::atomic<int> failing{0};
inline std::atomic<int> has_failed{0};
inline uint32_t major = 1, minor = 19;
inline std::mutex mutex;
inline std::vector<std::string> log;

inline Answer NewError(int code, const std::string& message) {
  ++errors;
  return new TRITONSERVER_Error{code, message};
}

// Null, or the error of the call that is to fail.
inline Answer Call() {
  if (++calls != failing) return nullptr;
  has_failed = 1;
  return NewError(kInternal, "injected");
}

struct Buffer {
  std::vector<char> memory;
  size_t offset = 0;  // Of the data in `memory`.
  int place = kCpu;
};

struct Output {
  std::string name;
  int type = 0;
  std::vector<int64_t> sizes;
  std::vector<char> bytes;
  int place = kCpu;
};

struct Answered {
  int code = -1;  // -1: success.
  std::string message;
  std::map<std::string, Output> outputs;
};

struct Report {
  bool success;
  uint64_t times[4];
};

}  // namespace stand_in

struct TRITONBACKEND_Input {
  std::string name;
  int type = kFloat;
  std::vector<int64_t> sizes;
  std::vector<stand_in::Buffer> buffers;
};

struct TRITONBACKEND_Request {
  std::vector<TRITONBACKEND_Input> inputs;
  std::vector<std::string> outputs;
  bool is_cancelled = false;
  int output_place = kCpu;
  int released = 0;
  std::vector<stand_in::Answered> answers;
  std::map<std::string, stand_in::Output> states;
  std::vector<stand_in::Report> reports;
};

struct TRITONBACKEND_State {
  TRITONBACKEND_Request* request;
  stand_in::Output value;
};

struct TRITONBACKEND_Output {
  stand_in::Output value;
};

struct TRITONBACKEND_Response {
  TRITONBACKEND_Request* request;
  std::map<std::string, std::unique_ptr<TRITONBACKEND_Output>> outputs;
};

struct TRITONBACKEND_Backend {};
struct TRITONBACKEND_BackendAttribute {
  int kind = 0;
  bool is_parallel = false;
};

struct TRITONBACKEND_Model {
  std::string name, location, config, completed;
  uint64_t version = 1;
  bool completes = true;
  void* state = nullptr;
};

struct TRITONBACKEND_ModelInstance {
  explicit TRITONBACKEND_ModelInstance(TRITONBACKEND_Model* model) : model(model) {}

  TRITONBACKEND_Model* model;
  std::string name = "instance";
  int kind = 1;
  void* state = nullptr;
  std::vector<uint64_t> runs;  // Rows of each run.
};

extern "C" {

#define MAY_FAIL \
  if (Answer failed = stand_in::Call()) return failed

#define EXPORT __attribute__((visibility("default"), used))

EXPORT Answer TRITONSERVER_ErrorNew(int code, const char* message) { return stand_in::NewError(code, message); }
EXPORT void TRITONSERVER_ErrorDelete(Answer error) {
  --stand_in::errors;
  delete error;
}
EXPORT int TRITONSERVER_ErrorCode(Answer error) { return error->code; }
EXPORT const char* TRITONSERVER_ErrorMessage(Answer error) { return error->message.c_str(); }
EXPORT Answer TRITONSERVER_LogMessage(int, const char*, int, const char* message) {
  std::lock_guard<std::mutex> lock(stand_in::mutex);
  stand_in::log.push_back(message);
  return nullptr;
}
EXPORT Answer TRITONSERVER_MessageNewFromSerializedJson(TRITONSERVER_Message** message, const char* base, size_t size) {
  MAY_FAIL;
  ++stand_in::messages;
  *message = new TRITONSERVER_Message{std::string(base, size)};
  return nullptr;
}
EXPORT Answer TRITONSERVER_MessageDelete(TRITONSERVER_Message* message) {
  --stand_in::messages;
  delete message;
  MAY_FAIL;
  return nullptr;
}
EXPORT Answer TRITONSERVER_MessageSerializeToJson(TRITONSERVER_Message* message, const char** base, size_t* size) {
  MAY_FAIL;
  *base = message->json.data();
  *size = message->json.size();
  return nullptr;
}
EXPORT Answer TRITONBACKEND_ApiVersion(uint32_t* major, uint32_t* minor) {
  MAY_FAIL;
  *major = stand_in::major;
  *minor = stand_in::minor;
  return nullptr;
}
EXPORT Answer TRITONBACKEND_BackendAttributeAddPreferredInstanceGroup(TRITONBACKEND_BackendAttribute* attributes, int kind,
                                                                      uint64_t, const uint64_t*, uint64_t) {
  MAY_FAIL;
  attributes->kind = kind;
  return nullptr;
}
EXPORT Answer TRITONBACKEND_BackendAttributeSetParallelModelInstanceLoading(TRITONBACKEND_BackendAttribute* attributes, bool value) {
  MAY_FAIL;
  attributes->is_parallel = value;
  return nullptr;
}
EXPORT Answer TRITONBACKEND_ModelName(TRITONBACKEND_Model* model, const char** name) {
  MAY_FAIL;
  *name = model->name.c_str();
  return nullptr;
}
EXPORT Answer TRITONBACKEND_ModelVersion(TRITONBACKEND_Model* model, uint64_t* version) {
  MAY_FAIL;
  *version = model->version;
  return nullptr;
}
EXPORT Answer TRITONBACKEND_ModelRepository(TRITONBACKEND_Model* model, int* kind, const char** location) {
  MAY_FAIL;
  *kind = 0;
  *location = model->location.c_str();
  return nullptr;
}
EXPORT Answer TRITONBACKEND_ModelConfig(TRITONBACKEND_Model* model, uint32_t version, TRITONSERVER_Message** message) {
  MAY_FAIL;
  if (version != 1) return stand_in::NewError(kUnsupported, "version of the configuration");
  ++stand_in::messages;
  *message = new TRITONSERVER_Message{model->config};
  return nullptr;
}
EXPORT Answer TRITONBACKEND_ModelAutoCompleteConfig(TRITONBACKEND_Model* model, bool* completes) {
  MAY_FAIL;
  *completes = model->completes;
  return nullptr;
}
EXPORT Answer TRITONBACKEND_ModelSetConfig(TRITONBACKEND_Model* model, uint32_t, TRITONSERVER_Message* message) {
  MAY_FAIL;
  model->completed = message->json;
  return nullptr;
}
EXPORT Answer TRITONBACKEND_ModelState(TRITONBACKEND_Model* model, void** state) {
  MAY_FAIL;
  *state = model->state;
  return nullptr;
}
EXPORT Answer TRITONBACKEND_ModelSetState(TRITONBACKEND_Model* model, void* state) {
  MAY_FAIL;
  model->state = state;
  return nullptr;
}
EXPORT Answer TRITONBACKEND_ModelInstanceName(TRITONBACKEND_ModelInstance* instance, const char** name) {
  MAY_FAIL;
  *name = instance->name.c_str();
  return nullptr;
}
EXPORT Answer TRITONBACKEND_ModelInstanceKind(TRITONBACKEND_ModelInstance* instance, int* kind) {
  MAY_FAIL;
  *kind = instance->kind;
  return nullptr;
}
EXPORT Answer TRITONBACKEND_ModelInstanceDeviceId(TRITONBACKEND_ModelInstance*, int32_t* device) {
  MAY_FAIL;
  *device = 0;
  return nullptr;
}
EXPORT Answer TRITONBACKEND_ModelInstanceModel(TRITONBACKEND_ModelInstance* instance, TRITONBACKEND_Model** model) {
  MAY_FAIL;
  *model = instance->model;
  return nullptr;
}
EXPORT Answer TRITONBACKEND_ModelInstanceState(TRITONBACKEND_ModelInstance* instance, void** state) {
  MAY_FAIL;
  *state = instance->state;
  return nullptr;
}
EXPORT Answer TRITONBACKEND_ModelInstanceSetState(TRITONBACKEND_ModelInstance* instance, void* state) {
  MAY_FAIL;
  instance->state = state;
  return nullptr;
}
EXPORT Answer TRITONBACKEND_ModelInstanceReportStatistics(TRITONBACKEND_ModelInstance*, TRITONBACKEND_Request* request, bool success,
                                                          uint64_t a, uint64_t b, uint64_t c, uint64_t d) {
  MAY_FAIL;
  request->reports.push_back({success, {a, b, c, d}});
  return nullptr;
}
EXPORT Answer TRITONBACKEND_ModelInstanceReportBatchStatistics(TRITONBACKEND_ModelInstance* instance, uint64_t rows, uint64_t, uint64_t,
                                                               uint64_t, uint64_t) {
  MAY_FAIL;
  instance->runs.push_back(rows);
  return nullptr;
}
EXPORT Answer TRITONBACKEND_RequestIsCancelled(TRITONBACKEND_Request* request, bool* is_cancelled) {
  MAY_FAIL;
  *is_cancelled = request->is_cancelled;
  return nullptr;
}
EXPORT Answer TRITONBACKEND_RequestInput(TRITONBACKEND_Request* request, const char* name, TRITONBACKEND_Input** found) {
  MAY_FAIL;
  for (TRITONBACKEND_Input& input : request->inputs) {
    if (input.name == name) {
      *found = &input;
      return nullptr;
    }
  }
  return stand_in::NewError(kNotFound, std::string("unknown request input name ") + name);
}
EXPORT Answer TRITONBACKEND_RequestOutputCount(TRITONBACKEND_Request* request, uint32_t* count) {
  MAY_FAIL;
  *count = static_cast<uint32_t>(request->outputs.size());
  return nullptr;
}
EXPORT Answer TRITONBACKEND_RequestOutputName(TRITONBACKEND_Request* request, uint32_t index, const char** name) {
  MAY_FAIL;
  *name = request->outputs.at(index).c_str();
  return nullptr;
}
EXPORT Answer TRITONBACKEND_RequestRelease(TRITONBACKEND_Request* request, uint32_t flags) {
  MAY_FAIL;
  request->released += flags == 1 ? 1 : 100;
  return nullptr;
}
EXPORT Answer TRITONBACKEND_InputProperties(TRITONBACKEND_Input* input, const char** name, int* type, const int64_t** sizes, uint32_t* rank,
                                            uint64_t* bytes, uint32_t* buffers) {
  MAY_FAIL;
  if (name) *name = input->name.c_str();
  *type = input->type;
  *sizes = input->sizes.data();
  *rank = static_cast<uint32_t>(input->sizes.size());
  *bytes = 0;
  for (const stand_in::Buffer& buffer : input->buffers) *bytes += buffer.memory.size() - buffer.offset;
  *buffers = static_cast<uint32_t>(input->buffers.size());
  return nullptr;
}
EXPORT Answer TRITONBACKEND_InputBuffer(TRITONBACKEND_Input* input, uint32_t index, const void** data, uint64_t* bytes, int* place,
                                        int64_t* device) {
  MAY_FAIL;
  const stand_in::Buffer& buffer = input->buffers.at(index);
  *bytes = buffer.memory.size() - buffer.offset;
  *data = *bytes == 0 ? nullptr : buffer.memory.data() + buffer.offset;
  *place = buffer.place;
  *device = 0;
  return nullptr;
}
EXPORT Answer TRITONBACKEND_ResponseNew(TRITONBACKEND_Response** response, TRITONBACKEND_Request* request) {
  MAY_FAIL;
  if (request->released) abort();
  ++stand_in::responses;
  *response = new TRITONBACKEND_Response{request, {}};
  return nullptr;
}
EXPORT Answer TRITONBACKEND_ResponseOutput(TRITONBACKEND_Response* response, TRITONBACKEND_Output** output, const char* name, int type,
                                           const int64_t* sizes, uint32_t rank) {
  MAY_FAIL;
  auto& slot = response->outputs[name];
  slot = std::make_unique<TRITONBACKEND_Output>();
  slot->value = {name, type, std::vector<int64_t>(sizes, sizes + rank), {}, response->request->output_place};
  *output = slot.get();
  return nullptr;
}
EXPORT Answer TRITONBACKEND_OutputBuffer(TRITONBACKEND_Output* output, void** buffer, uint64_t bytes, int* place, int64_t* device) {
  MAY_FAIL;
  output->value.bytes.resize(bytes);
  *buffer = bytes == 0 ? nullptr : output->value.bytes.data();
  *place = output->value.place;
  *device = 0;
  return nullptr;
}
// The response is gone even if this fails, as in the server.
EXPORT Answer TRITONBACKEND_ResponseSend(TRITONBACKEND_Response* response, uint32_t flags, Answer error) {
  if (flags != 1) abort();
  std::unique_ptr<TRITONBACKEND_Response> owned(response);
  --stand_in::responses;
  stand_in::Answered answered;
  if (error) {
    answered.code = error->code;
    answered.message = error->message;
  } else {
    for (auto& [name, output] : response->outputs) answered.outputs[name] = output->value;
  }
  response->request->answers.push_back(answered);
  MAY_FAIL;
  return nullptr;
}
EXPORT Answer TRITONBACKEND_StateNew(TRITONBACKEND_State** state, TRITONBACKEND_Request* request, const char* name, int type,
                                     const int64_t* sizes, uint32_t rank) {
  MAY_FAIL;
  *state = new TRITONBACKEND_State{request, {name, type, std::vector<int64_t>(sizes, sizes + rank), {}, kCpu}};
  return nullptr;
}
EXPORT Answer TRITONBACKEND_StateBuffer(TRITONBACKEND_State* state, void** buffer, uint64_t bytes, int* place, int64_t* device) {
  if (Answer failed = stand_in::Call()) {
    delete state;
    return failed;
  }
  state->value.bytes.resize(bytes);
  *buffer = state->value.bytes.data();
  *place = kCpu;
  *device = 0;
  return nullptr;
}
EXPORT Answer TRITONBACKEND_StateUpdate(TRITONBACKEND_State* state) {
  std::unique_ptr<TRITONBACKEND_State> owned(state);
  MAY_FAIL;
  state->request->states[state->value.name] = state->value;
  return nullptr;
}

}  // extern "C"

#endif  // TFCOMPILE_TESTS_TRITON_STAND_IN_H_
