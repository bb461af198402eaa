// The memory pool of a device. Included by device.h only.
//
// The driver allocates regions, which the pool divides into blocks and keeps for later allocations.
// An allocation takes the smallest block that is large enough; adjacent unused blocks are merged.

#ifndef TFCOMPILE_DEVICE_MEMORY_H_
#define TFCOMPILE_DEVICE_MEMORY_H_

#include "tfcompile/device_driver.h"

#ifdef __cplusplus
extern "C" {
#endif

// Minimum and maximum bytes of a region, except for larger allocations.
#define TFCOMPILE_DEVICE_SMALL_REGION (UINT64_C(2) << 20)
#define TFCOMPILE_DEVICE_LARGE_REGION (UINT64_C(64) << 20)

static inline uint64_t tfcompile_device_round(uint64_t bytes, uint64_t unit) {
  return (bytes + unit - 1) / unit * unit;
}

// Takes a region from the driver.
static inline int32_t tfcompile_pool_grow(struct tfcompile_device* device, uint64_t bytes,
                                          struct tfcompile_device_error* error) {
  struct tfcompile_device_region* const region =
      (struct tfcompile_device_region*)calloc(1, sizeof(struct tfcompile_device_region));
  struct tfcompile_device_block* const block =
      (struct tfcompile_device_block*)calloc(1, sizeof(struct tfcompile_device_block));
  int32_t status = TFCOMPILE_DEVICE_OK;
  if (region == NULL || block == NULL) {
    status = tfcompile_device_fail_host(error, "the device's memory pool");
  } else {
    status = device->driver->allocate(device, bytes, &region->address, error);
  }
  if (status != TFCOMPILE_DEVICE_OK) {
    free(region);
    free(block);
    return status;
  }
  region->bytes = bytes;
  region->blocks = block;
  region->next = device->regions;
  device->regions = region;
  block->address = region->address;
  block->bytes = bytes;
  device->statistics.reserved += bytes;
  device->statistics.total_driver_allocations += 1;
  return TFCOMPILE_DEVICE_OK;
}

// Returns the regions without used blocks to the driver.
static inline void tfcompile_pool_trim(struct tfcompile_device* device) {
  struct tfcompile_device_region** link = &device->regions;
  while (*link != NULL) {
    struct tfcompile_device_region* const region = *link;
    if (region->blocks->is_used || region->blocks->next != NULL) {
      link = &region->next;
      continue;
    }
    *link = region->next;
    device->driver->deallocate(device, region->address);
    device->statistics.reserved -= region->bytes;
    free(region->blocks);
    free(region);
  }
}

// Releases everything, when the device closes.
static inline void tfcompile_pool_destroy(struct tfcompile_device* device) {
  struct tfcompile_device_region* region = device->regions;
  device->regions = NULL;
  while (region != NULL) {
    struct tfcompile_device_region* const next = region->next;
    struct tfcompile_device_block* block = region->blocks;
    while (block != NULL) {
      struct tfcompile_device_block* const after = block->next;
      free(block);
      block = after;
    }
    device->driver->deallocate(device, region->address);
    free(region);
    region = next;
  }
}

// Returns the smallest unused block of at least `bytes`, or null.
static inline struct tfcompile_device_block* tfcompile_pool_find(const struct tfcompile_device* device,
                                                                 uint64_t bytes) {
  struct tfcompile_device_block* best = NULL;
  const struct tfcompile_device_region* region;
  for (region = device->regions; region != NULL; region = region->next) {
    struct tfcompile_device_block* block;
    for (block = region->blocks; block != NULL; block = block->next) {
      if (!block->is_used && block->bytes >= bytes && (best == NULL || block->bytes < best->bytes)) best = block;
    }
  }
  return best;
}

// Describes an allocation for which there is no memory.
static inline int32_t tfcompile_pool_fail(struct tfcompile_device* device, uint64_t bytes, const char* purpose,
                                          struct tfcompile_device_error* error) {
  const struct tfcompile_device_statistics* const statistics = &device->statistics;
  struct tfcompile_device_amount needed;
  struct tfcompile_device_amount total;
  struct tfcompile_device_amount limit;
  struct tfcompile_device_amount used;
  struct tfcompile_device_amount cached;
  struct tfcompile_device_amount unused;
  uint64_t free_bytes = UINT64_MAX;
  (void)tfcompile_device_bytes(&needed, bytes);
  (void)tfcompile_device_bytes(&total, device->memory);
  (void)tfcompile_device_bytes(&limit, statistics->limit);
  (void)tfcompile_device_bytes(&used, statistics->used);
  (void)tfcompile_device_bytes(&cached, statistics->reserved - statistics->used);
  if (device->driver->free_memory(device, &free_bytes, NULL) != TFCOMPILE_DEVICE_OK) free_bytes = UINT64_MAX;
  if (free_bytes == UINT64_MAX) {
    free_bytes = device->memory > statistics->reserved ? device->memory - statistics->reserved : 0;
  }
  (void)tfcompile_device_bytes(&unused, free_bytes);
  return tfcompile_device_fail(
      error, TFCOMPILE_DEVICE_OUT_OF_MEMORY, 2,
      "out of memory on device %d (%s): %s needs %s (%llu bytes); of %s, %s are free, and the pool has %s in use and "
      "%s cached, at most %s; use smaller batches, destroy unused instances, end other programs that use the device, or "
      "raise memory_fraction",
      (int)device->options.ordinal, device->name, purpose, needed.text, (unsigned long long)bytes, total.text,
      unused.text, used.text, cached.text, limit.text);
}

// Adds a region for at least `bytes`.
static inline int32_t tfcompile_pool_grow_for(struct tfcompile_device* device, uint64_t bytes, const char* purpose,
                                              struct tfcompile_device_error* error) {
  struct tfcompile_device_statistics* const statistics = &device->statistics;
  // Regions grow with the pool, so that a program makes few allocations of the driver.
  uint64_t region = statistics->reserved;
  int32_t status = TFCOMPILE_DEVICE_OUT_OF_MEMORY;
  int attempt;
  if (region < TFCOMPILE_DEVICE_SMALL_REGION) region = TFCOMPILE_DEVICE_SMALL_REGION;
  if (region > TFCOMPILE_DEVICE_LARGE_REGION) region = TFCOMPILE_DEVICE_LARGE_REGION;
  if (region < bytes) region = tfcompile_device_round(bytes, TFCOMPILE_DEVICE_SMALL_REGION);
  for (attempt = 0; attempt < 3 && bytes <= statistics->limit && bytes <= device->max_allocation; ++attempt) {
    // The second attempt takes no more than needed, and the third first gives up what is cached.
    if (attempt == 1) region = bytes;
    if (attempt == 2) tfcompile_pool_trim(device);
    if (region > device->max_allocation || statistics->reserved > statistics->limit ||
        region > statistics->limit - statistics->reserved) {
      continue;
    }
    status = tfcompile_pool_grow(device, region, error);
    if (status != TFCOMPILE_DEVICE_OUT_OF_MEMORY) return status;
  }
  return tfcompile_pool_fail(device, bytes, purpose, error);
}

// Allocates memory from the pool. `purpose` is a noun for error texts. The device must be entered.
static inline int32_t tfcompile_pool_alloc(struct tfcompile_device* device, uint64_t bytes, const char* purpose,
                                           uint64_t* address, struct tfcompile_device_error* error) {
  struct tfcompile_device_statistics* const statistics = &device->statistics;
  const uint64_t needed = bytes;
  struct tfcompile_device_block* block;
  struct tfcompile_device_block* rest;
  int32_t status = TFCOMPILE_DEVICE_OK;
  *address = 0;
  tfcompile_device_acquire(&device->pool_lock);
  if (bytes > UINT64_MAX / 2) {
    status = tfcompile_pool_fail(device, needed, purpose, error);
    goto done;
  }
  bytes = bytes == 0 ? TFCOMPILE_DEVICE_ALIGN : tfcompile_device_round(bytes, TFCOMPILE_DEVICE_ALIGN);
  block = tfcompile_pool_find(device, bytes);
  if (block == NULL) {
    status = tfcompile_pool_grow_for(device, bytes, purpose, error);
    if (status != TFCOMPILE_DEVICE_OK) goto done;
    block = tfcompile_pool_find(device, bytes);
  }
  if (block->bytes > bytes) {
    rest = (struct tfcompile_device_block*)calloc(1, sizeof(struct tfcompile_device_block));
    if (rest == NULL) {
      status = tfcompile_device_fail_host(error, "the device's memory pool");
      goto done;
    }
    rest->address = block->address + bytes;
    rest->bytes = block->bytes - bytes;
    rest->previous = block;
    rest->next = block->next;
    if (rest->next != NULL) rest->next->previous = rest;
    block->next = rest;
    block->bytes = bytes;
  }
  block->is_used = 1;
  *address = block->address;
  statistics->used += block->bytes;
  if (statistics->used > statistics->peak) statistics->peak = statistics->used;
  statistics->allocations += 1;
  statistics->total_allocations += 1;
done:
  tfcompile_device_release(&device->pool_lock);
  return status;
}

// Returns memory to the pool. Returns zero if the pool did not hand it out.
static inline int tfcompile_pool_free(struct tfcompile_device* device, uint64_t address) {
  struct tfcompile_device_region* region;
  struct tfcompile_device_block* block = NULL;
  tfcompile_device_acquire(&device->pool_lock);
  for (region = device->regions; region != NULL; region = region->next) {
    if (address < region->address || address - region->address >= region->bytes) continue;
    for (block = region->blocks; block != NULL && block->address != address;) block = block->next;
    break;
  }
  if (block != NULL && !block->is_used) block = NULL;
  if (block != NULL) {
    block->is_used = 0;
    device->statistics.used -= block->bytes;
    device->statistics.allocations -= 1;
    if (block->previous != NULL && !block->previous->is_used) block = block->previous;
    while (block->next != NULL && !block->next->is_used) {
      struct tfcompile_device_block* const next = block->next;
      block->bytes += next->bytes;
      block->next = next->next;
      if (next->next != NULL) next->next->previous = block;
      free(next);
    }
  }
  tfcompile_device_release(&device->pool_lock);
  return block != NULL;
}

// Sets the limit, and takes all memory at once if the options say so. The device must be entered.
static inline int32_t tfcompile_pool_init(struct tfcompile_device* device, struct tfcompile_device_error* error) {
  double fraction = device->options.memory_fraction;
  uint64_t bytes;
  if (fraction == 0) fraction = 0.9;
  if (!(fraction > 0 && fraction <= 1)) {
    return tfcompile_device_fail(error, TFCOMPILE_DEVICE_INVALID_ARGUMENT, 0,
                                 "memory_fraction is %g, expected a value from 0 to 1", fraction);
  }
  bytes = (uint64_t)(fraction * (double)device->memory) / TFCOMPILE_DEVICE_ALIGN * TFCOMPILE_DEVICE_ALIGN;
  device->statistics.limit = bytes;
  if (!device->options.preallocate) return TFCOMPILE_DEVICE_OK;
  if (bytes > device->max_allocation) bytes = device->max_allocation / TFCOMPILE_DEVICE_ALIGN * TFCOMPILE_DEVICE_ALIGN;
  if (tfcompile_pool_grow(device, bytes, error) == TFCOMPILE_DEVICE_OK) return TFCOMPILE_DEVICE_OK;
  return tfcompile_pool_fail(device, bytes, "the preallocated pool", error);
}

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // TFCOMPILE_DEVICE_MEMORY_H_
