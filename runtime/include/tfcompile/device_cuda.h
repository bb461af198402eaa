// CUDA for the device runtime. Included by device.h only.
//
// Uses the primary context of a device, which other libraries of the process share.

#ifndef TFCOMPILE_DEVICE_CUDA_H_
#define TFCOMPILE_DEVICE_CUDA_H_

#include "tfcompile/device_cuda_api.h"
#include "tfcompile/device_cupti.h"

#ifdef __cplusplus
extern "C" {
#endif

static inline int32_t tfcompile_cuda_count(int32_t* count, struct tfcompile_device_error* error) {
  int devices = 0;
  int result;
  const int32_t status = tfcompile_cuda_load(error);
  *count = 0;
  if (status != TFCOMPILE_DEVICE_OK) return status;
  result = tfcompile_cuda_api()->device_count(&devices);
  if (result != 0) return tfcompile_cuda_fail(NULL, result, error, "count the CUDA devices");
  *count = devices;
  return TFCOMPILE_DEVICE_OK;
}

// Reports that a device does not exist, and which do.
static inline int32_t tfcompile_cuda_no_device(int ordinal, int count, struct tfcompile_device_error* error) {
  const struct tfcompile_cuda* const api = tfcompile_cuda_api();
  char devices[768] = "";
  int i;
  for (i = 0; i < count; ++i) {
    char name[128] = "unknown";
    int handle;
    if (api->device_get(&handle, i) == 0) (void)api->device_name(name, (int)sizeof name, handle);
    tfcompile_device_append(devices, sizeof devices, "%s%d: %s", i > 0 ? ", " : "; the devices are ", i, name);
  }
  return tfcompile_device_fail(error, TFCOMPILE_DEVICE_NO_DEVICE, 0, "no CUDA device %d%s%s", ordinal,
                               count == 0 ? "; the driver finds none: check that nvidia-smi lists a GPU and that "
                                            "CUDA_VISIBLE_DEVICES does not hide it"
                                          : "",
                               devices);
}

static inline int32_t tfcompile_cuda_open(struct tfcompile_device* device, struct tfcompile_device_error* error) {
  // CU_DEVICE_ATTRIBUTE_: MAX_THREADS_PER_BLOCK, MAX_GRID_DIM_X, MULTIPROCESSOR_COUNT,
  // COMPUTE_CAPABILITY_MAJOR, COMPUTE_CAPABILITY_MINOR, MAX_THREADS_PER_MULTIPROCESSOR.
  static const int attributes[6] = {1, 5, 16, 75, 76, 39};
  const struct tfcompile_cuda* const api = tfcompile_cuda_api();
  int values[6] = {0, 0, 0, 0, 0, 0};
  int count;
  int handle = 0;
  int i;
  size_t bytes = 0;
  int result;
  const int32_t status = tfcompile_cuda_count(&count, error);
  if (status != TFCOMPILE_DEVICE_OK) return status;
  if (device->options.ordinal < 0 || device->options.ordinal >= count) {
    return tfcompile_cuda_no_device(device->options.ordinal, count, error);
  }
  result = api->device_get(&handle, device->options.ordinal);
  if (result == 0) result = api->device_name(device->name, (int)sizeof device->name, handle);
  for (i = 0; i < 6 && result == 0; ++i) result = api->device_attribute(&values[i], attributes[i], handle);
  if (result == 0) result = api->device_memory(&bytes, handle);
  if (result != 0) return tfcompile_cuda_fail(device, result, error, "read the properties");
  device->max_threads = values[0];
  device->max_groups = (uint64_t)values[1];
  device->processors = values[2];
  device->arch = 10 * values[3] + values[4];
  device->max_resident = values[5];
  device->memory = bytes;
  device->max_allocation = bytes;
  device->driver_version = api->version;
  device->has_graphs = api->graph_instantiate != NULL;
  device->handle = (void*)(intptr_t)handle;
  result = api->context_retain(&device->context, handle);
  if (result != 0) return tfcompile_cuda_fail(device, result, error, "create the primary context");
  return TFCOMPILE_DEVICE_OK;
}

static inline void tfcompile_cuda_close(struct tfcompile_device* device) {
  (void)tfcompile_cuda_api()->context_release((int)(intptr_t)device->handle);
}

static inline int32_t tfcompile_cuda_enter(struct tfcompile_device* device, struct tfcompile_device_error* error) {
  const int result = tfcompile_cuda_api()->context_push(device->context);
  if (result == 0) return TFCOMPILE_DEVICE_OK;
  return tfcompile_cuda_fail(device, result, error, "make the context current");
}

static inline void tfcompile_cuda_leave(struct tfcompile_device* device) {
  void* context;
  (void)device;
  (void)tfcompile_cuda_api()->context_pop(&context);
}

static inline int32_t tfcompile_cuda_synchronize(struct tfcompile_device* device,
                                                 struct tfcompile_device_error* error) {
  const int result = tfcompile_cuda_api()->context_synchronize();
  if (result == 0) return TFCOMPILE_DEVICE_OK;
  return tfcompile_cuda_fail(device, result, error, "finish the work");
}

// ---- memory

static inline int32_t tfcompile_cuda_free_memory(struct tfcompile_device* device, uint64_t* bytes,
                                                 struct tfcompile_device_error* error) {
  size_t free_bytes = 0;
  size_t all = 0;
  const int result = tfcompile_cuda_api()->memory_info(&free_bytes, &all);
  *bytes = free_bytes;
  if (result == 0) return TFCOMPILE_DEVICE_OK;
  return tfcompile_cuda_fail(device, result, error, "read the amount of free memory");
}

static inline int32_t tfcompile_cuda_allocate(struct tfcompile_device* device, uint64_t bytes, uint64_t* address,
                                              struct tfcompile_device_error* error) {
  const int result = tfcompile_cuda_api()->memory_alloc(address, (size_t)bytes);
  if (result == 0) return TFCOMPILE_DEVICE_OK;
  return tfcompile_cuda_fail(device, result, error, "allocate %llu bytes", (unsigned long long)bytes);
}

static inline void tfcompile_cuda_deallocate(struct tfcompile_device* device, uint64_t address) {
  (void)device;
  (void)tfcompile_cuda_api()->memory_free(address);
}

static inline int32_t tfcompile_cuda_allocate_host(struct tfcompile_device* device, uint64_t bytes, void** memory,
                                                   struct tfcompile_device_error* error) {
  const int result = tfcompile_cuda_api()->host_alloc(memory, (size_t)bytes);
  if (result == 0) return TFCOMPILE_DEVICE_OK;
  return tfcompile_cuda_fail(device, result, error, "allocate %llu bytes of pinned host memory",
                             (unsigned long long)bytes);
}

static inline void tfcompile_cuda_deallocate_host(struct tfcompile_device* device, void* memory) {
  (void)device;
  (void)tfcompile_cuda_api()->host_free(memory);
}

// ---- streams and events

static inline int32_t tfcompile_cuda_stream_create(struct tfcompile_device* device, int32_t is_profiled, void** stream,
                                                   struct tfcompile_device_error* error) {
  // CU_STREAM_NON_BLOCKING: independent of the legacy default stream.
  const int result = tfcompile_cuda_api()->stream_create(stream, 1);
  (void)is_profiled;
  if (result == 0) return TFCOMPILE_DEVICE_OK;
  return tfcompile_cuda_fail(device, result, error, "create a stream");
}

static inline void tfcompile_cuda_stream_destroy(struct tfcompile_device* device, void* stream) {
  (void)device;
  (void)tfcompile_cuda_api()->stream_destroy(stream);
}

static inline int32_t tfcompile_cuda_stream_synchronize(struct tfcompile_device* device, void* stream,
                                                        struct tfcompile_device_error* error) {
  const int result = tfcompile_cuda_api()->stream_synchronize(stream);
  if (result == 0) return TFCOMPILE_DEVICE_OK;
  return tfcompile_cuda_fail(device, result, error, "finish the work of a stream");
}

// Records an event, created with the flags if the slot is null.
static inline int32_t tfcompile_cuda_record(struct tfcompile_device* device, void** event, unsigned int flags,
                                            void* stream, struct tfcompile_device_error* error) {
  const struct tfcompile_cuda* const api = tfcompile_cuda_api();
  int result;
  if (*event == NULL) {
    result = api->event_create(event, flags);
    if (result != 0) {
      *event = NULL;
      return tfcompile_cuda_fail(device, result, error, "create an event");
    }
  }
  result = api->event_record(*event, stream);
  if (result == 0) return TFCOMPILE_DEVICE_OK;
  return tfcompile_cuda_fail(device, result, error, "record an event");
}

static inline int32_t tfcompile_cuda_event_record(struct tfcompile_device* device, void** event, void* stream,
                                                  struct tfcompile_device_error* error) {
  // CU_EVENT_DISABLE_TIMING
  return tfcompile_cuda_record(device, event, 2, stream, error);
}

static inline int32_t tfcompile_cuda_event_wait(struct tfcompile_device* device, void* event, void* stream,
                                                struct tfcompile_device_error* error) {
  const int result = tfcompile_cuda_api()->stream_wait(stream, event, 0);
  if (result == 0) return TFCOMPILE_DEVICE_OK;
  return tfcompile_cuda_fail(device, result, error, "make a stream wait for an event");
}

static inline int32_t tfcompile_cuda_event_synchronize(struct tfcompile_device* device, void* event,
                                                       struct tfcompile_device_error* error) {
  const int result = tfcompile_cuda_api()->event_synchronize(event);
  if (result == 0) return TFCOMPILE_DEVICE_OK;
  return tfcompile_cuda_fail(device, result, error, "wait for an event");
}

static inline void tfcompile_cuda_event_destroy(struct tfcompile_device* device, void* event) {
  (void)device;
  (void)tfcompile_cuda_api()->event_destroy(event);
}

static inline int32_t tfcompile_cuda_begin(struct tfcompile_device* device, struct tfcompile_device_timing* timing,
                                           void* stream, struct tfcompile_device_error* error) {
  if (timing == NULL) return TFCOMPILE_DEVICE_OK;
  return tfcompile_cuda_record(device, &timing->begin, 0, stream, error);
}

static inline int32_t tfcompile_cuda_end(struct tfcompile_device* device, struct tfcompile_device_timing* timing,
                                         void* stream, struct tfcompile_device_error* error) {
  if (timing == NULL) return TFCOMPILE_DEVICE_OK;
  return tfcompile_cuda_record(device, &timing->end, 0, stream, error);
}

static inline int32_t tfcompile_cuda_timing_read(struct tfcompile_device* device,
                                                 const struct tfcompile_device_timing* origin,
                                                 const struct tfcompile_device_timing* timing, uint64_t* start_ns,
                                                 uint64_t* end_ns, struct tfcompile_device_error* error) {
  const struct tfcompile_cuda* const api = tfcompile_cuda_api();
  float start = 0;
  float end = 0;
  int result = timing == origin ? 0 : api->event_elapsed(&start, origin->begin, timing->begin);
  if (result == 0) result = api->event_elapsed(&end, origin->begin, timing->end);
  if (result != 0) return tfcompile_cuda_fail(device, result, error, "read the time of an operation");
  *start_ns = (uint64_t)((double)start * 1e6);
  *end_ns = (uint64_t)((double)end * 1e6);
  return TFCOMPILE_DEVICE_OK;
}

static inline void tfcompile_cuda_timing_destroy(struct tfcompile_device* device,
                                                 struct tfcompile_device_timing* timing) {
  if (timing->begin != NULL) tfcompile_cuda_event_destroy(device, timing->begin);
  if (timing->end != NULL) tfcompile_cuda_event_destroy(device, timing->end);
  timing->begin = NULL;
  timing->end = NULL;
}

// ---- code

static inline int32_t tfcompile_cuda_module_load(struct tfcompile_device* device,
                                                 const struct tfcompile_device_image* image, const char* program,
                                                 void** module, struct tfcompile_device_error* error) {
  // CU_JIT_: ERROR_LOG_BUFFER, ERROR_LOG_BUFFER_SIZE_BYTES.
  int options[2] = {5, 6};
  char log[640] = "";
  void* values[2];
  int result;
  int32_t status;
  values[0] = log;
  values[1] = (void*)(uintptr_t)(sizeof log - 1);
  result = tfcompile_cuda_api()->module_load(module, image->bytes, 2, options, values);
  if (result == 0) return TFCOMPILE_DEVICE_OK;
  log[sizeof log - 1] = '\0';
  status = tfcompile_cuda_fail(device, result, error, "load the %s for sm_%u of program '%s'%s%.600s",
                               image->kind == TFCOMPILE_IMAGE_PTX ? "PTX" : "cubin", (unsigned)image->arch % 1000u,
                               program, log[0] != '\0' ? ", whose log is: " : "", log);
  // Errors about the code itself, such as CUDA_ERROR_INVALID_PTX.
  if (status == TFCOMPILE_DEVICE_DRIVER_ERROR && result >= 200 && result < 304) {
    status = TFCOMPILE_DEVICE_LOAD_FAILED;
    if (error != NULL) error->status = status;
  }
  return status;
}

static inline void tfcompile_cuda_module_unload(struct tfcompile_device* device, void* module) {
  (void)device;
  (void)tfcompile_cuda_api()->module_unload(module);
}

static inline int32_t tfcompile_cuda_kernel_create(struct tfcompile_device* device, void* module,
                                                   const struct tfcompile_device_kernel* kernel, void** handle,
                                                   struct tfcompile_device_error* error) {
  const struct tfcompile_cuda* const api = tfcompile_cuda_api();
  int threads = 0;
  int result = api->module_function(handle, module, kernel->name);
  // CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, which depends on the kernel's registers.
  if (result == 0) result = api->function_attribute(&threads, 0, *handle);
  if (result != 0) return tfcompile_cuda_fail(device, result, error, "find kernel '%s'", kernel->name);
  if ((uint32_t)threads >= kernel->threads) return TFCOMPILE_DEVICE_OK;
  return tfcompile_device_fail(error, TFCOMPILE_DEVICE_LOAD_FAILED, 0,
                               "kernel '%s' has workgroups of %u threads, but device %d (%s) permits %d; compile the "
                               "model for this device",
                               kernel->name, (unsigned)kernel->threads, (int)device->options.ordinal, device->name,
                               threads);
}

static inline void tfcompile_cuda_kernel_destroy(struct tfcompile_device* device, void* handle) {
  (void)device;
  (void)handle;
}

static inline int32_t tfcompile_cuda_kernel_facts(struct tfcompile_device* device, void* handle,
                                                  const struct tfcompile_device_kernel* kernel,
                                                  struct tfcompile_device_facts* facts,
                                                  struct tfcompile_device_error* error) {
  // CU_FUNC_ATTRIBUTE_: SHARED_SIZE_BYTES, LOCAL_SIZE_BYTES, NUM_REGS.
  static const int attributes[3] = {1, 3, 4};
  const struct tfcompile_cuda* const api = tfcompile_cuda_api();
  int values[4] = {0, 0, 0, 0};
  int result = 0;
  int i;
  for (i = 0; i < 3 && result == 0; ++i) result = api->function_attribute(&values[i], attributes[i], handle);
  if (result == 0 && api->occupancy != NULL) result = api->occupancy(&values[3], handle, (int)kernel->threads, 0);
  if (result != 0) return tfcompile_cuda_fail(device, result, error, "read the resources of kernel '%s'", kernel->name);
  facts->threads = kernel->threads;
  facts->workgroup_bytes = (uint32_t)values[0];
  facts->local_bytes = (uint32_t)values[1];
  facts->registers = (uint32_t)values[2];
  facts->active_workgroups = (uint32_t)values[3];
  facts->max_threads = (uint32_t)device->max_resident;
  return TFCOMPILE_DEVICE_OK;
}

static inline int32_t tfcompile_cuda_launch(struct tfcompile_device* device, void* handle,
                                            const struct tfcompile_device_kernel* kernel, uint64_t groups,
                                            const uint64_t* addresses, void** pointers, void* stream,
                                            struct tfcompile_device_timing* timing,
                                            struct tfcompile_device_error* error) {
  int32_t status = tfcompile_cuda_begin(device, timing, stream, error);
  (void)addresses;
  if (status == TFCOMPILE_DEVICE_OK) {
    const int result = tfcompile_cuda_api()->launch(handle, (unsigned int)groups, 1, 1, kernel->threads, 1, 1, 0,
                                                    stream, pointers, NULL);
    if (result != 0) status = tfcompile_cuda_fail(device, result, error, "launch kernel '%s'", kernel->name);
  }
  return status == TFCOMPILE_DEVICE_OK ? tfcompile_cuda_end(device, timing, stream, error) : status;
}

static inline int32_t tfcompile_cuda_copy(struct tfcompile_device* device, int32_t operation, uint64_t to,
                                          uint64_t from, uint64_t bytes, void* stream,
                                          struct tfcompile_device_timing* timing,
                                          struct tfcompile_device_error* error) {
  const struct tfcompile_cuda* const api = tfcompile_cuda_api();
  int32_t status = tfcompile_cuda_begin(device, timing, stream, error);
  if (status == TFCOMPILE_DEVICE_OK) {
    int result;
    if (operation == TFCOMPILE_DEVICE_COPY_IN) {
      result = api->copy_in(to, (const void*)(uintptr_t)from, (size_t)bytes, stream);
    } else if (operation == TFCOMPILE_DEVICE_COPY_OUT) {
      result = api->copy_out((void*)(uintptr_t)to, from, (size_t)bytes, stream);
    } else {
      result = api->copy(to, from, (size_t)bytes, stream);
    }
    if (result != 0) {
      status = tfcompile_cuda_fail(device, result, error, "copy %llu bytes %s", (unsigned long long)bytes,
                                   operation == TFCOMPILE_DEVICE_COPY_IN    ? "in"
                                   : operation == TFCOMPILE_DEVICE_COPY_OUT ? "out"
                                                                            : "between buffers");
    }
  }
  return status == TFCOMPILE_DEVICE_OK ? tfcompile_cuda_end(device, timing, stream, error) : status;
}

static inline int32_t tfcompile_cuda_zero(struct tfcompile_device* device, uint64_t to, uint64_t bytes, void* stream,
                                          struct tfcompile_device_timing* timing,
                                          struct tfcompile_device_error* error) {
  const struct tfcompile_cuda* const api = tfcompile_cuda_api();
  int32_t status = tfcompile_cuda_begin(device, timing, stream, error);
  if (status == TFCOMPILE_DEVICE_OK) {
    const int is_words = (to | bytes) % 4 == 0;
    const int result = is_words ? api->fill_words(to, 0, (size_t)(bytes / 4), stream)
                                : api->fill(to, 0, (size_t)bytes, stream);
    if (result != 0) {
      status = tfcompile_cuda_fail(device, result, error, "set %llu bytes to zero", (unsigned long long)bytes);
    }
  }
  return status == TFCOMPILE_DEVICE_OK ? tfcompile_cuda_end(device, timing, stream, error) : status;
}

// ---- graphs

static inline int32_t tfcompile_cuda_capture_begin(struct tfcompile_device* device, void* stream,
                                                   struct tfcompile_device_error* error) {
  // CU_STREAM_CAPTURE_MODE_RELAXED: other threads may allocate meanwhile.
  const int result = tfcompile_cuda_api()->capture_begin(stream, 2);
  if (result == 0) return TFCOMPILE_DEVICE_OK;
  return tfcompile_cuda_fail(device, result, error, "record a graph");
}

static inline int32_t tfcompile_cuda_capture_end(struct tfcompile_device* device, void* stream, int32_t is_wanted,
                                                 void** graph, struct tfcompile_device_error* error) {
  const struct tfcompile_cuda* const api = tfcompile_cuda_api();
  void* recorded = NULL;
  int result = api->capture_end(stream, &recorded);
  int32_t status = TFCOMPILE_DEVICE_OK;
  *graph = NULL;
  if (!is_wanted) {
    if (result == 0 && recorded != NULL) (void)api->graph_template_destroy(recorded);
    return TFCOMPILE_DEVICE_OK;
  }
  if (result != 0) return tfcompile_cuda_fail(device, result, error, "finish the recording of a graph");
  result = api->graph_instantiate(graph, recorded, 0);
  if (result != 0) {
    *graph = NULL;
    status = tfcompile_cuda_fail(device, result, error, "instantiate a graph");
  }
  result = api->graph_template_destroy(recorded);
  if (result != 0 && status == TFCOMPILE_DEVICE_OK) {
    status = tfcompile_cuda_fail(device, result, error, "destroy the recording of a graph");
    (void)api->graph_destroy(*graph);
    *graph = NULL;
  }
  return status;
}

static inline int32_t tfcompile_cuda_graph_launch(struct tfcompile_device* device, void* graph, void* stream,
                                                  struct tfcompile_device_error* error) {
  const int result = tfcompile_cuda_api()->graph_launch(graph, stream);
  if (result == 0) return TFCOMPILE_DEVICE_OK;
  return tfcompile_cuda_fail(device, result, error, "launch a graph");
}

static inline void tfcompile_cuda_graph_destroy(struct tfcompile_device* device, void* graph) {
  (void)device;
  (void)tfcompile_cuda_api()->graph_destroy(graph);
}

static inline const struct tfcompile_driver* tfcompile_cuda_driver(void) {
  static const struct tfcompile_driver driver = {
      "CUDA",
      tfcompile_cuda_count,
      tfcompile_cuda_open,
      tfcompile_cuda_close,
      tfcompile_cuda_enter,
      tfcompile_cuda_leave,
      tfcompile_cuda_synchronize,
      tfcompile_cuda_free_memory,
      tfcompile_cuda_allocate,
      tfcompile_cuda_deallocate,
      tfcompile_cuda_allocate_host,
      tfcompile_cuda_deallocate_host,
      tfcompile_cuda_stream_create,
      tfcompile_cuda_stream_destroy,
      tfcompile_cuda_stream_synchronize,
      tfcompile_cuda_event_record,
      tfcompile_cuda_event_wait,
      tfcompile_cuda_event_synchronize,
      tfcompile_cuda_event_destroy,
      tfcompile_cuda_module_load,
      tfcompile_cuda_module_unload,
      tfcompile_cuda_kernel_create,
      tfcompile_cuda_kernel_destroy,
      tfcompile_cuda_launch,
      tfcompile_cuda_copy,
      tfcompile_cuda_zero,
      tfcompile_cuda_capture_begin,
      tfcompile_cuda_capture_end,
      tfcompile_cuda_graph_launch,
      tfcompile_cuda_graph_destroy,
      tfcompile_cuda_timing_read,
      tfcompile_cuda_timing_destroy,
      tfcompile_cuda_kernel_facts,
      tfcompile_cupti_start,
      tfcompile_cupti_watch,
      tfcompile_cupti_read,
      tfcompile_cupti_stop,
  };
  return &driver;
}

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // TFCOMPILE_DEVICE_CUDA_H_
