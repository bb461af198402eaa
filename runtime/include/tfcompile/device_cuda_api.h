// The functions of CUDA's driver that the device runtime calls, their table, and their errors.
// Included by device.h only.
//
// Opens libcuda at run time and needs no header of CUDA: the few types are declared here.

#ifndef TFCOMPILE_DEVICE_CUDA_API_H_
#define TFCOMPILE_DEVICE_CUDA_API_H_

#include "tfcompile/device_driver.h"

#ifdef __cplusplus
extern "C" {
#endif

// Oldest supported driver: CUDA 11.0.
#define TFCOMPILE_CUDA_MINIMUM 11000

// Functions: member, symbol, parameters. Handles are pointers, and results and devices are int.
#define TFCOMPILE_CUDA_FUNCTIONS(X)                                                                     \
  X(init, "cuInit", (unsigned int flags))                                                               \
  X(driver_version, "cuDriverGetVersion", (int* version))                                               \
  X(error_name, "cuGetErrorName", (int result, const char** text))                                      \
  X(error_string, "cuGetErrorString", (int result, const char** text))                                  \
  X(device_count, "cuDeviceGetCount", (int* count))                                                     \
  X(device_get, "cuDeviceGet", (int* device, int ordinal))                                              \
  X(device_name, "cuDeviceGetName", (char* name, int bytes, int device))                                \
  X(device_attribute, "cuDeviceGetAttribute", (int* value, int attribute, int device))                  \
  X(device_memory, "cuDeviceTotalMem_v2", (size_t* bytes, int device))                                  \
  X(context_retain, "cuDevicePrimaryCtxRetain", (void** context, int device))                           \
  X(context_release, "cuDevicePrimaryCtxRelease_v2", (int device))                                      \
  X(context_push, "cuCtxPushCurrent_v2", (void* context))                                               \
  X(context_pop, "cuCtxPopCurrent_v2", (void** context))                                                \
  X(context_synchronize, "cuCtxSynchronize", (void))                                                    \
  X(memory_info, "cuMemGetInfo_v2", (size_t * free_bytes, size_t * bytes))                              \
  X(memory_alloc, "cuMemAlloc_v2", (uint64_t* address, size_t bytes))                                   \
  X(memory_free, "cuMemFree_v2", (uint64_t address))                                                    \
  X(host_alloc, "cuMemAllocHost_v2", (void** memory, size_t bytes))                                     \
  X(host_free, "cuMemFreeHost", (void* memory))                                                         \
  X(copy_in, "cuMemcpyHtoDAsync_v2", (uint64_t to, const void* from, size_t bytes, void* stream))       \
  X(copy_out, "cuMemcpyDtoHAsync_v2", (void* to, uint64_t from, size_t bytes, void* stream))            \
  X(copy, "cuMemcpyDtoDAsync_v2", (uint64_t to, uint64_t from, size_t bytes, void* stream))             \
  X(fill, "cuMemsetD8Async", (uint64_t to, unsigned char value, size_t bytes, void* stream))            \
  X(fill_words, "cuMemsetD32Async", (uint64_t to, unsigned int value, size_t count, void* stream))      \
  X(stream_create, "cuStreamCreate", (void** stream, unsigned int flags))                               \
  X(stream_destroy, "cuStreamDestroy_v2", (void* stream))                                               \
  X(stream_synchronize, "cuStreamSynchronize", (void* stream))                                          \
  X(stream_wait, "cuStreamWaitEvent", (void* stream, void* event, unsigned int flags))                  \
  X(event_create, "cuEventCreate", (void** event, unsigned int flags))                                  \
  X(event_destroy, "cuEventDestroy_v2", (void* event))                                                  \
  X(event_record, "cuEventRecord", (void* event, void* stream))                                         \
  X(event_synchronize, "cuEventSynchronize", (void* event))                                             \
  X(event_elapsed, "cuEventElapsedTime", (float* milliseconds, void* start, void* end))                 \
  X(module_load, "cuModuleLoadDataEx",                                                                  \
    (void** module, const void* image, unsigned int count, int* options, void** values))                \
  X(module_unload, "cuModuleUnload", (void* module))                                                    \
  X(module_function, "cuModuleGetFunction", (void** function, void* module, const char* name))          \
  X(function_attribute, "cuFuncGetAttribute", (int* value, int attribute, void* function))              \
  X(launch, "cuLaunchKernel",                                                                           \
    (void* function, unsigned int grid_x, unsigned int grid_y, unsigned int grid_z, unsigned int block_x, \
     unsigned int block_y, unsigned int block_z, unsigned int shared_bytes, void* stream, void** parameters, \
     void** extra))                                                                                     \
  X(capture_begin, "cuStreamBeginCapture_v2", (void* stream, int mode))                                 \
  X(capture_end, "cuStreamEndCapture", (void* stream, void** graph))                                    \
  X(graph_launch, "cuGraphLaunch", (void* graph, void* stream))                                         \
  X(graph_destroy, "cuGraphExecDestroy", (void* graph))                                                 \
  X(graph_template_destroy, "cuGraphDestroy", (void* graph))

struct tfcompile_cuda {
  void* library;
  int version;
#define TFCOMPILE_CUDA_MEMBER(member, symbol, parameters) int(TFCOMPILE_DRIVER_CALL* member) parameters;
  TFCOMPILE_CUDA_FUNCTIONS(TFCOMPILE_CUDA_MEMBER)
#undef TFCOMPILE_CUDA_MEMBER
  // Null before CUDA 11.4. Without it, kernels are launched one by one.
  int(TFCOMPILE_DRIVER_CALL* graph_instantiate)(void** executable, void* graph, unsigned long long flags);
  // May be null.
  int(TFCOMPILE_DRIVER_CALL* occupancy)(int* workgroups, void* function, int threads, size_t shared_bytes);
};

// Functions of the driver, valid once tfcompile_cuda_load succeeded.
static inline struct tfcompile_cuda* tfcompile_cuda_api(void) {
  static struct tfcompile_cuda api;
  return &api;
}

// Describes a failed call. `format` says what was attempted.
static inline int32_t tfcompile_cuda_fail(struct tfcompile_device* device, int result,
                                          struct tfcompile_device_error* error, const char* format, ...)
    TFCOMPILE_DEVICE_FORMAT(4, 5);
static inline int32_t tfcompile_cuda_fail(struct tfcompile_device* device, int result,
                                          struct tfcompile_device_error* error, const char* format, ...) {
  const struct tfcompile_cuda* const api = tfcompile_cuda_api();
  int32_t status = TFCOMPILE_DEVICE_DRIVER_ERROR;
  const char* cure = "";
  const char* name = NULL;
  const char* description = NULL;
  char attempt[768];
  char reason[256];
  va_list arguments;
  switch (result) {
    case 2:
      status = TFCOMPILE_DEVICE_OUT_OF_MEMORY;
      cure = "; free memory of the device or end other programs that use it";
      break;
    case 100:
      status = TFCOMPILE_DEVICE_NO_DEVICE;
      cure = "; check that nvidia-smi lists a GPU and that CUDA_VISIBLE_DEVICES does not hide it";
      break;
    case 209:
      status = TFCOMPILE_DEVICE_NO_IMAGE;
      cure = "; compile the model for this device";
      break;
    case 222:
      status = TFCOMPILE_DEVICE_LOAD_FAILED;
      cure = "; update the NVIDIA driver, or compile the model for exactly this device, without PTX";
      break;
    case 702:
      status = TFCOMPILE_DEVICE_LOST;
      cure = "; a kernel ran longer than the system permits, and the context is lost: close and reopen the device,"
             " and use one that drives no display";
      break;
    case 700:
    case 714:
    case 715:
    case 716:
    case 717:
    case 718:
    case 719:
    case 710:
      status = TFCOMPILE_DEVICE_LOST;
      cure = "; a kernel failed, and the context is lost: close and reopen the device";
      break;
    case 46:
    case 214:
    case 220:
    case 226:
    case 709:
      status = TFCOMPILE_DEVICE_LOST;
      cure = "; the context is lost: close and reopen the device";
      break;
    case 802:
    case 803:
    case 804:
      cure = "; reboot after an update of the NVIDIA driver, and check that nvidia-smi works";
      break;
    default:
      break;
  }
  if (api->error_name(result, &name) != 0 || name == NULL) name = "unknown error";
  if (api->error_string(result, &description) != 0 || description == NULL) description = "no description";
  va_start(arguments, format);
  (void)vsnprintf(attempt, sizeof attempt, format, arguments);
  va_end(arguments);
  if (device != NULL && status == TFCOMPILE_DEVICE_LOST) {
    (void)snprintf(reason, sizeof reason, "cannot %.150s: %.80s", attempt, name);
    tfcompile_device_mark_lost(device, reason);
  }
  if (device == NULL) {
    return tfcompile_device_fail(error, status, result, "cannot %s: %s (%d, %s)%s", attempt, name, result, description,
                                 cure);
  }
  return tfcompile_device_fail(error, status, result, "cannot %s on device %d (%s): %s (%d, %s)%s", attempt,
                               (int)device->options.ordinal, device->name, name, result, description, cure);
}

// Opens the library and initializes the driver once. Later calls return at once.
static inline int32_t tfcompile_cuda_load(struct tfcompile_device_error* error) {
  static tfcompile_device_lock lock = TFCOMPILE_DEVICE_LOCK_INIT;
  struct tfcompile_cuda* const api = tfcompile_cuda_api();
#if defined(_WIN32)
  static const char* const names[] = {"nvcuda.dll", NULL};
#else
  static const char* const names[] = {"libcuda.so.1", "libcuda.so", NULL};
#endif
  int32_t status = TFCOMPILE_DEVICE_OK;
  const char* missing = NULL;
  struct tfcompile_cuda opened;
  int result;
  tfcompile_device_acquire(&lock);
  if (api->version >= TFCOMPILE_CUDA_MINIMUM) goto done;
  memset(&opened, 0, sizeof opened);
  // A library that failed to initialize stays open.
  opened.library = api->library;
  if (opened.library == NULL) {
    opened.library = tfcompile_device_library("the driver's library", "TFCOMPILE_CUDA_DRIVER", names,
                                              "install the NVIDIA driver, which contains it", error);
  }
  if (opened.library == NULL) {
    status = TFCOMPILE_DEVICE_NO_DRIVER;
    goto done;
  }
  api->library = opened.library;
#define TFCOMPILE_CUDA_FIND(member, symbol, parameters) \
  if (!tfcompile_device_symbol(opened.library, symbol, &opened.member) && missing == NULL) missing = symbol;
  TFCOMPILE_CUDA_FUNCTIONS(TFCOMPILE_CUDA_FIND)
#undef TFCOMPILE_CUDA_FIND
  (void)tfcompile_device_symbol(opened.library, "cuGraphInstantiateWithFlags", &opened.graph_instantiate);
  (void)tfcompile_device_symbol(opened.library, "cuOccupancyMaxActiveBlocksPerMultiprocessor", &opened.occupancy);
  if (opened.driver_version != NULL && opened.driver_version(&opened.version) != 0) opened.version = 0;
  if (missing != NULL || opened.version < TFCOMPILE_CUDA_MINIMUM) {
    status = tfcompile_device_fail(
        error, TFCOMPILE_DEVICE_DRIVER_TOO_OLD, 0,
        "the NVIDIA driver is too old: it supports CUDA %d.%d, expected at least %d.%d%s%s; update the driver",
        opened.version / 1000, opened.version % 1000 / 10, TFCOMPILE_CUDA_MINIMUM / 1000,
        TFCOMPILE_CUDA_MINIMUM % 1000 / 10, missing != NULL ? ", and has no " : "", missing != NULL ? missing : "");
    goto done;
  }
  result = opened.init(0);
  if (result != 0) {
    // Error texts need the table. The version stays 0, so the next call tries again.
    opened.version = 0;
    *api = opened;
    status = tfcompile_cuda_fail(NULL, result, error, "initialize the CUDA driver");
    goto done;
  }
  *api = opened;
done:
  tfcompile_device_release(&lock);
  return status;
}

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // TFCOMPILE_DEVICE_CUDA_API_H_
