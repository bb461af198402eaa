// Base class of every class that tfcompile generates.
//
// It owns the buffers and the frame of one computation and calls the compiled function.
// Header-only, C++17, needs only the standard library. Works with and without exceptions and RTTI.
// It is in an inline namespace of its own, so a program may also link TensorFlow, which has a class
// of the same name.
//
// Objects are thread-compatible: non-const methods need exclusive access. Use one object per
// thread.

#ifndef TFCOMPILE_XLA_COMPILED_CPU_FUNCTION_H_
#define TFCOMPILE_XLA_COMPILED_CPU_FUNCTION_H_

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <string>

#include "tfcompile/frame.h"
#include "tfcompile/program_shape.h"
#include "tfcompile/types.h"

// Versions that generated headers check: of these headers, which grows with each addition that a
// generated header may use, and of the oldest generated headers that they serve. The inline
// namespace tfcompile_v1 gets another name if the layout of a class in it changes, so that objects
// of two versions can be linked into one program.
#define TFCOMPILE_RUNTIME_VERSION 2
#define TFCOMPILE_OLDEST_RUNTIME_VERSION 2

namespace Eigen {
struct ThreadPoolDevice;
}

namespace xla {
inline namespace tfcompile_v1 {

// Options of a call, as far as a compiled object supports them.
class ExecutableRunOptions {
 public:
  void set_intra_op_thread_pool(const ::Eigen::ThreadPoolDevice* pool) { intra_op_thread_pool_ = pool; }
  const ::Eigen::ThreadPoolDevice* intra_op_thread_pool() const { return intra_op_thread_pool_; }

 private:
  const ::Eigen::ThreadPoolDevice* intra_op_thread_pool_ = nullptr;
};

}  // namespace tfcompile_v1
}  // namespace xla

namespace tensorflow {

using string = ::std::string;

inline namespace tfcompile_v1 {

class XlaCompiledCpuFunction {
 public:
  // The compiled function. Returns 0 on success.
  using Function = ::std::int32_t (*)(::tfcompile_frame* frame);

  // An argument or result.
  struct BufferInfo {
    ::std::size_t size;       // Size in bytes.
    ::std::size_t alignment;  // Alignment of one element in bytes.
  };

  // A dimension whose size the caller sets.
  struct NamedDimension {
    ::std::int32_t arg;  // Argument that holds the size, an int32.
    ::std::int32_t min;  // Smallest size.
    ::std::int32_t max;  // Largest size.
    const char* error;   // Message of a run with a size that is out of range.
  };

  // Constant description of a computation, shared by all objects of a generated class.
  struct StaticData {
    Function function;
    const unsigned char* constants;            // Null: at constants_pointer, or in a file if
                                               // that is null too.
    const void* const* constants_pointer;      // Location of the constants' address if they are
                                               // far from the code.
    const BufferInfo* args;                    // num_args entries: feeds, then variables.
    const BufferInfo* results;                 // num_results entries: fetches, then written
                                               // variables.
    const ::std::int32_t* variable_results;    // Result index of each variable, or -1 if it is
                                               // read-only.
    ::std::int32_t num_args;
    ::std::int32_t num_results;
    ::std::int32_t num_variables;
    ::std::size_t temps_size;                  // Size in bytes.
    ::std::size_t persistent_temps_size;       // Leading bytes of the temps that must be zero
                                               // before the first run.
    ::std::size_t scratch_size;                // Bytes per worker, a multiple of 64.
    ::std::int64_t profile_counters_size;
    const char* const* arg_names;              // Names of the feeds, "" if unnamed. Null: no names.
    const char* const* variable_names;
    const char* const* result_names;           // Names of the fetches.
    const ::xla::tfcompile_v1::ProgramShapeProto* program_shape;  // May be null.
    const ::xla::tfcompile_v1::HloProfilePrinterData* hlo_profile_printer_data;  // May be null.
    ::std::int32_t num_dynamic_sizes = 0;      // Number of bounded dimensions of all results.
    const NamedDimension* named_dimensions = nullptr;
    ::std::int32_t num_named_dimensions = 0;
  };

  // Owner of the memory of arguments and variables. The object always owns results, profile
  // counters, and temps.
  enum class AllocMode {
    // The object owns them.
    ARGS_VARIABLES_RESULTS_PROFILES_AND_TEMPS,
    // The caller owns them and must set every argument and variable before the first Run().
    RESULTS_PROFILES_AND_TEMPS_ONLY,

    // Names in earlier releases of TensorFlow's tfcompile.
    ARGS_RESULTS_PROFILES_AND_TEMPS = ARGS_VARIABLES_RESULTS_PROFILES_AND_TEMPS,
    ARGS_RESULTS_AND_TEMPS = ARGS_VARIABLES_RESULTS_PROFILES_AND_TEMPS,
    RESULTS_AND_TEMPS_ONLY = RESULTS_PROFILES_AND_TEMPS_ONLY
  };

  // Allocates once: all memory that the object ever needs when it runs on one thread. Owned
  // arguments are zero.
  explicit XlaCompiledCpuFunction(const StaticData& static_data,
                                  AllocMode alloc_mode = AllocMode::ARGS_VARIABLES_RESULTS_PROFILES_AND_TEMPS)
      : static_data_(&static_data) {
    const bool owns_args = alloc_mode == AllocMode::ARGS_VARIABLES_RESULTS_PROFILES_AND_TEMPS;
    block_ = Allocate(Layout(nullptr, owns_args));
    Layout(block_, owns_args);
    frame_.size = sizeof(frame_);
    frame_.version = TFCOMPILE_FRAME_VERSION;
    frame_.args = args_;
    frame_.results = results_;
    frame_.constants =
        static_data.constants_pointer != nullptr ? *static_data.constants_pointer : static_data.constants;
    frame_.max_workers = 1;
    CountUnsetArgs();
  }

  virtual ~XlaCompiledCpuFunction() { Free(); }

  XlaCompiledCpuFunction(const XlaCompiledCpuFunction&) = delete;
  XlaCompiledCpuFunction& operator=(const XlaCompiledCpuFunction&) = delete;

  // Buffers move along and keep their addresses. A moved-from object may only be destroyed or
  // assigned to.
  XlaCompiledCpuFunction(XlaCompiledCpuFunction&& other) : static_data_(other.static_data_) { Take(other); }
  XlaCompiledCpuFunction& operator=(XlaCompiledCpuFunction&& other) {
    if (this != &other) {
      Free();
      Take(other);
    }
    return *this;
  }

  // Makes runs use an Eigen pool, which must outlive its use. Null selects the calling thread. The
  // program must include "tfcompile/eigen_thread_pool.h", which TensorFlow's path of Eigen's Tensor
  // header also includes. Without it, the pool is stored but not used.
  virtual void set_thread_pool(const ::Eigen::ThreadPoolDevice* pool) {
    run_options_.set_intra_op_thread_pool(pool);
    if (EigenPoolUser const use = eigen_pool_user()) use(*this, pool);
  }

  // Makes runs use our own pool ("tfcompile/thread_pool.h"), or any class with Callback() and
  // num_workers().
  template <class Pool, class = decltype(&Pool::Callback)>
  void set_thread_pool(Pool* pool) {
    if (pool == nullptr) {
      set_parallel_for(nullptr, nullptr, 1);
    } else {
      set_parallel_for(&Pool::Callback, pool, pool->num_workers());
    }
  }

  // Callback of set_thread_pool(), which "tfcompile/eigen_thread_pool.h" sets before main().
  using EigenPoolUser = void (*)(XlaCompiledCpuFunction& computation, const ::Eigen::ThreadPoolDevice* pool);
  static EigenPoolUser& eigen_pool_user() {
    static EigenPoolUser user = nullptr;
    return user;
  }

  const ::xla::tfcompile_v1::ExecutableRunOptions* run_options() const { return &run_options_; }

  // Makes runs distribute their work with `parallel_for` (see frame.h) to at most `max_workers`
  // workers. Null selects the calling thread. Results do not depend on this. Allocates scratch
  // memory for the workers.
  void set_parallel_for(::tfcompile_parallel_for parallel_for, void* context, ::std::int64_t max_workers) {
    if (parallel_for == nullptr || max_workers < 1) max_workers = 1;
    const ::std::size_t bytes = static_data_->scratch_size * static_cast<::std::size_t>(max_workers);
    unsigned char* wider = nullptr;
    if (max_workers > 1 && bytes > 0) {
      assert(bytes / static_cast<::std::size_t>(max_workers) == static_data_->scratch_size && "scratch size overflows");
      wider = Allocate(bytes);
    }
    ::operator delete(wide_scratch_);
    wide_scratch_ = wider;
    frame_.parallel_for = parallel_for;
    frame_.context = context;
    frame_.max_workers = max_workers;
    frame_.scratch = wider != nullptr ? AlignUp(wider) : scratch_;
  }

  // Computes the results. On failure, returns false, and error_msg() returns the message.
  virtual bool Run() {
    frame_.error = nullptr;
    if (unset_args_ != 0 && !ArgsAreSet()) return false;
    if (named_sizes_ != nullptr && !SizesAreInRange()) return false;
    const ::std::int32_t status = static_data_->function(&frame_);
    if (status == 0) return true;
    if (status == TFCOMPILE_ABORT) {
      ::std::fprintf(stderr, "%s\n", frame_.error);
      ::std::abort();
    }
    return Fail(frame_.error != nullptr ? frame_.error : "the compiled function failed");
  }

  // Error message of the last Run(), or "" if it succeeded.
  ::std::string error_msg() const { return frame_.error != nullptr ? frame_.error : error_msg_; }
  void set_error_msg(const ::std::string& error_msg) { error_msg_ = error_msg; }

  // Arguments: feeds at [0, num_args() - num_variables()), then variables.
  void* arg_data(::std::size_t index) { return args_[index]; }
  const void* arg_data(::std::size_t index) const { return args_[index]; }

  // Sets the buffer of an argument to the caller's memory, which must outlive its use and needs
  // only the alignment of an element. A run stores the new value of a written variable in the same
  // buffer.
  void set_arg_data(::std::size_t index, const void* data) {
    assert(reinterpret_cast<::std::uintptr_t>(data) % static_data_->args[index].alignment == 0 &&
           "Underaligned pointer!");
    if (static_data_->args[index].size > 0) unset_args_ += (data == nullptr) - (args_[index] == nullptr);
    args_[index] = const_cast<void*>(data);
    const ::std::size_t first_variable = static_cast<::std::size_t>(num_args() - num_variables());
    if (index >= first_variable) BindVariable(index - first_variable);
  }

  // Results: fetches, then written variables.
  void* result_data(::std::size_t index) { return results_[index]; }
  const void* result_data(::std::size_t index) const { return results_[index]; }

  // Actual sizes of all bounded dimensions, result by result, after Run() returned true. Null if
  // there are none. The generated class has a method per result: resultN_dim_size(dim).
  const ::std::int64_t* dynamic_sizes() const { return frame_.dynamic_sizes; }
  int num_dynamic_sizes() const { return static_data_->num_dynamic_sizes; }

  // Pointer tables. Change arguments with set_arg_data(), which also updates the results.
  void** args() { return args_; }
  const void* const* args() const { return args_; }
  void** results() { return results_; }
  const void* const* results() const { return results_; }

  int num_args() const { return static_data_->num_args; }
  int num_results() const { return static_data_->num_results; }
  int num_variables() const { return static_data_->num_variables; }

  // Size in bytes, or the largest int if that overflows. The generated class's static ArgSize() has
  // 64 bits.
  int arg_size(int index) const { return SaturatedSize(static_data_->args[index].size); }
  int result_size(int index) const { return SaturatedSize(static_data_->results[index].size); }

  // Names exist if the header was generated with --gen_name_to_index, or with metadata in the
  // --emit of `build`. Lookups return -1 for unknown names.
  bool HasNameIndices() const { return static_data_->arg_names != nullptr; }
  int LookupArgIndex(const ::std::string& name) const {
    return Lookup(static_data_->arg_names, num_args() - num_variables(), name);
  }
  // Index among all arguments, for arg_data().
  int LookupVariableIndex(const ::std::string& name) const {
    const int index = Lookup(static_data_->variable_names, num_variables(), name);
    return index < 0 ? -1 : num_args() - num_variables() + index;
  }
  int LookupResultIndex(const ::std::string& name) const {
    return Lookup(static_data_->result_names, num_fetches(), name);
  }

  // Returns "" for unnamed entries, and null if there are no names or the index is out of range.
  const char* GetArgName(int index) const {
    return Name(static_data_->arg_names, num_args() - num_variables(), index);
  }
  const char* GetVariableName(int index) const { return Name(static_data_->variable_names, num_variables(), index); }
  const char* GetResultName(int index) const { return Name(static_data_->result_names, num_fetches(), index); }

  // Null unless the header was generated with --gen_program_shape, or with metadata in the --emit
  // of `build`.
  const ::xla::tfcompile_v1::ProgramShapeProto* ProgramShape() const { return static_data_->program_shape; }

  bool hlo_profiling_enabled() const { return static_data_->hlo_profile_printer_data != nullptr; }
  // Requires hlo_profiling_enabled().
  const ::xla::tfcompile_v1::HloProfilePrinterData& hlo_profile_printer_data() const {
    assert(hlo_profiling_enabled());
    return *static_data_->hlo_profile_printer_data;
  }
  // Sums over all runs of this object. Null unless profiling is enabled.
  const ::std::int64_t* profile_counters() const { return frame_.profile_counters; }

 protected:
  // Sets the constants of classes whose constants are not in the object.
  void set_constants(const void* constants) { frame_.constants = constants; }

  // Ends a Run() that cannot proceed. The message must be static.
  bool Fail(const char* error) {
    frame_.error = error;
    return false;
  }

  // Returns the size of a named dimension.
  ::std::int64_t NamedSize(int index) const { return named_sizes_[index].value; }

  // Sets the size of a named dimension. If it is out of range, returns false and leaves the size
  // unchanged, and runs fail until a valid size is set.
  bool SetNamedSize(int index, ::std::int64_t size) {
    const NamedDimension& dimension = static_data_->named_dimensions[index];
    named_sizes_[index].is_out_of_range = size < dimension.min || size > dimension.max;
    if (named_sizes_[index].is_out_of_range) return false;
    named_sizes_[index].value = static_cast<::std::int32_t>(size);
    return true;
  }

  // For the base class of programs for GPUs (device_function.h).
  const StaticData& static_data() const { return *static_data_; }
  ::tfcompile_frame& frame() { return frame_; }
  // Updates the constants before a run. Their owner is null if they are in the object.
  bool UpdateConstants() { return true; }
  ::std::nullptr_t constants_owner() const { return nullptr; }
  // Returns the argument whose memory a result shares, or -1.
  int arg_of_result(int result) const {
    for (int i = 0; i < num_variables(); ++i) {
      if (static_data_->variable_results[i] == result) return num_args() - num_variables() + i;
    }
    return -1;
  }

  // TensorFlow has two ways to run a computation. Only one exists here.
  virtual bool is_thunk_mode() const { return false; }

 private:
  // The size of a named dimension, to which the dimension's argument points.
  struct NamedSizeValue {
    ::std::int32_t value;
    bool is_out_of_range;
  };

  static constexpr ::std::size_t kAlign = 64;

  static ::std::size_t RoundUp(::std::size_t bytes) { return (bytes + kAlign - 1) / kAlign * kAlign; }

  static unsigned char* AlignUp(unsigned char* data) {
    const ::std::size_t past = reinterpret_cast<::std::uintptr_t>(data) % kAlign;
    return past == 0 ? data : data + (kAlign - past);
  }

  // Allocates room for `bytes` after AlignUp().
  static unsigned char* Allocate(::std::size_t bytes) {
    return static_cast<unsigned char*>(::operator new(bytes + kAlign));
  }

  static int SaturatedSize(::std::size_t size) {
    return size > static_cast<::std::size_t>(INT32_MAX) ? INT32_MAX : static_cast<int>(size);
  }

  static int Lookup(const char* const* names, int count, const ::std::string& name) {
    if (names == nullptr || name.empty()) return -1;
    for (int i = 0; i < count; ++i) {
      if (name == names[i]) return i;
    }
    return -1;
  }

  static const char* Name(const char* const* names, int count, int index) {
    return names == nullptr || index < 0 || index >= count ? nullptr : names[index];
  }

  int num_fetches() const {
    int fetches = num_results();
    for (int i = 0; i < num_variables(); ++i) fetches -= static_data_->variable_results[i] >= 0;
    return fetches;
  }

  // Returns the size of the block in bytes. If `block` is not null, sets all pointers into it.
  // Every buffer is aligned to 64 bytes. Zeroes only the pointer tables, owned arguments, counters,
  // and the persistent part of the temps. A run writes all other memory before it reads it.
  ::std::size_t Layout(unsigned char* block, bool owns_args) {
    unsigned char* const start = block == nullptr ? nullptr : AlignUp(block);
    ::std::size_t used = 0;
    const auto take = [&](::std::size_t bytes, ::std::size_t zeroed) -> unsigned char* {
      unsigned char* const place = start == nullptr ? nullptr : start + used;
      used += RoundUp(bytes);
      if (place != nullptr && zeroed > 0) ::std::memset(place, 0, zeroed);
      return place;
    };
    const auto take_zeroed = [&](::std::size_t bytes) { return take(bytes, bytes); };
    const StaticData& data = *static_data_;
    args_ = reinterpret_cast<void**>(take_zeroed(static_cast<::std::size_t>(data.num_args) * sizeof(void*)));
    results_ = reinterpret_cast<void**>(take_zeroed(static_cast<::std::size_t>(data.num_results) * sizeof(void*)));
    for (int i = 0; owns_args && i < data.num_args; ++i) {
      unsigned char* const place = take_zeroed(data.args[i].size);
      if (place != nullptr) args_[i] = place;
    }
    LayoutSizes(take_zeroed(static_cast<::std::size_t>(data.num_named_dimensions) * sizeof(NamedSizeValue)));
    const int fetches = num_fetches();
    for (int i = 0; i < fetches; ++i) {
      unsigned char* const place = take(data.results[i].size, 0);
      if (place != nullptr) results_[i] = place;
    }
    for (int i = 0; start != nullptr && i < data.num_variables; ++i) BindVariable(static_cast<::std::size_t>(i));
    const ::std::size_t counters = static_cast<::std::size_t>(data.profile_counters_size) * sizeof(::std::int64_t);
    frame_.profile_counters = counters == 0 ? nullptr : reinterpret_cast<::std::int64_t*>(take_zeroed(counters));
    const ::std::size_t sizes = static_cast<::std::size_t>(data.num_dynamic_sizes) * sizeof(::std::int64_t);
    frame_.dynamic_sizes = sizes == 0 ? nullptr : reinterpret_cast<::std::int64_t*>(take_zeroed(sizes));
    scratch_ = data.scratch_size == 0 ? nullptr : take(data.scratch_size, 0);
    frame_.scratch = scratch_;
    frame_.temps = take(data.temps_size, data.persistent_temps_size);
    return used;
  }

  // Initializes the sizes of named dimensions, and makes them the buffers of their arguments. Does
  // nothing if `place` is null.
  void LayoutSizes(unsigned char* place) {
    if (place == nullptr || static_data_->num_named_dimensions == 0) return;
    named_sizes_ = reinterpret_cast<NamedSizeValue*>(place);
    for (int i = 0; i < static_data_->num_named_dimensions; ++i) {
      named_sizes_[i].value = static_data_->named_dimensions[i].max;
      args_[static_data_->named_dimensions[i].arg] = &named_sizes_[i].value;
    }
  }

  bool SizesAreInRange() {
    for (int i = 0; i < static_data_->num_named_dimensions; ++i) {
      if (named_sizes_[i].is_out_of_range) return Fail(static_data_->named_dimensions[i].error);
    }
    return true;
  }

  // Makes the buffer of a written variable's result the buffer of its argument.
  void BindVariable(::std::size_t variable) {
    const ::std::int32_t result = static_data_->variable_results[variable];
    if (result >= 0) results_[result] = args_[static_cast<::std::size_t>(num_args() - num_variables()) + variable];
  }

  void CountUnsetArgs() {
    unset_args_ = 0;
    for (int i = 0; i < num_args(); ++i) unset_args_ += args_[i] == nullptr && static_data_->args[i].size > 0;
  }

  // Slow path of Run(): checks again, since the caller may have filled the table that args()
  // returns.
  bool ArgsAreSet() {
    CountUnsetArgs();
    if (unset_args_ != 0) {
      return Fail("an argument or variable has no buffer: set each of them before Run(), as this AllocMode requires");
    }
    for (int i = 0; i < num_variables(); ++i) BindVariable(static_cast<::std::size_t>(i));
    return true;
  }

  void Free() {
    ::operator delete(block_);
    ::operator delete(wide_scratch_);
  }

  void Take(XlaCompiledCpuFunction& other) {
    static_data_ = other.static_data_;
    frame_ = other.frame_;
    args_ = other.args_;
    results_ = other.results_;
    unset_args_ = other.unset_args_;
    named_sizes_ = other.named_sizes_;
    scratch_ = other.scratch_;
    block_ = other.block_;
    wide_scratch_ = other.wide_scratch_;
    run_options_ = other.run_options_;
    error_msg_ = other.error_msg_;
    other.block_ = nullptr;
    other.wide_scratch_ = nullptr;
  }

  const StaticData* static_data_;
  ::tfcompile_frame frame_ = {};
  void** args_ = nullptr;
  void** results_ = nullptr;
  int unset_args_ = 0;
  NamedSizeValue* named_sizes_ = nullptr;  // Null if there are no named dimensions.
  unsigned char* scratch_ = nullptr;  // Scratch memory of one worker; part of block_.
  unsigned char* block_ = nullptr;
  unsigned char* wide_scratch_ = nullptr;  // Scratch memory of several workers.
  ::xla::tfcompile_v1::ExecutableRunOptions run_options_;
  ::std::string error_msg_;
};

}  // namespace tfcompile_v1
}  // namespace tensorflow

#endif  // TFCOMPILE_XLA_COMPILED_CPU_FUNCTION_H_
