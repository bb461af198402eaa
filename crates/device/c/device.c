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

struct tfcdev_kernel {
  uint32_t threads;           // Of a workgroup.
  uint32_t registers;         // Of a thread.
  uint32_t workgroup_bytes;
  uint32_t local_bytes;       // Of a thread: spilled registers and arrays.
  uint32_t active_workgroups; // Per multiprocessor, or 0 if unknown.
  uint32_t max_threads;       // Per multiprocessor, or 0 if unknown.
};

// Describes a kernel of an instance. With OpenCL, only the threads are known.
void tfcdev_instance_kernel(Device* device, Instance* instance, uint32_t index, struct tfcdev_kernel* facts) {
  const struct tfcompile_program* const program = &instance->loaded->program;
  memset(facts, 0, sizeof *facts);
  if (index >= program->kernel_count) return;
  facts->threads = program->kernels[index].threads;
  if (device->kind != TFCOMPILE_DEVICE_CUDA) return;
  {
    // CU_FUNC_ATTRIBUTE_NUM_REGS, SHARED_SIZE_BYTES, LOCAL_SIZE_BYTES;
    // CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR.
    enum { REGISTERS = 4, SHARED = 1, LOCAL = 3, MAX_THREADS = 39 };
    typedef int(TFCOMPILE_DRIVER_CALL * Occupancy)(int* workgroups, void* function, int threads, size_t shared_bytes);
    const struct tfcompile_cuda* const api = tfcompile_cuda_api();
    void* const function = instance->kernels[index];
    Occupancy occupancy = NULL;
    int value = 0;
    int ordinal = 0;
    if (tfcompile_device_enter(device, NULL) != 0) return;
    if (api->function_attribute(&value, REGISTERS, function) == 0) facts->registers = (uint32_t)value;
    if (api->function_attribute(&value, SHARED, function) == 0) facts->workgroup_bytes = (uint32_t)value;
    if (api->function_attribute(&value, LOCAL, function) == 0) facts->local_bytes = (uint32_t)value;
    if (api->device_get(&ordinal, device->options.ordinal) == 0 &&
        api->device_attribute(&value, MAX_THREADS, ordinal) == 0) {
      facts->max_threads = (uint32_t)value;
    }
    if (tfcompile_device_symbol(api->library, "cuOccupancyMaxActiveBlocksPerMultiprocessor", &occupancy) &&
        occupancy(&value, function, (int)facts->threads, 0) == 0) {
      facts->active_workgroups = (uint32_t)value;
    }
    device->driver->leave(device);
  }
}
