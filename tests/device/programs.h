// Device programs for the stand-in of CUDA's driver, and tests of what they compute: launches,
// copies, loops, graphs, streams, and profiles.

#ifndef TESTS_DEVICE_PROGRAMS_H_
#define TESTS_DEVICE_PROGRAMS_H_

#include "blob.h"
#include "standin.h"

enum { N = 64, BYTES = 4 * N };

static const char image[] = "STANDIN add_f32 ones begin step check trap hang";

static const struct standin* standin;

// Numbers of kernels and slots that programs of this file share.
struct names {
  uint32_t add, ones, begin, step, check, null, guard, count, status;
};

static void start(struct blob* blob, struct names* names) {
  blob_init(blob, 1);
  blob_image(blob, 1, 80, image, sizeof image);
  names->add = blob_kernel(blob, "add_f32", N, 4);
  names->ones = blob_kernel(blob, "ones", N, 2);
  names->begin = blob_kernel(blob, "begin", 1, 2);
  names->step = blob_kernel(blob, "step", 1, 3);
  names->check = blob_kernel(blob, "check", 1, 3);
  names->null = blob_slot(blob, NOWHERE, 0, 0);
  names->guard = blob_slot(blob, CONTROL, 0, 8);
  names->count = blob_slot(blob, CONTROL, 0, 12);
  names->status = blob_slot(blob, CONTROL, 0, 0);
}

// out = a + b + constants; v += a in place, which is also result 1.
static unsigned char* make_static(void) {
  struct blob blob;
  struct names k;
  uint32_t a, b, v, c, temp, out;
  start(&blob, &k);
  blob.temps = 1024;
  blob.constants = BYTES;
  blob_argument(&blob, BYTES, 0);
  blob_argument(&blob, BYTES, 0);
  blob_argument(&blob, BYTES, 1);
  blob_result(&blob, BYTES, 0);
  blob_result(&blob, BYTES, 3);
  a = blob_slot(&blob, ARGUMENT, 0, 0);
  b = blob_slot(&blob, ARGUMENT, 1, 0);
  v = blob_slot(&blob, ARGUMENT, 2, 0);
  c = blob_slot(&blob, CONSTANTS, 0, 0);
  temp = blob_slot(&blob, TEMPS, 0, 64);
  out = blob_slot(&blob, RESULT, 0, 0);
  blob_message(&blob, "never", 7);
  blob_message(&blob, "b is negative", 9);
  blob_words(&blob, 7, LAUNCH, k.check, 1, 0, k.null, b, k.status);
  blob_words(&blob, 8, LAUNCH, k.add, 1, 0, k.null, a, b, temp);
  blob_words(&blob, 8, LAUNCH, k.add, 1, 0, k.null, temp, c, out);
  blob_words(&blob, 8, LAUNCH, k.add, 1, 0, k.null, v, a, temp);
  blob_words(&blob, 5, COPY, v, temp, BYTES, 0);
  return blob_finish(&blob, NULL);
}

// sum = 0; while (trips-- > 0) next = sum + x, and the two buffers rotate. With `is_nested`, a
// repetition of two rotations is around it, and HOME ends it; `stages` selects its form.
static unsigned char* make_loop(int is_nested, uint32_t stages) {
  struct blob blob;
  struct names k;
  uint32_t x, trips, sum, next, stage, spare, out;
  start(&blob, &k);
  blob.temps = 4096;
  blob.persistent = 4096;
  blob_argument(&blob, BYTES, 0);
  blob_argument(&blob, 4, 1);
  blob_result(&blob, BYTES, 0);
  x = blob_slot(&blob, ARGUMENT, 0, 0);
  trips = blob_slot(&blob, ARGUMENT, 1, 0);
  sum = blob_slot(&blob, TEMPS, 0, 0);
  next = blob_slot(&blob, TEMPS, 0, 1024);
  stage = blob_slot(&blob, TEMPS, 0, 2048);
  spare = blob_slot(&blob, TEMPS, 0, 3072);
  out = blob_slot(&blob, RESULT, 0, 0);
  blob_words(&blob, 6, LAUNCH, k.begin, 1, 0, k.null, k.guard);
  blob_words(&blob, 5, WHILE, k.guard, k.count, 7, 12);
  blob_words(&blob, 7, LAUNCH, k.step, 1, 0, k.null, k.guard, trips);
  blob_words(&blob, 8, LAUNCH, k.add, 1, 0, k.guard, sum, x, next);
  blob_words(&blob, 4, ROTATE, 2, sum, next);
  if (is_nested) {
    // Five more additions without a loop of unknown length.
    blob_words(&blob, 4, REPEAT, 5, 0, 12);
    blob_words(&blob, 8, LAUNCH, k.add, 1, 0, k.null, sum, x, next);
    blob_words(&blob, 4, ROTATE, 2, sum, next);
    if (stages != 0) {
      blob_words(&blob, 11, HOME, 1, 2, sum, next, sum, next, stage, spare, BYTES, 0);
    } else {
      blob_words(&blob, 7, HOME, 0, 1, sum, sum, BYTES, 0);
    }
  }
  blob_words(&blob, 5, COPY, out, sum, BYTES, 0);
  return blob_finish(&blob, NULL);
}

// out = 1 if flag is nonzero, else 0; sizes = {1, ...}.
static unsigned char* make_branch(void) {
  struct blob blob;
  struct names k;
  uint32_t flag, out, sizes;
  start(&blob, &k);
  blob.sizes = 1;
  blob_argument(&blob, 4, 0);
  blob_argument(&blob, BYTES, 0);
  blob_result(&blob, BYTES, 0);
  flag = blob_slot(&blob, ARGUMENT, 0, 0);
  out = blob_slot(&blob, RESULT, 0, 0);
  sizes = blob_slot(&blob, SIZES, 0, 0);
  blob_words(&blob, 6, LAUNCH, k.begin, 1, 0, k.null, sizes);
  blob_words(&blob, 5, COPY, out, blob_slot(&blob, ARGUMENT, 1, 0), BYTES, 0);
  blob_words(&blob, 3, SKIP, flag, 6);
  blob_words(&blob, 6, LAUNCH, k.ones, 1, 0, k.null, out);
  return blob_finish(&blob, NULL);
}

// A program of one kernel without data.
static unsigned char* make_single(const char* kernel) {
  struct blob blob;
  struct names k;
  uint32_t number;
  start(&blob, &k);
  number = blob_kernel(&blob, kernel, 1, 1);
  blob_words(&blob, 5, LAUNCH, number, 1, 0, k.null);
  return blob_finish(&blob, NULL);
}

static const float constants[N] = {0.5f, 1.5f, 2.5f};

static struct tfcompile_device* open_cuda(int ordinal, uint64_t staging_bytes) {
  struct tfcompile_device_options options;
  struct tfcompile_device_error error;
  struct tfcompile_device* device;
  memset(&options, 0, sizeof options);
  options.kind = TFCOMPILE_DEVICE_CUDA;
  options.ordinal = ordinal;
  options.staging_bytes = staging_bytes;
  device = tfcompile_device_open(&options, &error);
  CHECK_STATUS(device == NULL ? error.status : 0, 0, &error);
  return device;
}

static struct tfcompile_device_instance* create(struct tfcompile_device* device, const void* program, const void* with) {
  struct tfcompile_device_error error;
  struct tfcompile_device_instance* const instance = tfcompile_device_instance_create(device, program, with, &error);
  CHECK_STATUS(instance == NULL ? error.status : 0, 0, &error);
  return instance;
}

// Checks that nothing is left and nothing was misused.
static void check_clean(void) {
  int kind;
  for (kind = 0; kind < STANDIN_KINDS; ++kind) CHECK(standin->alive(kind) == 0);
  CHECK(standin->abandoned() == 0);
  if (standin->misuse()[0] != '\0') fprintf(stderr, "misuse: %s\n", standin->misuse());
  CHECK(standin->misuse()[0] == '\0');
}

// ---- runs of frames

static void test_static(uint64_t staging_bytes) {
  static const char order[] =
      "zero 16\ncheck\nadd_f32\nadd_f32\nadd_f32\ncopy 256\n";
  struct tfcompile_device_error error;
  unsigned char* const program = make_static();
  struct tfcompile_device* device;
  struct tfcompile_device_instance* instance;
  struct tfcompile_frame frame;
  float a[N], b[N], v[N], out[N], again[N], fixed[N];
  void* args[3];
  void* results[2];
  int round, i;
  standin->reset();
  device = open_cuda(0, staging_bytes);
  instance = create(device, program, constants);
  args[0] = a, args[1] = b, args[2] = v, results[0] = out, results[1] = v;
  memset(&frame, 0, sizeof frame);
  frame.size = sizeof frame;
  frame.args = args;
  frame.results = results;
  for (i = 0; i < N; ++i) v[i] = 1;
  for (round = 0; round < 5; ++round) {
    for (i = 0; i < N; ++i) a[i] = (float)(i + round), b[i] = (float)(3 * i), out[i] = -1;
    // The last round has separate memory for the result that shares an argument's.
    if (round == 4) results[1] = again;
    CHECK_STATUS(instance->run(instance, program, &frame), 0, tfcompile_device_instance_error(instance));
    for (i = 0; i < N; ++i) CHECK(out[i] == a[i] + b[i] + constants[i]);
    for (i = 0; i < N; ++i) CHECK(v[i] == (float)(1 + (round + 1) * i + round * (round + 1) / 2));
  }
  CHECK(memcmp(again, v, sizeof v) == 0);
  CHECK_TEXT(standin->log(), order);
  // Launched once directly and recorded once.
  CHECK(standin->calls("cuLaunchKernel") == 8 && standin->calls("cuGraphLaunch") == 4);
  CHECK(standin->calls("cuGraphInstantiateWithFlags") == 1);
  // All of a run is in the graph if the data is staged.
  if (staging_bytes == 0) {
    CHECK(standin->calls("cuMemcpyHtoDAsync_v2") == 3 && standin->calls("cuStreamSynchronize") == 6);
  } else {
    CHECK(standin->calls("cuMemcpyHtoDAsync_v2") == 16);
  }

  // An argument that stays on the device.
  CHECK_STATUS(tfcompile_device_instance_set_resident(instance, 0, 1, &error), 0, &error);
  for (i = 0; i < N; ++i) fixed[i] = (float)(i * i);
  CHECK_STATUS(tfcompile_device_copy_in(device, tfcompile_device_instance_argument(instance, 0, &error), fixed, BYTES,
                                        NULL, &error), 0, &error);
  args[0] = NULL;
  for (round = 0; round < 3; ++round) {
    CHECK_STATUS(instance->run(instance, program, &frame), 0, tfcompile_device_instance_error(instance));
    for (i = 0; i < N; ++i) CHECK(out[i] == fixed[i] + b[i] + constants[i]);
  }
  CHECK_STATUS(tfcompile_device_instance_set_resident(instance, 3, 1, &error), TFCOMPILE_DEVICE_INVALID_ARGUMENT, &error);
  CHECK_TEXT(error.text, "has no argument 3: it has 3");
  CHECK_STATUS(tfcompile_device_instance_set_resident(instance, 0, 0, &error), 0, &error);

  // Failures of the model, and the caller's mistakes.
  CHECK(instance->run(instance, program, &frame) == 1);
  CHECK_TEXT(frame.error, "the frame has no memory for argument 0");
  args[0] = a;
  b[0] = -1;
  for (round = 0; round < 3; ++round) {
    CHECK(instance->run(instance, program, &frame) == 9);
    CHECK(strcmp(frame.error, "b is negative") == 0);
  }
  b[0] = 1;
  CHECK(instance->run(instance, program, &frame) == 0);
  CHECK(instance->run(instance, program + 1, &frame) == 1);
  CHECK_TEXT(frame.error, "belongs to program 'test'");
  results[0] = NULL;
  CHECK(instance->run(instance, program, &frame) == 1);
  CHECK_TEXT(frame.error, "the frame has no memory for result 0");
  tfcompile_device_instance_destroy(instance);
  tfcompile_device_close(device);
  free(program);
  check_clean();
}

static void test_loops(void) {
  static const int trips_of[11] = {0, 1, 2, 3, 4, 6, 7, 8, 62, 63, 300};
  int kind, round, i;
  for (kind = 0; kind < 3; ++kind) {
    unsigned char* const program = make_loop(kind > 0, (uint32_t)(kind == 2));
    struct tfcompile_device* device;
    standin->reset();
    device = open_cuda(1, 0);
    for (round = 0; round < 11; ++round) {
      struct tfcompile_device_instance* const instance = create(device, program, NULL);
      int32_t trips = trips_of[round];
      const int additions = trips + (kind > 0 ? 5 : 0);
      struct tfcompile_frame frame;
      float x[N], out[N];
      void* args[2];
      void* results[1];
      args[0] = x, args[1] = &trips, results[0] = out;
      memset(&frame, 0, sizeof frame);
      frame.args = args;
      frame.results = results;
      for (i = 0; i < N; ++i) x[i] = (float)i, out[i] = -1;
      CHECK_STATUS(instance->run(instance, program, &frame), 0, tfcompile_device_instance_error(instance));
      CHECK(trips == 0);
      for (i = 0; i < N; ++i) CHECK(out[i] == (float)(additions * i));
      // The value is at home again, so that the next run continues with it.
      trips = 2;
      if (kind > 0) {
        CHECK_STATUS(instance->run(instance, program, &frame), 0, tfcompile_device_instance_error(instance));
        for (i = 0; i < N; ++i) CHECK(out[i] == (float)((additions + 7) * i));
      }
      tfcompile_device_instance_destroy(instance);
    }
    tfcompile_device_close(device);
    free(program);
    check_clean();
  }
}

static void test_branch(void) {
  unsigned char* const program = make_branch();
  struct tfcompile_device* device;
  struct tfcompile_device_instance* instance;
  struct tfcompile_frame frame;
  float x[N], out[N];
  int32_t flag;
  int64_t sizes[1];
  void* args[2];
  void* results[1];
  int i;
  standin->reset();
  device = open_cuda(0, 0);
  instance = create(device, program, NULL);
  args[0] = &flag, args[1] = x, results[0] = out;
  memset(&frame, 0, sizeof frame);
  frame.args = args;
  frame.results = results;
  for (i = 0; i < N; ++i) x[i] = (float)(i + 5);
  CHECK(instance->run(instance, program, &frame) == 1);
  CHECK_TEXT(frame.error, "the frame has no dynamic_sizes");
  frame.dynamic_sizes = sizes;
  for (flag = 0; flag < 4; ++flag) {
    sizes[0] = -1;
    CHECK_STATUS(instance->run(instance, program, &frame), 0, tfcompile_device_instance_error(instance));
    for (i = 0; i < N; ++i) CHECK(out[i] == (flag != 0 ? 1 : x[i]));
    CHECK(sizes[0] == 1);
  }
  CHECK(standin->calls("cuStreamBeginCapture_v2") == 0);
  tfcompile_device_instance_destroy(instance);
  tfcompile_device_close(device);
  free(program);
  check_clean();
}

// ---- asynchronous runs

static void test_enqueue(void) {
  struct tfcompile_device_error error;
  unsigned char* const program = make_static();
  struct tfcompile_device* device;
  struct tfcompile_device_instance* instance;
  struct tfcompile_device_event* event;
  uint64_t arguments[3], results[2][6];
  void* streams[2];
  float a[N], b[N], v[N], out[N];
  int round, set, i;
  standin->reset();
  device = open_cuda(0, 0);
  instance = create(device, program, constants);
  event = tfcompile_device_event_create(device, &error);
  CHECK(event != NULL);
  for (i = 0; i < 2; ++i) CHECK_STATUS(tfcompile_device_stream_create(device, 0, &streams[i], &error), 0, &error);
  for (i = 0; i < 3; ++i) CHECK_STATUS(tfcompile_device_alloc(device, BYTES, &arguments[i], &error), 0, &error);
  for (set = 0; set < 6; ++set) {
    CHECK_STATUS(tfcompile_device_alloc(device, BYTES, &results[0][set], &error), 0, &error);
    results[1][set] = 0;
  }
  for (i = 0; i < N; ++i) a[i] = (float)i, b[i] = 2, v[i] = 0;
  CHECK_STATUS(tfcompile_device_copy_in(device, arguments[0], a, BYTES, streams[0], &error), 0, &error);
  CHECK_STATUS(tfcompile_device_copy_in(device, arguments[1], b, BYTES, streams[0], &error), 0, &error);
  CHECK_STATUS(tfcompile_device_copy_in(device, arguments[2], v, BYTES, streams[0], &error), 0, &error);
  // Every run adds to the variable, alternately on two streams and on the instance's own.
  for (round = 0; round < 9; ++round) {
    void* const stream = round % 3 == 2 ? NULL : streams[round % 3];
    CHECK_STATUS(tfcompile_device_instance_enqueue(instance, arguments, results[0], 0, stream, &error), 0, &error);
  }
  CHECK_STATUS(tfcompile_device_instance_finish(instance, &error), 0, &error);
  CHECK_STATUS(tfcompile_device_copy_out(device, v, arguments[2], BYTES, NULL, &error), 0, &error);
  for (i = 0; i < N; ++i) CHECK(v[i] == (float)(9 * i));
  CHECK(standin->calls("cuGraphLaunch") == 8 && standin->calls("cuGraphInstantiateWithFlags") == 1);

  // Six sets of addresses, of which four are remembered.
  for (round = 0; round < 3; ++round) {
    for (set = 0; set < 6; ++set) {
      uint64_t result[2] = {0, 0};
      result[0] = results[0][set];
      CHECK_STATUS(tfcompile_device_instance_enqueue(instance, arguments, result, 0, streams[0], &error), 0, &error);
      CHECK_STATUS(tfcompile_device_event_record(event, streams[0], &error), 0, &error);
      CHECK_STATUS(tfcompile_device_event_wait(event, streams[1], &error), 0, &error);
      CHECK_STATUS(tfcompile_device_copy_out(device, out, result[0], BYTES, streams[1], &error), 0, &error);
      CHECK_STATUS(tfcompile_device_stream_synchronize(device, streams[1], &error), 0, &error);
      for (i = 0; i < N; ++i) CHECK(out[i] == a[i] + b[i] + constants[i]);
    }
  }
  CHECK_STATUS(tfcompile_device_event_synchronize(event, &error), 0, &error);

  // A failed assertion is reported by the next finish.
  b[0] = -1;
  CHECK_STATUS(tfcompile_device_copy_in(device, arguments[1], b, BYTES, NULL, &error), 0, &error);
  CHECK_STATUS(tfcompile_device_instance_enqueue(instance, arguments, results[0], 0, streams[1], &error), 0, &error);
  CHECK_STATUS(tfcompile_device_instance_finish(instance, &error), TFCOMPILE_DEVICE_CHECK_FAILED, &error);
  CHECK(error.code == 9 && strcmp(error.text, "b is negative") == 0);
  // The instance's own buffers, and mistakes.
  CHECK(tfcompile_device_instance_result(instance, 1, &error) == tfcompile_device_instance_argument(instance, 2, &error));
  CHECK(tfcompile_device_instance_sizes(instance, &error) != 0);
  CHECK_STATUS(tfcompile_device_zero(device, tfcompile_device_instance_argument(instance, 1, &error), BYTES, NULL, &error),
               0, &error);
  CHECK_STATUS(tfcompile_device_instance_enqueue(instance, NULL, NULL, 0, NULL, &error), 0, &error);
  CHECK_STATUS(tfcompile_device_instance_finish(instance, &error), 0, &error);
  arguments[1] = 0;
  CHECK_STATUS(tfcompile_device_instance_enqueue(instance, arguments, results[0], 0, NULL, &error),
               TFCOMPILE_DEVICE_INVALID_ARGUMENT, &error);
  CHECK_TEXT(error.text, "the address of argument 1 is null");
  tfcompile_device_event_destroy(event);
  for (set = 0; set < 6; ++set) CHECK(tfcompile_device_free(device, results[0][set], &error) == 0);
  CHECK(tfcompile_device_free(device, arguments[0], &error) == 0 && tfcompile_device_free(device, arguments[2], &error) == 0);
  CHECK_STATUS(tfcompile_device_free(device, arguments[0], &error), TFCOMPILE_DEVICE_INVALID_ARGUMENT, &error);
  tfcompile_device_instance_destroy(instance);
  for (i = 0; i < 2; ++i) tfcompile_device_stream_destroy(device, streams[i]);
  tfcompile_device_close(device);
  free(program);
  check_clean();
}

// Graphs that are replaced, the state after a failure, and waits of new and destroyed instances.
static void test_order(void) {
  struct tfcompile_device_error error;
  unsigned char* const program = make_static();
  unsigned char* const loop = make_loop(1, 0);
  struct tfcompile_device* device;
  struct tfcompile_device_instance* instance;
  static const int sequence[11] = {0, 0, 1, 1, 2, 2, 3, 3, 0, 4, 0};
  uint64_t arguments[3], results[5][2];
  int32_t trips = 3;
  float a[N], out[N];
  void* stream;
  long launches;
  int i;
  standin->reset();
  device = open_cuda(0, 0);
  CHECK_STATUS(tfcompile_device_stream_create(device, 0, &stream, &error), 0, &error);
  for (i = 0; i < N; ++i) a[i] = (float)i;
  for (i = 0; i < 3; ++i) {
    CHECK_STATUS(tfcompile_device_alloc(device, BYTES, &arguments[i], &error), 0, &error);
    CHECK_STATUS(tfcompile_device_copy_in(device, arguments[i], a, BYTES, NULL, &error), 0, &error);
  }
  for (i = 0; i < 5; ++i) CHECK_STATUS(tfcompile_device_alloc(device, BYTES, &results[i][0], &error), 0, &error);
  // A new instance's persistent memory is zero, on every stream.
  instance = create(device, loop, NULL);
  CHECK_STATUS(tfcompile_device_copy_in(device, arguments[1], &trips, 4, NULL, &error), 0, &error);
  CHECK_STATUS(tfcompile_device_instance_enqueue(instance, arguments, results[0], 0, stream, &error), 0, &error);
  CHECK_STATUS(tfcompile_device_copy_out(device, out, results[0][0], BYTES, stream, &error), 0, &error);
  CHECK_STATUS(tfcompile_device_stream_synchronize(device, stream, &error), 0, &error);
  for (i = 0; i < N; ++i) CHECK(out[i] == (float)(8 * i));
  tfcompile_device_instance_destroy(instance);

  // The fifth set of addresses replaces the second, because the first was used after it.
  instance = create(device, program, constants);
  for (i = 0; i < 10; ++i) {
    CHECK_STATUS(tfcompile_device_instance_enqueue(instance, arguments, results[sequence[i]], 0, stream, &error), 0, &error);
  }
  launches = standin->calls("cuLaunchKernel");
  CHECK_STATUS(tfcompile_device_instance_enqueue(instance, arguments, results[sequence[i]], 0, stream, &error), 0, &error);
  CHECK(standin->calls("cuLaunchKernel") == launches);
  CHECK_STATUS(tfcompile_device_instance_finish(instance, &error), 0, &error);

  // After a failure, nothing is in progress.
  standin->reset();
  standin->fail_function("cuLaunchKernel", 2, 1);
  CHECK_STATUS(tfcompile_device_instance_enqueue(instance, arguments, results[1], 0, stream, &error),
               TFCOMPILE_DEVICE_DRIVER_ERROR, &error);
  CHECK_TEXT(error.text, "cannot launch kernel 'add_f32' on device 0 (Stand-in 0): CUDA_ERROR_INVALID_VALUE (1");
  CHECK_TEXT(standin->log(), "zero 16\ncheck\nadd_f32\n");
  standin->fail_function(NULL, 0, 0);

  // The end of an instance waits for its work.
  CHECK_STATUS(tfcompile_device_instance_enqueue(instance, arguments, results[0], 0, stream, &error), 0, &error);
  tfcompile_device_instance_destroy(instance);
  for (i = 0; i < 3; ++i) CHECK(tfcompile_device_free(device, arguments[i], &error) == 0);
  for (i = 0; i < 5; ++i) CHECK(tfcompile_device_free(device, results[i][0], &error) == 0);
  tfcompile_device_stream_destroy(device, stream);
  tfcompile_device_close(device);
  free(program);
  free(loop);
  check_clean();
}

static void count_records(void* context, const struct tfcompile_device_record* record) {
  int* const counts = (int*)context;
  CHECK(record->end_ns >= record->start_ns && record->stream != NULL);
  counts[record->operation] += 1;
  if (record->operation != TFCOMPILE_DEVICE_LAUNCH) return;
  CHECK(record->flops == 100 + record->kernel && record->bytes == 200 + record->kernel);
  CHECK(strcmp(record->name, record->kernel == 4 ? "check" : "add_f32") == 0);
  CHECK(record->registers == 32 && record->workgroup_bytes == 48 && record->occupancy == 0.5);
}

// Counts the operations of profiled runs. `note` is part of the reason why the times are those of
// events; null: they are those of the driver's traces, with graphs. `function` fails with `code`
// after `successes` calls, or is null.
static void test_profile(const char* note, const char* function, long successes, int code) {
  struct tfcompile_device_error error;
  unsigned char* const program = make_static();
  struct tfcompile_device* device;
  struct tfcompile_device_instance* instance;
  int counts[6] = {0, 0, 0, 0, 0, 0};
  int round;
  standin->reset();
  if (function != NULL) standin->fail_function(function, successes, code);
  device = open_cuda(0, 0);
  instance = create(device, program, constants);
  CHECK_STATUS(tfcompile_device_zero(device, tfcompile_device_instance_argument(instance, 1, &error), BYTES, NULL, &error),
               0, &error);
  CHECK_STATUS(tfcompile_device_instance_profile(instance, count_records, counts, &error), 0, &error);
  for (round = 0; round < 2; ++round) {
    CHECK_STATUS(tfcompile_device_instance_enqueue(instance, NULL, NULL, 0, NULL, &error), 0, &error);
  }
  CHECK_STATUS(tfcompile_device_instance_finish(instance, &error), 0, &error);
  CHECK(counts[TFCOMPILE_DEVICE_LAUNCH] == 8 && counts[TFCOMPILE_DEVICE_COPY] == 2);
  CHECK(counts[TFCOMPILE_DEVICE_FILL] == 2 && counts[TFCOMPILE_DEVICE_COPY_OUT] == 2);
  CHECK(standin->alive(STANDIN_EVENT) == 0);
  CHECK_TEXT(tfcompile_device_instance_profile_note(instance)->text, note != NULL ? note : "");
  CHECK((tfcompile_device_instance_profile_note(instance)->status != 0) == (note != NULL));
  // Programs run as graphs from the second run on.
  CHECK(standin->calls("cuGraphLaunch") == (note == NULL));
  // Operations of a run that is not finished are dropped.
  CHECK_STATUS(tfcompile_device_instance_enqueue(instance, NULL, NULL, 0, NULL, &error), 0, &error);
  tfcompile_device_instance_destroy(instance);
  CHECK(counts[TFCOMPILE_DEVICE_LAUNCH] == 8);
  tfcompile_device_close(device);
  free(program);
  check_clean();
}

#endif  // TESTS_DEVICE_PROGRAMS_H_
