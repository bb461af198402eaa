// Runs instances of device programs: with a frame's host pointers, or asynchronously with device
// addresses. Included by device.h only.

#ifndef TFCOMPILE_DEVICE_FRAME_H_
#define TFCOMPILE_DEVICE_FRAME_H_

#include "tfcompile/device_instance.h"

#ifdef __cplusplus
extern "C" {
#endif

// Reports the failed assertion of the last run, which must be done.
static inline int32_t tfcompile_run_check(struct tfcompile_device_instance* instance,
                                          struct tfcompile_device_error* error) {
  const struct tfcompile_program* const program = &instance->loaded->program;
  const int32_t check = instance->mailbox->status;
  if (check == 0) return TFCOMPILE_DEVICE_OK;
  if (check < 0 || (uint32_t)check > program->message_count) {
    return tfcompile_device_fail(error, TFCOMPILE_DEVICE_BAD_PROGRAM, 0,
                                 "program '%s' reported assertion %ld, but has %u", program->name, (long)check,
                                 (unsigned)program->message_count);
  }
  return tfcompile_device_fail(error, TFCOMPILE_DEVICE_CHECK_FAILED, program->messages[check - 1].code, "%s",
                               program->messages[check - 1].text);
}

// True if the sequence can be recorded as a graph.
static inline int tfcompile_run_is_recorded(const struct tfcompile_device_instance* instance) {
  const struct tfcompile_program* const program = &instance->loaded->program;
  return instance->device->has_graphs && (instance->profiler == NULL || instance->trace != NULL) &&
         !instance->is_ungraphed && program->is_static && program->operations <= TFCOMPILE_PROGRAM_MAX_GRAPH;
}

// Makes later work of a stream wait for the last run, if that was on another one.
static inline int32_t tfcompile_run_order(struct tfcompile_device_instance* instance, void* stream,
                                          struct tfcompile_device_error* error) {
  const struct tfcompile_driver* const driver = instance->device->driver;
  int32_t status = TFCOMPILE_DEVICE_OK;
  if (instance->last_stream == NULL || instance->last_stream == stream) return TFCOMPILE_DEVICE_OK;
  if (instance->last_stream == instance->stream) {
    status = driver->event_record(instance->device, &instance->last_event, instance->stream, error);
  }
  if (status != TFCOMPILE_DEVICE_OK) return status;
  return driver->event_wait(instance->device, instance->last_event, stream, error);
}

// ---- asynchronous runs

// Returns the entry of the graph for the bound addresses. A new entry replaces the one that was not
// used for the longest time. Null if out of host memory.
static inline struct tfcompile_device_graph* tfcompile_run_graph(struct tfcompile_device_instance* instance,
                                                                 int* is_new) {
  const size_t bytes = instance->bound_count * sizeof(uint64_t);
  struct tfcompile_device_graph* oldest = &instance->graphs[0];
  int i;
  *is_new = 0;
  instance->clock += 1;
  for (i = 0; i < TFCOMPILE_DEVICE_GRAPHS; ++i) {
    struct tfcompile_device_graph* const graph = &instance->graphs[i];
    if (graph->addresses != NULL && memcmp(graph->addresses, instance->bound, bytes) == 0) {
      graph->last_use = instance->clock;
      return graph;
    }
    if (graph->last_use < oldest->last_use) oldest = graph;
  }
  if (oldest->addresses == NULL) oldest->addresses = (uint64_t*)malloc(bytes);
  if (oldest->addresses == NULL) return NULL;
  // A graph that is running is destroyed when it is done.
  if (oldest->handle != NULL) instance->device->driver->graph_destroy(instance->device, oldest->handle);
  oldest->handle = NULL;
  oldest->last_use = instance->clock;
  memcpy(oldest->addresses, instance->bound, bytes);
  *is_new = 1;
  return oldest;
}

// Runs the program for the bound addresses, as a graph from the second time on.
static inline int32_t tfcompile_run_bound(struct tfcompile_device_instance* instance, void* stream,
                                          struct tfcompile_device_error* error) {
  struct tfcompile_device_graph* graph = NULL;
  int is_new = 0;
  int32_t status = TFCOMPILE_DEVICE_OK;
  if (tfcompile_run_is_recorded(instance)) graph = tfcompile_run_graph(instance, &is_new);
  if (graph != NULL && !is_new && graph->handle == NULL) {
    status = tfcompile_run_record(instance, tfcompile_run_program, &graph->handle, &graph->launches, error);
  }
  if (status != TFCOMPILE_DEVICE_OK) return status;
  if (graph == NULL || graph->handle == NULL) return tfcompile_run_program(instance, stream, error);
  instance->launches += graph->launches;
  return instance->device->driver->graph_launch(instance->device, graph->handle, stream, error);
}

// Binds the caller's addresses, or the instance's own.
static inline int32_t tfcompile_run_addresses(struct tfcompile_device_instance* instance,
                                              const tfcompile_device_address* arguments,
                                              const tfcompile_device_address* results, tfcompile_device_address sizes,
                                              struct tfcompile_device_error* error) {
  const struct tfcompile_program* const program = &instance->loaded->program;
  int32_t status = TFCOMPILE_DEVICE_OK;
  uint32_t i;
  if ((arguments == NULL && program->argument_count > 0) || (results == NULL && program->result_count > 0) ||
      (sizes == 0 && program->size_count > 0)) {
    status = tfcompile_instance_own(instance, error);
    if (status != TFCOMPILE_DEVICE_OK) return status;
  }
  for (i = 0; i < instance->bound_count; ++i) {
    const uint32_t shared = tfcompile_instance_shared(instance, i);
    const char* const name = i < program->argument_count ? "argument" : "result";
    const uint32_t index = i < program->argument_count ? i : i - program->argument_count;
    uint64_t address;
    if (shared != 0) {
      address = instance->bound[shared - 1];
    } else if (i < program->argument_count) {
      address = arguments != NULL ? arguments[i] : instance->own_addresses[i];
    } else if (index < program->result_count) {
      address = results != NULL ? results[index] : instance->own_addresses[i];
    } else {
      address = sizes != 0 ? sizes : instance->own_addresses[i];
    }
    if (address == 0 && index < program->result_count + program->argument_count &&
        i + 1 < instance->bound_count && tfcompile_instance_bytes(instance, i) > 0) {
      return tfcompile_device_fail(error, TFCOMPILE_DEVICE_INVALID_ARGUMENT, 0, "the address of %s %u is null", name,
                                   (unsigned)index);
    }
    instance->bound[i] = address;
  }
  return TFCOMPILE_DEVICE_OK;
}

static inline int32_t tfcompile_device_instance_enqueue(struct tfcompile_device_instance* instance,
                                                        const tfcompile_device_address* arguments,
                                                        const tfcompile_device_address* results,
                                                        tfcompile_device_address sizes, void* stream,
                                                        struct tfcompile_device_error* error) {
  struct tfcompile_device* const device = instance->device;
  int32_t status;
  tfcompile_device_clear(error);
  status = tfcompile_device_enter(device, error);
  if (status != TFCOMPILE_DEVICE_OK) return status;
  if (stream == NULL) stream = instance->stream;
  status = tfcompile_run_addresses(instance, arguments, results, sizes, error);
  if (status == TFCOMPILE_DEVICE_OK) status = tfcompile_run_order(instance, stream, error);
  if (status == TFCOMPILE_DEVICE_OK) {
    instance->last_stream = stream;
    tfcompile_run_watch(instance, stream);
    status = tfcompile_run_bound(instance, stream, error);
    if (status == TFCOMPILE_DEVICE_OK && stream != instance->stream) {
      status = device->driver->event_record(device, &instance->last_event, stream, error);
    }
    if (status != TFCOMPILE_DEVICE_OK) {
      // Nothing is in progress after a failure.
      (void)device->driver->stream_synchronize(device, stream, NULL);
      (void)tfcompile_run_deliver(instance, 0, NULL);
      instance->last_stream = NULL;
    }
  }
  device->driver->leave(device);
  return status;
}

static inline int32_t tfcompile_device_instance_finish(struct tfcompile_device_instance* instance,
                                                       struct tfcompile_device_error* error) {
  struct tfcompile_device* const device = instance->device;
  int32_t status;
  tfcompile_device_clear(error);
  status = tfcompile_device_enter(device, error);
  if (status != TFCOMPILE_DEVICE_OK) return status;
  if (instance->last_stream == instance->stream) {
    status = device->driver->stream_synchronize(device, instance->stream, error);
  } else if (instance->last_stream != NULL) {
    status = device->driver->event_synchronize(device, instance->last_event, error);
  }
  if (status == TFCOMPILE_DEVICE_OK) {
    instance->last_stream = NULL;
    status = tfcompile_run_deliver(instance, 1, error);
  } else {
    (void)tfcompile_run_deliver(instance, 0, NULL);
  }
  if (status == TFCOMPILE_DEVICE_OK) status = tfcompile_run_check(instance, error);
  device->driver->leave(device);
  return status;
}

// ---- runs of frames

// True if a bound buffer is copied from the host before a run, or to the host after it.
static inline int tfcompile_frame_is_in(const struct tfcompile_device_instance* instance, uint32_t index) {
  return index < instance->loaded->program.argument_count && !instance->is_resident[index] &&
         tfcompile_instance_bytes(instance, index) > 0;
}

static inline int tfcompile_frame_is_out(const struct tfcompile_device_instance* instance, uint32_t index) {
  if (index < instance->loaded->program.argument_count) {
    return tfcompile_frame_is_in(instance, index) && instance->loaded->program.arguments[index].is_written;
  }
  return tfcompile_instance_shared(instance, index) == 0 && tfcompile_instance_bytes(instance, index) > 0;
}

// Host memory of a bound buffer.
static inline void* tfcompile_frame_memory(const struct tfcompile_device_instance* instance,
                                           const struct tfcompile_frame* frame, uint32_t index) {
  const struct tfcompile_program* const program = &instance->loaded->program;
  if (index < program->argument_count) return frame->args != NULL ? frame->args[index] : NULL;
  index -= program->argument_count;
  if (index < program->result_count) return frame->results != NULL ? frame->results[index] : NULL;
  return frame->dynamic_sizes;
}

// Copies between the staging memory and the device, adjacent buffers at once.
static inline int32_t tfcompile_frame_transfer(struct tfcompile_device_instance* instance, int32_t operation,
                                               void* stream, struct tfcompile_device_error* error) {
  const uint64_t staging = (uint64_t)(uintptr_t)instance->staging;
  uint64_t begin = 0;
  uint64_t end = 0;
  int32_t status = TFCOMPILE_DEVICE_OK;
  uint32_t i;
  for (i = 0; i <= instance->bound_count && status == TFCOMPILE_DEVICE_OK; ++i) {
    int is_copied = 0;
    if (i < instance->bound_count) {
      // Buffers that share memory are not in between.
      if (tfcompile_instance_shared(instance, i) != 0) continue;
      is_copied = operation == TFCOMPILE_DEVICE_COPY_IN ? tfcompile_frame_is_in(instance, i)
                                                        : tfcompile_frame_is_out(instance, i);
    }
    if (is_copied) {
      const uint64_t at = instance->own_addresses[i] - instance->own;
      if (end == 0) begin = at;
      end = at + tfcompile_instance_bytes(instance, i);
    } else if (end > 0) {
      const int is_in = operation == TFCOMPILE_DEVICE_COPY_IN;
      status = tfcompile_run_copy(instance, operation, (is_in ? instance->own : staging) + begin,
                                  (is_in ? staging : instance->own) + begin, end - begin, stream, error);
      end = 0;
    }
  }
  return status;
}

// The sequence of a frame whose data is in the staging memory.
static inline int32_t tfcompile_frame_staged(struct tfcompile_device_instance* instance, void* stream,
                                             struct tfcompile_device_error* error) {
  int32_t status = tfcompile_frame_transfer(instance, TFCOMPILE_DEVICE_COPY_IN, stream, error);
  if (status == TFCOMPILE_DEVICE_OK) status = tfcompile_run_program(instance, stream, error);
  if (status == TFCOMPILE_DEVICE_OK) {
    status = tfcompile_frame_transfer(instance, TFCOMPILE_DEVICE_COPY_OUT, stream, error);
  }
  return status;
}

// Copies from or to the frame's own memory.
static inline int32_t tfcompile_frame_direct(struct tfcompile_device_instance* instance,
                                             const struct tfcompile_frame* frame, int32_t operation,
                                             struct tfcompile_device_error* error) {
  int32_t status = TFCOMPILE_DEVICE_OK;
  uint32_t i;
  for (i = 0; i < instance->bound_count && status == TFCOMPILE_DEVICE_OK; ++i) {
    const uint64_t host = (uint64_t)(uintptr_t)tfcompile_frame_memory(instance, frame, i);
    const uint64_t bytes = tfcompile_instance_bytes(instance, i);
    if (operation == TFCOMPILE_DEVICE_COPY_IN && tfcompile_frame_is_in(instance, i)) {
      status = tfcompile_run_copy(instance, operation, instance->bound[i], host, bytes, instance->stream, error);
    } else if (operation == TFCOMPILE_DEVICE_COPY_OUT && tfcompile_frame_is_out(instance, i)) {
      status = tfcompile_run_copy(instance, operation, host, instance->bound[i], bytes, instance->stream, error);
    }
  }
  return status;
}

// Allocates the instance's buffers and the staging memory, and checks the frame's pointers.
static inline int32_t tfcompile_frame_prepare(struct tfcompile_device_instance* instance,
                                              const struct tfcompile_frame* frame,
                                              struct tfcompile_device_error* error) {
  struct tfcompile_device* const device = instance->device;
  const struct tfcompile_program* const program = &instance->loaded->program;
  int32_t status;
  uint32_t i;
  for (i = 0; i < instance->bound_count; ++i) {
    if (!tfcompile_frame_is_in(instance, i) && !tfcompile_frame_is_out(instance, i)) continue;
    if (tfcompile_frame_memory(instance, frame, i) != NULL) continue;
    if (i + 1 == instance->bound_count) {
      return tfcompile_device_fail(error, TFCOMPILE_DEVICE_INVALID_ARGUMENT, 0, "the frame has no dynamic_sizes");
    }
    return tfcompile_device_fail(error, TFCOMPILE_DEVICE_INVALID_ARGUMENT, 0, "the frame has no memory for %s %u",
                                 i < program->argument_count ? "argument" : "result",
                                 (unsigned)(i < program->argument_count ? i : i - program->argument_count));
  }
  status = tfcompile_instance_own(instance, error);
  // Without graphs, staging memory would only add copies.
  if (status == TFCOMPILE_DEVICE_OK && instance->staging == NULL && device->has_graphs &&
      instance->own_bytes <= device->options.staging_bytes) {
    void* staging = NULL;
    status = device->driver->allocate_host(device, instance->own_bytes, &staging, error);
    if (status == TFCOMPILE_DEVICE_OK) {
      memset(staging, 0, (size_t)instance->own_bytes);
      instance->staging = (unsigned char*)staging;
      instance->staging_bytes = instance->own_bytes;
    }
  }
  if (status != TFCOMPILE_DEVICE_OK) return status;
  memcpy(instance->bound, instance->own_addresses, instance->bound_count * sizeof *instance->bound);
  return TFCOMPILE_DEVICE_OK;
}

// Copies between the frame and the staging memory, and fills results that share an argument's
// memory on the device but not in the frame.
static inline void tfcompile_frame_stage(struct tfcompile_device_instance* instance,
                                         const struct tfcompile_frame* frame, int32_t operation) {
  uint32_t i;
  for (i = 0; i < instance->bound_count; ++i) {
    void* const host = tfcompile_frame_memory(instance, frame, i);
    const size_t bytes = (size_t)tfcompile_instance_bytes(instance, i);
    const uint32_t shared = tfcompile_instance_shared(instance, i);
    if (operation == TFCOMPILE_DEVICE_COPY_IN) {
      if (instance->staging == NULL || !tfcompile_frame_is_in(instance, i)) continue;
      memcpy(instance->staging + (instance->own_addresses[i] - instance->own), host, bytes);
    } else if (shared != 0) {
      const void* const from = frame->args[shared - 1];
      if (host == NULL || host == from || !tfcompile_frame_is_out(instance, shared - 1)) continue;
      memcpy(host, from, bytes);
    } else if (instance->staging != NULL && tfcompile_frame_is_out(instance, i)) {
      memcpy(host, instance->staging + (instance->own_addresses[i] - instance->own), bytes);
    }
  }
}

// Runs the prepared frame up to the point where its work is launched.
static inline int32_t tfcompile_frame_launch(struct tfcompile_device_instance* instance,
                                             const struct tfcompile_frame* frame,
                                             struct tfcompile_device_error* error) {
  const int is_staged = instance->staging != NULL;
  int32_t status = TFCOMPILE_DEVICE_OK;
  const int is_recorded = tfcompile_run_is_recorded(instance);
  if (!is_staged) status = tfcompile_frame_direct(instance, frame, TFCOMPILE_DEVICE_COPY_IN, error);
  // The first run loads code that the driver loads lazily, which must not happen in a recording.
  if (status == TFCOMPILE_DEVICE_OK && is_recorded && instance->frame_graph == NULL && instance->frame_runs > 0) {
    status = tfcompile_run_record(instance, is_staged ? tfcompile_frame_staged : tfcompile_run_program,
                                  &instance->frame_graph, &instance->frame_launches, error);
  }
  if (status != TFCOMPILE_DEVICE_OK) return status;
  if (is_recorded && instance->frame_graph != NULL) {
    instance->launches += instance->frame_launches;
    status = instance->device->driver->graph_launch(instance->device, instance->frame_graph, instance->stream, error);
  } else if (is_staged) {
    status = tfcompile_frame_staged(instance, instance->stream, error);
  } else {
    status = tfcompile_run_program(instance, instance->stream, error);
  }
  if (status == TFCOMPILE_DEVICE_OK && !is_staged) {
    status = tfcompile_frame_direct(instance, frame, TFCOMPILE_DEVICE_COPY_OUT, error);
  }
  return status;
}

static inline int32_t tfcompile_frame_execute(struct tfcompile_device_instance* instance,
                                              const struct tfcompile_frame* frame,
                                              struct tfcompile_device_error* error) {
  const struct tfcompile_driver* const driver = instance->device->driver;
  int32_t status = tfcompile_frame_prepare(instance, frame, error);
  if (status == TFCOMPILE_DEVICE_OK) status = tfcompile_run_order(instance, instance->stream, error);
  if (status != TFCOMPILE_DEVICE_OK) return status;
  tfcompile_run_watch(instance, instance->stream);
  tfcompile_frame_stage(instance, frame, TFCOMPILE_DEVICE_COPY_IN);
  status = tfcompile_frame_launch(instance, frame, error);
  if (status == TFCOMPILE_DEVICE_OK) {
    status = driver->stream_synchronize(instance->device, instance->stream, error);
  } else {
    // Copies in progress use the frame's memory.
    (void)driver->stream_synchronize(instance->device, instance->stream, NULL);
  }
  if (status != TFCOMPILE_DEVICE_OK) {
    (void)tfcompile_run_deliver(instance, 0, NULL);
    return status;
  }
  instance->last_stream = NULL;
  instance->frame_runs += instance->frame_runs == 0;
  tfcompile_frame_stage(instance, frame, TFCOMPILE_DEVICE_COPY_OUT);
  status = tfcompile_run_deliver(instance, 1, error);
  return status == TFCOMPILE_DEVICE_OK ? tfcompile_run_check(instance, error) : status;
}

// Runs a frame. Returns 0, the code of a failed assertion, or 1.
static inline int32_t tfcompile_frame_run(struct tfcompile_device_instance* instance, const void* program,
                                          struct tfcompile_frame* frame) {
  struct tfcompile_device_error* const error = &instance->error;
  int32_t status = TFCOMPILE_DEVICE_OK;
  tfcompile_device_clear(error);
  if (program != (const void*)instance->loaded->program.blob) {
    status = tfcompile_device_fail(error, TFCOMPILE_DEVICE_INVALID_ARGUMENT, 0,
                                   "the frame's device instance belongs to program '%s', not to the called one",
                                   instance->loaded->program.name);
  }
  if (status == TFCOMPILE_DEVICE_OK) status = tfcompile_device_enter(instance->device, error);
  if (status == TFCOMPILE_DEVICE_OK) {
    status = tfcompile_frame_execute(instance, frame, error);
    instance->device->driver->leave(instance->device);
  }
  if (status == TFCOMPILE_DEVICE_OK) return 0;
  frame->error = error->text;
  return status == TFCOMPILE_DEVICE_CHECK_FAILED && error->code != 0 ? error->code : 1;
}

// ---- settings

static inline int32_t tfcompile_device_instance_set_resident(struct tfcompile_device_instance* instance,
                                                             uint32_t argument, int32_t is_resident,
                                                             struct tfcompile_device_error* error) {
  // Allocates the buffer and checks the index.
  if (tfcompile_device_instance_argument(instance, argument, error) == 0) {
    return error != NULL ? error->status : (int32_t)TFCOMPILE_DEVICE_INVALID_ARGUMENT;
  }
  if (instance->is_resident[argument] == (is_resident != 0)) return TFCOMPILE_DEVICE_OK;
  instance->is_resident[argument] = is_resident != 0;
  if (tfcompile_device_enter(instance->device, NULL) == TFCOMPILE_DEVICE_OK) {
    tfcompile_instance_drop_frame_graph(instance);
    instance->device->driver->leave(instance->device);
  }
  return TFCOMPILE_DEVICE_OK;
}

// Starts a trace if the driver has them. Graphs are recorded anew, since traces need not know the
// kernels of earlier ones. The device must be entered.
static inline void tfcompile_run_trace(struct tfcompile_device_instance* instance) {
  const struct tfcompile_driver* const driver = instance->device->driver;
  uint32_t i;
  tfcompile_device_clear(&instance->note);
  if (driver->trace_start == NULL) return;
  if (driver->trace_start(instance->device, &instance->trace, &instance->note) != TFCOMPILE_DEVICE_OK) return;
  for (i = 0; i < TFCOMPILE_DEVICE_GRAPHS; ++i) {
    if (instance->graphs[i].handle != NULL) driver->graph_destroy(instance->device, instance->graphs[i].handle);
    instance->graphs[i].handle = NULL;
  }
  if (instance->frame_graph != NULL) driver->graph_destroy(instance->device, instance->frame_graph);
  instance->frame_graph = NULL;
}

static inline const struct tfcompile_device_error* tfcompile_device_instance_profile_note(
    const struct tfcompile_device_instance* instance) {
  return &instance->note;
}

static inline int32_t tfcompile_device_instance_profile(struct tfcompile_device_instance* instance,
                                                        tfcompile_device_profiler profiler, void* context,
                                                        struct tfcompile_device_error* error) {
  void* stream = NULL;
  int32_t status = tfcompile_device_instance_finish(instance, error);
  if (status != TFCOMPILE_DEVICE_OK && status != TFCOMPILE_DEVICE_CHECK_FAILED) return status;
  tfcompile_device_clear(error);
  if ((profiler != NULL) != (instance->profiler != NULL)) {
    status = tfcompile_device_stream_create(instance->device, profiler != NULL, &stream, error);
    if (status != TFCOMPILE_DEVICE_OK) return status;
    tfcompile_device_stream_destroy(instance->device, instance->stream);
    instance->stream = stream;
    tfcompile_run_untrace(instance);
    if (profiler != NULL && tfcompile_device_enter(instance->device, NULL) == TFCOMPILE_DEVICE_OK) {
      tfcompile_run_trace(instance);
      instance->device->driver->leave(instance->device);
    }
  }
  instance->profiler = profiler;
  instance->profiler_context = context;
  return TFCOMPILE_DEVICE_OK;
}

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // TFCOMPILE_DEVICE_FRAME_H_
