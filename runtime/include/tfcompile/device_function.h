// Base class of the classes that tfcompile generates for GPUs (`--target cuda`, `--target opencl`).
//
//   Model model;
//   model.set_device(1);         // Default: device 0.
//   if (!model.Run()) ...        // Host buffers, as for processors.
//
// Run() copies arguments to the device and results back. RunAsync() works on device memory: by
// default the object's own, which CopyToArg and CopyFromResult access, or the caller's.
//
// Link with -ldl -pthread if the C library is older than glibc 2.34. See device.h for the device
// itself: memory, streams, events.

#ifndef TFCOMPILE_DEVICE_FUNCTION_H_
#define TFCOMPILE_DEVICE_FUNCTION_H_

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tfcompile/device.h"
#include "tfcompile/xla_compiled_cpu_function.h"

namespace tensorflow {
inline namespace tfcompile_v1 {

// Base is XlaCompiledCpuFunction, or the base class of classes whose constants are in a file.
template <class Base>
class DeviceFunction : public Base {
 public:
  // Device program of the object file, and the driver that runs it (enum tfcompile_device_kind).
  struct Program {
    const void* program;
    ::std::int32_t kind;
  };

  template <class... Arguments>
  explicit DeviceFunction(const Program& program, Arguments&&... arguments)
      : Base(::std::forward<Arguments>(arguments)...), state_(new State(program)) {
    state_->args.resize(static_cast<::std::size_t>(this->num_args()));
    state_->results.resize(static_cast<::std::size_t>(this->num_results()));
  }

  // Selects the device by its number among those of its driver. Call this before the device is
  // opened: by the first run, device(), or one of the methods that access device memory. Later
  // calls return false.
  bool set_device(int ordinal) {
    ::tfcompile_device_options options = state_->options;
    options.ordinal = ordinal;
    return set_device_options(options);
  }

  // Same, with the options of the device's memory pool. The kind of the device is ignored.
  bool set_device_options(const ::tfcompile_device_options& options) {
    if (state_->device != nullptr) {
      return this->Fail("set_device: the object has already opened its device");
    }
    const ::std::int32_t kind = state_->options.kind;
    state_->options = options;
    state_->options.kind = kind;
    return true;
  }

  // Returns the device, for the functions of device.h; opens it if necessary. On failure, returns
  // null, and error_msg() returns the message. The object closes the device.
  ::tfcompile_device* device() {
    this->Fail(nullptr);
    return Open() ? state_->device : nullptr;
  }

  // Returns the program on the device, likewise. Replacing the constants replaces it.
  ::tfcompile_device_instance* device_instance() {
    this->Fail(nullptr);
    return Ready() ? state_->instance : nullptr;
  }

  // Copies the arguments to the device, computes, and copies the results back. On failure, returns
  // false, and error_msg() returns the message.
  bool Run() override {
    this->Fail(nullptr);
    return Ready() && XlaCompiledCpuFunction::Run();
  }

  // Starts a computation on device memory and returns. `stream` is a CUstream or cl_command_queue
  // of the device; null selects the object's own. Runs of an object are ordered. On failure,
  // returns false, and error_msg() returns the message.
  bool RunAsync(void* stream = nullptr) {
    this->Fail(nullptr);
    if (!Ready()) return false;
    const ::tfcompile_device_address* const args = Addresses(&state_->args, &state_->bound_args, Side::kArg);
    const ::tfcompile_device_address* const results =
        Addresses(&state_->results, &state_->bound_results, Side::kResult);
    if (state_->error.status != TFCOMPILE_DEVICE_OK) return FailWithText();
    return Check(::tfcompile_device_instance_enqueue(state_->instance, args, results, 0, stream, &state_->error));
  }

  // Waits for the last RunAsync(). Returns false if it failed, or if an assertion of the graph
  // failed, and error_msg() returns the message.
  bool Synchronize() {
    this->Fail(nullptr);
    if (state_->instance == nullptr) return true;
    return Check(::tfcompile_device_instance_finish(state_->instance, &state_->error));
  }

  // Device memory of an argument or result for RunAsync(): the caller's if set, else the object's
  // own. Null on failure; error_msg() then returns the message.
  void* arg_device_data(::std::size_t index) { return Data(state_->args[index], Side::kArg, index); }
  void* result_device_data(::std::size_t index) { return Data(state_->results[index], Side::kResult, index); }

  // Sets the caller's device memory, aligned to 16 bytes, which must outlive its use. Null selects
  // the object's own. Run() does not use it. A written variable's result shares the memory of the
  // argument.
  void set_arg_device_data(::std::size_t index, const void* data) { Set(&state_->args[index], data); }
  void set_result_device_data(::std::size_t index, const void* data) { Set(&state_->results[index], data); }

  // Device memory of dynamic_sizes() for RunAsync(): one int64_t per bounded dimension.
  void* dynamic_sizes_device_data() {
    this->Fail(nullptr);
    if (!Ready()) return nullptr;
    return Pointer(::tfcompile_device_instance_sizes(state_->instance, &state_->error));
  }

  // Copies between host memory and the device memory of an argument or result. With a stream, the
  // copies are in its order, and the host memory must stay valid until they are done. Otherwise they
  // are done on return.
  bool CopyToArg(::std::size_t index, const void* from, void* stream = nullptr) {
    void* const to = arg_device_data(index);
    if (to == nullptr) return this->frame().error == nullptr;
    return Check(::tfcompile_device_copy_in(state_->device, Address(to), from, Size(Side::kArg, index), stream,
                                            &state_->error));
  }
  bool CopyFromArg(::std::size_t index, void* to, void* stream = nullptr) {
    return CopyOut(arg_device_data(index), to, Size(Side::kArg, index), stream);
  }
  bool CopyFromResult(::std::size_t index, void* to, void* stream = nullptr) {
    return CopyOut(result_device_data(index), to, Size(Side::kResult, index), stream);
  }

  // Makes Run() use an argument's own device memory as it is, without copying from or to the host:
  // for weights and variables that CopyToArg() has stored there. Replacing the constants of the
  // object ends this.
  bool set_arg_resident(::std::size_t index, bool is_resident) {
    this->Fail(nullptr);
    return Ready() && Check(::tfcompile_device_instance_set_resident(
                          state_->instance, static_cast<::std::uint32_t>(index), is_resident ? 1 : 0, &state_->error));
  }

 private:
  enum class Side { kArg, kResult };

  // Keeps its address when the object moves.
  struct State {
    explicit State(const Program& program_of_object) : program(program_of_object.program) {
      options.kind = program_of_object.kind;
    }
    ~State() {
      ::tfcompile_device_instance_destroy(instance);
      if (device != nullptr) ::tfcompile_device_close(device);
    }
    State(const State&) = delete;
    State& operator=(const State&) = delete;

    const void* program;
    ::tfcompile_device_options options = {};
    ::tfcompile_device* device = nullptr;
    ::tfcompile_device_instance* instance = nullptr;
    const void* constants = nullptr;               // Those of the instance.
    ::std::shared_ptr<const void> constants_owner;  // Keeps them alive if they are from a file.
    ::std::vector<::tfcompile_device_address> args;     // The caller's; 0 selects the instance's.
    ::std::vector<::tfcompile_device_address> results;
    ::std::vector<::tfcompile_device_address> bound_args;
    ::std::vector<::tfcompile_device_address> bound_results;
    ::tfcompile_device_error error = {};
  };

  static ::tfcompile_device_address Address(const void* data) {
    return static_cast<::tfcompile_device_address>(reinterpret_cast<::std::uintptr_t>(data));
  }

  ::std::size_t Size(Side side, ::std::size_t index) const {
    const typename Base::StaticData& data = this->static_data();
    return side == Side::kArg ? data.args[index].size : data.results[index].size;
  }

  bool FailWithText() {
    if (state_->error.status == TFCOMPILE_DEVICE_CHECK_FAILED && state_->error.code == TFCOMPILE_ABORT) {
      ::std::fprintf(stderr, "%s\n", state_->error.text);
      ::std::abort();
    }
    return this->Fail(state_->error.text);
  }

  bool Check(::std::int32_t status) { return status == TFCOMPILE_DEVICE_OK || FailWithText(); }

  bool Open() {
    if (state_->device == nullptr) state_->device = ::tfcompile_device_open(&state_->options, &state_->error);
    return state_->device != nullptr || FailWithText();
  }

  // Opens the device and loads the program with the present constants.
  bool Ready() {
    if (!Base::UpdateConstants()) return false;
    const void* const constants = this->frame().constants;
    ::std::shared_ptr<const void> owner = Base::constants_owner();
    if (state_->instance != nullptr && constants == state_->constants && owner == state_->constants_owner) return true;
    if (!Open()) return false;
    ::tfcompile_device_instance_destroy(state_->instance);
    state_->instance = ::tfcompile_device_instance_create(state_->device, state_->program, constants, &state_->error);
    this->frame().device = state_->instance;
    state_->constants = constants;
    state_->constants_owner = ::std::move(owner);
    return state_->instance != nullptr || FailWithText();
  }

  // Returns the instance's address of an argument or result, or 0.
  ::tfcompile_device_address Own(Side side, ::std::size_t index) {
    const ::std::uint32_t number = static_cast<::std::uint32_t>(index);
    return side == Side::kArg ? ::tfcompile_device_instance_argument(state_->instance, number, &state_->error)
                              : ::tfcompile_device_instance_result(state_->instance, number, &state_->error);
  }

  // Returns the addresses for a run, or null if all are the instance's.
  const ::tfcompile_device_address* Addresses(const ::std::vector<::tfcompile_device_address>* chosen,
                                              ::std::vector<::tfcompile_device_address>* bound, Side side) {
    state_->error.status = TFCOMPILE_DEVICE_OK;
    bool is_chosen = false;
    for (const ::tfcompile_device_address address : *chosen) is_chosen = is_chosen || address != 0;
    if (!is_chosen) return nullptr;
    *bound = *chosen;
    for (::std::size_t i = 0; i < bound->size(); ++i) {
      if ((*bound)[i] == 0 && Size(side, i) > 0) (*bound)[i] = Own(side, i);
    }
    return bound->data();
  }

  void* Pointer(::tfcompile_device_address address) {
    if (address == 0 && state_->error.status != TFCOMPILE_DEVICE_OK) (void)FailWithText();
    return reinterpret_cast<void*>(static_cast<::std::uintptr_t>(address));
  }

  void* Data(::tfcompile_device_address chosen, Side side, ::std::size_t index) {
    this->Fail(nullptr);
    state_->error.status = TFCOMPILE_DEVICE_OK;
    if (chosen != 0) return Pointer(chosen);
    if (side == Side::kResult) {
      // A written variable.
      const int arg = this->arg_of_result(static_cast<int>(index));
      if (arg >= 0) return Data(state_->args[static_cast<::std::size_t>(arg)], Side::kArg, static_cast<::std::size_t>(arg));
    }
    return Ready() ? Pointer(Own(side, index)) : nullptr;
  }

  bool CopyOut(void* from, void* to, ::std::size_t bytes, void* stream) {
    if (from == nullptr) return this->frame().error == nullptr;
    return Check(::tfcompile_device_copy_out(state_->device, to, Address(from), bytes, stream, &state_->error));
  }

  static void Set(::tfcompile_device_address* to, const void* data) {
    assert(reinterpret_cast<::std::uintptr_t>(data) % 16 == 0 && "Underaligned device pointer!");
    *to = Address(data);
  }

  ::std::unique_ptr<State> state_;
};

}  // namespace tfcompile_v1
}  // namespace tensorflow

#endif  // TFCOMPILE_DEVICE_FUNCTION_H_
