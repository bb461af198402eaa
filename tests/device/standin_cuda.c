// A stand-in for CUDA's driver and CUPTI: a library with the functions that the device runtime
// uses. Device memory is host memory, and kernels are a few functions in C.
//
// Work of streams is executed as late as CUDA permits, so that missing synchronization changes
// results. Errors of kernels stay in the context, as in CUDA. Calls can be made to fail, resources
// are counted, and misuse is reported.

#define _GNU_SOURCE
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "standin.h"

#define EXPORT __attribute__((visibility("default")))
enum { PARAMETERS = 8, DEVICES = 4, LOG = 1 << 16, FUNCTIONS = 80 };

struct object;

// A piece of work of a stream, or a node of a graph.
struct work {
  struct work* next;
  enum { KERNEL, COPY_IN, COPY_OUT, COPY, FILL, WAIT } kind;
  const struct builtin* kernel;
  const struct object* module;
  uint64_t groups, threads;
  uint64_t parameter[PARAMETERS];
  uint64_t to, from, bytes;
  unsigned char* snapshot;  // Of pageable memory.
  struct object* wait_stream;
  long wait_number;
  long number;  // In the stream.
  int is_node;  // Of a graph.
};

// A resource. Dead ones stay until the next reset, so that their use is found.
struct object {
  struct object* next;
  int kind;
  int is_alive;
  int device;
  unsigned char* memory;
  uint64_t bytes;
  // Of a stream: queued work, and the number of the last queued and executed one. Of graphs: nodes.
  struct work* first;
  long queued, executed;
  int is_capturing;
  // Of an event: the point that it marks.
  struct object* stream;
  long number;
  char* names;  // Of a module: the kernels.
};

struct function {
  struct object* module;
  const struct builtin* kernel;
};

static struct standin_machine machine = {12040, 2, 90, UINT64_C(64) << 20, 26, 0, 0};
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct object* objects;
static struct object contexts[DEVICES];
static long retained[DEVICES];
static int sticky[DEVICES];
static uint64_t used[DEVICES];
static __thread int stack[64];
static __thread int depth;

static long call_count, fail_at, fail_after = -1, abandoned_count;
static int fail_code, fail_function_code;
static char fail_name[64], failed_name[64], misuse_text[256], log_text[LOG];
static struct { const char* name; long count; } counts[FUNCTIONS];

static void misuse(const char* format, ...) {
  va_list arguments;
  if (misuse_text[0] != '\0') return;
  va_start(arguments, format);
  vsnprintf(misuse_text, sizeof misuse_text, format, arguments);
  va_end(arguments);
}

static void say(const char* format, ...) {
  const size_t length = strlen(log_text);
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(log_text + length, sizeof log_text - length, format, arguments);
  va_end(arguments);
}

// Counts a call. Returns the code with which it must fail, or 0.
static int enter(const char* name) {
  int i;
  int code = 0;
  pthread_mutex_lock(&mutex);
  call_count += 1;
  for (i = 0; i < FUNCTIONS && counts[i].name != NULL && strcmp(counts[i].name, name) != 0;) ++i;
  counts[i].name = name;
  counts[i].count += 1;
  if (fail_at > 0 && --fail_at == 0) code = fail_code;
  if (fail_after >= 0 && strcmp(name, fail_name) == 0 && fail_after-- == 0) {
    fail_after = 0;
    code = fail_function_code;
  }
  if (code != 0) {
    snprintf(failed_name, sizeof failed_name, "%s", name);
    if (code >= 700 && code < 720 && depth > 0 && strncmp(name, "cupti", 5) != 0) sticky[stack[depth - 1]] = code;
  }
  return code;
}

static int leave(int code) {
  pthread_mutex_unlock(&mutex);
  return code;
}

// Counts a call that needs a context.
static int enter_context(const char* name) {
  const int code = enter(name);
  if (depth == 0) {
    misuse("%s without a context", name);
    return code != 0 ? code : 201;
  }
  return code != 0 ? code : sticky[stack[depth - 1]];
}

static int current(void) { return depth > 0 ? stack[depth - 1] : 0; }

static struct object* create(int kind) {
  struct object* const object = calloc(1, sizeof *object);
  object->kind = kind;
  object->is_alive = 1;
  object->device = current();
  object->next = objects;
  objects = object;
  return object;
}

// Returns a live object of a kind and of the current context, or null.
static struct object* find(const void* handle, int kind, const char* name) {
  struct object* object;
  for (object = objects; object != NULL && (const void*)object != handle;) object = object->next;
  if (object == NULL || object->kind != kind) {
    misuse("%s: not a resource of kind %d", name, kind);
  } else if (!object->is_alive) {
    misuse("%s: resource of kind %d is destroyed", name, kind);
  } else if (depth > 0 && object->device != current()) {
    misuse("%s: resource of another context", name);
  } else {
    return object;
  }
  return NULL;
}

static void free_work(struct work* work) {
  while (work != NULL) {
    struct work* const next = work->next;
    free(work->snapshot);
    free(work);
    work = next;
  }
}

static void destroy(struct object* object) {
  object->is_alive = 0;
  if (object->kind == STANDIN_MEMORY) used[object->device] -= object->bytes;
  free(object->memory);
  free(object->names);
  free_work(object->first);
  object->memory = NULL;
  object->names = NULL;
  object->first = NULL;
}

// Returns device memory, or null if the range is not inside one allocation of the device.
static void* memory_at(uint64_t address, uint64_t bytes, int device) {
  const struct object* object;
  for (object = objects; object != NULL; object = object->next) {
    const uint64_t start = (uint64_t)(uintptr_t)object->memory;
    if (object->kind != STANDIN_MEMORY || !object->is_alive || object->device != device) continue;
    if (address >= start && address - start <= object->bytes && bytes <= object->bytes - (address - start)) {
      return (void*)(uintptr_t)address;
    }
  }
  return NULL;
}

static int is_pinned(const void* memory) {
  const struct object* object;
  for (object = objects; object != NULL; object = object->next) {
    if (object->kind == STANDIN_HOST && object->is_alive && (const unsigned char*)memory >= object->memory &&
        (const unsigned char*)memory < object->memory + object->bytes) {
      return 1;
    }
  }
  return 0;
}

// ---- kernels. Each returns an error code.

struct builtin {
  const char* name;
  int parameters;
  int (*run)(uint64_t count, void** memory);
  // Bytes of each parameter for one thread. 0 for one i32 that may be null.
  uint64_t bytes[PARAMETERS];
};

static int run_add(uint64_t count, void** memory) {
  uint64_t i;
  for (i = 0; i < count; ++i) ((float*)memory[3])[i] = ((float*)memory[1])[i] + ((float*)memory[2])[i];
  return 0;
}
static int run_ones(uint64_t count, void** memory) {
  uint64_t i;
  for (i = 0; i < count; ++i) ((float*)memory[1])[i] = 1;
  return 0;
}
static int run_begin(uint64_t count, void** memory) {
  int32_t* const state = memory[1];
  (void)count;
  state[0] = 1;
  state[1] = 0;
  return 0;
}
static int run_step(uint64_t count, void** memory) {
  int32_t* const state = memory[1];
  int32_t* const trips = memory[2];
  (void)count;
  state[0] = state[0] != 0 && *trips > 0;
  *trips -= state[0];
  state[1] += state[0];
  return 0;
}
static int run_check(uint64_t count, void** memory) {
  (void)count;
  if (*(float*)memory[1] < 0) *(int32_t*)memory[2] = 2;
  return 0;
}
static int run_trap(uint64_t count, void** memory) {
  (void)count;
  (void)memory;
  return 719;
}
static int run_hang(uint64_t count, void** memory) {
  (void)count;
  (void)memory;
  return 702;
}

static const struct builtin builtins[] = {
    {"add_f32", 4, run_add, {0, 4, 4, 4, 0, 0, 0, 0}},  {"ones", 2, run_ones, {0, 4, 0, 0, 0, 0, 0, 0}},
    {"begin", 2, run_begin, {0, 8, 0, 0, 0, 0, 0, 0}},  {"step", 3, run_step, {0, 8, 4, 0, 0, 0, 0, 0}},
    {"check", 3, run_check, {0, 4, 4, 0, 0, 0, 0, 0}},  {"trap", 1, run_trap, {0, 0, 0, 0, 0, 0, 0, 0}},
    {"hang", 1, run_hang, {0, 0, 0, 0, 0, 0, 0, 0}},
};

// ---- execution

static int run_kernel(const struct work* work, int device) {
  const struct builtin* const kernel = work->kernel;
  const uint64_t count = work->groups * work->threads;
  void* memory[PARAMETERS];
  int i;
  if (!work->module->is_alive) misuse("kernel of an unloaded module");
  for (i = 0; i < kernel->parameters; ++i) {
    memory[i] = NULL;
    if (work->parameter[i] == 0 && kernel->bytes[i] == 0) continue;
    if (work->parameter[i] % 4 != 0) return 716;
    memory[i] = memory_at(work->parameter[i], kernel->bytes[i] != 0 ? kernel->bytes[i] * count : 4, device);
    if (memory[i] == NULL) return 700;
  }
  if (memory[0] != NULL && *(int32_t*)memory[0] == 0) {
    say("off %s\n", kernel->name);
    return 0;
  }
  say("%s\n", kernel->name);
  return kernel->run(count, memory);
}

static void run_stream(struct object* stream, long until);
static void observe(const struct work* work, const struct object* stream);

static int run_work(const struct work* work, int device) {
  void* const to = (void*)(uintptr_t)work->to;
  const void* const from = (const void*)(uintptr_t)work->from;
  switch (work->kind) {
    case KERNEL: return run_kernel(work, device);
    case COPY_IN:
      if (memory_at(work->to, work->bytes, device) == NULL) return 700;
      memcpy(to, work->snapshot != NULL ? work->snapshot : from, work->bytes);
      say("in %llu\n", (unsigned long long)work->bytes);
      return 0;
    case COPY_OUT:
      if (memory_at(work->from, work->bytes, device) == NULL) return 700;
      memcpy(to, from, work->bytes);
      say("out %llu\n", (unsigned long long)work->bytes);
      return 0;
    case COPY:
      if (memory_at(work->to, work->bytes, device) == NULL || memory_at(work->from, work->bytes, device) == NULL) {
        return 700;
      }
      if (work->to < work->from + work->bytes && work->from < work->to + work->bytes) {
        misuse("copy between overlapping ranges");
      }
      memmove(to, from, work->bytes);
      say("copy %llu\n", (unsigned long long)work->bytes);
      return 0;
    case FILL:
      if (memory_at(work->to, work->bytes, device) == NULL) return 700;
      memset(to, 0, work->bytes);
      say("zero %llu\n", (unsigned long long)work->bytes);
      return 0;
    default:
      if (work->wait_stream->is_alive) run_stream(work->wait_stream, work->wait_number);
      return 0;
  }
}

// Executes the work of a stream up to a number. A lost context drops it.
static void run_stream(struct object* stream, long until) {
  while (stream->first != NULL && stream->first->number <= until) {
    struct work* const work = stream->first;
    stream->first = work->next;
    work->next = NULL;
    stream->executed = work->number;
    if (sticky[stream->device] == 0) {
      sticky[stream->device] = run_work(work, stream->device);
      observe(work, stream);
    }
    free_work(work);
  }
}

static void run_device(int device) {
  struct object* object;
  for (object = objects; object != NULL; object = object->next) {
    if (object->kind != STANDIN_STREAM || !object->is_alive || object->device != device) continue;
    run_stream(object, object->queued);
  }
}

static struct work* append(struct object* to, const struct work* work) {
  struct work* const copy = malloc(sizeof *copy);
  struct work** link;
  *copy = *work;
  copy->next = NULL;
  copy->number = ++to->queued;
  for (link = &to->first; *link != NULL;) link = &(*link)->next;
  *link = copy;
  return copy;
}

// Checks memory that must exist when work is queued: graphs and queues use it later.
static int check_range(uint64_t address, uint64_t bytes, const char* name) {
  if (memory_at(address, bytes, current()) != NULL) return 1;
  misuse("%s: %llu bytes at 0x%llx are not allocated", name, (unsigned long long)bytes, (unsigned long long)address);
  return 0;
}

#include "standin_calls.h"
#include "standin_cupti.h"

// ---- controls

static void reset(void) {
  struct object** link = &objects;
  pthread_mutex_lock(&mutex);
  // Dead resources are remembered only until now.
  while (*link != NULL) {
    struct object* const object = *link;
    if (object->is_alive) {
      link = &object->next;
    } else {
      *link = object->next;
      free(object);
    }
  }
  call_count = fail_at = abandoned_count = 0;
  fail_after = -1;
  failed_name[0] = misuse_text[0] = log_text[0] = '\0';
  memset(counts, 0, sizeof counts);
  pthread_mutex_unlock(&mutex);
}

static void fail_call(long number, int code) {
  fail_at = number;
  fail_code = code;
}

static void fail_function(const char* name, long successes, int code) {
  snprintf(fail_name, sizeof fail_name, "%s", name != NULL ? name : "");
  fail_after = name != NULL ? successes : -1;
  fail_function_code = code;
}

static const char* failed(void) { return failed_name; }
static const char* first_misuse(void) { return misuse_text; }
static const char* get_log(void) { return log_text; }
static long abandoned(void) { return abandoned_count; }

static long calls(const char* name) {
  int i;
  if (name == NULL) return call_count;
  for (i = 0; i < FUNCTIONS && counts[i].name != NULL; ++i) {
    if (strcmp(counts[i].name, name) == 0) return counts[i].count;
  }
  return 0;
}

static long alive(int kind) {
  const struct object* object;
  long count = 0;
  int i;
  pthread_mutex_lock(&mutex);
  for (object = objects; object != NULL; object = object->next) count += object->kind == kind && object->is_alive;
  for (i = 0; i < DEVICES && kind == STANDIN_CONTEXT; ++i) count += retained[i];
  pthread_mutex_unlock(&mutex);
  return count;
}

EXPORT const struct standin* standin_controls(void) {
  static const struct standin controls = {&machine, reset, fail_call, fail_function, failed,
                                          calls,    get_log, first_misuse, alive,    abandoned};
  return &controls;
}
