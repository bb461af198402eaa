// The functions of OpenCL that the device runtime calls, their table, their errors, and the list of
// devices. Included by device.h only.

#ifndef TFCOMPILE_DEVICE_OPENCL_API_H_
#define TFCOMPILE_DEVICE_OPENCL_API_H_

#include "tfcompile/device_driver.h"

#ifdef __cplusplus
extern "C" {
#endif

// Functions: member, symbol, result, parameters. Handles are pointers.
#define TFCOMPILE_OPENCL_FUNCTIONS(X)                                                                        \
  X(platforms, "clGetPlatformIDs", int, (uint32_t count, void** platforms, uint32_t* all))                   \
  X(devices, "clGetDeviceIDs", int,                                                                          \
    (void* platform, uint64_t type, uint32_t count, void** devices, uint32_t* all))                          \
  X(device_info, "clGetDeviceInfo", int, (void* device, uint32_t name, size_t bytes, void* value, size_t* all)) \
  X(context_create, "clCreateContext", void*,                                                                \
    (const intptr_t* properties, uint32_t count, void* const* devices,                                       \
     void(TFCOMPILE_DRIVER_CALL * notify)(const char*, const void*, size_t, void*), void* data, int* result)) \
  X(context_release, "clReleaseContext", int, (void* context))                                               \
  X(queue_release, "clReleaseCommandQueue", int, (void* queue))                                              \
  X(finish, "clFinish", int, (void* queue))                                                                  \
  X(flush, "clFlush", int, (void* queue))                                                                    \
  X(buffer_create, "clCreateBuffer", void*,                                                                  \
    (void* context, uint64_t flags, size_t bytes, void* host, int* result))                                  \
  X(buffer_release, "clReleaseMemObject", int, (void* buffer))                                               \
  X(buffer_read, "clEnqueueReadBuffer", int,                                                                 \
    (void* queue, void* buffer, uint32_t blocking, size_t offset, size_t bytes, void* to, uint32_t count,    \
     void* const* events, void** event))                                                                     \
  X(buffer_write, "clEnqueueWriteBuffer", int,                                                               \
    (void* queue, void* buffer, uint32_t blocking, size_t offset, size_t bytes, const void* from,            \
     uint32_t count, void* const* events, void** event))                                                     \
  X(buffer_copy, "clEnqueueCopyBuffer", int,                                                                 \
    (void* queue, void* from, void* to, size_t from_offset, size_t to_offset, size_t bytes, uint32_t count,  \
     void* const* events, void** event))                                                                     \
  X(buffer_fill, "clEnqueueFillBuffer", int,                                                                 \
    (void* queue, void* buffer, const void* pattern, size_t unit, size_t offset, size_t bytes,               \
     uint32_t count, void* const* events, void** event))                                                     \
  X(marker, "clEnqueueMarkerWithWaitList", int,                                                              \
    (void* queue, uint32_t count, void* const* events, void** event))                                        \
  X(barrier, "clEnqueueBarrierWithWaitList", int,                                                            \
    (void* queue, uint32_t count, void* const* events, void** event))                                        \
  X(events_wait, "clWaitForEvents", int, (uint32_t count, void* const* events))                              \
  X(event_release, "clReleaseEvent", int, (void* event))                                                     \
  X(event_times, "clGetEventProfilingInfo", int,                                                             \
    (void* event, uint32_t name, size_t bytes, void* value, size_t* all))                                    \
  X(program_source, "clCreateProgramWithSource", void*,                                                      \
    (void* context, uint32_t count, const char** texts, const size_t* sizes, int* result))                   \
  X(program_build, "clBuildProgram", int,                                                                    \
    (void* program, uint32_t count, void* const* devices, const char* options,                               \
     void(TFCOMPILE_DRIVER_CALL * notify)(void*, void*), void* data))                                        \
  X(build_info, "clGetProgramBuildInfo", int,                                                                \
    (void* program, void* device, uint32_t name, size_t bytes, void* value, size_t* all))                    \
  X(program_release, "clReleaseProgram", int, (void* program))                                               \
  X(kernel_create, "clCreateKernel", void*, (void* program, const char* name, int* result))                  \
  X(kernel_info, "clGetKernelInfo", int, (void* kernel, uint32_t name, size_t bytes, void* value, size_t* all)) \
  X(kernel_group_info, "clGetKernelWorkGroupInfo", int,                                                      \
    (void* kernel, void* device, uint32_t name, size_t bytes, void* value, size_t* all))                     \
  X(kernel_release, "clReleaseKernel", int, (void* kernel))                                                  \
  X(kernel_arg, "clSetKernelArg", int, (void* kernel, uint32_t index, size_t bytes, const void* value))      \
  X(launch, "clEnqueueNDRangeKernel", int,                                                                   \
    (void* queue, void* kernel, uint32_t dimensions, const size_t* offset, const size_t* global,             \
     const size_t* local, uint32_t count, void* const* events, void** event))                                \
  X(extension, "clGetExtensionFunctionAddressForPlatform", void*, (void* platform, const char* name))

// Functions that older drivers lack, and null there: of OpenCL 2.0, and the one that preceded its
// function for queues.
#define TFCOMPILE_OPENCL_OPTIONAL(X)                                                                         \
  X(queue_create, "clCreateCommandQueueWithProperties", void*,                                               \
    (void* context, void* device, const uint64_t* properties, int* result))                                  \
  X(queue_create_first, "clCreateCommandQueue", void*,                                                       \
    (void* context, void* device, uint64_t properties, int* result))                                         \
  X(memory_alloc, "clSVMAlloc", void*, (void* context, uint64_t flags, size_t bytes, uint32_t alignment))    \
  X(memory_free, "clSVMFree", void, (void* context, void* memory))                                           \
  X(copy, "clEnqueueSVMMemcpy", int,                                                                         \
    (void* queue, uint32_t blocking, void* to, const void* from, size_t bytes, uint32_t count,               \
     void* const* events, void** event))                                                                     \
  X(fill, "clEnqueueSVMMemFill", int,                                                                        \
    (void* queue, void* to, const void* pattern, size_t unit, size_t bytes, uint32_t count,                  \
     void* const* events, void** event))                                                                     \
  X(kernel_arg_pointer, "clSetKernelArgSVMPointer", int, (void* kernel, uint32_t index, const void* value))

typedef void*(TFCOMPILE_DRIVER_CALL* tfcompile_opencl_program_il)(void* context, const void* code, size_t bytes,
                                                                  int* result);

struct tfcompile_opencl {
  void* library;
  int is_complete;
#define TFCOMPILE_OPENCL_MEMBER(member, symbol, result, parameters) \
  result(TFCOMPILE_DRIVER_CALL* member) parameters;
  TFCOMPILE_OPENCL_FUNCTIONS(TFCOMPILE_OPENCL_MEMBER)
  TFCOMPILE_OPENCL_OPTIONAL(TFCOMPILE_OPENCL_MEMBER)
#undef TFCOMPILE_OPENCL_MEMBER
  // Null before OpenCL 2.1. The extension has the same function.
  tfcompile_opencl_program_il program_il;
};

static inline struct tfcompile_opencl* tfcompile_opencl_api(void) {
  static struct tfcompile_opencl api;
  return &api;
}

static inline const char* tfcompile_opencl_error_name(int result) {
  switch (result) {
    case -1: return "CL_DEVICE_NOT_FOUND";
    case -2: return "CL_DEVICE_NOT_AVAILABLE";
    case -3: return "CL_COMPILER_NOT_AVAILABLE";
    case -4: return "CL_MEM_OBJECT_ALLOCATION_FAILURE";
    case -5: return "CL_OUT_OF_RESOURCES";
    case -6: return "CL_OUT_OF_HOST_MEMORY";
    case -7: return "CL_PROFILING_INFO_NOT_AVAILABLE";
    case -8: return "CL_MEM_COPY_OVERLAP";
    case -11: return "CL_BUILD_PROGRAM_FAILURE";
    case -14: return "CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST";
    case -15: return "CL_COMPILE_PROGRAM_FAILURE";
    case -17: return "CL_LINK_PROGRAM_FAILURE";
    case -30: return "CL_INVALID_VALUE";
    case -32: return "CL_INVALID_PLATFORM";
    case -33: return "CL_INVALID_DEVICE";
    case -34: return "CL_INVALID_CONTEXT";
    case -35: return "CL_INVALID_QUEUE_PROPERTIES";
    case -36: return "CL_INVALID_COMMAND_QUEUE";
    case -38: return "CL_INVALID_MEM_OBJECT";
    case -42: return "CL_INVALID_BINARY";
    case -43: return "CL_INVALID_BUILD_OPTIONS";
    case -44: return "CL_INVALID_PROGRAM";
    case -45: return "CL_INVALID_PROGRAM_EXECUTABLE";
    case -46: return "CL_INVALID_KERNEL_NAME";
    case -47: return "CL_INVALID_KERNEL_DEFINITION";
    case -48: return "CL_INVALID_KERNEL";
    case -49: return "CL_INVALID_ARG_INDEX";
    case -50: return "CL_INVALID_ARG_VALUE";
    case -51: return "CL_INVALID_ARG_SIZE";
    case -52: return "CL_INVALID_KERNEL_ARGS";
    case -54: return "CL_INVALID_WORK_GROUP_SIZE";
    case -55: return "CL_INVALID_WORK_ITEM_SIZE";
    case -57: return "CL_INVALID_EVENT_WAIT_LIST";
    case -58: return "CL_INVALID_EVENT";
    case -59: return "CL_INVALID_OPERATION";
    case -61: return "CL_INVALID_BUFFER_SIZE";
    case -63: return "CL_INVALID_GLOBAL_WORK_SIZE";
    case -1001: return "CL_PLATFORM_NOT_FOUND_KHR";
    default: return "unknown error";
  }
}

// Describes a failed call. `format` says what was attempted.
static inline int32_t tfcompile_opencl_fail(struct tfcompile_device* device, int result,
                                            struct tfcompile_device_error* error, const char* format, ...)
    TFCOMPILE_DEVICE_FORMAT(4, 5);
static inline int32_t tfcompile_opencl_fail(struct tfcompile_device* device, int result,
                                            struct tfcompile_device_error* error, const char* format, ...) {
  const char* const name = tfcompile_opencl_error_name(result);
  int32_t status = TFCOMPILE_DEVICE_DRIVER_ERROR;
  const char* cure = "";
  char attempt[768];
  va_list arguments;
  va_start(arguments, format);
  (void)vsnprintf(attempt, sizeof attempt, format, arguments);
  va_end(arguments);
  if (result == -4) {
    status = TFCOMPILE_DEVICE_OUT_OF_MEMORY;
    cure = "; free memory of the device or end other programs that use it";
  } else if (result == -11 || result == -17 || result == -42 || result == -46) {
    status = TFCOMPILE_DEVICE_LOAD_FAILED;
  } else if (result == -2) {
    status = TFCOMPILE_DEVICE_LOST;
    cure = "; close and reopen the device";
    if (device != NULL) tfcompile_device_mark_lost(device, name);
  }
  if (device == NULL) {
    return tfcompile_device_fail(error, status, result, "cannot %s: %s (%d)%s", attempt, name, result, cure);
  }
  return tfcompile_device_fail(error, status, result, "cannot %s on device %d (%s): %s (%d)%s", attempt,
                               (int)device->options.ordinal, device->name, name, result, cure);
}

// Opens the library once. Later calls return at once.
static inline int32_t tfcompile_opencl_load(struct tfcompile_device_error* error) {
  static tfcompile_device_lock lock = TFCOMPILE_DEVICE_LOCK_INIT;
  struct tfcompile_opencl* const api = tfcompile_opencl_api();
#if defined(_WIN32)
  static const char* const names[] = {"OpenCL.dll", NULL};
#elif defined(__APPLE__)
  static const char* const names[] = {"/System/Library/Frameworks/OpenCL.framework/OpenCL", NULL};
#else
  static const char* const names[] = {"libOpenCL.so.1", "libOpenCL.so", NULL};
#endif
  struct tfcompile_opencl opened;
  const char* missing = NULL;
  int32_t status = TFCOMPILE_DEVICE_OK;
  tfcompile_device_acquire(&lock);
  if (!api->is_complete) {
    memset(&opened, 0, sizeof opened);
    opened.library = api->library;
    if (opened.library == NULL) {
      opened.library = tfcompile_device_library("the driver's library", "TFCOMPILE_OPENCL_DRIVER", names,
                                                "install an OpenCL loader (ocl-icd-libopencl1 on Debian) and the "
                                                "OpenCL driver of the device",
                                                error);
    }
    if (opened.library == NULL) {
      status = TFCOMPILE_DEVICE_NO_DRIVER;
    } else {
#define TFCOMPILE_OPENCL_FIND(member, symbol, result, parameters) \
  if (!tfcompile_device_symbol(opened.library, symbol, &opened.member) && missing == NULL) missing = symbol;
      TFCOMPILE_OPENCL_FUNCTIONS(TFCOMPILE_OPENCL_FIND)
#undef TFCOMPILE_OPENCL_FIND
#define TFCOMPILE_OPENCL_FIND(member, symbol, result, parameters) \
  (void)tfcompile_device_symbol(opened.library, symbol, &opened.member);
      TFCOMPILE_OPENCL_OPTIONAL(TFCOMPILE_OPENCL_FIND)
#undef TFCOMPILE_OPENCL_FIND
      (void)tfcompile_device_symbol(opened.library, "clCreateProgramWithIL", &opened.program_il);
      opened.is_complete = missing == NULL;
      if (missing != NULL) {
        api->library = opened.library;
        status = tfcompile_device_fail(error, TFCOMPILE_DEVICE_DRIVER_TOO_OLD, 0,
                                       "the OpenCL loader is too old: it has no %s, expected OpenCL 1.2; update it",
                                       missing);
      } else {
        *api = opened;
      }
    }
  }
  tfcompile_device_release(&lock);
  return status;
}

// ---- the list of devices

enum { TFCOMPILE_OPENCL_PLATFORMS = 16, TFCOMPILE_OPENCL_DEVICES = 64 };

// All devices of all platforms, in the order of the loader.
struct tfcompile_opencl_devices {
  int32_t count;
  void* handles[TFCOMPILE_OPENCL_DEVICES];
  void* platforms[TFCOMPILE_OPENCL_DEVICES];
  // The extension's function of the platform, or null.
  tfcompile_opencl_program_il program_il[TFCOMPILE_OPENCL_DEVICES];
};

static inline tfcompile_opencl_program_il tfcompile_opencl_extension_of(void* platform) {
  tfcompile_opencl_program_il function = NULL;
  void* const symbol = tfcompile_opencl_api()->extension(platform, "clCreateProgramWithILKHR");
  memcpy(&function, &symbol, sizeof symbol);
  return function;
}

// Returns the extension's function for a device, or null.
static inline tfcompile_opencl_program_il tfcompile_opencl_extension(void* device) {
  void* platform = NULL;
  // CL_DEVICE_PLATFORM
  if (tfcompile_opencl_api()->device_info(device, 0x1031, sizeof platform, &platform, NULL) != 0) return NULL;
  return tfcompile_opencl_extension_of(platform);
}

static inline int32_t tfcompile_opencl_list(struct tfcompile_opencl_devices* devices,
                                            struct tfcompile_device_error* error) {
  const struct tfcompile_opencl* const api = tfcompile_opencl_api();
  void* platforms[TFCOMPILE_OPENCL_PLATFORMS];
  uint32_t platform_count = 0;
  uint32_t i;
  int result;
  const int32_t status = tfcompile_opencl_load(error);
  memset(devices, 0, sizeof *devices);
  if (status != TFCOMPILE_DEVICE_OK) return status;
  result = api->platforms(TFCOMPILE_OPENCL_PLATFORMS, platforms, &platform_count);
  // CL_PLATFORM_NOT_FOUND_KHR: the loader finds no driver.
  if (result == -1001) return TFCOMPILE_DEVICE_OK;
  if (result != 0) return tfcompile_opencl_fail(NULL, result, error, "list the OpenCL platforms");
  if (platform_count > TFCOMPILE_OPENCL_PLATFORMS) platform_count = TFCOMPILE_OPENCL_PLATFORMS;
  for (i = 0; i < platform_count && devices->count < TFCOMPILE_OPENCL_DEVICES; ++i) {
    const uint32_t room = (uint32_t)(TFCOMPILE_OPENCL_DEVICES - devices->count);
    uint32_t count = 0;
    // CL_DEVICE_TYPE_ALL. CL_DEVICE_NOT_FOUND is a platform without devices.
    result = api->devices(platforms[i], UINT64_C(0xffffffff), room, devices->handles + devices->count, &count);
    if (result == -1) continue;
    if (result != 0) return tfcompile_opencl_fail(NULL, result, error, "list the OpenCL devices");
    for (count = count < room ? count : room; count > 0; --count, ++devices->count) {
      devices->platforms[devices->count] = platforms[i];
      devices->program_il[devices->count] = tfcompile_opencl_extension_of(platforms[i]);
    }
  }
  return TFCOMPILE_DEVICE_OK;
}

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // TFCOMPILE_DEVICE_OPENCL_API_H_
