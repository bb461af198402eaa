// Overrides functions of the C library in a process that preloads this library (LD_PRELOAD), to
// let them fail or to change what they return. Environment variables choose what.
//
//   FAULT_THREAD=N        only N calls of pthread_create succeed; later ones return EAGAIN
//   FAULT_THREAD_ONCE=N   call N + 1 of pthread_create returns EAGAIN
//   FAULT_CLOCK=SEED      clocks jump: CLOCK_REALTIME by up to a year back or ahead with each call,
//                         CLOCK_MONOTONIC ahead by up to an hour with one of 16 calls
//   FAULT_MEMORY=N        allocation N of at least FAULT_MEMORY_SIZE bytes (default 1) returns null
//   FAULT_COUNTS=FILE     at the end, writes how many threads and allocations were asked for

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

// Of the C library that all others use, too.
extern void* __libc_malloc(size_t);
extern void* __libc_calloc(size_t, size_t);
extern void* __libc_realloc(void*, size_t);
extern void* __libc_memalign(size_t, size_t);

static atomic_long threads, allocations;
static atomic_ullong random_state;
static long thread_limit = -1, thread_once = -1, memory_at = -1;
static size_t memory_size = 1;
static int jumps;
static char counts[4096];

static long number_of(const char* name, long otherwise) {
  const char* value = getenv(name);
  return value == NULL ? otherwise : atol(value);
}

__attribute__((constructor)) static void begin(void) {
  thread_limit = number_of("FAULT_THREAD", -1);
  thread_once = number_of("FAULT_THREAD_ONCE", -1);
  memory_size = (size_t)number_of("FAULT_MEMORY_SIZE", 1);
  jumps = getenv("FAULT_CLOCK") != NULL;
  random_state = (unsigned long long)number_of("FAULT_CLOCK", 1);
  const char* file = getenv("FAULT_COUNTS");
  if (file != NULL) strncpy(counts, file, sizeof counts - 1);
  // Not for the programs that the process starts.
  unsetenv("LD_PRELOAD");
  unsetenv("FAULT_COUNTS");
  allocations = 0;
  memory_at = number_of("FAULT_MEMORY", -1);
}

__attribute__((destructor)) static void end(void) {
  if (counts[0] == 0) return;
  char text[100];
  const int length = snprintf(text, sizeof text, "%ld threads, %ld allocations\n", threads, allocations);
  const int file = open(counts, O_WRONLY | O_CREAT | O_TRUNC, 0666);
  if (file >= 0 && write(file, text, (size_t)length) == length) close(file);
}

int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*function)(void*), void* argument) {
  static int (*real)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);
  if (real == NULL) *(void**)&real = dlsym(RTLD_NEXT, "pthread_create");
  const long number = atomic_fetch_add(&threads, 1);
  if (number == thread_once || (thread_limit >= 0 && number >= thread_limit)) return EAGAIN;
  return real(thread, attributes, function, argument);
}

// xorshift of 64 bits.
static unsigned long long next(void) {
  unsigned long long x = atomic_load(&random_state) * 2 + 1;
  x ^= x << 13;
  x ^= x >> 7;
  x ^= x << 17;
  atomic_store(&random_state, x);
  return x >> 11;
}

int clock_gettime(clockid_t clock, struct timespec* time) {
  static int (*real)(clockid_t, struct timespec*);
  static atomic_long ahead;
  if (real == NULL) *(void**)&real = dlsym(RTLD_NEXT, "clock_gettime");
  const int result = real(clock, time);
  if (!jumps || result != 0) return result;
  const long year = 365L * 24 * 3600;
  if (clock == CLOCK_REALTIME) time->tv_sec += (long)(next() % (unsigned long long)(2 * year)) - year;
  if (clock == CLOCK_MONOTONIC) {
    if (next() % 16 == 0) atomic_fetch_add(&ahead, (long)(next() % 3600));
    time->tv_sec += atomic_load(&ahead);
  }
  return result;
}

// True if this allocation fails.
static int fails(size_t size) {
  if (size < memory_size || atomic_fetch_add(&allocations, 1) != memory_at) return 0;
  errno = ENOMEM;
  return 1;
}

void* malloc(size_t size) { return fails(size) ? NULL : __libc_malloc(size); }
void* calloc(size_t count, size_t size) { return fails(count * size) ? NULL : __libc_calloc(count, size); }
void* realloc(void* old, size_t size) { return fails(size) ? NULL : __libc_realloc(old, size); }
void* aligned_alloc(size_t alignment, size_t size) { return fails(size) ? NULL : __libc_memalign(alignment, size); }
int posix_memalign(void** out, size_t alignment, size_t size) {
  if (fails(size)) return ENOMEM;
  *out = __libc_memalign(alignment, size);
  return *out == NULL ? ENOMEM : 0;
}
