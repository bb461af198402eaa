// Runs a layer and a program with variables on device 0: with host memory, with device memory, in
// several objects at once.

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>
#include <utility>

#include "expect.h"
#include "layer.h"
#include "train.h"

#define CHECK(condition)                                                    \
  do {                                                                      \
    if (!(condition)) {                                                     \
      std::fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);  \
      return false;                                                         \
    }                                                                       \
  } while (0)

namespace {

void Fill(float* x) {
  for (int i = 0; i < 2; ++i) {
    for (int k = 0; k < 4; ++k) x[i * 4 + k] = layer_input(i, k);
  }
}

bool IsExpected(const float* y) {
  for (int i = 0; i < 2; ++i) {
    for (int j = 0; j < 3; ++j) CHECK(y[i * 3 + j] == layer_output(0, i, j));
  }
  return true;
}

bool HostMemory() {
  ns::Layer layer;
  CHECK(layer.set_device(0));
  Fill(layer.arg_x_data());
  if (!layer.Run()) std::fprintf(stderr, "%s\n", layer.error_msg().c_str());
  CHECK(layer.error_msg().empty() && IsExpected(layer.result_y_data()));
  CHECK(!layer.set_device(0) && layer.error_msg().find("already opened") != std::string::npos);
  ns::Layer moved(std::move(layer));
  std::memset(moved.result0_data(), 0, 24);
  CHECK(moved.Run() && IsExpected(moved.result_y_data()));
  ns::Layer other;
  other = std::move(moved);
  CHECK(other.Run() && IsExpected(other.result_y_data()));
  return true;
}

bool OwnDeviceMemory() {
  ns::Layer layer(ns::Layer::AllocMode::RESULTS_PROFILES_AND_TEMPS_ONLY);
  CHECK(!layer.Run() && !layer.error_msg().empty());
  float x[8];
  float y[6] = {};
  Fill(x);
  CHECK(layer.CopyToArg(0, x) && layer.RunAsync() && layer.Synchronize() && layer.CopyFromResult(0, y));
  CHECK(IsExpected(y));
  CHECK(layer.arg_x_device_data() != nullptr && layer.arg_x_device_data() == layer.arg_device_data(0));
  return true;
}

// The result of a layer stays on the device and is the argument of a copy in the same stream.
bool DeviceMemoryOfTheCaller() {
  ns::Layer layer;
  tfcompile_device* const device = layer.device();
  CHECK(device != nullptr);
  tfcompile_device_error error;
  tfcompile_device_address in;
  tfcompile_device_address out;
  void* stream = nullptr;
  CHECK(tfcompile_device_alloc(device, 32, &in, &error) == TFCOMPILE_DEVICE_OK);
  CHECK(tfcompile_device_alloc(device, 24, &out, &error) == TFCOMPILE_DEVICE_OK);
  CHECK(tfcompile_device_stream_create(device, 0, &stream, &error) == TFCOMPILE_DEVICE_OK);
  float x[8];
  float y[6] = {};
  Fill(x);
  CHECK(tfcompile_device_copy_in(device, in, x, sizeof x, stream, &error) == TFCOMPILE_DEVICE_OK);
  layer.set_arg_x_device_data(reinterpret_cast<const float*>(in));
  layer.set_result_y_device_data(reinterpret_cast<const float*>(out));
  CHECK(layer.result0_device_data() == reinterpret_cast<const float*>(out));
  CHECK(layer.RunAsync(stream));
  CHECK(tfcompile_device_copy_out(device, y, out, sizeof y, stream, &error) == TFCOMPILE_DEVICE_OK);
  CHECK(tfcompile_device_stream_synchronize(device, stream, &error) == TFCOMPILE_DEVICE_OK);
  CHECK(layer.Synchronize() && IsExpected(y));
  // Only the result is the caller's.
  std::memset(y, 0, sizeof y);
  layer.set_arg_x_device_data(nullptr);
  CHECK(layer.CopyToArg(0, x) && layer.RunAsync() && layer.Synchronize() && layer.CopyFromResult(0, y));
  CHECK(IsExpected(y));
  layer.set_result_y_device_data(nullptr);
  tfcompile_device_stream_destroy(device, stream);
  CHECK(tfcompile_device_free(device, in, &error) == TFCOMPILE_DEVICE_OK);
  CHECK(tfcompile_device_free(device, out, &error) == TFCOMPILE_DEVICE_OK);
  return true;
}

// kernel += scale * step
bool Variables() {
  ns::Train train;
  for (std::size_t i = 0; i < 3; ++i) train.var_layer_kernel(i) = 10;
  const float scale[3] = {1, 2, 3};
  train.set_var_layer_scale_data(scale);
  train.arg0() = 2;
  CHECK(train.Run());
  CHECK(train.result_before(0) == 10 && train.result_before(2) == 30);
  CHECK(train.var_layer_kernel(0) == 12 && train.var_layer_kernel(2) == 16);
  CHECK(train.Run() && train.result_before(1) == 28 && train.var_layer_kernel(1) == 18);

  // The variables stay on the device.
  float kernel[3] = {1, 1, 1};
  CHECK(train.CopyToArg(1, kernel) && train.CopyToArg(2, scale));
  CHECK(train.set_arg_resident(1, true) && train.set_arg_resident(2, true));
  CHECK(train.Run() && train.Run());
  CHECK(train.result_after(0) == 5 && train.result_after(2) == 13);
  CHECK(train.var_layer_kernel(1) == 18);
  CHECK(train.CopyFromArg(1, kernel) && kernel[0] == 5 && kernel[1] == 9 && kernel[2] == 13);
  CHECK(train.RunAsync() && train.RunAsync() && train.Synchronize());
  CHECK(train.var_layer_kernel_device_data() == train.result_device_data(2));
  CHECK(train.CopyFromResult(2, kernel) && kernel[0] == 9 && kernel[2] == 25);
  return true;
}

bool SeveralObjects() {
  ns::Layer layers[3];
  ns::Train train;
  float x[8];
  Fill(x);
  for (ns::Layer& layer : layers) CHECK(layer.CopyToArg(0, x) && layer.RunAsync());
  CHECK(train.RunAsync());
  for (ns::Layer& layer : layers) {
    float y[6] = {};
    CHECK(layer.Synchronize() && layer.CopyFromResult(0, y) && IsExpected(y));
  }
  CHECK(train.Synchronize());
  return true;
}

bool NoSuchDevice() {
  ns::Layer layer;
  CHECK(layer.set_device(1000) && !layer.Run());
  CHECK(layer.error_msg().find("1000") != std::string::npos);
  CHECK(layer.device() == nullptr && layer.arg0_device_data() == nullptr && !layer.RunAsync());
  // Until the device is open, another one can be selected.
  CHECK(layer.set_device(0) && layer.Run() && layer.error_msg().empty());
  return true;
}

}  // namespace

int main() {
  const bool succeeded = HostMemory() && OwnDeviceMemory() && DeviceMemoryOfTheCaller() && Variables() &&
                         SeveralObjects() && NoSuchDevice();
  return succeeded ? 0 : 1;
}
