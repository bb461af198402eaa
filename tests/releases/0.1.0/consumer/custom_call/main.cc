// User functions in place of ops: buffers, attributes, a status with a message, one call per node.

#include "tfcompile/custom_call.h"

#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "calls.h"
#include "check.h"
#include "versions/calls.h"

namespace {

std::vector<std::string> nodes;
std::vector<std::string> attributes;
std::thread::id thread;

}  // namespace

// y = x * factor + n, and the sum of all y. Rejects n below 0, with its own message below -1.
extern "C" int32_t scale_and_sum(tfcompile_custom_call* call) {
  nodes.push_back(call->node);
  attributes.push_back(call->attributes);
  thread = std::this_thread::get_id();
  CHECK(call->size == sizeof(*call));
  CHECK(std::string(call->op) == "Scale");
  CHECK(call->num_inputs == 2 && call->num_outputs == 2);
  const tfcompile_custom_call_buffer& x = call->inputs[0];
  CHECK(x.type == TFCOMPILE_FLOAT && x.rank == 2 && x.bytes == 24);
  CHECK(x.dimensions[0] == 2 && x.dimensions[1] == 3);
  CHECK(call->inputs[1].type == TFCOMPILE_INT32 && call->inputs[1].rank == 0 && call->inputs[1].bytes == 4);
  CHECK(call->outputs[0].type == TFCOMPILE_FLOAT && call->outputs[0].rank == 2);
  CHECK(call->outputs[1].type == TFCOMPILE_DOUBLE && call->outputs[1].rank == 0);
  const std::int32_t n = *static_cast<const std::int32_t*>(call->inputs[1].data);
  if (n < -1) call->error = "n is far too small";
  if (n < 0) return 7;
  const float factor = std::strstr(call->attributes, "\"factor\":0.5") != nullptr ? 0.5f : -1.0f;
  double* sum = static_cast<double*>(call->outputs[1].data);
  *sum = 0;
  for (int i = 0; i < 6; ++i) {
    const float y = static_cast<const float*>(x.data)[i] * factor + static_cast<float>(n);
    static_cast<float*>(call->outputs[0].data)[i] = y;
    *sum += static_cast<double>(y);
  }
  return 0;
}

template <typename Class>
void Run() {
  nodes.clear();
  attributes.clear();
  Class calls;
  for (int i = 0; i < 6; ++i) calls.arg_x_data()[i] = static_cast<float>(i);
  calls.arg_n() = 3;
  CHECK(calls.Run());
  CHECK((nodes == std::vector<std::string>{"tower/scale", "again"}));
  CHECK(attributes[0] == "{\"T\":\"float\",\"factor\":0.5,\"mode\":\"a \\\"b\\\"\"}");
  CHECK(thread == std::this_thread::get_id());
  double sum = 0;
  for (int i = 0; i < 6; ++i) {
    // -(x * 2 * 0.5 + 3 + 2) + 3
    CHECK(calls.result_y_data()[i] == -static_cast<float>(i) - 2);
    sum += -i - 2;
  }
  CHECK(calls.result_sum() == sum);

  calls.arg_n() = -1;
  CHECK(!calls.Run());
  CHECK(calls.error_msg() == "the function scale_and_sum of node 'tower/scale' failed");
  calls.arg_n() = -2;
  CHECK(!calls.Run());
  CHECK(calls.error_msg() == "n is far too small");
  calls.arg_n() = 0;
  CHECK(calls.Run());
  CHECK(calls.error_msg().empty());
}

int main() {
  Run<Calls>();
  Run<versions::Calls>();
  return 0;
}
