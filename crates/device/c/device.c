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

Instance* tfcdev_instance_create(Device* device, const void* program, const void* constants, Error* error) {
  return tfcompile_device_instance_create(device, program, constants, error);
}

void tfcdev_instance_destroy(Instance* instance) { tfcompile_device_instance_destroy(instance); }

int32_t tfcdev_instance_profile(Instance* instance, tfcompile_device_profiler profiler, void* context, Error* error) {
  return tfcompile_device_instance_profile(instance, profiler, context, error);
}

int32_t tfcdev_instance_status(const Instance* instance) { return tfcompile_device_instance_error(instance)->status; }
