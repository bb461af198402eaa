// Traces of CUPTI, NVIDIA's library for profilers: exact times of kernels, copies, and fills, also
// of those in CUDA graphs. Included by device.h only.
//
// Opens libcupti at run time and needs no header of CUPTI. A trace belongs to one instance and
// receives the operations of the streams that it watches. CUPTI permits one owner of its buffers in
// a process: if another profiler takes them, traces lack kernels, which readers notice by their
// number.

#ifndef TFCOMPILE_DEVICE_CUPTI_H_
#define TFCOMPILE_DEVICE_CUPTI_H_

#include "tfcompile/device_driver.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef void(TFCOMPILE_DRIVER_CALL* tfcompile_cupti_request)(uint8_t** buffer, size_t* bytes, size_t* max_records);
typedef void(TFCOMPILE_DRIVER_CALL* tfcompile_cupti_complete)(void* context, uint32_t stream, uint8_t* buffer,
                                                              size_t bytes, size_t valid_bytes);

// Functions: member, symbol, parameters. Handles are pointers, and results and kinds are int.
#define TFCOMPILE_CUPTI_FUNCTIONS(X)                                                                              \
  X(get_version, "cuptiGetVersion", (uint32_t * version))                                                         \
  X(result_string, "cuptiGetResultString", (int result, const char** text))                                       \
  X(get_timestamp, "cuptiGetTimestamp", (uint64_t * nanoseconds))                                                 \
  X(context_id, "cuptiGetContextId", (void* context, uint32_t* id))                                               \
  X(stream_id, "cuptiGetStreamIdEx", (void* context, void* stream, uint8_t is_per_thread, uint32_t* id))          \
  X(register_callbacks, "cuptiActivityRegisterCallbacks",                                                         \
    (tfcompile_cupti_request request, tfcompile_cupti_complete complete))                                         \
  X(enable, "cuptiActivityEnable", (int kind))                                                                    \
  X(disable, "cuptiActivityDisable", (int kind))                                                                  \
  X(flush_all, "cuptiActivityFlushAll", (uint32_t flags))                                                         \
  X(next_record, "cuptiActivityGetNextRecord", (uint8_t* buffer, size_t valid_bytes, unsigned char** record))     \
  X(dropped, "cuptiActivityGetNumDroppedRecords", (void* context, uint32_t stream, size_t* count))

// Kinds of records: CUPTI_ACTIVITY_KIND_MEMCPY, MEMSET, CONCURRENT_KERNEL. Kernels in the mode of
// KERNEL would not overlap.
enum { TFCOMPILE_CUPTI_MEMCPY = 1, TFCOMPILE_CUPTI_MEMSET = 2, TFCOMPILE_CUPTI_KERNEL = 10 };

// Positions of the fields that are read, in bytes. They are the same in CUpti_ActivityKernel7 to
// CUpti_ActivityKernel13, CUpti_ActivityMemcpy5 to CUpti_ActivityMemcpy7, and
// CUpti_ActivityMemset4 and CUpti_ActivityMemset5.
enum {
  TFCOMPILE_CUPTI_START = 16,
  TFCOMPILE_CUPTI_END = 24,
  TFCOMPILE_CUPTI_KERNEL_CONTEXT = 44,
  TFCOMPILE_CUPTI_KERNEL_STREAM = 48,
  TFCOMPILE_CUPTI_KERNEL_NAME = 104,
  TFCOMPILE_CUPTI_KERNEL_NODE = 144,  // Number of the node of a graph, or 0.
  TFCOMPILE_CUPTI_COPY_KIND = 4,      // One byte, in copies only.
  TFCOMPILE_CUPTI_BYTES = 8,          // Of copies and fills, like the following ones.
  TFCOMPILE_CUPTI_CONTEXT = 36,
  TFCOMPILE_CUPTI_STREAM = 40,
  TFCOMPILE_CUPTI_NODE = 64
};

// Versions of the interface with this layout: 17 is CUDA 11.6 and 11.7, 28 is CUDA 12.9, and later
// ones are 10000 * major + 100 * minor + patch of CUDA.
static inline int tfcompile_cupti_is_known(uint32_t version) {
  return (version >= 17 && version <= 28) || (version >= 130000 && version < 130600);
}

enum { TFCOMPILE_CUPTI_STREAMS = 16, TFCOMPILE_CUPTI_BUFFER = 1 << 20 };

// The operations of an instance.
struct tfcompile_cupti_trace {
  struct tfcompile_cupti_trace* next;
  uint32_t context;
  uint32_t stream_count;
  uint32_t streams[TFCOMPILE_CUPTI_STREAMS];  // CUPTI's numbers.
  void* handles[TFCOMPILE_CUPTI_STREAMS];
  struct tfcompile_device_activity* list;
  uint32_t count;
  uint32_t capacity;
  uint64_t dropped;  // Number of records that were lost.
};

struct tfcompile_cupti {
  void* library;
#define TFCOMPILE_CUPTI_MEMBER(member, symbol, parameters) int(TFCOMPILE_DRIVER_CALL* member) parameters;
  TFCOMPILE_CUPTI_FUNCTIONS(TFCOMPILE_CUPTI_MEMBER)
#undef TFCOMPILE_CUPTI_MEMBER
  // Number of traces. Guarded by the lock of tfcompile_cupti_control.
  int64_t users;
  // Guarded by the lock of tfcompile_cupti_lock, which no thread holds while it calls CUPTI.
  struct tfcompile_cupti_trace* traces;
};

static inline struct tfcompile_cupti* tfcompile_cupti_api(void) {
  static struct tfcompile_cupti api;
  return &api;
}

static inline tfcompile_device_lock* tfcompile_cupti_control(void) {
  static tfcompile_device_lock lock = TFCOMPILE_DEVICE_LOCK_INIT;
  return &lock;
}

static inline tfcompile_device_lock* tfcompile_cupti_lock(void) {
  static tfcompile_device_lock lock = TFCOMPILE_DEVICE_LOCK_INIT;
  return &lock;
}

static inline int32_t tfcompile_cupti_fail(const struct tfcompile_cupti* api, int result,
                                           struct tfcompile_device_error* error, const char* function) {
  const char* text = NULL;
  if (api->result_string(result, &text) != 0 || text == NULL) text = "unknown error";
  return tfcompile_device_fail(error, TFCOMPILE_DEVICE_DRIVER_ERROR, result, "%s of CUPTI failed: %s (%d)%s", function,
                               text, result,
                               // INSUFFICIENT_PRIVILEGES, MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED
                               result == 35   ? "; the NVIDIA driver reserves profiling for administrators"
                               : result == 39 ? "; another profiler uses CUPTI"
                                              : "");
}

// ---- records

static inline uint32_t tfcompile_cupti_u32(const unsigned char* record, int offset) {
  uint32_t value;
  memcpy(&value, record + offset, sizeof value);
  return value;
}

static inline uint64_t tfcompile_cupti_u64(const unsigned char* record, int offset) {
  uint64_t value;
  memcpy(&value, record + offset, sizeof value);
  return value;
}

// Returns the trace that watches a stream and the stream's handle, or null. CUPTI may number the
// streams of graphs differently: those operations belong to the context's trace if it has only one.
static inline struct tfcompile_cupti_trace* tfcompile_cupti_find(uint32_t context, uint32_t stream, int is_node,
                                                                 void** handle) {
  struct tfcompile_cupti_trace* trace;
  struct tfcompile_cupti_trace* only = NULL;
  int count = 0;
  uint32_t i;
  for (trace = tfcompile_cupti_api()->traces; trace != NULL; trace = trace->next) {
    if (trace->context != context) continue;
    for (i = 0; i < trace->stream_count; ++i) {
      *handle = trace->handles[i];
      if (trace->streams[i] == stream) return trace;
    }
    only = trace;
    count += 1;
  }
  if (count != 1 || !is_node || only->stream_count == 0) return NULL;
  *handle = only->handles[only->stream_count - 1];
  return only;
}

// Adds a record of CUPTI to its trace, if any.
static inline void tfcompile_cupti_add(const unsigned char* record) {
  const uint32_t kind = tfcompile_cupti_u32(record, 0);
  const int is_kernel = kind == TFCOMPILE_CUPTI_KERNEL;
  struct tfcompile_device_activity activity;
  struct tfcompile_cupti_trace* trace;
  if (!is_kernel && kind != TFCOMPILE_CUPTI_MEMCPY && kind != TFCOMPILE_CUPTI_MEMSET) return;
  memset(&activity, 0, sizeof activity);
  trace = tfcompile_cupti_find(
      tfcompile_cupti_u32(record, is_kernel ? TFCOMPILE_CUPTI_KERNEL_CONTEXT : TFCOMPILE_CUPTI_CONTEXT),
      tfcompile_cupti_u32(record, is_kernel ? TFCOMPILE_CUPTI_KERNEL_STREAM : TFCOMPILE_CUPTI_STREAM),
      tfcompile_cupti_u64(record, is_kernel ? TFCOMPILE_CUPTI_KERNEL_NODE : TFCOMPILE_CUPTI_NODE) != 0,
      &activity.stream);
  if (trace == NULL) return;
  activity.start_ns = tfcompile_cupti_u64(record, TFCOMPILE_CUPTI_START);
  activity.end_ns = tfcompile_cupti_u64(record, TFCOMPILE_CUPTI_END);
  if (is_kernel) {
    activity.operation = TFCOMPILE_DEVICE_LAUNCH;
    memcpy(&activity.name, record + TFCOMPILE_CUPTI_KERNEL_NAME, sizeof activity.name);
  } else {
    const int copy = record[TFCOMPILE_CUPTI_COPY_KIND];
    activity.bytes = tfcompile_cupti_u64(record, TFCOMPILE_CUPTI_BYTES);
    activity.operation = kind == TFCOMPILE_CUPTI_MEMSET ? TFCOMPILE_DEVICE_FILL
                         : copy == 1                    ? TFCOMPILE_DEVICE_COPY_IN
                         : copy == 2                    ? TFCOMPILE_DEVICE_COPY_OUT
                                                        : TFCOMPILE_DEVICE_COPY;
  }
  // CUPTI has no times if the device was short of memory.
  if (activity.start_ns == 0 || activity.end_ns < activity.start_ns || (is_kernel && activity.name == NULL)) {
    trace->dropped += 1;
    return;
  }
  if (trace->count == trace->capacity) {
    const uint32_t capacity = trace->capacity < 64 ? 64 : 2 * trace->capacity;
    void* const grown = realloc(trace->list, capacity * sizeof *trace->list);
    if (grown == NULL) {
      trace->dropped += 1;
      return;
    }
    trace->list = (struct tfcompile_device_activity*)grown;
    trace->capacity = capacity;
  }
  trace->list[trace->count] = activity;
  trace->count += 1;
}

// Gives CUPTI a buffer, or none if out of memory.
static inline void TFCOMPILE_DRIVER_CALL tfcompile_cupti_requested(uint8_t** buffer, size_t* bytes,
                                                                   size_t* max_records) {
  *buffer = (uint8_t*)malloc(TFCOMPILE_CUPTI_BUFFER);
  *bytes = *buffer != NULL ? TFCOMPILE_CUPTI_BUFFER : 0;
  *max_records = 0;
}

// Takes back a buffer, on any thread.
static inline void TFCOMPILE_DRIVER_CALL tfcompile_cupti_completed(void* context, uint32_t stream, uint8_t* buffer,
                                                                   size_t bytes, size_t valid_bytes) {
  const struct tfcompile_cupti* const api = tfcompile_cupti_api();
  struct tfcompile_cupti_trace* trace;
  unsigned char* record = NULL;
  size_t dropped = 0;
  int result = 0;
  (void)bytes;
  while (buffer != NULL && valid_bytes > 0) {
    result = api->next_record(buffer, valid_bytes, &record);
    if (result != 0) break;
    tfcompile_device_acquire(tfcompile_cupti_lock());
    tfcompile_cupti_add(record);
    tfcompile_device_release(tfcompile_cupti_lock());
  }
  free(buffer);
  if (api->dropped(context, stream, &dropped) != 0) dropped = 0;
  // MAX_LIMIT_REACHED is the end of the buffer. Otherwise the rest of it is lost.
  if (result != 0 && result != 12) dropped += 1;
  if (dropped == 0) return;
  tfcompile_device_acquire(tfcompile_cupti_lock());
  for (trace = tfcompile_cupti_api()->traces; trace != NULL; trace = trace->next) trace->dropped += dropped;
  tfcompile_device_release(tfcompile_cupti_lock());
}

// ---- the library

// Opens the library once, and registers the buffers' functions. The control lock must be held.
static inline int32_t tfcompile_cupti_load(struct tfcompile_device_error* error) {
  struct tfcompile_cupti* const api = tfcompile_cupti_api();
#if defined(_WIN32)
  static const char* const names[] = {"cupti64.dll", NULL};
#else
  static const char* const names[] = {"libcupti.so.12", "libcupti.so.13", "libcupti.so", NULL};
#endif
  struct tfcompile_cupti opened;
  const char* missing = NULL;
  uint32_t version = 0;
  int result;
  if (api->library != NULL) return TFCOMPILE_DEVICE_OK;
  memset(&opened, 0, sizeof opened);
  opened.library = tfcompile_device_library("CUPTI", "TFCOMPILE_CUPTI", names,
                                            "it is part of the CUDA toolkit and of PyPI's nvidia-cuda-cupti-cu12",
                                            error);
  if (opened.library == NULL) return TFCOMPILE_DEVICE_NO_DRIVER;
#define TFCOMPILE_CUPTI_FIND(member, symbol, parameters) \
  if (!tfcompile_device_symbol(opened.library, symbol, &opened.member) && missing == NULL) missing = symbol;
  TFCOMPILE_CUPTI_FUNCTIONS(TFCOMPILE_CUPTI_FIND)
#undef TFCOMPILE_CUPTI_FIND
  if (missing != NULL) {
    return tfcompile_device_fail(error, TFCOMPILE_DEVICE_DRIVER_TOO_OLD, 0, "CUPTI has no %s", missing);
  }
  result = opened.get_version(&version);
  if (result != 0) return tfcompile_cupti_fail(&opened, result, error, "cuptiGetVersion");
  if (!tfcompile_cupti_is_known(version)) {
    return tfcompile_device_fail(error, TFCOMPILE_DEVICE_DRIVER_TOO_OLD, (int32_t)version,
                                 "the records of CUPTI's version %lu are not known; those of 17 to 28 (CUDA 11.6 to "
                                 "12.9) and of 130000 to 130599 (CUDA 13.0 to 13.5) are",
                                 (unsigned long)version);
  }
  // The functions that are registered use the table.
  tfcompile_device_acquire(tfcompile_cupti_lock());
  opened.traces = api->traces;
  opened.users = api->users;
  *api = opened;
  tfcompile_device_release(tfcompile_cupti_lock());
  result = api->register_callbacks(tfcompile_cupti_requested, tfcompile_cupti_completed);
  if (result == 0) return TFCOMPILE_DEVICE_OK;
  api->library = NULL;
  return tfcompile_cupti_fail(api, result, error, "cuptiActivityRegisterCallbacks");
}

// Stops `count` kinds of records, the first ones.
static inline void tfcompile_cupti_disable(int count) {
  static const int kinds[3] = {TFCOMPILE_CUPTI_KERNEL, TFCOMPILE_CUPTI_MEMCPY, TFCOMPILE_CUPTI_MEMSET};
  int i;
  for (i = 0; i < count; ++i) (void)tfcompile_cupti_api()->disable(kinds[i]);
}

// Starts all kinds of records.
static inline int32_t tfcompile_cupti_enable(struct tfcompile_device_error* error) {
  static const int kinds[3] = {TFCOMPILE_CUPTI_KERNEL, TFCOMPILE_CUPTI_MEMCPY, TFCOMPILE_CUPTI_MEMSET};
  const struct tfcompile_cupti* const api = tfcompile_cupti_api();
  uint64_t now = 0;
  // Fails where CUPTI does not work with the driver.
  int result = api->get_timestamp(&now);
  int i;
  if (result != 0) return tfcompile_cupti_fail(api, result, error, "cuptiGetTimestamp");
  for (i = 0; i < 3; ++i) {
    result = api->enable(kinds[i]);
    if (result == 0) continue;
    tfcompile_cupti_disable(i);
    return tfcompile_cupti_fail(api, result, error, "cuptiActivityEnable");
  }
  return TFCOMPILE_DEVICE_OK;
}

// ---- traces

static inline void tfcompile_cupti_stop(struct tfcompile_device* device, void* handle) {
  struct tfcompile_cupti* const api = tfcompile_cupti_api();
  struct tfcompile_cupti_trace* const trace = (struct tfcompile_cupti_trace*)handle;
  struct tfcompile_cupti_trace** link;
  (void)device;
  tfcompile_device_acquire(tfcompile_cupti_control());
  tfcompile_device_acquire(tfcompile_cupti_lock());
  for (link = &api->traces; *link != NULL && *link != trace;) link = &(*link)->next;
  if (*link != NULL) *link = trace->next;
  tfcompile_device_release(tfcompile_cupti_lock());
  api->users -= 1;
  if (api->users == 0) {
    tfcompile_cupti_disable(3);
    // Returns all buffers.
    (void)api->flush_all(1);
  }
  tfcompile_device_release(tfcompile_cupti_control());
  free(trace->list);
  free(trace);
}

static inline int32_t tfcompile_cupti_start(struct tfcompile_device* device, void** handle,
                                            struct tfcompile_device_error* error) {
  struct tfcompile_cupti* const api = tfcompile_cupti_api();
  struct tfcompile_cupti_trace* trace;
  int32_t status;
  int result;
  *handle = NULL;
  trace = (struct tfcompile_cupti_trace*)calloc(1, sizeof *trace);
  if (trace == NULL) return tfcompile_device_fail_host(error, "a trace");
  tfcompile_device_acquire(tfcompile_cupti_control());
  status = tfcompile_cupti_load(error);
  if (status == TFCOMPILE_DEVICE_OK) {
    result = api->context_id(device->context, &trace->context);
    if (result != 0) status = tfcompile_cupti_fail(api, result, error, "cuptiGetContextId");
  }
  if (status == TFCOMPILE_DEVICE_OK && api->users == 0) status = tfcompile_cupti_enable(error);
  if (status == TFCOMPILE_DEVICE_OK) {
    api->users += 1;
    tfcompile_device_acquire(tfcompile_cupti_lock());
    trace->next = api->traces;
    api->traces = trace;
    tfcompile_device_release(tfcompile_cupti_lock());
    *handle = trace;
  }
  tfcompile_device_release(tfcompile_cupti_control());
  if (status != TFCOMPILE_DEVICE_OK) free(trace);
  return status;
}

static inline int32_t tfcompile_cupti_watch(struct tfcompile_device* device, void* handle, void* stream,
                                            struct tfcompile_device_error* error) {
  const struct tfcompile_cupti* const api = tfcompile_cupti_api();
  struct tfcompile_cupti_trace* const trace = (struct tfcompile_cupti_trace*)handle;
  uint32_t number = 0;
  uint32_t i;
  int result;
  // Only this thread changes the list.
  for (i = 0; i < trace->stream_count; ++i) {
    if (trace->handles[i] == stream) return TFCOMPILE_DEVICE_OK;
  }
  if (i == TFCOMPILE_CUPTI_STREAMS) {
    return tfcompile_device_fail(error, TFCOMPILE_DEVICE_INVALID_ARGUMENT, 0,
                                 "unfinished runs of the instance are on more than %d streams",
                                 (int)TFCOMPILE_CUPTI_STREAMS);
  }
  result = api->stream_id(device->context, stream, 0, &number);
  if (result != 0) return tfcompile_cupti_fail(api, result, error, "cuptiGetStreamIdEx");
  tfcompile_device_acquire(tfcompile_cupti_lock());
  trace->streams[i] = number;
  trace->handles[i] = stream;
  trace->stream_count = i + 1;
  tfcompile_device_release(tfcompile_cupti_lock());
  return TFCOMPILE_DEVICE_OK;
}

static inline uint64_t tfcompile_cupti_launches(const struct tfcompile_cupti_trace* trace) {
  uint64_t launches = 0;
  uint32_t i;
  tfcompile_device_acquire(tfcompile_cupti_lock());
  for (i = 0; i < trace->count; ++i) launches += trace->list[i].operation == TFCOMPILE_DEVICE_LAUNCH;
  tfcompile_device_release(tfcompile_cupti_lock());
  return launches;
}

static inline int tfcompile_cupti_compare(const void* left, const void* right) {
  const struct tfcompile_device_activity* const a = (const struct tfcompile_device_activity*)left;
  const struct tfcompile_device_activity* const b = (const struct tfcompile_device_activity*)right;
  if (a->start_ns != b->start_ns) return a->start_ns < b->start_ns ? -1 : 1;
  if (a->end_ns != b->end_ns) return a->end_ns < b->end_ns ? -1 : 1;
  return 0;
}

static inline int32_t tfcompile_cupti_read(struct tfcompile_device* device, void* handle, uint64_t launches,
                                           struct tfcompile_device_activities* activities,
                                           struct tfcompile_device_error* error) {
  const struct tfcompile_cupti* const api = tfcompile_cupti_api();
  struct tfcompile_cupti_trace* const trace = (struct tfcompile_cupti_trace*)handle;
  int result = api->flush_all(0);
  (void)device;
  // Buffers with operations of other streams that are not done are returned only by force.
  if (result == 0 && tfcompile_cupti_launches(trace) < launches) result = api->flush_all(1);
  tfcompile_device_acquire(tfcompile_cupti_lock());
  activities->list = trace->list;
  activities->count = trace->count;
  activities->dropped = trace->dropped;
  trace->list = NULL;
  trace->count = 0;
  trace->capacity = 0;
  trace->dropped = 0;
  trace->stream_count = 0;
  tfcompile_device_release(tfcompile_cupti_lock());
  if (activities->count > 0) {
    qsort(activities->list, activities->count, sizeof *activities->list, tfcompile_cupti_compare);
  }
  return result == 0 ? TFCOMPILE_DEVICE_OK : tfcompile_cupti_fail(api, result, error, "cuptiActivityFlushAll");
}

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // TFCOMPILE_DEVICE_CUPTI_H_
