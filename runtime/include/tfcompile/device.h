// Runs compiled models on a GPU. C99 and C++17, header-only.
//
// The driver's library is opened at run time, so a program starts on machines without a GPU and
// gets an error text there. On Linux, link with -ldl if the C library is older than glibc 2.34.
//
//   struct tfcompile_device_error error;
//   struct tfcompile_device* device = tfcompile_device_open(NULL, &error);
//   struct tfcompile_device_instance* instance =
//       tfcompile_device_instance_create(device, MODEL_device, MODEL_constants, &error);
//   frame.device = instance;  // The entry function now runs on the device.
//   ...
//   tfcompile_device_instance_destroy(instance);
//   tfcompile_device_close(device);
//
// Functions that can fail return null or a nonzero enum tfcompile_device_status, and describe the
// failure in *error unless `error` is null. All functions may be called from any thread. Different
// instances of one device may run concurrently. One instance, stream, or event must be used by one
// thread at a time.
//
// A frame with host pointers makes the entry function copy arguments in and results out.
// tfcompile_device_instance_enqueue instead takes device addresses and returns before the work is
// done.

#ifndef TFCOMPILE_DEVICE_H_
#define TFCOMPILE_DEVICE_H_

#include <stddef.h>
#include <stdint.h>

#include "tfcompile/frame.h"

#ifdef __cplusplus
extern "C" {
#endif

// Programming interfaces of drivers.
enum tfcompile_device_kind {
  TFCOMPILE_DEVICE_ANY = 0,    // The kind that a program or the machine has: CUDA, else OpenCL.
  TFCOMPILE_DEVICE_CUDA = 1,   // libcuda.so.1, or the file that TFCOMPILE_CUDA_DRIVER names.
  TFCOMPILE_DEVICE_OPENCL = 2  // libOpenCL.so.1, or the file that TFCOMPILE_OPENCL_DRIVER names.
};

enum tfcompile_device_status {
  TFCOMPILE_DEVICE_OK = 0,
  TFCOMPILE_DEVICE_INVALID_ARGUMENT = 1,  // The caller's mistake.
  TFCOMPILE_DEVICE_NO_DRIVER = 2,         // The driver's library cannot be opened.
  TFCOMPILE_DEVICE_DRIVER_TOO_OLD = 3,
  TFCOMPILE_DEVICE_NO_DEVICE = 4,       // The text lists the existing devices.
  TFCOMPILE_DEVICE_OUT_OF_MEMORY = 5,   // The text states the needed and the free amounts.
  TFCOMPILE_DEVICE_BAD_PROGRAM = 6,     // The device program is malformed.
  TFCOMPILE_DEVICE_NO_IMAGE = 7,        // The program has no code for this device.
  TFCOMPILE_DEVICE_LOAD_FAILED = 8,     // The driver rejected the code. The text has its log.
  TFCOMPILE_DEVICE_DRIVER_ERROR = 9,    // Another error of the driver.
  TFCOMPILE_DEVICE_LOST = 10,           // A kernel failed or timed out: close and reopen it.
  TFCOMPILE_DEVICE_CHECK_FAILED = 11,   // An assertion of the model failed.
  TFCOMPILE_DEVICE_NO_HOST_MEMORY = 12  // malloc failed.
};

#define TFCOMPILE_DEVICE_ERROR_BYTES 1536

// Description of a failure.
struct tfcompile_device_error {
  int32_t status;  // enum tfcompile_device_status
  int32_t code;    // Number of the driver's error, or return value of a failed assertion.
  char text[TFCOMPILE_DEVICE_ERROR_BYTES];  // What was attempted, the driver's error, and the cure.
};

// Address on a device. With OpenCL, a pointer to shared virtual memory.
typedef uint64_t tfcompile_device_address;

// Options of tfcompile_device_open. All zero is the default. If the device is already open, the
// options of the first call hold.
struct tfcompile_device_options {
  int32_t kind;             // enum tfcompile_device_kind
  int32_t ordinal;          // Number of the device among those of its kind.
  int32_t preallocate;      // 0: the pool grows on demand (TensorFlow's allow_growth). 1: the pool
                            // takes all memory that it may use when the device is opened.
  int32_t disable_graphs;   // 1: launches kernels one by one, never as CUDA graphs.
  double memory_fraction;   // Part of the device's memory that the pool may use. 0 selects 0.9.
  uint64_t staging_bytes;   // Maximum bytes of pinned host memory that an instance uses to copy
                            // arguments and results. 0 selects 4 MiB.
};

// Properties of an open device.
struct tfcompile_device_info {
  int32_t kind;           // enum tfcompile_device_kind
  int32_t ordinal;
  int32_t arch;           // 90 for compute capability 9.0. 0 with OpenCL.
  int32_t processors;     // Number of multiprocessors or compute units.
  int32_t max_threads;    // Maximum threads of a workgroup.
  int32_t driver_version; // 12040 for CUDA 12.4, 3000 for OpenCL 3.0.
  uint64_t memory_bytes;
  uint64_t free_bytes;    // Memory that no process uses. With OpenCL, unused by this process.
  char name[128];
  int32_t takes_spirv;    // With OpenCL: 1 if code may be SPIR-V, 0 if it must be OpenCL C.
  int32_t reserved;
};

// Memory of the pool of a device, in bytes where not stated otherwise.
struct tfcompile_device_statistics {
  uint64_t used;         // Handed out.
  uint64_t peak;         // Maximum of `used`.
  uint64_t reserved;     // Taken from the driver: used and cached.
  uint64_t limit;        // Maximum of `reserved`.
  uint64_t allocations;  // Number of allocations in use.
  uint64_t total_allocations;         // Number of allocations so far.
  uint64_t total_driver_allocations;  // Number of allocations that the driver made for the pool.
};

// Kinds of profiled operations.
enum tfcompile_device_operation {
  TFCOMPILE_DEVICE_LAUNCH = 1,
  TFCOMPILE_DEVICE_COPY_IN = 2,   // Host to device.
  TFCOMPILE_DEVICE_COPY_OUT = 3,  // Device to host.
  TFCOMPILE_DEVICE_COPY = 4,      // Device to device.
  TFCOMPILE_DEVICE_FILL = 5
};

// One profiled operation.
struct tfcompile_device_record {
  int32_t operation;   // enum tfcompile_device_operation
  uint32_t kernel;     // Index of the launched kernel in the program.
  const char* name;    // Symbol of the kernel, or the operation.
  const char* label;   // HLO instruction and node that the kernel computes, or "".
  uint64_t bytes;      // Copied bytes, or an estimate of those that the kernel reads and writes.
  uint64_t flops;      // Estimate for the kernel.
  void* stream;
  uint64_t start_ns;   // Since the first operation of the run.
  uint64_t end_ns;
  // Of kernels, and 0 where the driver does not tell.
  uint32_t registers;        // Of a thread.
  uint32_t workgroup_bytes;  // Of workgroup memory.
  double occupancy;          // Part of a multiprocessor's threads that the kernel can occupy.
};

typedef void (*tfcompile_device_profiler)(void* context, const struct tfcompile_device_record* record);

struct tfcompile_device;
struct tfcompile_device_event;

// ---- devices

// Stores the number of devices of a kind. TFCOMPILE_DEVICE_ANY is not permitted.
static inline int32_t tfcompile_device_count(int32_t kind, int32_t* count, struct tfcompile_device_error* error);

// Opens a device. Each successful call needs a tfcompile_device_close. Calls for an open device
// return it again. Null `options` select the defaults.
static inline struct tfcompile_device* tfcompile_device_open(const struct tfcompile_device_options* options,
                                                             struct tfcompile_device_error* error);

// Closes a device. The last call releases everything that the device has, so its instances,
// streams, and events must be destroyed before.
static inline void tfcompile_device_close(struct tfcompile_device* device);

static inline int32_t tfcompile_device_get_info(struct tfcompile_device* device, struct tfcompile_device_info* info,
                                                struct tfcompile_device_error* error);
static inline void tfcompile_device_get_statistics(struct tfcompile_device* device,
                                                   struct tfcompile_device_statistics* statistics);

// Waits for all work of all streams.
static inline int32_t tfcompile_device_synchronize(struct tfcompile_device* device,
                                                   struct tfcompile_device_error* error);

// ---- memory

// Allocates memory from the pool of the device, aligned to 256 bytes (128 with OpenCL).
static inline int32_t tfcompile_device_alloc(struct tfcompile_device* device, uint64_t bytes,
                                             tfcompile_device_address* address, struct tfcompile_device_error* error);

// Returns memory to the pool. Work that uses it must be done. Zero is ignored.
static inline int32_t tfcompile_device_free(struct tfcompile_device* device, tfcompile_device_address address,
                                            struct tfcompile_device_error* error);

// Returns the unused memory of the pool to the driver.
static inline void tfcompile_device_trim(struct tfcompile_device* device);

// Allocates host memory from which copies are fast: pinned memory, where the driver has it.
static inline int32_t tfcompile_device_alloc_host(struct tfcompile_device* device, uint64_t bytes, void** memory,
                                                  struct tfcompile_device_error* error);
static inline void tfcompile_device_free_host(struct tfcompile_device* device, void* memory);

// Copies on a stream, in its order. With a null stream, the call returns when the copy is done.
// Otherwise host memory must stay valid and unchanged until then.
static inline int32_t tfcompile_device_copy_in(struct tfcompile_device* device, tfcompile_device_address to,
                                               const void* from, uint64_t bytes, void* stream,
                                               struct tfcompile_device_error* error);
static inline int32_t tfcompile_device_copy_out(struct tfcompile_device* device, void* to,
                                                tfcompile_device_address from, uint64_t bytes, void* stream,
                                                struct tfcompile_device_error* error);
static inline int32_t tfcompile_device_copy(struct tfcompile_device* device, tfcompile_device_address to,
                                            tfcompile_device_address from, uint64_t bytes, void* stream,
                                            struct tfcompile_device_error* error);

// Sets bytes to zero, under the same rules.
static inline int32_t tfcompile_device_zero(struct tfcompile_device* device, tfcompile_device_address to,
                                            uint64_t bytes, void* stream, struct tfcompile_device_error* error);

// ---- streams and events

// Creates a stream: a CUstream or a cl_command_queue. Functions that take a stream also take those
// that the program created with the driver on the same device (primary context of CUDA, in-order
// queues of the context that tfcompile_device_native_context returns). `is_profiled` is nonzero for
// a stream whose work is profiled.
static inline int32_t tfcompile_device_stream_create(struct tfcompile_device* device, int32_t is_profiled,
                                                     void** stream, struct tfcompile_device_error* error);
static inline void tfcompile_device_stream_destroy(struct tfcompile_device* device, void* stream);
static inline int32_t tfcompile_device_stream_synchronize(struct tfcompile_device* device, void* stream,
                                                          struct tfcompile_device_error* error);

// Context of the driver: a CUcontext or a cl_context.
static inline void* tfcompile_device_native_context(struct tfcompile_device* device);

// Creates an event, which is complete until it is recorded.
static inline struct tfcompile_device_event* tfcompile_device_event_create(struct tfcompile_device* device,
                                                                           struct tfcompile_device_error* error);
static inline void tfcompile_device_event_destroy(struct tfcompile_device_event* event);

// Makes the event complete when the present work of the stream is done.
static inline int32_t tfcompile_device_event_record(struct tfcompile_device_event* event, void* stream,
                                                    struct tfcompile_device_error* error);

// Makes later work of the stream wait for the event.
static inline int32_t tfcompile_device_event_wait(struct tfcompile_device_event* event, void* stream,
                                                  struct tfcompile_device_error* error);

// Waits until the event is complete.
static inline int32_t tfcompile_device_event_synchronize(struct tfcompile_device_event* event,
                                                         struct tfcompile_device_error* error);

// ---- instances of device programs

// Creates an instance of a device program. Instances of the same program and constants share code
// and constants on the device. Both must stay valid and unchanged while the instance exists.
// `constants` may be null if the program has none.
static inline struct tfcompile_device_instance* tfcompile_device_instance_create(
    struct tfcompile_device* device, const void* program, const void* constants,
    struct tfcompile_device_error* error);

// Waits for the work of the instance and destroys it. Null is ignored.
static inline void tfcompile_device_instance_destroy(struct tfcompile_device_instance* instance);

// Runs the program asynchronously on a stream. Null `arguments`, null `results`, zero `sizes`, and
// a null stream select the instance's own. Results that share an argument's memory need no address.
// Successive runs of an instance are ordered even on different streams. A program with loops or
// branches that the host decides waits for the stream at each of them. The second run with the same
// addresses records a CUDA graph, which later ones launch; four sets of addresses are remembered.
static inline int32_t tfcompile_device_instance_enqueue(struct tfcompile_device_instance* instance,
                                                        const tfcompile_device_address* arguments,
                                                        const tfcompile_device_address* results,
                                                        tfcompile_device_address sizes, void* stream,
                                                        struct tfcompile_device_error* error);

// Waits for the last run and reports its failed assertion, if any: TFCOMPILE_DEVICE_CHECK_FAILED.
// Assertions of earlier runs without a call of this function are not reported.
static inline int32_t tfcompile_device_instance_finish(struct tfcompile_device_instance* instance,
                                                       struct tfcompile_device_error* error);

// Returns the instance's own device buffers, or 0 on failure. Callers may fill arguments and read
// results in place. The sizes of bounded dimensions are int64_t.
static inline tfcompile_device_address tfcompile_device_instance_argument(struct tfcompile_device_instance* instance,
                                                                          uint32_t index,
                                                                          struct tfcompile_device_error* error);
static inline tfcompile_device_address tfcompile_device_instance_result(struct tfcompile_device_instance* instance,
                                                                        uint32_t index,
                                                                        struct tfcompile_device_error* error);
static inline tfcompile_device_address tfcompile_device_instance_sizes(struct tfcompile_device_instance* instance,
                                                                       struct tfcompile_device_error* error);

// Makes runs of a frame use the argument's device buffer as it is: nothing is copied from or to the
// frame's memory, which may be null. Suitable for weights and variables.
static inline int32_t tfcompile_device_instance_set_resident(struct tfcompile_device_instance* instance,
                                                             uint32_t argument, int32_t is_resident,
                                                             struct tfcompile_device_error* error);

// Stream of the instance on which frames run. Starting and ending profiling replaces it.
static inline void* tfcompile_device_instance_stream(struct tfcompile_device_instance* instance);

// Error of the last run of a frame.
static inline const struct tfcompile_device_error* tfcompile_device_instance_error(
    const struct tfcompile_device_instance* instance);

// Calls the profiler with every operation of later runs, at the end of a run of a frame or in
// tfcompile_device_instance_finish. Null ends profiling.
//
// With CUDA, the times are those of CUPTI, and runs use graphs as usual: libcupti.so.12,
// libcupti.so.13, or libcupti.so, or the file that TFCOMPILE_CUPTI names. Copies that the caller
// puts on the same streams meanwhile are recorded too. Without CUPTI, profiled runs use no graph,
// and events before and after each operation lengthen them.
static inline int32_t tfcompile_device_instance_profile(struct tfcompile_device_instance* instance,
                                                        tfcompile_device_profiler profiler, void* context,
                                                        struct tfcompile_device_error* error);

// Why profiled runs of the instance use events although the device's kind is CUDA. The status is 0
// if they do not.
static inline const struct tfcompile_device_error* tfcompile_device_instance_profile_note(
    const struct tfcompile_device_instance* instance);

#ifdef __cplusplus
}  // extern "C"
#endif

#include "tfcompile/device_driver.h"
#include "tfcompile/device_cuda.h"
#include "tfcompile/device_opencl.h"
#include "tfcompile/device_memory.h"
#include "tfcompile/device_open.h"
#include "tfcompile/device_program.h"
#include "tfcompile/device_run.h"
#include "tfcompile/device_instance.h"
#include "tfcompile/device_frame.h"

#endif  // TFCOMPILE_DEVICE_H_
