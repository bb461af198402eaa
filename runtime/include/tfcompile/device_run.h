// The interpreter of the code of device programs. Included by device.h only.
//
// Launches kernels and copies on a stream, directly or while the stream is recorded as a graph. The
// code has been checked by tfcompile_program_parse.

#ifndef TFCOMPILE_DEVICE_RUN_H_
#define TFCOMPILE_DEVICE_RUN_H_

#include "tfcompile/device_driver.h"
#include "tfcompile/device_program.h"

#ifdef __cplusplus
extern "C" {
#endif

// Number of graphs of an instance, for as many sets of addresses.
enum { TFCOMPILE_DEVICE_GRAPHS = 4 };

// Maximum iterations of a loop that are launched before its guard is read.
#define TFCOMPILE_DEVICE_MAX_BATCH UINT64_C(64)

// Code and constants of a program on a device, shared by instances.
struct tfcompile_device_loaded {
  struct tfcompile_device_loaded* next;
  int64_t users;
  struct tfcompile_program program;
  const void* host_constants;
  uint64_t constants;
  void* module;
};

// A recorded sequence for a set of addresses: arguments, results, and sizes.
struct tfcompile_device_graph {
  void* handle;         // Null until it is recorded, in the second run with the set.
  uint64_t* addresses;  // Null in an unused entry.
  uint64_t last_use;
  uint64_t launches;    // Number of kernels in the graph.
};

// A profiled operation that was launched.
struct tfcompile_device_pending {
  int32_t operation;
  uint32_t kernel;
  uint64_t bytes;
  void* stream;
  struct tfcompile_device_timing timing;
};

// Host memory that the device writes: the control block's first word, and a loop's guard and count.
struct tfcompile_device_mailbox {
  int32_t status;
  int32_t reserved;
  int32_t words[2];
};

struct tfcompile_device_instance {
  // Called by the entry function. Must be the first member.
  int32_t (*run)(struct tfcompile_device_instance* self, const void* program, struct tfcompile_frame* frame);

  struct tfcompile_device* device;
  struct tfcompile_device_loaded* loaded;
  void** kernels;
  void* stream;

  // One allocation: temporaries, control block, scratch.
  uint64_t block;
  uint64_t temps;
  uint64_t control;
  uint64_t scratch;

  // The instance's own arguments, results, and sizes, in one allocation that is made when needed.
  uint64_t own;
  uint64_t own_bytes;
  uint64_t* own_addresses;

  // Addresses of the present run: arguments, then results, then sizes.
  uint64_t* bound;
  uint32_t bound_count;

  // Addresses of slots: original, present.
  uint64_t* home;
  uint64_t* now;

  uint64_t* parameters;
  void** pointers;

  struct tfcompile_device_mailbox* mailbox;
  unsigned char* staging;  // Null: frames are copied from and to their own memory.
  uint64_t staging_bytes;
  unsigned char* is_resident;

  // Marks the end of the last run if that was on a stream of the caller.
  void* last_event;
  void* last_stream;

  struct tfcompile_device_graph graphs[TFCOMPILE_DEVICE_GRAPHS];
  void* frame_graph;
  uint64_t frame_launches;  // Number of kernels in it.
  uint32_t frame_runs;
  int32_t is_ungraphed;  // The driver cannot record the sequence.
  uint64_t clock;

  tfcompile_device_profiler profiler;
  void* profiler_context;
  struct tfcompile_device_pending* pending;
  uint32_t pending_count;
  uint32_t pending_capacity;
  void* trace;                           // The driver's. Null: profiled runs use events.
  struct tfcompile_device_error note;    // Why there is no trace.
  uint64_t launches;                     // Number of kernels since the last delivery.
  struct tfcompile_device_facts* facts;  // Of each kernel, with 0 threads until they are read.

  struct tfcompile_device_error error;
};

// ---- profiling

// Returns room for the times of an operation through *timing: null without profiling by events.
static inline int32_t tfcompile_run_profile(struct tfcompile_device_instance* instance, int32_t operation,
                                            uint32_t kernel, uint64_t bytes, void* stream,
                                            struct tfcompile_device_timing** timing,
                                            struct tfcompile_device_error* error) {
  struct tfcompile_device_pending* pending;
  *timing = NULL;
  if (instance->profiler == NULL || instance->trace != NULL) return TFCOMPILE_DEVICE_OK;
  if (instance->pending_count == instance->pending_capacity) {
    const uint32_t capacity = instance->pending_capacity < 64 ? 64 : 2 * instance->pending_capacity;
    void* const grown = realloc(instance->pending, capacity * sizeof *instance->pending);
    if (grown == NULL) return tfcompile_device_fail_host(error, "a profile");
    instance->pending = (struct tfcompile_device_pending*)grown;
    instance->pending_capacity = capacity;
  }
  pending = &instance->pending[instance->pending_count];
  instance->pending_count += 1;
  memset(pending, 0, sizeof *pending);
  pending->operation = operation;
  pending->kernel = kernel;
  pending->bytes = bytes;
  pending->stream = stream;
  *timing = &pending->timing;
  return TFCOMPILE_DEVICE_OK;
}

// Calls the profiler with an operation.
static inline int32_t tfcompile_run_report(struct tfcompile_device_instance* instance, int32_t operation,
                                           uint32_t index, uint64_t bytes, void* stream, uint64_t start, uint64_t end,
                                           struct tfcompile_device_error* error) {
  static const char* const names[6] = {"", "launch", "copy_in", "copy_out", "copy", "fill"};
  struct tfcompile_device* const device = instance->device;
  struct tfcompile_device_record record;
  memset(&record, 0, sizeof record);
  record.operation = operation;
  record.name = names[operation];
  record.label = "";
  record.bytes = bytes;
  record.stream = stream;
  record.start_ns = start;
  record.end_ns = end;
  if (operation == TFCOMPILE_DEVICE_LAUNCH) {
    const struct tfcompile_device_kernel* const kernel = &instance->loaded->program.kernels[index];
    struct tfcompile_device_facts* const facts = &instance->facts[index];
    if (facts->threads == 0 && device->driver->kernel_facts != NULL) {
      const int32_t status = device->driver->kernel_facts(device, instance->kernels[index], kernel, facts, error);
      if (status != TFCOMPILE_DEVICE_OK) return status;
    }
    record.kernel = index;
    record.name = kernel->name;
    record.label = kernel->label;
    record.flops = kernel->flops;
    record.registers = facts->registers;
    record.workgroup_bytes = facts->workgroup_bytes;
    if (facts->max_threads > 0) {
      record.occupancy = (double)facts->active_workgroups * facts->threads / facts->max_threads;
    }
  }
  if (instance->profiler != NULL) instance->profiler(instance->profiler_context, &record);
  return TFCOMPILE_DEVICE_OK;
}

// Ends the trace: later profiled runs use events.
static inline void tfcompile_run_untrace(struct tfcompile_device_instance* instance) {
  if (instance->trace != NULL) instance->device->driver->trace_stop(instance->device, instance->trace);
  instance->trace = NULL;
}

// Watches a stream of a profiled run.
static inline void tfcompile_run_watch(struct tfcompile_device_instance* instance, void* stream) {
  struct tfcompile_device* const device = instance->device;
  if (instance->trace == NULL) return;
  if (device->driver->trace_watch(device, instance->trace, stream, &instance->note) == TFCOMPILE_DEVICE_OK) return;
  tfcompile_run_untrace(instance);
}

// Takes the operations out of the trace, and calls the profiler with each.
static inline int32_t tfcompile_run_deliver_trace(struct tfcompile_device_instance* instance,
                                                  struct tfcompile_device_error* error) {
  struct tfcompile_device* const device = instance->device;
  const struct tfcompile_program* const program = &instance->loaded->program;
  struct tfcompile_device_activities activities;
  uint64_t launches = 0;
  uint32_t kernel = 0;
  uint32_t i;
  int32_t status = TFCOMPILE_DEVICE_OK;
  const int32_t traced = device->driver->trace_read(device, instance->trace, instance->launches, &activities,
                                                    &instance->note);
  for (i = 0; i < activities.count && status == TFCOMPILE_DEVICE_OK; ++i) {
    const struct tfcompile_device_activity* const activity = &activities.list[i];
    uint64_t bytes = activity->bytes;
    if (activity->operation == TFCOMPILE_DEVICE_LAUNCH) {
      // Kernels mostly start in the order in which they stand in the program.
      uint32_t tries = 0;
      while (tries < program->kernel_count && strcmp(program->kernels[kernel].name, activity->name) != 0) {
        kernel = kernel + 1 < program->kernel_count ? kernel + 1 : 0;
        tries += 1;
      }
      // Another program's, on a stream of the caller.
      if (tries == program->kernel_count) continue;
      launches += 1;
      bytes = program->kernels[kernel].bytes;
    }
    status = tfcompile_run_report(instance, activity->operation, kernel, bytes, activity->stream,
                                  activity->start_ns - activities.list[0].start_ns,
                                  activity->end_ns - activities.list[0].start_ns, error);
  }
  if (traced == TFCOMPILE_DEVICE_OK && status == TFCOMPILE_DEVICE_OK && launches < instance->launches) {
    (void)tfcompile_device_fail(&instance->note, TFCOMPILE_DEVICE_DRIVER_ERROR, 0,
                                "CUPTI reported %llu of %llu kernels of a run and lost %llu records; maybe another "
                                "profiler takes them",
                                (unsigned long long)launches, (unsigned long long)instance->launches,
                                (unsigned long long)activities.dropped);
  }
  free(activities.list);
  if (instance->note.status != TFCOMPILE_DEVICE_OK) tfcompile_run_untrace(instance);
  return status;
}

// Drops the operations, after calling the profiler with each if `is_wanted`. They must be done.
static inline int32_t tfcompile_run_deliver(struct tfcompile_device_instance* instance, int32_t is_wanted,
                                            struct tfcompile_device_error* error) {
  struct tfcompile_device* const device = instance->device;
  int32_t status = TFCOMPILE_DEVICE_OK;
  uint32_t i;
  for (i = 0; i < instance->pending_count && is_wanted && status == TFCOMPILE_DEVICE_OK; ++i) {
    const struct tfcompile_device_pending* const pending = &instance->pending[i];
    uint64_t start = 0;
    uint64_t end = 0;
    status = device->driver->timing_read(device, &instance->pending[0].timing, &pending->timing, &start, &end, error);
    if (status == TFCOMPILE_DEVICE_OK) {
      status = tfcompile_run_report(instance, pending->operation, pending->kernel, pending->bytes, pending->stream,
                                    start, end, error);
    }
  }
  for (i = 0; i < instance->pending_count; ++i) device->driver->timing_destroy(device, &instance->pending[i].timing);
  instance->pending_count = 0;
  if (instance->trace != NULL && is_wanted) {
    const int32_t traced = tfcompile_run_deliver_trace(instance, error);
    if (status == TFCOMPILE_DEVICE_OK) status = traced;
  } else if (instance->trace != NULL) {
    // A later run would receive the records that CUPTI still has.
    (void)tfcompile_device_fail(&instance->note, TFCOMPILE_DEVICE_DRIVER_ERROR, 0, "a profiled run failed");
    tfcompile_run_untrace(instance);
  }
  instance->launches = 0;
  return status;
}

// ---- operations

// Copies, and does nothing if there is nothing to copy.
static inline int32_t tfcompile_run_copy(struct tfcompile_device_instance* instance, int32_t operation, uint64_t to,
                                         uint64_t from, uint64_t bytes, void* stream,
                                         struct tfcompile_device_error* error) {
  struct tfcompile_device_timing* timing;
  int32_t status;
  if (bytes == 0 || to == from) return TFCOMPILE_DEVICE_OK;
  status = tfcompile_run_profile(instance, operation, 0, bytes, stream, &timing, error);
  if (status != TFCOMPILE_DEVICE_OK) return status;
  return instance->device->driver->copy(instance->device, operation, to, from, bytes, stream, timing, error);
}

static inline int32_t tfcompile_run_zero(struct tfcompile_device_instance* instance, uint64_t to, uint64_t bytes,
                                         void* stream, struct tfcompile_device_error* error) {
  struct tfcompile_device_timing* timing;
  int32_t status;
  if (bytes == 0) return TFCOMPILE_DEVICE_OK;
  status = tfcompile_run_profile(instance, TFCOMPILE_DEVICE_FILL, 0, bytes, stream, &timing, error);
  if (status != TFCOMPILE_DEVICE_OK) return status;
  return instance->device->driver->zero(instance->device, to, bytes, stream, timing, error);
}

static inline int32_t tfcompile_run_launch(struct tfcompile_device_instance* instance, const uint32_t* word,
                                           void* stream, struct tfcompile_device_error* error) {
  struct tfcompile_device* const device = instance->device;
  const struct tfcompile_device_kernel* const kernel = &instance->loaded->program.kernels[word[1]];
  const uint64_t groups = tfcompile_word_u64(word + 2);
  struct tfcompile_device_timing* timing;
  uint32_t i;
  int32_t status;
  if (groups == 0) return TFCOMPILE_DEVICE_OK;
  if (groups > device->max_groups) {
    return tfcompile_device_fail(error, TFCOMPILE_DEVICE_INVALID_ARGUMENT, 0,
                                 "kernel '%s' has %llu workgroups, but device %d (%s) permits %llu", kernel->name,
                                 (unsigned long long)groups, (int)device->options.ordinal, device->name,
                                 (unsigned long long)device->max_groups);
  }
  for (i = 0; i < kernel->parameter_count; ++i) instance->parameters[i] = instance->now[word[4 + i]];
  instance->launches += 1;
  status = tfcompile_run_profile(instance, TFCOMPILE_DEVICE_LAUNCH, word[1], kernel->bytes, stream, &timing, error);
  if (status != TFCOMPILE_DEVICE_OK) return status;
  return device->driver->launch(device, instance->kernels[word[1]], kernel, groups, instance->parameters,
                                instance->pointers, stream, timing, error);
}

// Reads `count` i32 at an address, after all work before it.
static inline int32_t tfcompile_run_read(struct tfcompile_device_instance* instance, uint64_t from, uint32_t count,
                                         void* stream, struct tfcompile_device_error* error) {
  const int32_t status = tfcompile_run_copy(instance, TFCOMPILE_DEVICE_COPY_OUT,
                                            (uint64_t)(uintptr_t)instance->mailbox->words, from, 4 * (uint64_t)count,
                                            stream, error);
  if (status != TFCOMPILE_DEVICE_OK) return status;
  return instance->device->driver->stream_synchronize(instance->device, stream, error);
}

// address[slot[i]] = old address[slot[i + 1]], cyclic, or its inverse.
static inline void tfcompile_run_rotate(struct tfcompile_device_instance* instance, const uint32_t* slots,
                                        uint32_t count, int is_inverse) {
  uint64_t* const now = instance->now;
  uint64_t first;
  uint32_t i;
  if (count == 0) return;
  if (is_inverse) {
    first = now[slots[count - 1]];
    for (i = count - 1; i > 0; --i) now[slots[i]] = now[slots[i - 1]];
    now[slots[0]] = first;
  } else {
    first = now[slots[0]];
    for (i = 0; i + 1 < count; ++i) now[slots[i]] = now[slots[i + 1]];
    now[slots[count - 1]] = first;
  }
}

// Copies rotated buffers to their original addresses.
static inline int32_t tfcompile_run_home(struct tfcompile_device_instance* instance, const uint32_t* word,
                                         void* stream, struct tfcompile_device_error* error) {
  const uint32_t stages = word[1];
  const uint32_t count = word[2];
  const uint32_t* const home = word + 3;
  const uint32_t* const now = home + count;
  const uint32_t* const stage = now + count;
  const uint64_t bytes = tfcompile_word_u64(stage + stages * count);
  int32_t status = TFCOMPILE_DEVICE_OK;
  uint32_t i;
  if (instance->now[now[0]] == instance->home[home[0]]) return status;
  for (i = 0; i < count && stages != 0 && status == TFCOMPILE_DEVICE_OK; ++i) {
    status = tfcompile_run_copy(instance, TFCOMPILE_DEVICE_COPY, instance->now[stage[i]], instance->now[now[i]], bytes,
                                stream, error);
  }
  for (i = 0; i < count && status == TFCOMPILE_DEVICE_OK; ++i) {
    const uint64_t from = instance->now[stages != 0 ? stage[i] : now[i]];
    status = tfcompile_run_copy(instance, TFCOMPILE_DEVICE_COPY, instance->home[home[i]], from, bytes, stream, error);
  }
  for (i = 0; i < count; ++i) instance->now[now[i]] = instance->home[now[i]];
  return status;
}

// ---- sequences

static inline int32_t tfcompile_run_words(struct tfcompile_device_instance* instance, uint32_t at, uint32_t end,
                                          void* stream, struct tfcompile_device_error* error);

// Undoes the rotations that stand directly in words [at, end), the last one first.
static inline void tfcompile_run_undo(struct tfcompile_device_instance* instance, uint32_t at, uint32_t end) {
  const struct tfcompile_program* const program = &instance->loaded->program;
  // Instructions can be read only forward: find the last rotation, undo it, and continue before it.
  while (at < end) {
    uint32_t last = end;
    uint32_t i = at;
    while (i < end) {
      const uint32_t* const word = program->words + i;
      if (word[0] == TFCOMPILE_WORD_ROTATE) last = i;
      i += (uint32_t)tfcompile_program_length(program, i, end);
      if (word[0] == TFCOMPILE_WORD_REPEAT) i += word[3];
      if (word[0] == TFCOMPILE_WORD_WHILE) i += word[3] + word[4];
      if (word[0] == TFCOMPILE_WORD_SKIP) i += word[2];
    }
    if (last == end) return;
    tfcompile_run_rotate(instance, program->words + last + 2, program->words[last + 1], 1);
    end = last;
  }
}

// Launches iterations in batches until the guard is zero.
static inline int32_t tfcompile_run_while(struct tfcompile_device_instance* instance, uint32_t at, void* stream,
                                          struct tfcompile_device_error* error) {
  const uint32_t* const word = instance->loaded->program.words + at;
  const uint32_t body = at + 5;
  const uint32_t middle = body + word[3];
  const uint32_t end = middle + word[4];
  const uint64_t guard = instance->now[word[1]];
  uint64_t batch = 1;
  uint64_t launched = 0;
  uint64_t surplus;
  int32_t status = TFCOMPILE_DEVICE_OK;
  for (;;) {
    uint64_t i;
    for (i = 0; i < batch && status == TFCOMPILE_DEVICE_OK; ++i) {
      status = tfcompile_run_words(instance, body, middle, stream, error);
      if (status == TFCOMPILE_DEVICE_OK) status = tfcompile_run_words(instance, middle, end, stream, error);
    }
    launched += batch;
    if (status == TFCOMPILE_DEVICE_OK) status = tfcompile_run_read(instance, guard, 2, stream, error);
    if (status != TFCOMPILE_DEVICE_OK) return status;
    if (instance->mailbox->words[0] == 0) break;
    if (batch < TFCOMPILE_DEVICE_MAX_BATCH) batch *= 2;
  }
  // The counter wraps around like the difference.
  surplus = (uint32_t)launched - (uint32_t)instance->mailbox->words[1];
  if (surplus > batch) {
    return tfcompile_device_fail(error, TFCOMPILE_DEVICE_BAD_PROGRAM, 0,
                                 "a loop of program '%s' counted %ld iterations, but %llu were launched",
                                 instance->loaded->program.name, (long)instance->mailbox->words[1],
                                 (unsigned long long)launched);
  }
  for (; surplus > 0; --surplus) {
    tfcompile_run_undo(instance, middle, end);
    tfcompile_run_undo(instance, body, middle);
  }
  return TFCOMPILE_DEVICE_OK;
}

// Runs words [at, end).
static inline int32_t tfcompile_run_words(struct tfcompile_device_instance* instance, uint32_t at, uint32_t end,
                                          void* stream, struct tfcompile_device_error* error) {
  const struct tfcompile_program* const program = &instance->loaded->program;
  int32_t status = TFCOMPILE_DEVICE_OK;
  while (at < end && status == TFCOMPILE_DEVICE_OK) {
    const uint32_t* const word = program->words + at;
    uint32_t next = at + (uint32_t)tfcompile_program_length(program, at, end);
    uint64_t i;
    switch (word[0]) {
      case TFCOMPILE_WORD_LAUNCH: status = tfcompile_run_launch(instance, word, stream, error); break;
      case TFCOMPILE_WORD_COPY:
        status = tfcompile_run_copy(instance, TFCOMPILE_DEVICE_COPY, instance->now[word[1]], instance->now[word[2]],
                                    tfcompile_word_u64(word + 3), stream, error);
        break;
      case TFCOMPILE_WORD_REPEAT:
        for (i = 0; i < tfcompile_word_u64(word + 1) && status == TFCOMPILE_DEVICE_OK; ++i) {
          status = tfcompile_run_words(instance, next, next + word[3], stream, error);
        }
        next += word[3];
        break;
      case TFCOMPILE_WORD_WHILE:
        status = tfcompile_run_while(instance, at, stream, error);
        next += word[3] + word[4];
        break;
      case TFCOMPILE_WORD_ROTATE: tfcompile_run_rotate(instance, word + 2, word[1], 0); break;
      case TFCOMPILE_WORD_HOME: status = tfcompile_run_home(instance, word, stream, error); break;
      default:
        status = tfcompile_run_read(instance, instance->now[word[1]], 1, stream, error);
        if (status == TFCOMPILE_DEVICE_OK && instance->mailbox->words[0] == 0) next += word[2];
        break;
    }
    at = next;
  }
  return status;
}

// Sets the addresses of slots from those of arguments, results, and sizes.
static inline void tfcompile_run_bind(struct tfcompile_device_instance* instance) {
  const struct tfcompile_program* const program = &instance->loaded->program;
  uint32_t i;
  for (i = 0; i < program->slot_count; ++i) {
    const struct tfcompile_program_slot* const slot = &program->slots[i];
    uint64_t base = 0;
    switch (slot->space) {
      case TFCOMPILE_SPACE_ARGUMENT: base = instance->bound[slot->index]; break;
      case TFCOMPILE_SPACE_RESULT: base = instance->bound[program->argument_count + slot->index]; break;
      case TFCOMPILE_SPACE_TEMPS: base = instance->temps; break;
      case TFCOMPILE_SPACE_CONSTANTS: base = instance->loaded->constants; break;
      case TFCOMPILE_SPACE_SIZES: base = instance->bound[instance->bound_count - 1]; break;
      case TFCOMPILE_SPACE_CONTROL: base = instance->control; break;
      case TFCOMPILE_SPACE_SCRATCH: base = instance->scratch; break;
      default: break;
    }
    instance->home[i] = base == 0 ? 0 : base + slot->offset;
    instance->now[i] = instance->home[i];
  }
}

// Runs the program for the bound addresses: clears the control block, and reads the status word.
static inline int32_t tfcompile_run_program(struct tfcompile_device_instance* instance, void* stream,
                                            struct tfcompile_device_error* error) {
  const struct tfcompile_program* const program = &instance->loaded->program;
  int32_t status;
  tfcompile_run_bind(instance);
  status = tfcompile_run_zero(instance, instance->control, program->control_bytes, stream, error);
  if (status == TFCOMPILE_DEVICE_OK) status = tfcompile_run_words(instance, 0, program->word_count, stream, error);
  if (status == TFCOMPILE_DEVICE_OK && program->message_count > 0) {
    status = tfcompile_run_copy(instance, TFCOMPILE_DEVICE_COPY_OUT, (uint64_t)(uintptr_t)&instance->mailbox->status,
                                instance->control, 4, stream, error);
  }
  return status;
}

// Records a sequence, and stores null if the driver cannot record it. Stores the number of kernels.
static inline int32_t tfcompile_run_record(struct tfcompile_device_instance* instance,
                                           int32_t (*sequence)(struct tfcompile_device_instance*, void*,
                                                               struct tfcompile_device_error*),
                                           void** graph, uint64_t* launches, struct tfcompile_device_error* error) {
  struct tfcompile_device* const device = instance->device;
  const uint64_t before = instance->launches;
  struct tfcompile_device_error own;
  int32_t status;
  int32_t end;
  *graph = NULL;
  tfcompile_device_clear(&own);
  status = device->driver->capture_begin(device, instance->stream, &own);
  if (status == TFCOMPILE_DEVICE_OK) {
    status = sequence(instance, instance->stream, &own);
    end = device->driver->capture_end(device, instance->stream, status == TFCOMPILE_DEVICE_OK, graph,
                                      status == TFCOMPILE_DEVICE_OK ? &own : NULL);
    if (status == TFCOMPILE_DEVICE_OK) status = end;
  }
  *launches = instance->launches - before;
  instance->launches = before;
  // CUDA_ERROR_NOT_SUPPORTED, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED: launch one by one.
  if (status == TFCOMPILE_DEVICE_DRIVER_ERROR && (own.code == 801 || own.code == 900)) {
    instance->is_ungraphed = 1;
    return TFCOMPILE_DEVICE_OK;
  }
  if (status != TFCOMPILE_DEVICE_OK && error != NULL) *error = own;
  return status;
}

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // TFCOMPILE_DEVICE_RUN_H_
