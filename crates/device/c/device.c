// The functions of tfcompile/device.h that Rust calls. The header defines them as static, so each
// has a wrapper with a symbol.

#include "tfcompile/device.h"

typedef struct tfcompile_device_error Error;
typedef struct tfcompile_device Device;
typedef struct tfcompile_device_instance Instance;

int32_t tfcdev_count(int32_t kind, int32_t* count, Error* error) {
  return tfcompile_device_count(kind, count, error);
}

Device* tfcdev_open(const struct tfcompile_device_options* options, Error* error) {
  return tfcompile_device_open(options, error);
}

void tfcdev_close(Device* device) { tfcompile_device_close(device); }

int32_t tfcdev_info(Device* device, struct tfcompile_device_info* info, Error* error) {
  return tfcompile_device_get_info(device, info, error);
}

void tfcdev_statistics(Device* device, struct tfcompile_device_statistics* statistics) {
  tfcompile_device_get_statistics(device, statistics);
}

int32_t tfcdev_synchronize(Device* device, Error* error) { return tfcompile_device_synchronize(device, error); }

int32_t tfcdev_stream_synchronize(Device* device, void* stream, Error* error) {
  return tfcompile_device_stream_synchronize(device, stream, error);
}

Instance* tfcdev_instance_create(Device* device, const void* program, const void* constants, Error* error) {
  return tfcompile_device_instance_create(device, program, constants, error);
}

void tfcdev_instance_destroy(Instance* instance) { tfcompile_device_instance_destroy(instance); }

int32_t tfcdev_instance_profile(Instance* instance, tfcompile_device_profiler profiler, void* context, Error* error) {
  return tfcompile_device_instance_profile(instance, profiler, context, error);
}

// Text of the reason why profiles have the times of events, or an empty one.
const char* tfcdev_instance_profile_note(const Instance* instance) {
  return tfcompile_device_instance_profile_note(instance)->text;
}

int32_t tfcdev_instance_status(const Instance* instance) { return tfcompile_device_instance_error(instance)->status; }

// ---- memory and runs on device addresses

int32_t tfcdev_alloc(Device* device, uint64_t bytes, uint64_t* address, Error* error) {
  return tfcompile_device_alloc(device, bytes, address, error);
}

int32_t tfcdev_free(Device* device, uint64_t address) { return tfcompile_device_free(device, address, NULL); }

int32_t tfcdev_copy_in(Device* device, uint64_t to, const void* from, uint64_t bytes, Error* error) {
  return tfcompile_device_copy_in(device, to, from, bytes, NULL, error);
}

int32_t tfcdev_copy_out(Device* device, void* to, uint64_t from, uint64_t bytes, Error* error) {
  return tfcompile_device_copy_out(device, to, from, bytes, NULL, error);
}

int32_t tfcdev_copy(Device* device, uint64_t to, uint64_t from, uint64_t bytes, Error* error) {
  return tfcompile_device_copy(device, to, from, bytes, NULL, error);
}

// Runs an instance on device addresses and waits. `sizes` receives `size_count` sizes.
int32_t tfcdev_instance_run(Device* device, Instance* instance, const uint64_t* arguments, const uint64_t* results,
                            int64_t* sizes, uint32_t size_count, Error* error) {
  uint64_t own_sizes;
  int32_t status = tfcompile_device_instance_enqueue(instance, arguments, results, 0, NULL, error);
  if (status == 0) status = tfcompile_device_instance_finish(instance, error);
  if (status != 0 || size_count == 0) return status;
  own_sizes = tfcompile_device_instance_sizes(instance, error);
  if (own_sizes == 0) return error->status;
  return tfcompile_device_copy_out(device, sizes, own_sizes, size_count * sizeof *sizes, NULL, error);
}

// ---- kernels

// Describes a kernel of an instance. Where the driver does not tell, only the threads are known.
void tfcdev_instance_kernel(Device* device, Instance* instance, uint32_t index, struct tfcompile_device_facts* facts) {
  const struct tfcompile_program* const program = &instance->loaded->program;
  memset(facts, 0, sizeof *facts);
  if (index >= program->kernel_count) return;
  facts->threads = program->kernels[index].threads;
  if (device->driver->kernel_facts == NULL || tfcompile_device_enter(device, NULL) != 0) return;
  (void)device->driver->kernel_facts(device, instance->kernels[index], &program->kernels[index], facts, NULL);
  device->driver->leave(device);
}
