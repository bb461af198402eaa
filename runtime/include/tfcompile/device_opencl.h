// OpenCL for the device runtime. Included by device.h only.
//
// Opens libOpenCL at run time and needs no header of OpenCL. Code is SPIR-V or OpenCL C. Memory is
// coarse-grained shared virtual memory, because programs compute addresses inside of buffers, or
// buffers on devices without it (device_opencl_buffers.h).

#ifndef TFCOMPILE_DEVICE_OPENCL_H_
#define TFCOMPILE_DEVICE_OPENCL_H_

#include "tfcompile/device_opencl_buffers.h"

#ifdef __cplusplus
extern "C" {
#endif

static inline int32_t tfcompile_opencl_count(int32_t* count, struct tfcompile_device_error* error) {
  struct tfcompile_opencl_devices devices;
  const int32_t status = tfcompile_opencl_list(&devices, error);
  *count = status == TFCOMPILE_DEVICE_OK ? devices.count : 0;
  return status;
}

// Reports that a device does not exist, and which do.
static inline int32_t tfcompile_opencl_no_device(int ordinal, const struct tfcompile_opencl_devices* devices,
                                                 struct tfcompile_device_error* error) {
  char text[768] = "";
  int i;
  for (i = 0; i < devices->count; ++i) {
    char name[128] = "";
    (void)tfcompile_opencl_api()->device_info(devices->handles[i], 0x102b, sizeof name, name, NULL);
    name[sizeof name - 1] = '\0';
    tfcompile_device_append(text, sizeof text, "%s%d: %s", i > 0 ? ", " : "; the devices are ", i, name);
  }
  return tfcompile_device_fail(error, TFCOMPILE_DEVICE_NO_DEVICE, 0, "no OpenCL device %d%s%s", ordinal,
                               devices->count == 0 ? "; there are none: install the OpenCL driver of the device, and "
                                                     "check that clinfo lists it"
                                                   : "",
                               text);
}

static inline int32_t tfcompile_opencl_open(struct tfcompile_device* device, struct tfcompile_device_error* error) {
  const struct tfcompile_opencl* const api = tfcompile_opencl_api();
  struct tfcompile_opencl_devices devices;
  char version[128] = "";
  char il[256] = "";
  uint32_t units = 0;
  uint32_t bits = 0;
  size_t threads = 0;
  uint64_t shared_memory = 0;
  int major = 0;
  int minor = 0;
  intptr_t properties[3];
  int result;
  const int32_t status = tfcompile_opencl_list(&devices, error);
  if (status != TFCOMPILE_DEVICE_OK) return status;
  if (device->options.ordinal < 0 || device->options.ordinal >= devices.count) {
    return tfcompile_opencl_no_device(device->options.ordinal, &devices, error);
  }
  device->handle = devices.handles[device->options.ordinal];
  // CL_DEVICE_: NAME, VERSION, MAX_COMPUTE_UNITS, ADDRESS_BITS, MAX_WORK_GROUP_SIZE,
  // GLOBAL_MEM_SIZE, MAX_MEM_ALLOC_SIZE, SVM_CAPABILITIES, IL_VERSION.
  result = api->device_info(device->handle, 0x102b, sizeof device->name, device->name, NULL);
  // CL_INVALID_VALUE: the name is longer.
  if (result == -30) {
    (void)snprintf(device->name, sizeof device->name, "OpenCL device %d", (int)device->options.ordinal);
    result = 0;
  }
  device->name[sizeof device->name - 1] = '\0';
  if (result == 0) result = api->device_info(device->handle, 0x102f, sizeof version - 1, version, NULL);
  if (result == 0) result = api->device_info(device->handle, 0x1002, sizeof units, &units, NULL);
  if (result == 0) result = api->device_info(device->handle, 0x100d, sizeof bits, &bits, NULL);
  if (result == 0) result = api->device_info(device->handle, 0x1004, sizeof threads, &threads, NULL);
  if (result == 0) result = api->device_info(device->handle, 0x101f, sizeof device->memory, &device->memory, NULL);
  if (result == 0) {
    result = api->device_info(device->handle, 0x1010, sizeof device->max_allocation, &device->max_allocation, NULL);
  }
  if (result != 0) return tfcompile_opencl_fail(device, result, error, "read the properties");
  // Before OpenCL 2.0 and 2.1, these do not exist.
  if (api->device_info(device->handle, 0x1053, sizeof shared_memory, &shared_memory, NULL) != 0) shared_memory = 0;
  if (api->device_info(device->handle, 0x105b, sizeof il - 1, il, NULL) != 0) il[0] = '\0';
  if (sscanf(version, "OpenCL %d.%d", &major, &minor) != 2) major = minor = 0;
  if (1000 * major + 10 * minor < 1020) {
    return tfcompile_device_fail(error, TFCOMPILE_DEVICE_DRIVER_TOO_OLD, 0,
                                 "OpenCL device %d (%s, %s) is too old: expected OpenCL 1.2; update its driver or use "
                                 "another device",
                                 (int)device->options.ordinal, device->name, version);
  }
  device->takes_spirv = strstr(il, "SPIR-V") != NULL &&
                        (api->program_il != NULL || devices.program_il[device->options.ordinal] != NULL);
  // CL_DEVICE_SVM_COARSE_GRAIN_BUFFER
  device->has_shared_memory = (shared_memory & 1) != 0 && bits == 64 && sizeof(void*) == 8 &&
                              api->memory_alloc != NULL && api->memory_free != NULL && api->copy != NULL &&
                              api->fill != NULL && api->kernel_arg_pointer != NULL;
  device->arch = 0;
  device->processors = (int32_t)units;
  device->max_threads = (int32_t)(threads < 65536 ? threads : 65536);
  device->max_groups = UINT32_MAX;
  device->driver_version = 1000 * major + 10 * minor;
  device->has_graphs = 0;
  // CL_CONTEXT_PLATFORM
  properties[0] = 0x1084;
  properties[1] = (intptr_t)devices.platforms[device->options.ordinal];
  properties[2] = 0;
  device->context = api->context_create(properties, 1, &device->handle, NULL, NULL, &result);
  if (device->context == NULL) return tfcompile_opencl_fail(device, result, error, "create a context");
  return TFCOMPILE_DEVICE_OK;
}

static inline void tfcompile_opencl_close(struct tfcompile_device* device) {
  (void)tfcompile_opencl_api()->context_release(device->context);
}

static inline int32_t tfcompile_opencl_enter(struct tfcompile_device* device, struct tfcompile_device_error* error) {
  (void)device;
  (void)error;
  return TFCOMPILE_DEVICE_OK;
}

static inline void tfcompile_opencl_leave(struct tfcompile_device* device) { (void)device; }

// ---- memory

static inline int32_t tfcompile_opencl_free_memory(struct tfcompile_device* device, uint64_t* bytes,
                                                   struct tfcompile_device_error* error) {
  (void)device;
  (void)error;
  *bytes = UINT64_MAX;
  return TFCOMPILE_DEVICE_OK;
}

static inline int32_t tfcompile_opencl_allocate(struct tfcompile_device* device, uint64_t bytes, uint64_t* address,
                                                struct tfcompile_device_error* error) {
  void* memory;
  if (!device->has_shared_memory) return tfcompile_opencl_buffer_create(device, bytes, address, error);
  // CL_MEM_READ_WRITE. Alignment 0 is that of the largest type, 128 bytes, and the maximum.
  memory = tfcompile_opencl_api()->memory_alloc(device->context, 1, (size_t)bytes, 0);
  *address = (uint64_t)(uintptr_t)memory;
  if (memory != NULL) return TFCOMPILE_DEVICE_OK;
  // The function returns no error code. CL_MEM_OBJECT_ALLOCATION_FAILURE
  return tfcompile_opencl_fail(device, -4, error, "allocate %llu bytes", (unsigned long long)bytes);
}

static inline void tfcompile_opencl_deallocate(struct tfcompile_device* device, uint64_t address) {
  if (!device->has_shared_memory) {
    tfcompile_opencl_buffer_destroy(device, address);
    return;
  }
  tfcompile_opencl_api()->memory_free(device->context, (void*)(uintptr_t)address);
}

static inline int32_t tfcompile_opencl_allocate_host(struct tfcompile_device* device, uint64_t bytes, void** memory,
                                                     struct tfcompile_device_error* error) {
  (void)device;
  *memory = malloc((size_t)bytes);
  return *memory != NULL ? TFCOMPILE_DEVICE_OK : tfcompile_device_fail_host(error, "copies");
}

static inline void tfcompile_opencl_deallocate_host(struct tfcompile_device* device, void* memory) {
  (void)device;
  free(memory);
}

// ---- streams and events

static inline int32_t tfcompile_opencl_stream_create(struct tfcompile_device* device, int32_t is_profiled,
                                                     void** stream, struct tfcompile_device_error* error) {
  // CL_QUEUE_PROPERTIES: CL_QUEUE_PROFILING_ENABLE
  uint64_t properties[3] = {0x1093, 2, 0};
  int result = 0;
  if (is_profiled == 0) properties[0] = 0;
  *stream = NULL;
  if (device->driver_version >= 2000 && tfcompile_opencl_api()->queue_create != NULL) {
    *stream = tfcompile_opencl_api()->queue_create(device->context, device->handle, properties, &result);
  } else if (tfcompile_opencl_api()->queue_create_first != NULL) {
    *stream = tfcompile_opencl_api()->queue_create_first(device->context, device->handle, is_profiled == 0 ? 0 : 2,
                                                         &result);
  }
  if (*stream != NULL) return TFCOMPILE_DEVICE_OK;
  return tfcompile_opencl_fail(device, result, error, "create a queue");
}

static inline void tfcompile_opencl_stream_destroy(struct tfcompile_device* device, void* stream) {
  (void)device;
  (void)tfcompile_opencl_api()->queue_release(stream);
}

// Reports a failed wait. Kernels report their failure there.
static inline int32_t tfcompile_opencl_fail_wait(struct tfcompile_device* device, int result,
                                                 struct tfcompile_device_error* error, const char* attempt) {
  const int32_t status = tfcompile_opencl_fail(device, result, error, "%s", attempt);
  // CL_OUT_OF_RESOURCES, CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST, CL_INVALID_COMMAND_QUEUE,
  // and negative states of commands.
  if (result != -5 && result != -14 && result != -36 && result > -1000) return status;
  tfcompile_device_mark_lost(device, attempt);
  if (error != NULL) {
    error->status = TFCOMPILE_DEVICE_LOST;
    tfcompile_device_append(error->text, sizeof error->text,
                            "; a kernel failed or ran longer than the system permits: close and reopen the device");
  }
  return TFCOMPILE_DEVICE_LOST;
}

static inline int32_t tfcompile_opencl_stream_synchronize(struct tfcompile_device* device, void* stream,
                                                          struct tfcompile_device_error* error) {
  const int result = tfcompile_opencl_api()->finish(stream);
  if (result == 0) return TFCOMPILE_DEVICE_OK;
  return tfcompile_opencl_fail_wait(device, result, error, "finish the work of a queue");
}

// Waits for the streams of the runtime. OpenCL cannot wait for a context.
static inline int32_t tfcompile_opencl_synchronize(struct tfcompile_device* device,
                                                   struct tfcompile_device_error* error) {
  int32_t status = TFCOMPILE_DEVICE_OK;
  const struct tfcompile_device_stream* stream;
  tfcompile_device_acquire(&device->streams_lock);
  for (stream = device->streams; stream != NULL && status == TFCOMPILE_DEVICE_OK; stream = stream->next) {
    status = tfcompile_opencl_stream_synchronize(device, stream->handle, error);
  }
  tfcompile_device_release(&device->streams_lock);
  return status;
}

static inline int32_t tfcompile_opencl_event_record(struct tfcompile_device* device, void** event, void* stream,
                                                    struct tfcompile_device_error* error) {
  const struct tfcompile_opencl* const api = tfcompile_opencl_api();
  void* marker = NULL;
  int result = api->marker(stream, 0, NULL, &marker);
  if (result != 0) return tfcompile_opencl_fail(device, result, error, "record an event");
  if (*event != NULL) (void)api->event_release(*event);
  *event = marker;
  // Another queue must not wait for a command that was never submitted.
  result = api->flush(stream);
  if (result != 0) return tfcompile_opencl_fail(device, result, error, "submit the work of a queue");
  return TFCOMPILE_DEVICE_OK;
}

static inline int32_t tfcompile_opencl_event_wait(struct tfcompile_device* device, void* event, void* stream,
                                                  struct tfcompile_device_error* error) {
  const int result = tfcompile_opencl_api()->barrier(stream, 1, &event, NULL);
  if (result == 0) return TFCOMPILE_DEVICE_OK;
  return tfcompile_opencl_fail(device, result, error, "make a queue wait for an event");
}

static inline int32_t tfcompile_opencl_event_synchronize(struct tfcompile_device* device, void* event,
                                                         struct tfcompile_device_error* error) {
  const int result = tfcompile_opencl_api()->events_wait(1, &event);
  if (result == 0) return TFCOMPILE_DEVICE_OK;
  return tfcompile_opencl_fail_wait(device, result, error, "wait for an event");
}

static inline void tfcompile_opencl_event_destroy(struct tfcompile_device* device, void* event) {
  (void)device;
  (void)tfcompile_opencl_api()->event_release(event);
}

static inline int32_t tfcompile_opencl_timing_read(struct tfcompile_device* device,
                                                   const struct tfcompile_device_timing* origin,
                                                   const struct tfcompile_device_timing* timing, uint64_t* start_ns,
                                                   uint64_t* end_ns, struct tfcompile_device_error* error) {
  const struct tfcompile_opencl* const api = tfcompile_opencl_api();
  // CL_PROFILING_COMMAND_START, CL_PROFILING_COMMAND_END
  uint64_t first = 0;
  int result = api->event_times(origin->end, 0x1282, sizeof first, &first, NULL);
  if (result == 0) result = api->event_times(timing->end, 0x1282, sizeof *start_ns, start_ns, NULL);
  if (result == 0) result = api->event_times(timing->end, 0x1283, sizeof *end_ns, end_ns, NULL);
  if (result != 0) {
    return tfcompile_opencl_fail(device, result, error,
                                 "read the time of an operation (the stream must be created for profiling)");
  }
  *start_ns = *start_ns > first ? *start_ns - first : 0;
  *end_ns = *end_ns > first ? *end_ns - first : 0;
  return TFCOMPILE_DEVICE_OK;
}

static inline void tfcompile_opencl_timing_destroy(struct tfcompile_device* device,
                                                   struct tfcompile_device_timing* timing) {
  if (timing->end != NULL) tfcompile_opencl_event_destroy(device, timing->end);
  timing->end = NULL;
}

// ---- code

// Returns the flags with which code is built: divisions and square roots of floats are rounded
// correctly where the device can.
static inline const char* tfcompile_opencl_flags(const struct tfcompile_device* device,
                                                 const struct tfcompile_device_image* image) {
  uint64_t floats = 0;
  if (image->kind != TFCOMPILE_IMAGE_OPENCL_C) return "";
  // CL_DEVICE_SINGLE_FP_CONFIG: CL_FP_CORRECTLY_ROUNDED_DIVIDE_SQRT
  if (tfcompile_opencl_api()->device_info(device->handle, 0x101b, sizeof floats, &floats, NULL) != 0) return "";
  return (floats & 128) != 0 ? "-cl-fp32-correctly-rounded-divide-sqrt" : "";
}

static inline int32_t tfcompile_opencl_module_load(struct tfcompile_device* device,
                                                   const struct tfcompile_device_image* image, const char* program,
                                                   void** module, struct tfcompile_device_error* error) {
  const struct tfcompile_opencl* const api = tfcompile_opencl_api();
  tfcompile_opencl_program_il create = api->program_il;
  const char* const form = image->kind == TFCOMPILE_IMAGE_OPENCL_C ? "OpenCL C" : "SPIR-V";
  char* log = NULL;
  size_t log_bytes = 0;
  int32_t status;
  int result = 0;
  if (image->kind == TFCOMPILE_IMAGE_OPENCL_C) {
    const char* text = (const char*)image->bytes;
    *module = api->program_source(device->context, 1, &text, NULL, &result);
  } else {
    if (create == NULL) create = tfcompile_opencl_extension(device->handle);
    if (create == NULL) {
      return tfcompile_device_fail(error, TFCOMPILE_DEVICE_DRIVER_TOO_OLD, 0,
                                   "the OpenCL driver has no clCreateProgramWithIL; update it");
    }
    *module = create(device->context, image->bytes, (size_t)image->size, &result);
  }
  if (*module == NULL) {
    return tfcompile_opencl_fail(device, result, error, "load the %s of program '%s'", form, program);
  }
  result = api->program_build(*module, 1, &device->handle, tfcompile_opencl_flags(device, image), NULL, NULL);
  if (result == 0) return TFCOMPILE_DEVICE_OK;
  // CL_PROGRAM_BUILD_LOG
  if (api->build_info(*module, device->handle, 0x1183, 0, NULL, &log_bytes) == 0 && log_bytes > 1) {
    log = (char*)calloc(1, log_bytes + 1);
    if (log != NULL) (void)api->build_info(*module, device->handle, 0x1183, log_bytes, log, NULL);
  }
  status = tfcompile_opencl_fail(device, result, error, "build the %s of program '%s'%s%.600s", form, program,
                                 log != NULL ? ", whose log is: " : "", log != NULL ? log : "");
  free(log);
  (void)api->program_release(*module);
  *module = NULL;
  return status;
}

static inline void tfcompile_opencl_module_unload(struct tfcompile_device* device, void* module) {
  (void)device;
  (void)tfcompile_opencl_api()->program_release(module);
}

static inline int32_t tfcompile_opencl_kernel_create(struct tfcompile_device* device, void* module,
                                                     const struct tfcompile_device_kernel* kernel, void** handle,
                                                     struct tfcompile_device_error* error) {
  const struct tfcompile_opencl* const api = tfcompile_opencl_api();
  const uint32_t count = kernel->parameter_count;
  const uint64_t no_offset = 0;
  uint32_t parameters = 0;
  uint32_t i;
  size_t threads = 0;
  int32_t status = TFCOMPILE_DEVICE_OK;
  int result = 0;
  *handle = api->kernel_create(module, kernel->name, &result);
  if (*handle == NULL) return tfcompile_opencl_fail(device, result, error, "find kernel '%s'", kernel->name);
  // CL_KERNEL_NUM_ARGS, CL_KERNEL_WORK_GROUP_SIZE
  result = api->kernel_info(*handle, 0x1191, sizeof parameters, &parameters, NULL);
  if (result == 0) {
    result = api->kernel_group_info(*handle, device->handle, 0x11b0, sizeof threads, &threads, NULL);
  }
  if (result != 0) {
    status = tfcompile_opencl_fail(device, result, error, "read the properties of kernel '%s'", kernel->name);
  } else if (parameters != count && parameters != 2 * count) {
    status = tfcompile_device_fail(error, TFCOMPILE_DEVICE_LOAD_FAILED, 0,
                                   "kernel '%s' has %u parameters, expected %u", kernel->name, (unsigned)parameters,
                                   (unsigned)kernel->parameter_count);
  } else if (threads < kernel->threads) {
    status = tfcompile_device_fail(error, TFCOMPILE_DEVICE_LOAD_FAILED, 0,
                                   "kernel '%s' has workgroups of %u threads, but device %d (%s) permits %llu; "
                                   "use another device",
                                   kernel->name, (unsigned)kernel->threads, (int)device->options.ordinal, device->name,
                                   (unsigned long long)threads);
  }
  // OpenCL C has the distance from each address as a further parameter. Arguments persist.
  for (i = count; i < parameters && status == TFCOMPILE_DEVICE_OK; ++i) {
    result = api->kernel_arg(*handle, i, sizeof no_offset, &no_offset);
    if (result != 0) status = tfcompile_opencl_fail(device, result, error, "prepare kernel '%s'", kernel->name);
  }
  if (status == TFCOMPILE_DEVICE_OK) return status;
  (void)api->kernel_release(*handle);
  *handle = NULL;
  return status;
}

static inline void tfcompile_opencl_kernel_destroy(struct tfcompile_device* device, void* handle) {
  (void)device;
  (void)tfcompile_opencl_api()->kernel_release(handle);
}

static inline int32_t tfcompile_opencl_launch(struct tfcompile_device* device, void* handle,
                                              const struct tfcompile_device_kernel* kernel, uint64_t groups,
                                              const uint64_t* addresses, void** pointers, void* stream,
                                              struct tfcompile_device_timing* timing,
                                              struct tfcompile_device_error* error) {
  const struct tfcompile_opencl* const api = tfcompile_opencl_api();
  const size_t local = kernel->threads;
  const size_t global = (size_t)groups * local;
  uint32_t i;
  int result = 0;
  (void)pointers;
  for (i = 0; i < kernel->parameter_count && result == 0; ++i) {
    if (!device->has_shared_memory) {
      const int32_t status = tfcompile_opencl_buffer_arg(device, handle, i, kernel->parameter_count + i, addresses[i],
                                                         &result, error);
      if (status != TFCOMPILE_DEVICE_OK) return status;
      continue;
    }
    // Not all drivers take a null pointer as shared memory; all take a null buffer.
    result = addresses[i] == 0 ? api->kernel_arg(handle, i, sizeof(void*), NULL)
                               : api->kernel_arg_pointer(handle, i, (const void*)(uintptr_t)addresses[i]);
  }
  if (result == 0) {
    result = api->launch(stream, handle, 1, NULL, &global, &local, 0, NULL, timing != NULL ? &timing->end : NULL);
  }
  if (result == 0) return TFCOMPILE_DEVICE_OK;
  return tfcompile_opencl_fail(device, result, error, "launch kernel '%s'", kernel->name);
}

static inline int32_t tfcompile_opencl_copy(struct tfcompile_device* device, int32_t operation, uint64_t to,
                                            uint64_t from, uint64_t bytes, void* stream,
                                            struct tfcompile_device_timing* timing,
                                            struct tfcompile_device_error* error) {
  void** const event = timing != NULL ? &timing->end : NULL;
  int result = 0;
  if (device->has_shared_memory) {
    result = tfcompile_opencl_api()->copy(stream, 0, (void*)(uintptr_t)to, (const void*)(uintptr_t)from, (size_t)bytes,
                                          0, NULL, event);
  } else {
    const int32_t status =
        tfcompile_opencl_buffer_copy(device, operation, to, from, bytes, stream, event, &result, error);
    if (status != TFCOMPILE_DEVICE_OK) return status;
  }
  if (result == 0) return TFCOMPILE_DEVICE_OK;
  return tfcompile_opencl_fail(device, result, error, "copy %llu bytes %s", (unsigned long long)bytes,
                               operation == TFCOMPILE_DEVICE_COPY_IN    ? "in"
                               : operation == TFCOMPILE_DEVICE_COPY_OUT ? "out"
                                                                        : "between buffers");
}

static inline int32_t tfcompile_opencl_zero(struct tfcompile_device* device, uint64_t to, uint64_t bytes, void* stream,
                                            struct tfcompile_device_timing* timing,
                                            struct tfcompile_device_error* error) {
  const uint32_t pattern = 0;
  const size_t unit = (to | bytes) % 4 == 0 ? 4 : 1;
  void** const event = timing != NULL ? &timing->end : NULL;
  int result = 0;
  if (device->has_shared_memory) {
    result = tfcompile_opencl_api()->fill(stream, (void*)(uintptr_t)to, &pattern, unit, (size_t)bytes, 0, NULL, event);
  } else {
    const int32_t status = tfcompile_opencl_buffer_zero(device, to, bytes, unit, stream, event, &result, error);
    if (status != TFCOMPILE_DEVICE_OK) return status;
  }
  if (result == 0) return TFCOMPILE_DEVICE_OK;
  return tfcompile_opencl_fail(device, result, error, "set %llu bytes to zero", (unsigned long long)bytes);
}

static inline const struct tfcompile_driver* tfcompile_opencl_driver(void) {
  static const struct tfcompile_driver driver = {
      "OpenCL",
      tfcompile_opencl_count,
      tfcompile_opencl_open,
      tfcompile_opencl_close,
      tfcompile_opencl_enter,
      tfcompile_opencl_leave,
      tfcompile_opencl_synchronize,
      tfcompile_opencl_free_memory,
      tfcompile_opencl_allocate,
      tfcompile_opencl_deallocate,
      tfcompile_opencl_allocate_host,
      tfcompile_opencl_deallocate_host,
      tfcompile_opencl_stream_create,
      tfcompile_opencl_stream_destroy,
      tfcompile_opencl_stream_synchronize,
      tfcompile_opencl_event_record,
      tfcompile_opencl_event_wait,
      tfcompile_opencl_event_synchronize,
      tfcompile_opencl_event_destroy,
      tfcompile_opencl_module_load,
      tfcompile_opencl_module_unload,
      tfcompile_opencl_kernel_create,
      tfcompile_opencl_kernel_destroy,
      tfcompile_opencl_launch,
      tfcompile_opencl_copy,
      tfcompile_opencl_zero,
      NULL,
      NULL,
      NULL,
      NULL,
      tfcompile_opencl_timing_read,
      tfcompile_opencl_timing_destroy,
      NULL,
      NULL,
      NULL,
      NULL,
      NULL,
  };
  return &driver;
}

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // TFCOMPILE_DEVICE_OPENCL_H_
