// Tests of the device runtime with the stand-in for CUDA's driver.
//   cuda STANDIN_LIBRARY [threads]     threads: only the tests with several threads

#if !defined(_GNU_SOURCE)
#define _GNU_SOURCE
#endif
#include "programs.h"

static void test_drivers(const char* library) {
  struct tfcompile_device_options options;
  struct tfcompile_device_error error;
  int32_t count;
  memset(&options, 0, sizeof options);
  options.kind = TFCOMPILE_DEVICE_CUDA;
  setenv("TFCOMPILE_CUDA_DRIVER", "/nonexistent/libcuda.so.1", 1);
  setenv("TFCOMPILE_OPENCL_DRIVER", "/nonexistent/libOpenCL.so.1", 1);
  CHECK_STATUS(tfcompile_device_count(TFCOMPILE_DEVICE_CUDA, &count, &error), TFCOMPILE_DEVICE_NO_DRIVER, &error);
  CHECK_TEXT(error.text, "cannot open the driver's library: /nonexistent/libcuda.so.1");
  CHECK_TEXT(error.text, "install the NVIDIA driver");
  CHECK(tfcompile_device_open(NULL, &error) == NULL && error.status == TFCOMPILE_DEVICE_NO_DRIVER);
  CHECK_TEXT(error.text, "OpenCL: cannot open the driver's library: /nonexistent/libOpenCL.so.1");
  CHECK(tfcompile_device_open(NULL, NULL) == NULL);
  options.kind = 3;
  CHECK(tfcompile_device_open(&options, &error) == NULL && error.status == TFCOMPILE_DEVICE_INVALID_ARGUMENT);
  options.kind = TFCOMPILE_DEVICE_CUDA;

  setenv("TFCOMPILE_CUDA_DRIVER", library, 1);
  standin->machine->version = 10020;
  CHECK(tfcompile_device_open(&options, &error) == NULL && error.status == TFCOMPILE_DEVICE_DRIVER_TOO_OLD);
  CHECK_TEXT(error.text, "it supports CUDA 10.2, expected at least 11.0");
  standin->machine->version = 12040;
  standin->machine->devices = 0;
  CHECK(tfcompile_device_open(&options, &error) == NULL && error.status == TFCOMPILE_DEVICE_NO_DEVICE);
  CHECK_TEXT(error.text, "cannot initialize the CUDA driver: CUDA_ERROR_NO_DEVICE (100");
  standin->machine->devices = 2;
  CHECK_STATUS(tfcompile_device_count(TFCOMPILE_DEVICE_CUDA, &count, &error), 0, &error);
  CHECK(count == 2);
  options.ordinal = 2;
  CHECK(tfcompile_device_open(&options, &error) == NULL && error.status == TFCOMPILE_DEVICE_NO_DEVICE);
  CHECK_TEXT(error.text, "no CUDA device 2; the devices are 0: Stand-in 0, 1: Stand-in 1");
  options.ordinal = -1;
  CHECK(tfcompile_device_open(&options, &error) == NULL && error.status == TFCOMPILE_DEVICE_NO_DEVICE);
  options.ordinal = 0;
  options.memory_fraction = 1.5;
  CHECK(tfcompile_device_open(&options, &error) == NULL && error.status == TFCOMPILE_DEVICE_INVALID_ARGUMENT);
  check_clean();
}

// Returns the chosen image of those given as kind and arch, or -1.
static int choose(int arch, int count, ...) {
  struct tfcompile_device device;
  struct tfcompile_program program;
  struct tfcompile_device_image images[4];
  const struct tfcompile_device_image* chosen;
  struct tfcompile_device_error error;
  va_list list;
  int i, status;
  memset(&device, 0, sizeof device);
  memset(&program, 0, sizeof program);
  memset(images, 0, sizeof images);
  device.kind = TFCOMPILE_DEVICE_CUDA;
  device.driver = tfcompile_cuda_driver();
  device.arch = arch;
  program.api = 1;
  program.name = "test";
  program.images = images;
  program.image_count = (uint32_t)count;
  program.kernel_count = 1;
  va_start(list, count);
  for (i = 0; i < count; ++i) {
    images[i].kind = va_arg(list, uint32_t);
    images[i].arch = va_arg(list, uint32_t);
  }
  va_end(list);
  status = tfcompile_image_choose(&device, &program, &chosen, &error);
  if (status == TFCOMPILE_DEVICE_OK) return (int)(chosen - images);
  CHECK_STATUS(status, TFCOMPILE_DEVICE_NO_IMAGE, &error);
  return -1;
}

static void test_images(void) {
  enum { PTX = 1, CUBIN = 2 };
  struct tfcompile_device_error error;
  struct blob blob;
  unsigned char* program;
  struct tfcompile_device* device;
  CHECK(choose(90, 2, PTX, 80, CUBIN, 90) == 1);
  CHECK(choose(90, 2, CUBIN, 90, CUBIN, 1090) == 1);
  CHECK(choose(100, 2, CUBIN, 90, CUBIN, 1090) == -1);
  CHECK(choose(100, 3, CUBIN, 1090, PTX, 1090, PTX, 80) == 2);
  CHECK(choose(86, 3, CUBIN, 80, CUBIN, 89, PTX, 80) == 0);
  CHECK(choose(89, 3, CUBIN, 80, CUBIN, 86, PTX, 89) == 1);
  CHECK(choose(75, 2, CUBIN, 80, PTX, 80) == -1);
  CHECK(choose(120, 3, PTX, 70, PTX, 90, PTX, 80) == 1);
  CHECK(choose(90, 2, PTX, 90, PTX, 1090) == 1);
  CHECK(choose(80, 0) == -1);

  standin->reset();
  device = open_cuda(0, 0);
  blob_init(&blob, 1);
  blob_image(&blob, 2, 100, image, sizeof image);
  blob_image(&blob, 1, 1100, image, sizeof image);
  program = blob_finish(&blob, NULL);
  CHECK(tfcompile_device_instance_create(device, program, NULL, &error) == NULL);
  CHECK(error.status == TFCOMPILE_DEVICE_NO_IMAGE);
  CHECK_TEXT(error.text, "no code for device 0 (Stand-in 0, sm_90): it has a cubin for sm_100, PTX for sm_100a;");
  free(program);
  blob_init(&blob, 2);
  program = blob_finish(&blob, NULL);
  CHECK(tfcompile_device_instance_create(device, program, NULL, &error) == NULL);
  CHECK_TEXT(error.text, "is compiled for OpenCL, but device 0 (Stand-in 0) is open with CUDA");
  free(program);
  blob_init(&blob, 1);
  blob_image(&blob, 1, 80, ".version 9.9", 13);
  program = blob_finish(&blob, NULL);
  CHECK(tfcompile_device_instance_create(device, program, NULL, &error) == NULL);
  CHECK(error.status == TFCOMPILE_DEVICE_LOAD_FAILED && error.code == 218);
  CHECK_TEXT(error.text, "the PTX for sm_80 of program 'test', whose log is: ptxas fatal: expected STANDIN");
  free(program);
  program = make_single("missing");
  CHECK(tfcompile_device_instance_create(device, program, NULL, &error) == NULL);
  CHECK_TEXT(error.text, "cannot find kernel 'missing' on device 0 (Stand-in 0): CUDA_ERROR_NOT_FOUND (500");
  free(program);
  program = make_static();
  CHECK(tfcompile_device_instance_create(device, program, NULL, &error) == NULL);
  CHECK_TEXT(error.text, "has 256 bytes of constants, but the pointer to them is null");
  free(program);
  tfcompile_device_close(device);
  check_clean();
}

// ---- memory

static void test_memory(void) {
  struct tfcompile_device_options options;
  struct tfcompile_device_statistics statistics;
  struct tfcompile_device_error error;
  struct tfcompile_device_info info;
  struct tfcompile_device* device;
  struct tfcompile_device* same;
  uint64_t address[8], more;
  void* host;
  int i;
  memset(&options, 0, sizeof options);
  options.kind = TFCOMPILE_DEVICE_CUDA;
  options.memory_fraction = 0.5;
  standin->reset();
  device = tfcompile_device_open(&options, &error);
  same = tfcompile_device_open(&options, &error);
  CHECK(device != NULL && device == same && standin->alive(STANDIN_CONTEXT) == 1);
  tfcompile_device_close(same);
  CHECK_STATUS(tfcompile_device_get_info(device, &info, &error), 0, &error);
  CHECK(info.arch == 90 && info.memory_bytes == UINT64_C(64) << 20 && info.free_bytes == info.memory_bytes);
  CHECK(info.driver_version == 12040 && info.processors == 4 && info.max_threads == 1024);
  for (i = 0; i < 8; ++i) {
    CHECK_STATUS(tfcompile_device_alloc(device, (uint64_t)i, &address[i], &error), 0, &error);
    CHECK(address[i] % 256 == 0);
  }
  CHECK(standin->calls("cuMemAlloc_v2") == 1);
  // Freed neighbors are merged and taken again.
  for (i = 2; i < 5; ++i) CHECK_STATUS(tfcompile_device_free(device, address[i], &error), 0, &error);
  CHECK_STATUS(tfcompile_device_alloc(device, 700, &more, &error), 0, &error);
  CHECK(more == address[2]);
  tfcompile_device_get_statistics(device, &statistics);
  CHECK(statistics.used == 8 * 256 && statistics.peak == 8 * 256 && statistics.allocations == 6);
  CHECK(statistics.reserved == 2 << 20 && statistics.limit == 32 << 20 && statistics.total_allocations == 9);
  // The pool has a limit, and gives up cached memory for a large allocation.
  CHECK_STATUS(tfcompile_device_alloc(device, 31 << 20, &address[2], &error), TFCOMPILE_DEVICE_OUT_OF_MEMORY, &error);
  CHECK_TEXT(error.text, "out of memory on device 0 (Stand-in 0): an allocation needs 31.0 MiB (32505856 bytes); of 64.0 MiB");
  CHECK_TEXT(error.text, "62.0 MiB are free, and the pool has 2048 bytes in use");
  CHECK_STATUS(tfcompile_device_alloc(device, 28 << 20, &address[2], &error), 0, &error);
  CHECK_STATUS(tfcompile_device_free(device, address[2], &error), 0, &error);
  CHECK_STATUS(tfcompile_device_free(device, more, &error), 0, &error);
  for (i = 0; i < 8; ++i) if (i < 2 || i > 4) CHECK(tfcompile_device_free(device, address[i], &error) == 0);
  CHECK(standin->alive(STANDIN_MEMORY) == 2);
  CHECK_STATUS(tfcompile_device_alloc(device, 31 << 20, &more, &error), 0, &error);
  CHECK(standin->alive(STANDIN_MEMORY) == 1);
  CHECK_STATUS(tfcompile_device_alloc(device, UINT64_MAX, &address[2], &error), TFCOMPILE_DEVICE_OUT_OF_MEMORY, &error);
  CHECK_STATUS(tfcompile_device_free(device, more + 256, &error), TFCOMPILE_DEVICE_INVALID_ARGUMENT, &error);
  CHECK_STATUS(tfcompile_device_free(device, more, &error), 0, &error);
  CHECK_STATUS(tfcompile_device_free(device, more, &error), TFCOMPILE_DEVICE_INVALID_ARGUMENT, &error);
  tfcompile_device_trim(device);
  CHECK(standin->alive(STANDIN_MEMORY) == 0);
  CHECK_STATUS(tfcompile_device_alloc_host(device, 100, &host, &error), 0, &error);
  CHECK(standin->alive(STANDIN_HOST) == 1);
  tfcompile_device_free_host(device, host);
  CHECK_STATUS(tfcompile_device_copy_in(device, 0, &i, 4, NULL, &error), TFCOMPILE_DEVICE_INVALID_ARGUMENT, &error);
  tfcompile_device_close(device);

  options.preallocate = 1;
  device = tfcompile_device_open(&options, &error);
  CHECK(device != NULL && standin->alive(STANDIN_MEMORY) == 1);
  tfcompile_device_get_statistics(device, &statistics);
  CHECK(statistics.reserved == 32 << 20 && statistics.used == 0);
  tfcompile_device_close(device);
  check_clean();
  standin->reset();
  standin->fail_function("cuMemAlloc_v2", 0, 2);
  CHECK(tfcompile_device_open(&options, &error) == NULL);
  CHECK_TEXT(error.text, "the preallocated pool needs 32.0 MiB");
  check_clean();
}

// ---- lost devices

static void test_lost(const char* kernel, int code, const char* text) {
  struct tfcompile_device_error error;
  unsigned char* const program = make_single(kernel);
  struct tfcompile_device* device;
  struct tfcompile_device_instance* instance;
  struct tfcompile_frame frame;
  uint64_t address;
  memset(&frame, 0, sizeof frame);
  standin->reset();
  device = open_cuda(0, 0);
  instance = create(device, program, NULL);
  CHECK(instance->run(instance, program, &frame) == 1);
  CHECK(tfcompile_device_instance_error(instance)->status == TFCOMPILE_DEVICE_LOST);
  CHECK(tfcompile_device_instance_error(instance)->code == code);
  CHECK_TEXT(frame.error, text);
  CHECK_TEXT(frame.error, "the context is lost: close and reopen the device");
  CHECK(instance->run(instance, program, &frame) == 1);
  CHECK_TEXT(frame.error, "device 0 (Stand-in 0) is lost since an earlier error: cannot finish the work of a stream");
  CHECK_STATUS(tfcompile_device_alloc(device, 8, &address, &error), TFCOMPILE_DEVICE_LOST, &error);
  CHECK(tfcompile_device_instance_create(device, program, NULL, &error) == NULL && error.status == TFCOMPILE_DEVICE_LOST);
  tfcompile_device_instance_destroy(instance);
  tfcompile_device_close(device);
  CHECK(standin->misuse()[0] == '\0');
  // A reopened device works.
  device = open_cuda(0, 0);
  CHECK_STATUS(tfcompile_device_alloc(device, 8, &address, &error), 0, &error);
  CHECK_STATUS(tfcompile_device_zero(device, address, 8, NULL, &error), 0, &error);
  tfcompile_device_close(device);
  free(program);
}

// ---- threads

struct thread {
  int number;
  const unsigned char* programs[2];
};

static void* run_thread(void* data) {
  const struct thread* const thread = (const struct thread*)data;
  struct tfcompile_device* const device = open_cuda(thread->number % 2, thread->number % 4 < 2 ? 0 : 1);
  struct tfcompile_device_instance* const first = create(device, thread->programs[0], constants);
  struct tfcompile_device_instance* const second = create(device, thread->programs[1], NULL);
  float a[N], b[N], v[N], out[N], sum[N];
  int round, i;
  for (i = 0; i < N; ++i) v[i] = 0;
  for (round = 0; round < 20; ++round) {
    int32_t trips = round;
    struct tfcompile_frame frame;
    void* args[3];
    void* results[2];
    memset(&frame, 0, sizeof frame);
    frame.args = args;
    frame.results = results;
    for (i = 0; i < N; ++i) a[i] = (float)(thread->number * i), b[i] = (float)round;
    args[0] = a, args[1] = b, args[2] = v, results[0] = out, results[1] = v;
    CHECK_STATUS(first->run(first, thread->programs[0], &frame), 0, tfcompile_device_instance_error(first));
    for (i = 0; i < N; ++i) CHECK(out[i] == a[i] + b[i] + constants[i] && v[i] == (float)(round + 1) * a[i]);
    args[1] = &trips, results[0] = sum;
    CHECK_STATUS(second->run(second, thread->programs[1], &frame), 0, tfcompile_device_instance_error(second));
    for (i = 0; i < N; ++i) CHECK(trips == 0 && sum[i] == (float)(round * (round + 1) / 2 + 5 * (round + 1)) * a[i]);
  }
  tfcompile_device_instance_destroy(first);
  tfcompile_device_instance_destroy(second);
  tfcompile_device_close(device);
  return NULL;
}

static void test_threads(void) {
  struct thread threads[8];
  pthread_t handles[8];
  unsigned char* const first = make_static();
  unsigned char* const second = make_loop(1, 1);
  int i;
  standin->reset();
  for (i = 0; i < 8; ++i) {
    threads[i].number = i;
    threads[i].programs[0] = first;
    threads[i].programs[1] = second;
    CHECK(pthread_create(&handles[i], NULL, run_thread, &threads[i]) == 0);
  }
  for (i = 0; i < 8; ++i) CHECK(pthread_join(handles[i], NULL) == 0);
  free(first);
  free(second);
  check_clean();
}

// ---- failures of every call

// Uses most of the interface. Returns the first failure; releases everything in any case.
static int scenario(const unsigned char* program, const unsigned char* loop, struct tfcompile_device_error* error) {
  struct tfcompile_device_options options;
  struct tfcompile_device* device;
  struct tfcompile_device_instance* instance = NULL;
  struct tfcompile_device_instance* other = NULL;
  struct tfcompile_device_event* event = NULL;
  struct tfcompile_frame frame;
  static float a[N], b[N], v[N], out[N];
  int32_t trips = 5;
  int counts[6] = {0, 0, 0, 0, 0, 0};
  void* args[3];
  void* results[2];
  void* stream = NULL;
  uint64_t address = 0;
  int status = 0;
  int round;
  memset(&options, 0, sizeof options);
  options.kind = TFCOMPILE_DEVICE_CUDA;
  memset(&frame, 0, sizeof frame);
  frame.args = args;
  frame.results = results;
  args[0] = a, args[1] = b, args[2] = v, results[0] = out, results[1] = v;
  device = tfcompile_device_open(&options, error);
  if (device == NULL) return error->status;
  instance = tfcompile_device_instance_create(device, program, constants, error);
  if (instance == NULL) status = error->status;
  for (round = 0; round < 3 && status == 0; ++round) {
    if (instance->run(instance, program, &frame) != 0) {
      *error = *tfcompile_device_instance_error(instance);
      status = error->status;
      CHECK(frame.error == tfcompile_device_instance_error(instance)->text);
    }
  }
  if (status == 0) {
    other = tfcompile_device_instance_create(device, loop, NULL, error);
    if (other == NULL) status = error->status;
  }
  args[1] = &trips;
  if (status == 0 && other->run(other, loop, &frame) != 0) {
    *error = *tfcompile_device_instance_error(other);
    status = error->status;
  }
  if (status == 0) status = tfcompile_device_stream_create(device, 0, &stream, error);
  if (status == 0) status = tfcompile_device_alloc(device, 3 << 20, &address, error);
  if (status == 0) status = tfcompile_device_copy_in(device, address, a, sizeof a, NULL, error);
  if (status == 0) status = tfcompile_device_zero(device, address, 64, stream, error);
  if (status == 0) status = tfcompile_device_copy(device, address + 512, address, 64, stream, error);
  if (status == 0) status = tfcompile_device_copy_out(device, out, address, 64, stream, error);
  event = tfcompile_device_event_create(device, status == 0 ? error : NULL);
  if (status == 0) status = tfcompile_device_event_record(event, stream, error);
  if (status == 0) status = tfcompile_device_event_synchronize(event, error);
  for (round = 0; round < 4 && status == 0; ++round) {
    status = tfcompile_device_instance_enqueue(instance, NULL, NULL, 0, round % 2 == 0 ? stream : NULL, error);
  }
  if (status == 0) status = tfcompile_device_event_wait(event, stream, error);
  if (status == 0) status = tfcompile_device_instance_finish(instance, error);
  if (status == 0) status = tfcompile_device_instance_profile(instance, count_records, counts, error);
  if (status == 0) status = tfcompile_device_instance_enqueue(instance, NULL, NULL, 0, stream, error);
  if (status == 0) status = tfcompile_device_instance_finish(instance, error);
  if (status == 0) status = tfcompile_device_synchronize(device, error);
  tfcompile_device_event_destroy(event);
  (void)tfcompile_device_free(device, address, NULL);
  tfcompile_device_instance_destroy(other);
  tfcompile_device_instance_destroy(instance);
  tfcompile_device_stream_destroy(device, stream);
  tfcompile_device_trim(device);
  tfcompile_device_close(device);
  return status;
}

// Lets each call of the scenario fail, with each of the first `code_count` codes.
static void test_failures(int code_count) {
  // Calls whose errors cannot be reported: those that release something, and those that end an
  // earlier failure. Those of CUPTI lead to events instead.
  static const char* const quiet[] = {
      "cuMemFree_v2",        "cuMemFreeHost",      "cuStreamDestroy_v2",  "cuEventDestroy_v2",
      "cuModuleUnload",      "cuGraphExecDestroy", "cuCtxPopCurrent_v2",  "cuDevicePrimaryCtxRelease_v2",
      "cuStreamSynchronize", "cuEventSynchronize", "cuCtxPushCurrent_v2", NULL};
  static const int codes[3] = {1, 2, 719};
  unsigned char* const program = make_static();
  unsigned char* const loop = make_loop(1, 1);
  struct tfcompile_device_error error;
  long calls, number, reported = 0, runs = 0;
  int kind, i;
  standin->reset();
  CHECK_STATUS(scenario(program, loop, &error), 0, &error);
  check_clean();
  calls = standin->calls(NULL);
  for (i = 0; i < code_count; ++i) {
    for (number = 1; number <= calls; ++number, ++runs) {
      int status, j;
      standin->reset();
      standin->fail_call(number, codes[i]);
      memset(&error, 0, sizeof error);
      status = scenario(program, loop, &error);
      CHECK(standin->failed()[0] != '\0');
      if (status == 0) {
        for (j = 0; quiet[j] != NULL && strcmp(quiet[j], standin->failed()) != 0;) ++j;
        // An allocation is tried again with less, and after cached memory was given up.
        if (codes[i] == 2 && strcmp(standin->failed(), "cuMemAlloc_v2") == 0) continue;
        if (strncmp(standin->failed(), "cupti", 5) == 0) continue;
        if (quiet[j] == NULL) fprintf(stderr, "call %ld: an error of %s is lost\n", number, standin->failed());
        CHECK(quiet[j] != NULL);
      } else {
        ++reported;
        CHECK(error.status == status && strlen(error.text) > 20);
        CHECK(strstr(error.text, "Stand-in") != NULL || strstr(error.text, "CUDA") != NULL);
        if (codes[i] != 2) CHECK(status == (codes[i] == 719 ? TFCOMPILE_DEVICE_LOST : TFCOMPILE_DEVICE_DRIVER_ERROR) ||
                                 strcmp(standin->failed(), "cuDriverGetVersion") == 0);
      }
      // What cannot be released without a context ends with it.
      for (kind = 0; kind < STANDIN_KINDS; ++kind) CHECK(standin->alive(kind) == 0);
      if (strcmp(standin->failed(), "cuCtxPushCurrent_v2") == 0) continue;
      if (standin->misuse()[0] != '\0') fprintf(stderr, "call %ld, %s: %s\n", number, standin->failed(), standin->misuse());
      CHECK(standin->misuse()[0] == '\0' && standin->abandoned() == 0);
    }
  }
  // Functions that always fail.
  standin->reset();
  standin->fail_function("cuStreamBeginCapture_v2", 0, 801);
  CHECK_STATUS(scenario(program, loop, &error), 0, &error);
  CHECK(standin->calls("cuGraphLaunch") == 0);
  check_clean();
  standin->reset();
  standin->fail_function("cuMemAlloc_v2", 1, 2);
  CHECK_STATUS(scenario(program, loop, &error), TFCOMPILE_DEVICE_OUT_OF_MEMORY, &error);
  CHECK_TEXT(error.text, "an allocation needs 3.0 MiB (3145728 bytes)");
  check_clean();
  standin->reset();
  free(program);
  free(loop);
  printf("cuda: %ld driver calls, failed in turn in %ld runs, of which %ld reported it\n", calls, runs, reported);
}

// ---- traces

// Two instances in one context with a trace each.
static void test_two_traces(void) {
  struct tfcompile_device_error error;
  unsigned char* const program = make_static();
  struct tfcompile_device* device;
  struct tfcompile_device_instance* instances[2];
  int counts[2][6];
  int round, i;
  standin->reset();
  memset(counts, 0, sizeof counts);
  device = open_cuda(0, 0);
  for (i = 0; i < 2; ++i) {
    instances[i] = create(device, program, constants);
    CHECK_STATUS(tfcompile_device_zero(device, tfcompile_device_instance_argument(instances[i], 1, &error), BYTES, NULL,
                                       &error), 0, &error);
    CHECK_STATUS(tfcompile_device_instance_profile(instances[i], count_records, counts[i], &error), 0, &error);
  }
  // Unequal numbers of runs, in turns, so that many records need several reads.
  for (round = 0; round < 100; ++round) {
    for (i = 0; i < 2; ++i) {
      if (round % (i + 1) != 0) continue;
      CHECK_STATUS(tfcompile_device_instance_enqueue(instances[i], NULL, NULL, 0, NULL, &error), 0, &error);
    }
    if (round % 10 == 9) CHECK_STATUS(tfcompile_device_instance_finish(instances[0], &error), 0, &error);
  }
  CHECK_STATUS(tfcompile_device_instance_finish(instances[1], &error), 0, &error);
  CHECK(counts[0][TFCOMPILE_DEVICE_LAUNCH] == 400 && counts[1][TFCOMPILE_DEVICE_LAUNCH] == 200);
  CHECK(counts[0][TFCOMPILE_DEVICE_COPY] == 100 && counts[1][TFCOMPILE_DEVICE_FILL] == 50);
  for (i = 0; i < 2; ++i) {
    CHECK_TEXT(tfcompile_device_instance_profile_note(instances[i])->text, "");
    CHECK(tfcompile_device_instance_profile_note(instances[i])->status == 0);
    // Without a profiler, nothing is traced.
    CHECK_STATUS(tfcompile_device_instance_profile(instances[i], NULL, NULL, &error), 0, &error);
    CHECK_STATUS(tfcompile_device_instance_enqueue(instances[i], NULL, NULL, 0, NULL, &error), 0, &error);
    CHECK_STATUS(tfcompile_device_instance_finish(instances[i], &error), 0, &error);
  }
  CHECK(counts[0][TFCOMPILE_DEVICE_LAUNCH] == 400 && counts[1][TFCOMPILE_DEVICE_LAUNCH] == 200);
  CHECK(standin->calls("cuptiActivityEnable") == 3 && standin->calls("cuptiActivityDisable") == 3);
  for (i = 0; i < 2; ++i) tfcompile_device_instance_destroy(instances[i]);
  tfcompile_device_close(device);
  free(program);
  check_clean();
}

// Lost records are missing in the run's profile, and later profiles have the times of events.
static void test_lost_records(void) {
  struct tfcompile_device_error error;
  unsigned char* const program = make_static();
  struct tfcompile_device* device;
  struct tfcompile_device_instance* instance;
  int counts[6] = {0, 0, 0, 0, 0, 0};
  int round;
  standin->reset();
  device = open_cuda(0, 0);
  instance = create(device, program, constants);
  CHECK_STATUS(tfcompile_device_zero(device, tfcompile_device_instance_argument(instance, 1, &error), BYTES, NULL, &error),
               0, &error);
  CHECK_STATUS(tfcompile_device_instance_profile(instance, count_records, counts, &error), 0, &error);
  standin->fail_function("cuptiActivityGetNextRecord", 3, 5);
  for (round = 0; round < 2; ++round) {
    CHECK_STATUS(tfcompile_device_instance_enqueue(instance, NULL, NULL, 0, NULL, &error), 0, &error);
    CHECK_STATUS(tfcompile_device_instance_finish(instance, &error), 0, &error);
    CHECK(counts[TFCOMPILE_DEVICE_LAUNCH] == (round == 0 ? 2 : 6));
    CHECK_TEXT(tfcompile_device_instance_profile_note(instance)->text,
               "CUPTI reported 2 of 4 kernels of a run and lost 1 records; maybe another profiler takes them");
  }
  tfcompile_device_instance_destroy(instance);
  tfcompile_device_close(device);
  free(program);
  check_clean();
}

// The records of a failed run are not in the next profile, which has the times of events.
static void test_discarded_records(void) {
  struct tfcompile_device_error error;
  unsigned char* const program = make_static();
  struct tfcompile_device* device;
  struct tfcompile_device_instance* instance;
  struct tfcompile_frame frame;
  float a[N], b[N], v[N], out[N];
  void* args[3];
  void* results[2];
  int counts[6] = {0, 0, 0, 0, 0, 0};
  standin->reset();
  memset(a, 0, sizeof a), memset(b, 0, sizeof b), memset(v, 0, sizeof v);
  memset(&frame, 0, sizeof frame);
  frame.size = sizeof frame;
  frame.args = args;
  frame.results = results;
  args[0] = a, args[1] = b, args[2] = v, results[0] = out, results[1] = v;
  device = open_cuda(0, 0);
  instance = create(device, program, constants);
  CHECK_STATUS(tfcompile_device_instance_profile(instance, count_records, counts, &error), 0, &error);
  standin->fail_function("cuStreamSynchronize", 0, 1);
  CHECK(instance->run(instance, program, &frame) != 0);
  standin->fail_function(NULL, 0, 0);
  CHECK_STATUS(tfcompile_device_synchronize(device, &error), 0, &error);
  CHECK(counts[TFCOMPILE_DEVICE_LAUNCH] == 0);
  CHECK_STATUS(instance->run(instance, program, &frame), 0, tfcompile_device_instance_error(instance));
  CHECK(counts[TFCOMPILE_DEVICE_LAUNCH] == 4);
  CHECK_TEXT(tfcompile_device_instance_profile_note(instance)->text, "a profiled run failed");
  tfcompile_device_instance_destroy(instance);
  tfcompile_device_close(device);
  free(program);
  check_clean();
}

static void test_cupti(const char* library) {
  setenv("TFCOMPILE_CUPTI", library, 1);
  standin->machine->cupti_version = 16;
  test_profile("the records of CUPTI's version 16 are not known; those of 17 to 28 (CUDA 11.6 to 12.9)", NULL, 0, 0);
  standin->machine->cupti_version = 130600;
  test_profile("the records of CUPTI's version 130600 are not known", NULL, 0, 0);
  standin->machine->cupti_version = 130000;
  test_profile("cuptiGetVersion of CUPTI failed: CUPTI_ERROR_OF_THE_STANDIN (999)", "cuptiGetVersion", 0, 999);
  test_profile("another profiler uses CUPTI", "cuptiActivityRegisterCallbacks", 0, 39);
  test_profile("cuptiGetContextId of CUPTI failed", "cuptiGetContextId", 0, 2);
  test_profile("cuptiGetTimestamp of CUPTI failed", "cuptiGetTimestamp", 0, 2);
  test_profile("cuptiActivityEnable of CUPTI failed: CUPTI_ERROR_INSUFFICIENT_PRIVILEGES (35); the NVIDIA driver "
               "reserves profiling for administrators", "cuptiActivityEnable", 2, 35);
  test_profile("cuptiGetStreamIdEx of CUPTI failed", "cuptiGetStreamIdEx", 0, 2);
  test_profile(NULL, NULL, 0, 0);
  standin->machine->graph_stream = 7;
  test_profile(NULL, NULL, 0, 0);
  standin->machine->graph_stream = 0;
  standin->machine->is_flush_forced = 1;
  test_profile(NULL, NULL, 0, 0);
  test_discarded_records();
  standin->machine->is_flush_forced = 0;
  test_two_traces();
  test_lost_records();
}

#include "malformed.h"

int main(int count, char** arguments) {
  standin_controls_function controls;
  void* library;
  CHECK(count == 2 || count == 3);
  library = dlopen(arguments[1], RTLD_NOW);
  CHECK(library != NULL);
  CHECK(tfcompile_device_symbol(library, "standin_controls", &controls));
  standin = controls();
  test_drivers(arguments[1]);
  test_threads();
  if (count == 3) {
    test_cupti(arguments[1]);
    return 0;
  }
  test_images();
  test_static(0);
  test_static(1);
  test_loops();
  test_branch();
  test_enqueue();
  test_order();
  setenv("TFCOMPILE_CUPTI", "/nonexistent/libcupti.so", 1);
  test_profile("cannot open CUPTI: /nonexistent/libcupti.so", NULL, 0, 0);
  test_memory();
  test_lost("trap", 719, "CUDA_ERROR_LAUNCH_FAILED");
  test_lost("hang", 702, "a kernel ran longer than the system permits");
  test_failures(3);
  test_cupti(arguments[1]);
  test_failures(1);
  test_malformed();
  printf("cuda: %ld checks passed\n", check_count);
  return 0;
}
