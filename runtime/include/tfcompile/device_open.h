// Devices, memory, streams, and events of the public interface. Included by device.h only.

#ifndef TFCOMPILE_DEVICE_OPEN_H_
#define TFCOMPILE_DEVICE_OPEN_H_

#include "tfcompile/device_cuda.h"
#include "tfcompile/device_memory.h"
#include "tfcompile/device_opencl.h"

#ifdef __cplusplus
extern "C" {
#endif

static inline const struct tfcompile_driver* tfcompile_device_driver(int32_t kind,
                                                                     struct tfcompile_device_error* error) {
  if (kind == TFCOMPILE_DEVICE_CUDA) return tfcompile_cuda_driver();
  if (kind == TFCOMPILE_DEVICE_OPENCL) return tfcompile_opencl_driver();
  (void)tfcompile_device_fail(error, TFCOMPILE_DEVICE_INVALID_ARGUMENT, 0, "unknown kind of device: %d", (int)kind);
  return NULL;
}

static inline int32_t tfcompile_device_count(int32_t kind, int32_t* count, struct tfcompile_device_error* error) {
  const struct tfcompile_driver* driver;
  tfcompile_device_clear(error);
  *count = 0;
  driver = tfcompile_device_driver(kind, error);
  return driver != NULL ? driver->count(count, error) : (int32_t)TFCOMPILE_DEVICE_INVALID_ARGUMENT;
}

static inline void tfcompile_device_delete(struct tfcompile_device* device) {
  tfcompile_device_lock_destroy(&device->lost_lock);
  tfcompile_device_lock_destroy(&device->pool_lock);
  tfcompile_device_lock_destroy(&device->streams_lock);
  tfcompile_device_lock_destroy(&device->buffers_lock);
  tfcompile_device_lock_destroy(&device->programs_lock);
  free(device);
}

// Opens a device that is not in the registry.
static inline struct tfcompile_device* tfcompile_device_open_new(int32_t kind,
                                                                 const struct tfcompile_device_options* options,
                                                                 struct tfcompile_device_error* error) {
  const struct tfcompile_driver* const driver = tfcompile_device_driver(kind, error);
  struct tfcompile_device* device;
  int32_t status;
  if (driver == NULL) return NULL;
  device = (struct tfcompile_device*)calloc(1, sizeof(struct tfcompile_device));
  if (device == NULL) {
    (void)tfcompile_device_fail_host(error, "a device");
    return NULL;
  }
  tfcompile_device_lock_init(&device->lost_lock);
  tfcompile_device_lock_init(&device->pool_lock);
  tfcompile_device_lock_init(&device->streams_lock);
  tfcompile_device_lock_init(&device->buffers_lock);
  tfcompile_device_lock_init(&device->programs_lock);
  device->driver = driver;
  device->kind = kind;
  device->options = *options;
  if (device->options.staging_bytes == 0) device->options.staging_bytes = UINT64_C(4) << 20;
  status = driver->open(device, error);
  if (status == TFCOMPILE_DEVICE_OK) {
    if (options->disable_graphs) device->has_graphs = 0;
    status = driver->enter(device, error);
    if (status == TFCOMPILE_DEVICE_OK) {
      status = tfcompile_pool_init(device, error);
      driver->leave(device);
    }
    if (status != TFCOMPILE_DEVICE_OK) driver->close(device);
  }
  if (status == TFCOMPILE_DEVICE_OK) return device;
  tfcompile_device_delete(device);
  return NULL;
}

static inline struct tfcompile_device* tfcompile_device_open_kind(int32_t kind,
                                                                  const struct tfcompile_device_options* options,
                                                                  struct tfcompile_device_error* error) {
  static struct tfcompile_device_registry registry = {TFCOMPILE_DEVICE_LOCK_INIT, NULL};
  struct tfcompile_device* device;
  // Held while the device is opened, so that another thread gets the same one.
  tfcompile_device_acquire(&registry.lock);
  for (device = registry.devices; device != NULL; device = device->next) {
    if (device->kind == kind && device->options.ordinal == options->ordinal) break;
  }
  if (device == NULL) {
    device = tfcompile_device_open_new(kind, options, error);
    if (device != NULL) {
      device->registry = &registry;
      device->next = registry.devices;
      registry.devices = device;
    }
  }
  if (device != NULL) device->users += 1;
  tfcompile_device_release(&registry.lock);
  return device;
}

static inline struct tfcompile_device* tfcompile_device_open(const struct tfcompile_device_options* options,
                                                             struct tfcompile_device_error* error) {
  struct tfcompile_device_options defaults;
  struct tfcompile_device_error second;
  struct tfcompile_device* device;
  struct tfcompile_device_error first;
  memset(&defaults, 0, sizeof defaults);
  tfcompile_device_clear(error);
  if (options == NULL) options = &defaults;
  if (options->kind != TFCOMPILE_DEVICE_ANY) return tfcompile_device_open_kind(options->kind, options, error);
  device = tfcompile_device_open_kind(TFCOMPILE_DEVICE_CUDA, options, &first);
  if (device == NULL) device = tfcompile_device_open_kind(TFCOMPILE_DEVICE_OPENCL, options, &second);
  if (device == NULL) {
    (void)tfcompile_device_fail(error, first.status, first.code, "no device: CUDA: %.700s; OpenCL: %.700s", first.text,
                                second.text);
  }
  return device;
}

static inline void tfcompile_device_close(struct tfcompile_device* device) {
  struct tfcompile_device_registry* registry;
  struct tfcompile_device** link;
  if (device == NULL) return;
  registry = device->registry;
  // Held until the device is closed, so that a thread that opens it again does so afterwards.
  tfcompile_device_acquire(&registry->lock);
  device->users -= 1;
  if (device->users == 0) {
    for (link = &registry->devices; *link != device;) link = &(*link)->next;
    *link = device->next;
    if (device->driver->enter(device, NULL) == TFCOMPILE_DEVICE_OK) {
      tfcompile_pool_destroy(device);
      device->driver->leave(device);
    } else {
      tfcompile_pool_destroy(device);
    }
    device->driver->close(device);
    tfcompile_device_delete(device);
  }
  tfcompile_device_release(&registry->lock);
}

static inline int32_t tfcompile_device_get_info(struct tfcompile_device* device, struct tfcompile_device_info* info,
                                                struct tfcompile_device_error* error) {
  int32_t status;
  tfcompile_device_clear(error);
  status = tfcompile_device_enter(device, error);
  if (status != TFCOMPILE_DEVICE_OK) return status;
  memset(info, 0, sizeof *info);
  info->kind = device->kind;
  info->ordinal = device->options.ordinal;
  info->arch = device->arch;
  info->processors = device->processors;
  info->max_threads = device->max_threads;
  info->driver_version = device->driver_version;
  info->memory_bytes = device->memory;
  info->takes_spirv = device->takes_spirv && device->has_shared_memory;
  memcpy(info->name, device->name, sizeof info->name);
  status = device->driver->free_memory(device, &info->free_bytes, error);
  device->driver->leave(device);
  if (info->free_bytes == UINT64_MAX) {
    tfcompile_device_acquire(&device->pool_lock);
    info->free_bytes = device->memory - device->statistics.reserved;
    tfcompile_device_release(&device->pool_lock);
  }
  return status;
}

static inline void tfcompile_device_get_statistics(struct tfcompile_device* device,
                                                   struct tfcompile_device_statistics* statistics) {
  tfcompile_device_acquire(&device->pool_lock);
  *statistics = device->statistics;
  tfcompile_device_release(&device->pool_lock);
}

static inline int32_t tfcompile_device_synchronize(struct tfcompile_device* device,
                                                   struct tfcompile_device_error* error) {
  int32_t status;
  tfcompile_device_clear(error);
  status = tfcompile_device_enter(device, error);
  if (status != TFCOMPILE_DEVICE_OK) return status;
  status = device->driver->synchronize(device, error);
  device->driver->leave(device);
  return status;
}

static inline void* tfcompile_device_native_context(struct tfcompile_device* device) { return device->context; }

// ---- memory

static inline int32_t tfcompile_device_alloc(struct tfcompile_device* device, uint64_t bytes,
                                             tfcompile_device_address* address, struct tfcompile_device_error* error) {
  int32_t status;
  tfcompile_device_clear(error);
  *address = 0;
  status = tfcompile_device_enter(device, error);
  if (status != TFCOMPILE_DEVICE_OK) return status;
  status = tfcompile_pool_alloc(device, bytes, "an allocation", address, error);
  device->driver->leave(device);
  return status;
}

static inline int32_t tfcompile_device_free(struct tfcompile_device* device, tfcompile_device_address address,
                                            struct tfcompile_device_error* error) {
  tfcompile_device_clear(error);
  if (address == 0 || tfcompile_pool_free(device, address)) return TFCOMPILE_DEVICE_OK;
  return tfcompile_device_fail(error, TFCOMPILE_DEVICE_INVALID_ARGUMENT, 0,
                               "address 0x%llx is not allocated from the pool of device %d",
                               (unsigned long long)address, (int)device->options.ordinal);
}

static inline void tfcompile_device_trim(struct tfcompile_device* device) {
  if (tfcompile_device_enter(device, NULL) != TFCOMPILE_DEVICE_OK) return;
  tfcompile_device_acquire(&device->pool_lock);
  tfcompile_pool_trim(device);
  tfcompile_device_release(&device->pool_lock);
  device->driver->leave(device);
}

static inline int32_t tfcompile_device_alloc_host(struct tfcompile_device* device, uint64_t bytes, void** memory,
                                                  struct tfcompile_device_error* error) {
  int32_t status;
  tfcompile_device_clear(error);
  *memory = NULL;
  status = tfcompile_device_enter(device, error);
  if (status != TFCOMPILE_DEVICE_OK) return status;
  status = device->driver->allocate_host(device, bytes == 0 ? 1 : bytes, memory, error);
  if (status != TFCOMPILE_DEVICE_OK) *memory = NULL;
  device->driver->leave(device);
  return status;
}

static inline void tfcompile_device_free_host(struct tfcompile_device* device, void* memory) {
  const int is_entered = device->driver->enter(device, NULL) == TFCOMPILE_DEVICE_OK;
  if (memory != NULL) device->driver->deallocate_host(device, memory);
  if (is_entered) device->driver->leave(device);
}

// ---- streams and events

static inline int32_t tfcompile_device_stream_create(struct tfcompile_device* device, int32_t is_profiled,
                                                     void** stream, struct tfcompile_device_error* error) {
  struct tfcompile_device_stream* node;
  int32_t status;
  tfcompile_device_clear(error);
  *stream = NULL;
  status = tfcompile_device_enter(device, error);
  if (status != TFCOMPILE_DEVICE_OK) return status;
  node = (struct tfcompile_device_stream*)calloc(1, sizeof(struct tfcompile_device_stream));
  if (node == NULL) {
    status = tfcompile_device_fail_host(error, "a stream");
  } else {
    status = device->driver->stream_create(device, is_profiled, &node->handle, error);
  }
  device->driver->leave(device);
  if (status != TFCOMPILE_DEVICE_OK) {
    free(node);
    return status;
  }
  *stream = node->handle;
  tfcompile_device_acquire(&device->streams_lock);
  node->next = device->streams;
  device->streams = node;
  tfcompile_device_release(&device->streams_lock);
  return TFCOMPILE_DEVICE_OK;
}

static inline void tfcompile_device_stream_destroy(struct tfcompile_device* device, void* stream) {
  struct tfcompile_device_stream** link;
  struct tfcompile_device_stream* node;
  int is_entered;
  if (stream == NULL) return;
  tfcompile_device_acquire(&device->streams_lock);
  for (link = &device->streams; *link != NULL && (*link)->handle != stream;) link = &(*link)->next;
  node = *link;
  if (node != NULL) *link = node->next;
  tfcompile_device_release(&device->streams_lock);
  free(node);
  is_entered = device->driver->enter(device, NULL) == TFCOMPILE_DEVICE_OK;
  device->driver->stream_destroy(device, stream);
  if (is_entered) device->driver->leave(device);
}

static inline int32_t tfcompile_device_stream_synchronize(struct tfcompile_device* device, void* stream,
                                                          struct tfcompile_device_error* error) {
  int32_t status;
  tfcompile_device_clear(error);
  status = tfcompile_device_enter(device, error);
  if (status != TFCOMPILE_DEVICE_OK) return status;
  status = device->driver->stream_synchronize(device, stream, error);
  device->driver->leave(device);
  return status;
}

static inline struct tfcompile_device_event* tfcompile_device_event_create(struct tfcompile_device* device,
                                                                           struct tfcompile_device_error* error) {
  struct tfcompile_device_event* const event =
      (struct tfcompile_device_event*)calloc(1, sizeof(struct tfcompile_device_event));
  tfcompile_device_clear(error);
  if (event == NULL) {
    (void)tfcompile_device_fail_host(error, "an event");
  } else {
    event->device = device;
  }
  return event;
}

static inline void tfcompile_device_event_destroy(struct tfcompile_device_event* event) {
  if (event == NULL) return;
  if (event->handle != NULL) {
    const int is_entered = event->device->driver->enter(event->device, NULL) == TFCOMPILE_DEVICE_OK;
    event->device->driver->event_destroy(event->device, event->handle);
    if (is_entered) event->device->driver->leave(event->device);
  }
  free(event);
}

static inline int32_t tfcompile_device_event_record(struct tfcompile_device_event* event, void* stream,
                                                    struct tfcompile_device_error* error) {
  int32_t status;
  tfcompile_device_clear(error);
  status = tfcompile_device_enter(event->device, error);
  if (status != TFCOMPILE_DEVICE_OK) return status;
  status = event->device->driver->event_record(event->device, &event->handle, stream, error);
  event->device->driver->leave(event->device);
  return status;
}

static inline int32_t tfcompile_device_event_wait(struct tfcompile_device_event* event, void* stream,
                                                  struct tfcompile_device_error* error) {
  int32_t status;
  tfcompile_device_clear(error);
  if (event->handle == NULL) return TFCOMPILE_DEVICE_OK;
  status = tfcompile_device_enter(event->device, error);
  if (status != TFCOMPILE_DEVICE_OK) return status;
  status = event->device->driver->event_wait(event->device, event->handle, stream, error);
  event->device->driver->leave(event->device);
  return status;
}

static inline int32_t tfcompile_device_event_synchronize(struct tfcompile_device_event* event,
                                                         struct tfcompile_device_error* error) {
  int32_t status;
  tfcompile_device_clear(error);
  if (event->handle == NULL) return TFCOMPILE_DEVICE_OK;
  status = tfcompile_device_enter(event->device, error);
  if (status != TFCOMPILE_DEVICE_OK) return status;
  status = event->device->driver->event_synchronize(event->device, event->handle, error);
  event->device->driver->leave(event->device);
  return status;
}

// ---- copies on request

// Copies or, if `operation` is TFCOMPILE_DEVICE_FILL, sets to zero.
static inline int32_t tfcompile_device_transfer(struct tfcompile_device* device, int32_t operation, uint64_t to,
                                                uint64_t from, uint64_t bytes, void* stream,
                                                struct tfcompile_device_error* error) {
  void* own = NULL;
  int32_t status;
  tfcompile_device_clear(error);
  if (bytes == 0) return TFCOMPILE_DEVICE_OK;
  if (to == 0 || (from == 0 && operation != TFCOMPILE_DEVICE_FILL)) {
    return tfcompile_device_fail(error, TFCOMPILE_DEVICE_INVALID_ARGUMENT, 0,
                                 "cannot copy %llu bytes: an address is null", (unsigned long long)bytes);
  }
  if (stream == NULL) {
    status = tfcompile_device_stream_create(device, 0, &own, error);
    if (status != TFCOMPILE_DEVICE_OK) return status;
    stream = own;
  }
  status = tfcompile_device_enter(device, error);
  if (status == TFCOMPILE_DEVICE_OK) {
    status = operation == TFCOMPILE_DEVICE_FILL
                 ? device->driver->zero(device, to, bytes, stream, NULL, error)
                 : device->driver->copy(device, operation, to, from, bytes, stream, NULL, error);
    if (own != NULL && status == TFCOMPILE_DEVICE_OK) status = device->driver->stream_synchronize(device, own, error);
    device->driver->leave(device);
  }
  if (own != NULL) tfcompile_device_stream_destroy(device, own);
  return status;
}

static inline int32_t tfcompile_device_copy_in(struct tfcompile_device* device, tfcompile_device_address to,
                                               const void* from, uint64_t bytes, void* stream,
                                               struct tfcompile_device_error* error) {
  return tfcompile_device_transfer(device, TFCOMPILE_DEVICE_COPY_IN, to, (uint64_t)(uintptr_t)from, bytes, stream,
                                   error);
}

static inline int32_t tfcompile_device_copy_out(struct tfcompile_device* device, void* to,
                                                tfcompile_device_address from, uint64_t bytes, void* stream,
                                                struct tfcompile_device_error* error) {
  return tfcompile_device_transfer(device, TFCOMPILE_DEVICE_COPY_OUT, (uint64_t)(uintptr_t)to, from, bytes, stream,
                                   error);
}

static inline int32_t tfcompile_device_copy(struct tfcompile_device* device, tfcompile_device_address to,
                                            tfcompile_device_address from, uint64_t bytes, void* stream,
                                            struct tfcompile_device_error* error) {
  return tfcompile_device_transfer(device, TFCOMPILE_DEVICE_COPY, to, from, bytes, stream, error);
}

static inline int32_t tfcompile_device_zero(struct tfcompile_device* device, tfcompile_device_address to,
                                            uint64_t bytes, void* stream, struct tfcompile_device_error* error) {
  return tfcompile_device_transfer(device, TFCOMPILE_DEVICE_FILL, to, 0, bytes, stream, error);
}

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // TFCOMPILE_DEVICE_OPEN_H_
