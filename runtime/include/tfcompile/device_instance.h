// Creates and destroys instances of device programs, and loads what they share: code and constants.
// Included by device.h only.

#ifndef TFCOMPILE_DEVICE_INSTANCE_H_
#define TFCOMPILE_DEVICE_INSTANCE_H_

#include "tfcompile/device_open.h"
#include "tfcompile/device_program.h"
#include "tfcompile/device_run.h"

#ifdef __cplusplus
extern "C" {
#endif

static inline int32_t tfcompile_frame_run(struct tfcompile_device_instance* instance, const void* program,
                                          struct tfcompile_frame* frame);

// ---- images

// Returns how well an image suits a device of an arch: 0 if it does not run there. Images whose
// arch has the flag 1000 ("sm_90a") run on exactly that arch.
static inline uint32_t tfcompile_image_rank(const struct tfcompile_device* device,
                                            const struct tfcompile_device_image* image, uint32_t arch) {
  const uint32_t of = image->arch % 1000;
  const int is_exact = image->arch >= 1000;
  if (image->kind == TFCOMPILE_IMAGE_OPENCL_C) return 1;
  if (image->kind == TFCOMPILE_IMAGE_SPIRV) return device->takes_spirv && device->has_shared_memory ? 2 : 0;
  if (is_exact && of != arch) return 0;
  if (image->kind == TFCOMPILE_IMAGE_CUBIN) {
    if (of / 10 != arch / 10 || of > arch) return 0;
    return 10000 + 2 * of + (is_exact ? 1 : 0);
  }
  return of > arch ? 0 : 1 + 2 * of + (is_exact ? 1 : 0);
}

// Chooses the image for a device.
static inline int32_t tfcompile_image_choose(const struct tfcompile_device* device,
                                             const struct tfcompile_program* program,
                                             const struct tfcompile_device_image** chosen,
                                             struct tfcompile_device_error* error) {
  char has[512] = "";
  uint32_t best = 0;
  uint32_t i;
  if (program->api != (uint32_t)device->kind) {
    return tfcompile_device_fail(error, TFCOMPILE_DEVICE_NO_IMAGE, 0,
                                 "program '%s' is compiled for %s, but device %d (%s) is open with %s; open a device "
                                 "of the other kind or compile the model for this one",
                                 program->name, program->api == TFCOMPILE_DEVICE_CUDA ? "CUDA" : "OpenCL",
                                 (int)device->options.ordinal, device->name, device->driver->name);
  }
  *chosen = NULL;
  for (i = 0; i < program->image_count; ++i) {
    const struct tfcompile_device_image* const image = &program->images[i];
    const uint32_t rank = tfcompile_image_rank(device, image, (uint32_t)device->arch);
    if (rank > best) {
      best = rank;
      *chosen = image;
    }
    tfcompile_device_append(has, sizeof has, "%s%s sm_%u%s", i > 0 ? ", " : "",
                            image->kind == TFCOMPILE_IMAGE_PTX ? "PTX for" : "a cubin for",
                            (unsigned)(image->arch % 1000), image->arch >= 1000 ? "a" : "");
  }
  if (*chosen != NULL || (program->image_count == 0 && program->kernel_count == 0)) return TFCOMPILE_DEVICE_OK;
  if (device->kind == TFCOMPILE_DEVICE_OPENCL) {
    return tfcompile_device_fail(error, TFCOMPILE_DEVICE_NO_IMAGE, 0,
                                 "program '%s' is SPIR-V, but OpenCL device %d (%s) %s; compile the model with "
                                 "--target=opencl:c or opencl:spirv,c",
                                 program->name, (int)device->options.ordinal, device->name,
                                 device->takes_spirv ? "has no shared virtual memory" : "takes no SPIR-V");
  }
  return tfcompile_device_fail(error, TFCOMPILE_DEVICE_NO_IMAGE, 0,
                               "program '%s' has no code for device %d (%s, sm_%d): it has %s; compile the model for "
                               "sm_%d or add PTX for an older one",
                               program->name, (int)device->options.ordinal, device->name, (int)device->arch,
                               has[0] != '\0' ? has : "none", (int)device->arch);
}

// ---- shared code and constants

static inline void tfcompile_loaded_delete(struct tfcompile_device* device, struct tfcompile_device_loaded* loaded) {
  const int is_entered = device->driver->enter(device, NULL) == TFCOMPILE_DEVICE_OK;
  if (loaded->module != NULL) device->driver->module_unload(device, loaded->module);
  if (is_entered) device->driver->leave(device);
  if (loaded->constants != 0) (void)tfcompile_pool_free(device, loaded->constants);
  tfcompile_program_release(&loaded->program);
  free(loaded);
}

// Loads a program that no instance uses.
static inline int32_t tfcompile_loaded_create(struct tfcompile_device* device, const void* blob, const void* constants,
                                              struct tfcompile_device_loaded** out,
                                              struct tfcompile_device_error* error) {
  struct tfcompile_device_loaded* const loaded =
      (struct tfcompile_device_loaded*)calloc(1, sizeof(struct tfcompile_device_loaded));
  struct tfcompile_program* program;
  const struct tfcompile_device_image* image = NULL;
  char purpose[160];
  int32_t status;
  *out = NULL;
  if (loaded == NULL) return tfcompile_device_fail_host(error, "a device program");
  program = &loaded->program;
  loaded->host_constants = constants;
  status = tfcompile_program_parse(blob, program, error);
  if (status == TFCOMPILE_DEVICE_OK) status = tfcompile_image_choose(device, program, &image, error);
  if (status == TFCOMPILE_DEVICE_OK && constants == NULL && program->constants_bytes > 0) {
    status = tfcompile_device_fail(error, TFCOMPILE_DEVICE_INVALID_ARGUMENT, 0,
                                   "program '%s' has %llu bytes of constants, but the pointer to them is null",
                                   program->name, (unsigned long long)program->constants_bytes);
  }
  if (status == TFCOMPILE_DEVICE_OK) status = tfcompile_device_enter(device, error);
  if (status == TFCOMPILE_DEVICE_OK) {
    if (image != NULL) status = device->driver->module_load(device, image, program->name, &loaded->module, error);
    if (status == TFCOMPILE_DEVICE_OK && program->constants_bytes > 0) {
      (void)snprintf(purpose, sizeof purpose, "the block of constants of program '%.100s'", program->name);
      status = tfcompile_pool_alloc(device, program->constants_bytes, purpose, &loaded->constants, error);
    }
    device->driver->leave(device);
  }
  if (status == TFCOMPILE_DEVICE_OK && program->constants_bytes > 0) {
    status = tfcompile_device_copy_in(device, loaded->constants, constants, program->constants_bytes, NULL, error);
  }
  if (status != TFCOMPILE_DEVICE_OK) {
    tfcompile_loaded_delete(device, loaded);
    return status;
  }
  *out = loaded;
  return TFCOMPILE_DEVICE_OK;
}

static inline int32_t tfcompile_loaded_get(struct tfcompile_device* device, const void* blob, const void* constants,
                                           struct tfcompile_device_loaded** out,
                                           struct tfcompile_device_error* error) {
  struct tfcompile_device_loaded* loaded;
  int32_t status = TFCOMPILE_DEVICE_OK;
  tfcompile_device_acquire(&device->programs_lock);
  for (loaded = device->programs; loaded != NULL; loaded = loaded->next) {
    if (loaded->program.blob == (const unsigned char*)blob && loaded->host_constants == constants) break;
  }
  if (loaded == NULL) {
    status = tfcompile_loaded_create(device, blob, constants, &loaded, error);
    if (status == TFCOMPILE_DEVICE_OK) {
      loaded->next = device->programs;
      device->programs = loaded;
    }
  }
  if (loaded != NULL) loaded->users += 1;
  tfcompile_device_release(&device->programs_lock);
  *out = loaded;
  return status;
}

static inline void tfcompile_loaded_put(struct tfcompile_device* device, struct tfcompile_device_loaded* loaded) {
  struct tfcompile_device_loaded** link;
  tfcompile_device_acquire(&device->programs_lock);
  loaded->users -= 1;
  if (loaded->users == 0) {
    for (link = &device->programs; *link != loaded;) link = &(*link)->next;
    *link = loaded->next;
    tfcompile_loaded_delete(device, loaded);
  }
  tfcompile_device_release(&device->programs_lock);
}

// ---- creation

// Allocates the tables of an instance on the host.
static inline int32_t tfcompile_instance_tables(struct tfcompile_device_instance* instance,
                                                struct tfcompile_device_error* error) {
  const struct tfcompile_program* const program = &instance->loaded->program;
  uint32_t i;
  instance->bound_count = program->argument_count + program->result_count + 1;
  instance->kernels = (void**)calloc((size_t)program->kernel_count + 1, sizeof(void*));
  instance->own_addresses = (uint64_t*)calloc(instance->bound_count, sizeof(uint64_t));
  instance->bound = (uint64_t*)calloc(instance->bound_count, sizeof(uint64_t));
  instance->home = (uint64_t*)calloc((size_t)program->slot_count + 1, sizeof(uint64_t));
  instance->now = (uint64_t*)calloc((size_t)program->slot_count + 1, sizeof(uint64_t));
  instance->parameters = (uint64_t*)calloc((size_t)program->max_parameters + 1, sizeof(uint64_t));
  instance->pointers = (void**)calloc((size_t)program->max_parameters + 1, sizeof(void*));
  instance->is_resident = (unsigned char*)calloc((size_t)program->argument_count + 1, 1);
  instance->facts = (struct tfcompile_device_facts*)calloc((size_t)program->kernel_count + 1, sizeof *instance->facts);
  if (instance->kernels == NULL || instance->own_addresses == NULL || instance->bound == NULL ||
      instance->home == NULL || instance->now == NULL || instance->parameters == NULL || instance->pointers == NULL ||
      instance->is_resident == NULL || instance->facts == NULL) {
    return tfcompile_device_fail_host(error, "an instance of a device program");
  }
  for (i = 0; i < program->max_parameters; ++i) instance->pointers[i] = &instance->parameters[i];
  return TFCOMPILE_DEVICE_OK;
}

// Creates what an instance has on the device. The device must be entered.
static inline int32_t tfcompile_instance_resources(struct tfcompile_device_instance* instance,
                                                   struct tfcompile_device_error* error) {
  struct tfcompile_device* const device = instance->device;
  const struct tfcompile_driver* const driver = device->driver;
  const struct tfcompile_program* const program = &instance->loaded->program;
  const uint64_t temps = tfcompile_device_round(program->temps_bytes, TFCOMPILE_DEVICE_ALIGN);
  const uint64_t control = tfcompile_device_round(program->control_bytes, TFCOMPILE_DEVICE_ALIGN);
  void* mailbox = NULL;
  char purpose[160];
  int32_t status = TFCOMPILE_DEVICE_OK;
  uint32_t i;
  for (i = 0; i < program->kernel_count && status == TFCOMPILE_DEVICE_OK; ++i) {
    status = driver->kernel_create(device, instance->loaded->module, &program->kernels[i], &instance->kernels[i],
                                   error);
    if (status != TFCOMPILE_DEVICE_OK) instance->kernels[i] = NULL;
  }
  if (status != TFCOMPILE_DEVICE_OK) return status;
  (void)snprintf(purpose, sizeof purpose, "the block of temporaries of program '%.100s'", program->name);
  status = tfcompile_pool_alloc(device, temps + control + program->scratch_bytes, purpose, &instance->block, error);
  if (status != TFCOMPILE_DEVICE_OK) return status;
  instance->temps = instance->block;
  instance->control = instance->temps + temps;
  instance->scratch = instance->control + control;
  status = driver->allocate_host(device, sizeof *instance->mailbox, &mailbox, error);
  if (status != TFCOMPILE_DEVICE_OK) return status;
  memset(mailbox, 0, sizeof *instance->mailbox);
  instance->mailbox = (struct tfcompile_device_mailbox*)mailbox;
  if (program->persistent_bytes == 0) return TFCOMPILE_DEVICE_OK;
  status = driver->zero(device, instance->temps, program->persistent_bytes, instance->stream, NULL, error);
  if (status == TFCOMPILE_DEVICE_OK) status = driver->stream_synchronize(device, instance->stream, error);
  return status;
}

static inline struct tfcompile_device_instance* tfcompile_device_instance_create(
    struct tfcompile_device* device, const void* program, const void* constants,
    struct tfcompile_device_error* error) {
  struct tfcompile_device_instance* instance;
  int32_t status;
  tfcompile_device_clear(error);
  if (device == NULL) {
    (void)tfcompile_device_fail(error, TFCOMPILE_DEVICE_INVALID_ARGUMENT, 0, "the device is null");
    return NULL;
  }
  instance = (struct tfcompile_device_instance*)calloc(1, sizeof(struct tfcompile_device_instance));
  if (instance == NULL) {
    (void)tfcompile_device_fail_host(error, "an instance of a device program");
    return NULL;
  }
  instance->run = tfcompile_frame_run;
  instance->device = device;
  status = tfcompile_loaded_get(device, program, constants, &instance->loaded, error);
  if (status == TFCOMPILE_DEVICE_OK) status = tfcompile_instance_tables(instance, error);
  if (status == TFCOMPILE_DEVICE_OK) status = tfcompile_device_stream_create(device, 0, &instance->stream, error);
  if (status == TFCOMPILE_DEVICE_OK) status = tfcompile_device_enter(device, error);
  if (status == TFCOMPILE_DEVICE_OK) {
    status = tfcompile_instance_resources(instance, error);
    device->driver->leave(device);
  }
  if (status == TFCOMPILE_DEVICE_OK) return instance;
  tfcompile_device_instance_destroy(instance);
  return NULL;
}

// Waits for the work of the instance, on whichever stream it is. Ignores errors.
static inline void tfcompile_instance_quiesce(struct tfcompile_device_instance* instance) {
  const struct tfcompile_driver* const driver = instance->device->driver;
  if (instance->stream != NULL) (void)driver->stream_synchronize(instance->device, instance->stream, NULL);
  if (instance->last_event != NULL) (void)driver->event_synchronize(instance->device, instance->last_event, NULL);
}

// Forgets the graph of runs of frames.
static inline void tfcompile_instance_drop_frame_graph(struct tfcompile_device_instance* instance) {
  if (instance->frame_graph != NULL) instance->device->driver->graph_destroy(instance->device, instance->frame_graph);
  instance->frame_graph = NULL;
  instance->frame_runs = 0;
}

static inline void tfcompile_device_instance_destroy(struct tfcompile_device_instance* instance) {
  struct tfcompile_device* device;
  const struct tfcompile_driver* driver;
  uint32_t i;
  int is_entered;
  if (instance == NULL) return;
  device = instance->device;
  driver = device->driver;
  is_entered = driver->enter(device, NULL) == TFCOMPILE_DEVICE_OK;
  if (instance->loaded != NULL) {
    tfcompile_instance_quiesce(instance);
    (void)tfcompile_run_deliver(instance, 0, NULL);
    tfcompile_run_untrace(instance);
    tfcompile_instance_drop_frame_graph(instance);
    for (i = 0; i < TFCOMPILE_DEVICE_GRAPHS; ++i) {
      if (instance->graphs[i].handle != NULL) driver->graph_destroy(device, instance->graphs[i].handle);
      free(instance->graphs[i].addresses);
    }
    for (i = 0; instance->kernels != NULL && i < instance->loaded->program.kernel_count; ++i) {
      if (instance->kernels[i] != NULL) driver->kernel_destroy(device, instance->kernels[i]);
    }
    if (instance->last_event != NULL) driver->event_destroy(device, instance->last_event);
    if (instance->staging != NULL) driver->deallocate_host(device, instance->staging);
    if (instance->mailbox != NULL) driver->deallocate_host(device, instance->mailbox);
  }
  if (is_entered) driver->leave(device);
  tfcompile_device_stream_destroy(device, instance->stream);
  if (instance->own != 0) (void)tfcompile_pool_free(device, instance->own);
  if (instance->block != 0) (void)tfcompile_pool_free(device, instance->block);
  if (instance->loaded != NULL) tfcompile_loaded_put(device, instance->loaded);
  free(instance->kernels);
  free(instance->own_addresses);
  free(instance->bound);
  free(instance->home);
  free(instance->now);
  free(instance->parameters);
  free(instance->pointers);
  free(instance->is_resident);
  free(instance->pending);
  free(instance->facts);
  free(instance);
}

// ---- the instance's own buffers

// Bytes of a bound buffer: an argument, a result, or the sizes.
static inline uint64_t tfcompile_instance_bytes(const struct tfcompile_device_instance* instance, uint32_t index) {
  const struct tfcompile_program* const program = &instance->loaded->program;
  if (index < program->argument_count) return program->arguments[index].bytes;
  if (index - program->argument_count < program->result_count) {
    return program->results[index - program->argument_count].bytes;
  }
  return 8 * (uint64_t)program->size_count;
}

// Returns the argument whose memory a bound buffer shares, plus 1.
static inline uint32_t tfcompile_instance_shared(const struct tfcompile_device_instance* instance, uint32_t index) {
  const struct tfcompile_program* const program = &instance->loaded->program;
  if (index < program->argument_count || index - program->argument_count >= program->result_count) return 0;
  return program->results[index - program->argument_count].argument_plus_1;
}

// Allocates the buffers when first used. The device must be entered.
static inline int32_t tfcompile_instance_own(struct tfcompile_device_instance* instance,
                                             struct tfcompile_device_error* error) {
  const struct tfcompile_program* const program = &instance->loaded->program;
  char purpose[160];
  uint64_t bytes = 0;
  uint32_t i;
  int32_t status;
  if (instance->own != 0) return TFCOMPILE_DEVICE_OK;
  for (i = 0; i < instance->bound_count; ++i) {
    if (tfcompile_instance_shared(instance, i) != 0) continue;
    instance->own_addresses[i] = bytes;
    // At least one unit, so that every buffer has its own address.
    bytes += tfcompile_device_round(tfcompile_instance_bytes(instance, i) + 1, TFCOMPILE_DEVICE_ALIGN);
    if (bytes > TFCOMPILE_PROGRAM_MAX_BYTES) break;
  }
  (void)snprintf(purpose, sizeof purpose, "the block of arguments and results of program '%.100s'", program->name);
  status = tfcompile_pool_alloc(instance->device, bytes, purpose, &instance->own, error);
  if (status != TFCOMPILE_DEVICE_OK) {
    instance->own = 0;
    return status;
  }
  instance->own_bytes = bytes;
  for (i = 0; i < instance->bound_count; ++i) {
    const uint32_t shared = tfcompile_instance_shared(instance, i);
    instance->own_addresses[i] =
        shared != 0 ? instance->own_addresses[shared - 1] : instance->own + instance->own_addresses[i];
  }
  return TFCOMPILE_DEVICE_OK;
}

// Returns the address of the instance's own buffer, or 0 on failure.
static inline tfcompile_device_address tfcompile_instance_address(struct tfcompile_device_instance* instance,
                                                                  const char* name, uint32_t index, uint32_t count,
                                                                  uint32_t first,
                                                                  struct tfcompile_device_error* error) {
  int32_t status;
  tfcompile_device_clear(error);
  if (index >= count) {
    (void)tfcompile_device_fail(error, TFCOMPILE_DEVICE_INVALID_ARGUMENT, 0, "program '%s' has no %s %u: it has %u",
                                instance->loaded->program.name, name, (unsigned)index, (unsigned)count);
    return 0;
  }
  status = tfcompile_device_enter(instance->device, error);
  if (status != TFCOMPILE_DEVICE_OK) return 0;
  status = tfcompile_instance_own(instance, error);
  instance->device->driver->leave(instance->device);
  return status == TFCOMPILE_DEVICE_OK ? instance->own_addresses[first + index] : 0;
}

static inline tfcompile_device_address tfcompile_device_instance_argument(struct tfcompile_device_instance* instance,
                                                                          uint32_t index,
                                                                          struct tfcompile_device_error* error) {
  return tfcompile_instance_address(instance, "argument", index, instance->loaded->program.argument_count, 0, error);
}

static inline tfcompile_device_address tfcompile_device_instance_result(struct tfcompile_device_instance* instance,
                                                                        uint32_t index,
                                                                        struct tfcompile_device_error* error) {
  const struct tfcompile_program* const program = &instance->loaded->program;
  return tfcompile_instance_address(instance, "result", index, program->result_count, program->argument_count, error);
}

static inline tfcompile_device_address tfcompile_device_instance_sizes(struct tfcompile_device_instance* instance,
                                                                       struct tfcompile_device_error* error) {
  return tfcompile_instance_address(instance, "buffer of sizes", 0, 1, instance->bound_count - 1, error);
}

static inline void* tfcompile_device_instance_stream(struct tfcompile_device_instance* instance) {
  return instance->stream;
}

static inline const struct tfcompile_device_error* tfcompile_device_instance_error(
    const struct tfcompile_device_instance* instance) {
  return &instance->error;
}

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // TFCOMPILE_DEVICE_INSTANCE_H_
