// Shared parts of the device runtime: the table of functions that a driver provides, the state of
// an open device, error texts, locks, and opening of libraries. Included by device.h only.
//
// Contains nothing that is specific to a driver. Functions that can fail return an enum
// tfcompile_device_status and describe the failure in *error unless `error` is null.

#ifndef TFCOMPILE_DEVICE_DRIVER_H_
#define TFCOMPILE_DEVICE_DRIVER_H_

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if defined(_WIN32)
#ifndef WIN32_LEAN_AND_MEAN
#define WIN32_LEAN_AND_MEAN
#endif
#ifndef NOMINMAX
#define NOMINMAX
#endif
#include <windows.h>
#define TFCOMPILE_DRIVER_CALL __stdcall
#else
#include <dlfcn.h>
#include <pthread.h>
#define TFCOMPILE_DRIVER_CALL
#endif

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define TFCOMPILE_DEVICE_FORMAT(position, first) __attribute__((format(printf, position, first)))
#else
#define TFCOMPILE_DEVICE_FORMAT(position, first)
#endif

// Alignment of everything that the pool hands out.
#define TFCOMPILE_DEVICE_ALIGN UINT64_C(256)

// ---- locks

#if defined(_WIN32)
typedef SRWLOCK tfcompile_device_lock;
#define TFCOMPILE_DEVICE_LOCK_INIT SRWLOCK_INIT
static inline void tfcompile_device_lock_init(tfcompile_device_lock* lock) { InitializeSRWLock(lock); }
static inline void tfcompile_device_lock_destroy(tfcompile_device_lock* lock) { (void)lock; }
static inline void tfcompile_device_acquire(tfcompile_device_lock* lock) { AcquireSRWLockExclusive(lock); }
static inline void tfcompile_device_release(tfcompile_device_lock* lock) { ReleaseSRWLockExclusive(lock); }
#else
typedef pthread_mutex_t tfcompile_device_lock;
#define TFCOMPILE_DEVICE_LOCK_INIT PTHREAD_MUTEX_INITIALIZER
static inline void tfcompile_device_lock_init(tfcompile_device_lock* lock) { (void)pthread_mutex_init(lock, NULL); }
static inline void tfcompile_device_lock_destroy(tfcompile_device_lock* lock) { (void)pthread_mutex_destroy(lock); }
static inline void tfcompile_device_acquire(tfcompile_device_lock* lock) { (void)pthread_mutex_lock(lock); }
static inline void tfcompile_device_release(tfcompile_device_lock* lock) { (void)pthread_mutex_unlock(lock); }
#endif

// ---- the driver's interface

// Start and end of a profiled operation: two events of CUDA, or one of OpenCL.
struct tfcompile_device_timing {
  void* begin;
  void* end;
};

// Code of a program for one kind of device.
struct tfcompile_device_image {
  uint32_t kind;  // TFCOMPILE_IMAGE_...
  uint32_t arch;
  const unsigned char* bytes;
  uint64_t size;
};

enum { TFCOMPILE_IMAGE_PTX = 1, TFCOMPILE_IMAGE_CUBIN = 2, TFCOMPILE_IMAGE_SPIRV = 3, TFCOMPILE_IMAGE_OPENCL_C = 4 };

// A kernel of a program.
struct tfcompile_device_kernel {
  const char* name;
  const char* label;
  uint32_t threads;
  uint32_t parameter_count;
  uint64_t flops;
  uint64_t bytes;
};

// Resources of a kernel. Zero where the driver does not tell.
struct tfcompile_device_facts {
  uint32_t threads;           // Of a workgroup.
  uint32_t registers;         // Of a thread.
  uint32_t workgroup_bytes;   // Of workgroup memory.
  uint32_t local_bytes;       // Of a thread's own memory: spilled registers and arrays.
  uint32_t active_workgroups; // That a multiprocessor runs at once.
  uint32_t max_threads;       // That a multiprocessor can run at once.
};

// An operation in a trace.
struct tfcompile_device_activity {
  int32_t operation;  // enum tfcompile_device_operation
  const char* name;   // Symbol of the kernel, or null.
  void* stream;
  uint64_t bytes;
  uint64_t start_ns;
  uint64_t end_ns;
};

// Operations in the order of their starts. The list was allocated with malloc.
struct tfcompile_device_activities {
  struct tfcompile_device_activity* list;
  uint32_t count;
  uint64_t dropped;  // Number of operations whose records are lost.
};

// Functions of a driver. All but `count` are called between `enter` and `leave`, except `open` and
// `close`. Functions that return nothing ignore errors: they release resources, which a lost device
// no longer has. A null `timing` means no profiling; a null event slot is created when first
// recorded.
struct tfcompile_driver {
  const char* name;
  int32_t (*count)(int32_t* count, struct tfcompile_device_error* error);
  // Sets the fields of the device from `arch` to `context`. Leaves nothing open on failure.
  int32_t (*open)(struct tfcompile_device* device, struct tfcompile_device_error* error);
  void (*close)(struct tfcompile_device* device);
  // Makes the device the calling thread's current one, and undoes it.
  int32_t (*enter)(struct tfcompile_device* device, struct tfcompile_device_error* error);
  void (*leave)(struct tfcompile_device* device);
  int32_t (*synchronize)(struct tfcompile_device* device, struct tfcompile_device_error* error);
  // Stores the driver's free memory, or UINT64_MAX if it does not report it.
  int32_t (*free_memory)(struct tfcompile_device* device, uint64_t* bytes, struct tfcompile_device_error* error);
  int32_t (*allocate)(struct tfcompile_device* device, uint64_t bytes, uint64_t* address,
                      struct tfcompile_device_error* error);
  void (*deallocate)(struct tfcompile_device* device, uint64_t address);
  int32_t (*allocate_host)(struct tfcompile_device* device, uint64_t bytes, void** memory,
                           struct tfcompile_device_error* error);
  void (*deallocate_host)(struct tfcompile_device* device, void* memory);
  int32_t (*stream_create)(struct tfcompile_device* device, int32_t is_profiled, void** stream,
                           struct tfcompile_device_error* error);
  void (*stream_destroy)(struct tfcompile_device* device, void* stream);
  int32_t (*stream_synchronize)(struct tfcompile_device* device, void* stream, struct tfcompile_device_error* error);
  int32_t (*event_record)(struct tfcompile_device* device, void** event, void* stream,
                          struct tfcompile_device_error* error);
  int32_t (*event_wait)(struct tfcompile_device* device, void* event, void* stream,
                        struct tfcompile_device_error* error);
  int32_t (*event_synchronize)(struct tfcompile_device* device, void* event, struct tfcompile_device_error* error);
  void (*event_destroy)(struct tfcompile_device* device, void* event);
  // `program` is the name of the program, for error texts.
  int32_t (*module_load)(struct tfcompile_device* device, const struct tfcompile_device_image* image,
                         const char* program, void** module, struct tfcompile_device_error* error);
  void (*module_unload)(struct tfcompile_device* device, void* module);
  // Finds a kernel and checks that the device can run it.
  int32_t (*kernel_create)(struct tfcompile_device* device, void* module, const struct tfcompile_device_kernel* kernel,
                           void** handle, struct tfcompile_device_error* error);
  void (*kernel_destroy)(struct tfcompile_device* device, void* handle);
  // `pointers[i]` is the address of `addresses[i]`.
  int32_t (*launch)(struct tfcompile_device* device, void* handle, const struct tfcompile_device_kernel* kernel,
                    uint64_t groups, const uint64_t* addresses, void** pointers, void* stream,
                    struct tfcompile_device_timing* timing, struct tfcompile_device_error* error);
  // `operation` is one of the copies; host addresses are pointers.
  int32_t (*copy)(struct tfcompile_device* device, int32_t operation, uint64_t to, uint64_t from, uint64_t bytes,
                  void* stream, struct tfcompile_device_timing* timing, struct tfcompile_device_error* error);
  int32_t (*zero)(struct tfcompile_device* device, uint64_t to, uint64_t bytes, void* stream,
                  struct tfcompile_device_timing* timing, struct tfcompile_device_error* error);
  // Records the work of a stream instead of running it. `capture_end` must follow. It stores null
  // if `is_wanted` is zero. Used only if `has_graphs` of the device is nonzero.
  int32_t (*capture_begin)(struct tfcompile_device* device, void* stream, struct tfcompile_device_error* error);
  int32_t (*capture_end)(struct tfcompile_device* device, void* stream, int32_t is_wanted, void** graph,
                         struct tfcompile_device_error* error);
  int32_t (*graph_launch)(struct tfcompile_device* device, void* graph, void* stream,
                          struct tfcompile_device_error* error);
  void (*graph_destroy)(struct tfcompile_device* device, void* graph);
  // Stores the times of a finished operation. With CUDA they are relative to `origin`.
  int32_t (*timing_read)(struct tfcompile_device* device, const struct tfcompile_device_timing* origin,
                         const struct tfcompile_device_timing* timing, uint64_t* start_ns, uint64_t* end_ns,
                         struct tfcompile_device_error* error);
  void (*timing_destroy)(struct tfcompile_device* device, struct tfcompile_device_timing* timing);
  // Stores the resources of a kernel. Null if the driver does not tell them.
  int32_t (*kernel_facts)(struct tfcompile_device* device, void* handle, const struct tfcompile_device_kernel* kernel,
                          struct tfcompile_device_facts* facts, struct tfcompile_device_error* error);
  // Traces have the times of operations without events between them, also of those in graphs that
  // are recorded after the trace starts. Null if the driver has none. A trace is used by one thread
  // at a time.
  int32_t (*trace_start)(struct tfcompile_device* device, void** trace, struct tfcompile_device_error* error);
  // Watches a stream until the next `trace_read`, which is called when the work is done.
  int32_t (*trace_watch)(struct tfcompile_device* device, void* trace, void* stream,
                         struct tfcompile_device_error* error);
  // Takes the operations of the watched streams, at least `launches` kernels if no record is lost.
  // Stores a list, maybe empty, on failure too.
  int32_t (*trace_read)(struct tfcompile_device* device, void* trace, uint64_t launches,
                        struct tfcompile_device_activities* activities, struct tfcompile_device_error* error);
  void (*trace_stop)(struct tfcompile_device* device, void* trace);
};

// ---- devices

// A piece of a region of the pool. Pieces of a region are linked in the order of their addresses,
// and no two unused ones are adjacent.
struct tfcompile_device_block {
  uint64_t address;
  uint64_t bytes;
  int32_t is_used;
  struct tfcompile_device_block* previous;
  struct tfcompile_device_block* next;
};

// Memory that the driver allocated in one piece.
struct tfcompile_device_region {
  uint64_t address;
  uint64_t bytes;
  struct tfcompile_device_block* blocks;
  struct tfcompile_device_region* next;
};

// A stream that the runtime created.
struct tfcompile_device_stream {
  void* handle;
  struct tfcompile_device_stream* next;
};

struct tfcompile_device_loaded;

// The open devices of a translation unit. A device knows its registry, so that any translation unit
// can close it.
struct tfcompile_device_registry {
  tfcompile_device_lock lock;
  struct tfcompile_device* devices;
};

struct tfcompile_device {
  const struct tfcompile_driver* driver;
  struct tfcompile_device_registry* registry;
  struct tfcompile_device* next;
  int64_t users;  // Guarded by the registry's lock.
  int32_t kind;
  struct tfcompile_device_options options;

  // Set by the driver when it opens the device.
  int32_t arch;
  int32_t processors;
  int32_t max_threads;
  int32_t max_resident;  // Maximum threads of a multiprocessor. 0 if unknown.
  int32_t driver_version;
  int32_t has_graphs;
  uint64_t memory;
  uint64_t max_allocation;  // Maximum bytes of one allocation.
  uint64_t max_groups;
  char name[128];
  void* handle;
  void* context;
  int32_t takes_spirv;        // With OpenCL: the driver takes SPIR-V.
  int32_t has_shared_memory;  // With OpenCL: addresses of the device are the host's.

  // With OpenCL, without shared memory: the buffers, and the address of the next one.
  tfcompile_device_lock buffers_lock;
  struct tfcompile_opencl_buffer* buffers;
  uint64_t next_address;

  // First error that made the device unusable, or "".
  tfcompile_device_lock lost_lock;
  char lost[256];

  tfcompile_device_lock pool_lock;
  struct tfcompile_device_region* regions;
  struct tfcompile_device_statistics statistics;

  tfcompile_device_lock streams_lock;
  struct tfcompile_device_stream* streams;

  // Programs in use. The lock is held while one is loaded.
  tfcompile_device_lock programs_lock;
  struct tfcompile_device_loaded* programs;
};

struct tfcompile_device_event {
  struct tfcompile_device* device;
  void* handle;  // Null until the event is recorded.
};

// ---- errors

// Describes a failure and returns its status.
static inline int32_t tfcompile_device_fail(struct tfcompile_device_error* error, int32_t status, int32_t code,
                                            const char* format, ...) TFCOMPILE_DEVICE_FORMAT(4, 5);
static inline int32_t tfcompile_device_fail(struct tfcompile_device_error* error, int32_t status, int32_t code,
                                            const char* format, ...) {
  if (error != NULL) {
    va_list arguments;
    va_start(arguments, format);
    error->status = status;
    error->code = code;
    (void)vsnprintf(error->text, sizeof error->text, format, arguments);
    va_end(arguments);
  }
  return status;
}

static inline int32_t tfcompile_device_fail_host(struct tfcompile_device_error* error, const char* purpose) {
  return tfcompile_device_fail(error, TFCOMPILE_DEVICE_NO_HOST_MEMORY, 0, "out of host memory for %s", purpose);
}

static inline void tfcompile_device_clear(struct tfcompile_device_error* error) {
  if (error == NULL) return;
  error->status = TFCOMPILE_DEVICE_OK;
  error->code = 0;
  error->text[0] = '\0';
}

// Appends to a text of `size` bytes, and cuts it off at the end.
static inline void tfcompile_device_append(char* text, size_t size, const char* format, ...)
    TFCOMPILE_DEVICE_FORMAT(3, 4);
static inline void tfcompile_device_append(char* text, size_t size, const char* format, ...) {
  const size_t length = strlen(text);
  va_list arguments;
  va_start(arguments, format);
  if (length < size) (void)vsnprintf(text + length, size - length, format, arguments);
  va_end(arguments);
}

// Buffer for a readable amount of memory.
struct tfcompile_device_amount {
  char text[48];
};

static inline const char* tfcompile_device_bytes(struct tfcompile_device_amount* amount, uint64_t bytes) {
  if (bytes < (UINT64_C(1) << 20)) {
    (void)snprintf(amount->text, sizeof amount->text, "%llu bytes", (unsigned long long)bytes);
  } else if (bytes < (UINT64_C(1) << 30)) {
    (void)snprintf(amount->text, sizeof amount->text, "%.1f MiB", (double)bytes / 1048576.0);
  } else {
    (void)snprintf(amount->text, sizeof amount->text, "%.2f GiB", (double)bytes / 1073741824.0);
  }
  return amount->text;
}

// Remembers that the device cannot be used any more. The first reason stays.
static inline void tfcompile_device_mark_lost(struct tfcompile_device* device, const char* reason) {
  tfcompile_device_acquire(&device->lost_lock);
  if (device->lost[0] == '\0') (void)snprintf(device->lost, sizeof device->lost, "%s", reason);
  tfcompile_device_release(&device->lost_lock);
}

// Enters the device, or fails if it is lost.
static inline int32_t tfcompile_device_enter(struct tfcompile_device* device, struct tfcompile_device_error* error) {
  int32_t status = TFCOMPILE_DEVICE_OK;
  if (device == NULL) {
    return tfcompile_device_fail(error, TFCOMPILE_DEVICE_INVALID_ARGUMENT, 0, "the device is null");
  }
  tfcompile_device_acquire(&device->lost_lock);
  if (device->lost[0] != '\0') {
    status = tfcompile_device_fail(error, TFCOMPILE_DEVICE_LOST, 0,
                                   "device %d (%s) is lost since an earlier error: %s; close and reopen the device",
                                   (int)device->options.ordinal, device->name, device->lost);
  }
  tfcompile_device_release(&device->lost_lock);
  return status != TFCOMPILE_DEVICE_OK ? status : device->driver->enter(device, error);
}

// ---- libraries

// Opens the library that the environment variable names, else the first that exists. `what` is its
// name in the error text. Libraries stay open until the process ends, because drivers have threads
// and handlers that outlive their use.
static inline void* tfcompile_device_library(const char* what, const char* variable, const char* const* names,
                                             const char* cure, struct tfcompile_device_error* error) {
  const char* const override_name = getenv(variable);
  const char* const given[2] = {override_name, NULL};
  char reasons[512] = "";
  int i;
  if (override_name != NULL && override_name[0] != '\0') names = given;
  for (i = 0; names[i] != NULL; ++i) {
#if defined(_WIN32)
    void* const library = (void*)LoadLibraryA(names[i]);
    if (library != NULL) return library;
    tfcompile_device_append(reasons, sizeof reasons, "%s%s: Windows error %lu", i > 0 ? "; " : "", names[i],
                            (unsigned long)GetLastError());
#else
    void* const library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
    const char* reason;
    if (library != NULL) return library;
    reason = dlerror();
    tfcompile_device_append(reasons, sizeof reasons, "%s%s", i > 0 ? "; " : "", reason != NULL ? reason : names[i]);
#endif
  }
  (void)tfcompile_device_fail(error, TFCOMPILE_DEVICE_NO_DRIVER, 0, "cannot open %s: %s; %s", what, reasons, cure);
  return NULL;
}

// Copies the address of a function of the library to *function, a pointer to a function. Returns
// zero if the library does not have it.
static inline int32_t tfcompile_device_symbol(void* library, const char* name, void* function) {
#if defined(_WIN32)
  const FARPROC symbol = GetProcAddress((HMODULE)library, name);
  memcpy(function, &symbol, sizeof symbol);
  return symbol != NULL;
#else
  // POSIX requires that pointers to objects can hold pointers to functions.
  void* const symbol = dlsym(library, name);
  memcpy(function, &symbol, sizeof symbol);
  return symbol != NULL;
#endif
}

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // TFCOMPILE_DEVICE_DRIVER_H_
