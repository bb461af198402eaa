// Memory of OpenCL devices without shared virtual memory: buffers of OpenCL 1.2. Included by
// device.h only.
//
// The runtime computes with addresses. A buffer has a range of them that no other buffer of the
// device has, and each use of an address finds the buffer again. Kernels in OpenCL C take a buffer
// and a distance for each address; SPIR-V kernels take addresses only, and do not run here.

#ifndef TFCOMPILE_DEVICE_OPENCL_BUFFERS_H_
#define TFCOMPILE_DEVICE_OPENCL_BUFFERS_H_

#include "tfcompile/device_opencl_api.h"

#ifdef __cplusplus
extern "C" {
#endif

struct tfcompile_opencl_buffer {
  uint64_t address;
  uint64_t bytes;
  void* handle;
  struct tfcompile_opencl_buffer* next;
};

// A place in a buffer. The buffer is null for a null address.
struct tfcompile_opencl_place {
  void* buffer;
  uint64_t offset;
};

static inline int32_t tfcompile_opencl_buffer_create(struct tfcompile_device* device, uint64_t bytes,
                                                     uint64_t* address, struct tfcompile_device_error* error) {
  const struct tfcompile_opencl* const api = tfcompile_opencl_api();
  struct tfcompile_opencl_buffer* const buffer =
      (struct tfcompile_opencl_buffer*)calloc(1, sizeof(struct tfcompile_opencl_buffer));
  int result = 0;
  *address = 0;
  if (buffer == NULL) return tfcompile_device_fail_host(error, "a buffer");
  // CL_MEM_READ_WRITE
  buffer->handle = api->buffer_create(device->context, 1, (size_t)bytes, NULL, &result);
  if (buffer->handle == NULL) {
    free(buffer);
    return tfcompile_opencl_fail(device, result, error, "allocate %llu bytes", (unsigned long long)bytes);
  }
  buffer->bytes = bytes;
  tfcompile_device_acquire(&device->buffers_lock);
  if (device->next_address == 0) device->next_address = UINT64_C(1) << 40;
  buffer->address = device->next_address;
  device->next_address += (bytes + 2 * TFCOMPILE_DEVICE_ALIGN) / TFCOMPILE_DEVICE_ALIGN * TFCOMPILE_DEVICE_ALIGN;
  buffer->next = device->buffers;
  device->buffers = buffer;
  tfcompile_device_release(&device->buffers_lock);
  *address = buffer->address;
  return TFCOMPILE_DEVICE_OK;
}

static inline void tfcompile_opencl_buffer_destroy(struct tfcompile_device* device, uint64_t address) {
  struct tfcompile_opencl_buffer** link;
  struct tfcompile_opencl_buffer* buffer;
  tfcompile_device_acquire(&device->buffers_lock);
  for (link = &device->buffers; *link != NULL && (*link)->address != address; link = &(*link)->next) {
  }
  buffer = *link;
  if (buffer != NULL) *link = buffer->next;
  tfcompile_device_release(&device->buffers_lock);
  if (buffer == NULL) return;
  (void)tfcompile_opencl_api()->buffer_release(buffer->handle);
  free(buffer);
}

// Finds the buffer of an address.
static inline int32_t tfcompile_opencl_find(struct tfcompile_device* device, uint64_t address,
                                            struct tfcompile_opencl_place* place,
                                            struct tfcompile_device_error* error) {
  const struct tfcompile_opencl_buffer* buffer;
  place->buffer = NULL;
  place->offset = 0;
  if (address == 0) return TFCOMPILE_DEVICE_OK;
  tfcompile_device_acquire(&device->buffers_lock);
  for (buffer = device->buffers; buffer != NULL; buffer = buffer->next) {
    if (address >= buffer->address && address - buffer->address <= buffer->bytes) {
      place->buffer = buffer->handle;
      place->offset = address - buffer->address;
      break;
    }
  }
  tfcompile_device_release(&device->buffers_lock);
  if (place->buffer != NULL) return TFCOMPILE_DEVICE_OK;
  return tfcompile_device_fail(error, TFCOMPILE_DEVICE_INVALID_ARGUMENT, 0,
                               "address 0x%llx is not in memory that the runtime allocated on device %d (%s), which "
                               "has no shared virtual memory",
                               (unsigned long long)address, (int)device->options.ordinal, device->name);
}

// Passes an address to a kernel: the buffer as one argument, and the distance as another.
static inline int32_t tfcompile_opencl_buffer_arg(struct tfcompile_device* device, void* kernel, uint32_t index,
                                                  uint32_t offset_index, uint64_t address, int* result,
                                                  struct tfcompile_device_error* error) {
  const struct tfcompile_opencl* const api = tfcompile_opencl_api();
  struct tfcompile_opencl_place place;
  const int32_t status = tfcompile_opencl_find(device, address, &place, error);
  if (status != TFCOMPILE_DEVICE_OK) return status;
  *result = api->kernel_arg(kernel, index, sizeof(void*), place.buffer != NULL ? &place.buffer : NULL);
  if (*result == 0) *result = api->kernel_arg(kernel, offset_index, sizeof place.offset, &place.offset);
  return TFCOMPILE_DEVICE_OK;
}

static inline int32_t tfcompile_opencl_buffer_copy(struct tfcompile_device* device, int32_t operation, uint64_t to,
                                                   uint64_t from, uint64_t bytes, void* stream, void** event,
                                                   int* result, struct tfcompile_device_error* error) {
  const struct tfcompile_opencl* const api = tfcompile_opencl_api();
  struct tfcompile_opencl_place target = {NULL, 0};
  struct tfcompile_opencl_place source = {NULL, 0};
  int32_t status = TFCOMPILE_DEVICE_OK;
  if (operation != TFCOMPILE_DEVICE_COPY_OUT) status = tfcompile_opencl_find(device, to, &target, error);
  if (status == TFCOMPILE_DEVICE_OK && operation != TFCOMPILE_DEVICE_COPY_IN) {
    status = tfcompile_opencl_find(device, from, &source, error);
  }
  if (status != TFCOMPILE_DEVICE_OK) return status;
  if (operation == TFCOMPILE_DEVICE_COPY_IN) {
    *result = api->buffer_write(stream, target.buffer, 0, (size_t)target.offset, (size_t)bytes,
                                (const void*)(uintptr_t)from, 0, NULL, event);
  } else if (operation == TFCOMPILE_DEVICE_COPY_OUT) {
    *result = api->buffer_read(stream, source.buffer, 0, (size_t)source.offset, (size_t)bytes, (void*)(uintptr_t)to, 0,
                               NULL, event);
  } else {
    *result = api->buffer_copy(stream, source.buffer, target.buffer, (size_t)source.offset, (size_t)target.offset,
                               (size_t)bytes, 0, NULL, event);
  }
  return TFCOMPILE_DEVICE_OK;
}

static inline int32_t tfcompile_opencl_buffer_zero(struct tfcompile_device* device, uint64_t to, uint64_t bytes,
                                                   size_t unit, void* stream, void** event, int* result,
                                                   struct tfcompile_device_error* error) {
  const uint32_t pattern = 0;
  struct tfcompile_opencl_place place;
  const int32_t status = tfcompile_opencl_find(device, to, &place, error);
  if (status != TFCOMPILE_DEVICE_OK) return status;
  *result = tfcompile_opencl_api()->buffer_fill(stream, place.buffer, &pattern, unit, (size_t)place.offset,
                                                (size_t)bytes, 0, NULL, event);
  return TFCOMPILE_DEVICE_OK;
}

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // TFCOMPILE_DEVICE_OPENCL_BUFFERS_H_
