// Runs device programs with the machine's OpenCL driver: the kernels of kernels.ll.
//   opencl kernels.spv.hex

#include "blob.h"

static unsigned char spirv[16384];
static size_t spirv_bytes;

static void read_kernels(const char* path) {
  FILE* const file = fopen(path, "r");
  unsigned byte;
  CHECK(file != NULL);
  while (fscanf(file, "%2x", &byte) == 1) {
    CHECK(spirv_bytes < sizeof spirv);
    spirv[spirv_bytes++] = (unsigned char)byte;
  }
  fclose(file);
  CHECK(spirv_bytes % 4 == 0 && spirv_bytes > 20);
}

static struct tfcompile_device* open_device(void) {
  struct tfcompile_device_options options;
  struct tfcompile_device_error error;
  struct tfcompile_device* device;
  struct tfcompile_device_info info;
  int32_t count;
  memset(&options, 0, sizeof options);
  options.kind = TFCOMPILE_DEVICE_OPENCL;
  CHECK_STATUS(tfcompile_device_count(TFCOMPILE_DEVICE_OPENCL, &count, &error), 0, &error);
  CHECK(count >= 1);
  options.ordinal = count;
  CHECK(tfcompile_device_open(&options, &error) == NULL);
  CHECK(error.status == TFCOMPILE_DEVICE_NO_DEVICE);
  CHECK_TEXT(error.text, "the devices are 0: ");
  options.ordinal = 0;
  device = tfcompile_device_open(&options, &error);
  CHECK_STATUS(device == NULL ? error.status : 0, 0, &error);
  CHECK_STATUS(tfcompile_device_get_info(device, &info, &error), 0, &error);
  CHECK(info.memory_bytes > 0 && info.driver_version >= 2010 && info.processors > 0);
  printf("opencl: device '%s', OpenCL %d.%d\n", info.name, info.driver_version / 1000, info.driver_version / 10 % 100);
  return device;
}

static uint32_t null_slot;

// out = (a + constants) + b, by two launches through a temporary, with a failing check of a[0] < 0.
static unsigned char* make_static(void) {
  struct blob blob;
  uint32_t add, check, a, b, c, temp, out, status;
  blob_init(&blob, 2);
  blob_image(&blob, 3, 0, spirv, spirv_bytes);
  blob.temps = 4096;
  blob.constants = 4000;
  blob_argument(&blob, 4000, 0);
  blob_argument(&blob, 4000, 0);
  blob_result(&blob, 4000, 0);
  add = blob_kernel(&blob, "add_f32", 64, 4);
  check = blob_kernel(&blob, "check", 1, 3);
  null_slot = blob_slot(&blob, NOWHERE, 0, 0);
  a = blob_slot(&blob, ARGUMENT, 0, 0);
  b = blob_slot(&blob, ARGUMENT, 1, 0);
  c = blob_slot(&blob, CONSTANTS, 0, 0);
  temp = blob_slot(&blob, TEMPS, 0, 64);
  out = blob_slot(&blob, RESULT, 0, 0);
  status = blob_slot(&blob, CONTROL, 0, 0);
  blob_message(&blob, "never", 7);
  blob_message(&blob, "expected a value that is not negative", 9);
  blob_words(&blob, 7, LAUNCH, check, 1, 0, null_slot, a, status);
  blob_words(&blob, 8, LAUNCH, add, 16, 0, null_slot, a, c, temp);
  blob_words(&blob, 8, LAUNCH, add, 16, 0, null_slot, temp, b, out);
  return blob_finish(&blob, NULL);
}

// x is added to y as often as `trips` says, and sum and spare rotate: sum = 0 + trips * x.
static unsigned char* make_loop(void) {
  struct blob blob;
  uint32_t add, begin, step, x, trips, first, second, guard, count, out;
  blob_init(&blob, 2);
  blob_image(&blob, 3, 0, spirv, spirv_bytes);
  blob.temps = 8192;
  blob.persistent = 8192;
  blob_argument(&blob, 4000, 0);
  blob_argument(&blob, 4, 1);
  blob_result(&blob, 4000, 0);
  add = blob_kernel(&blob, "add_f32", 64, 4);
  begin = blob_kernel(&blob, "begin", 1, 2);
  step = blob_kernel(&blob, "step", 1, 3);
  null_slot = blob_slot(&blob, NOWHERE, 0, 0);
  x = blob_slot(&blob, ARGUMENT, 0, 0);
  trips = blob_slot(&blob, ARGUMENT, 1, 0);
  first = blob_slot(&blob, TEMPS, 0, 0);
  second = blob_slot(&blob, TEMPS, 0, 4096);
  guard = blob_slot(&blob, CONTROL, 0, 8);
  count = blob_slot(&blob, CONTROL, 0, 12);
  out = blob_slot(&blob, RESULT, 0, 0);
  blob_words(&blob, 6, LAUNCH, begin, 1, 0, null_slot, guard);
  blob_words(&blob, 5, WHILE, guard, count, 7, 12);
  blob_words(&blob, 7, LAUNCH, step, 1, 0, null_slot, guard, trips);
  blob_words(&blob, 8, LAUNCH, add, 16, 0, guard, first, x, second);
  blob_words(&blob, 4, ROTATE, 2, first, second);
  blob_words(&blob, 5, COPY, out, first, 4000, 0);
  return blob_finish(&blob, NULL);
}

static float a[1000], b[1000], c[1000], out[1000], first_out[1000];

static void count_records(void* context, const struct tfcompile_device_record* record) {
  int* const counts = (int*)context;
  CHECK(record->end_ns >= record->start_ns);
  counts[record->operation] += 1;
  if (record->operation == TFCOMPILE_DEVICE_LAUNCH) CHECK(strlen(record->name) > 0 && record->flops >= 100);
}

static void run_static(struct tfcompile_device* device) {
  struct tfcompile_device_error error;
  unsigned char* const program = make_static();
  struct tfcompile_device_instance* const instance = tfcompile_device_instance_create(device, program, c, &error);
  struct tfcompile_device_instance* second;
  struct tfcompile_frame frame;
  void* args[2] = {a, b};
  void* results[1] = {out};
  uint64_t addresses[3];
  void* stream;
  int counts[6] = {0, 0, 0, 0, 0, 0};
  int i, round;
  CHECK_STATUS(instance == NULL ? error.status : 0, 0, &error);
  memset(&frame, 0, sizeof frame);
  frame.size = sizeof frame;
  frame.args = args;
  frame.results = results;
  frame.device = instance;
  for (round = 0; round < 4; ++round) {
    for (i = 0; i < 1000; ++i) a[i] = (float)(i + round), b[i] = (float)(2 * i), out[i] = -1;
    CHECK_STATUS(instance->run(instance, program, &frame), 0, tfcompile_device_instance_error(instance));
    for (i = 0; i < 1000; ++i) CHECK(out[i] == (float)(3 * i + round) + c[i]);
  }
  memcpy(first_out, out, sizeof out);
  a[0] = -1;
  CHECK(instance->run(instance, program, &frame) == 9);
  CHECK(strcmp(frame.error, "expected a value that is not negative") == 0);
  a[0] = 3;

  // The second instance shares code and constants. Its addresses are the caller's.
  second = tfcompile_device_instance_create(device, program, c, &error);
  CHECK_STATUS(second == NULL ? error.status : 0, 0, &error);
  CHECK_STATUS(tfcompile_device_stream_create(device, 0, &stream, &error), 0, &error);
  for (i = 0; i < 3; ++i) CHECK_STATUS(tfcompile_device_alloc(device, 4000, &addresses[i], &error), 0, &error);
  CHECK_STATUS(tfcompile_device_copy_in(device, addresses[0], a, 4000, stream, &error), 0, &error);
  CHECK_STATUS(tfcompile_device_copy_in(device, addresses[1], b, 4000, NULL, &error), 0, &error);
  for (round = 0; round < 3; ++round) {
    CHECK_STATUS(tfcompile_device_zero(device, addresses[2], 4000, stream, &error), 0, &error);
    CHECK_STATUS(tfcompile_device_instance_enqueue(second, addresses, addresses + 2, 0, stream, &error), 0, &error);
    memset(out, 0, sizeof out);
    CHECK_STATUS(tfcompile_device_copy_out(device, out, addresses[2], 4000, stream, &error), 0, &error);
    CHECK_STATUS(tfcompile_device_instance_finish(second, &error), 0, &error);
    CHECK_STATUS(tfcompile_device_stream_synchronize(device, stream, &error), 0, &error);
    CHECK(memcmp(out, first_out, sizeof out) == 0);
  }
  // Its own stream waits for the other one.
  CHECK_STATUS(tfcompile_device_instance_enqueue(second, addresses, addresses + 2, 0, stream, &error), 0, &error);
  CHECK_STATUS(tfcompile_device_instance_enqueue(second, addresses, addresses + 2, 0, NULL, &error), 0, &error);
  CHECK_STATUS(tfcompile_device_instance_finish(second, &error), 0, &error);

  CHECK_STATUS(tfcompile_device_instance_profile(instance, count_records, counts, &error), 0, &error);
  CHECK_STATUS(instance->run(instance, program, &frame), 0, tfcompile_device_instance_error(instance));
  CHECK(counts[TFCOMPILE_DEVICE_LAUNCH] == 3 && counts[TFCOMPILE_DEVICE_COPY_IN] == 2);
  CHECK(counts[TFCOMPILE_DEVICE_COPY_OUT] == 2 && counts[TFCOMPILE_DEVICE_FILL] == 1);
  CHECK_STATUS(tfcompile_device_instance_profile(instance, NULL, NULL, &error), 0, &error);
  CHECK_STATUS(instance->run(instance, program, &frame), 0, tfcompile_device_instance_error(instance));
  CHECK(counts[TFCOMPILE_DEVICE_LAUNCH] == 3);

  for (i = 0; i < 3; ++i) CHECK_STATUS(tfcompile_device_free(device, addresses[i], &error), 0, &error);
  tfcompile_device_stream_destroy(device, stream);
  tfcompile_device_instance_destroy(second);
  tfcompile_device_instance_destroy(instance);
  free(program);
}

static void run_loop(struct tfcompile_device* device) {
  static const int trips_of[8] = {0, 1, 2, 3, 6, 7, 63, 200};
  struct tfcompile_device_error error;
  unsigned char* const program = make_loop();
  int round, i;
  for (round = 0; round < 8; ++round) {
    // Temporaries are zero in a new instance.
    struct tfcompile_device_instance* const instance = tfcompile_device_instance_create(device, program, NULL, &error);
    int32_t trips = trips_of[round];
    struct tfcompile_frame frame;
    void* args[2];
    void* results[1];
    CHECK_STATUS(instance == NULL ? error.status : 0, 0, &error);
    args[0] = a;
    args[1] = &trips;
    results[0] = out;
    memset(&frame, 0, sizeof frame);
    frame.args = args;
    frame.results = results;
    for (i = 0; i < 1000; ++i) a[i] = (float)(i % 10), out[i] = -1;
    CHECK_STATUS(instance->run(instance, program, &frame), 0, tfcompile_device_instance_error(instance));
    CHECK(trips == 0);
    for (i = 0; i < 1000; ++i) CHECK(out[i] == (float)(trips_of[round] * (i % 10)));
    tfcompile_device_instance_destroy(instance);
  }
  free(program);
}

static void run_failures(struct tfcompile_device* device) {
  struct tfcompile_device_error error;
  struct blob blob;
  unsigned char* program;
  uint64_t address;
  blob_init(&blob, 2);
  blob_image(&blob, 3, 0, "not SPIR-V at all", 16);
  blob_kernel(&blob, "add_f32", 64, 4);
  program = blob_finish(&blob, NULL);
  CHECK(tfcompile_device_instance_create(device, program, NULL, &error) == NULL);
  CHECK_TEXT(error.text, "SPIR-V of program 'test'");
  free(program);
  blob_init(&blob, 2);
  blob_image(&blob, 3, 0, spirv, spirv_bytes);
  blob_kernel(&blob, "subtract_f32", 64, 4);
  program = blob_finish(&blob, NULL);
  CHECK(tfcompile_device_instance_create(device, program, NULL, &error) == NULL);
  CHECK_TEXT(error.text, "cannot find kernel 'subtract_f32'");
  free(program);
  blob_init(&blob, 2);
  blob_image(&blob, 3, 0, spirv, spirv_bytes);
  blob_kernel(&blob, "add_f32", 64, 3);
  program = blob_finish(&blob, NULL);
  CHECK(tfcompile_device_instance_create(device, program, NULL, &error) == NULL);
  CHECK_TEXT(error.text, "kernel 'add_f32' has 4 parameters, expected 3");
  free(program);
  CHECK_STATUS(tfcompile_device_alloc(device, UINT64_C(1) << 50, &address, &error), TFCOMPILE_DEVICE_OUT_OF_MEMORY,
               &error);
  CHECK_TEXT(error.text, "needs 1048576.00 GiB");
}

int main(int count, char** arguments) {
  struct tfcompile_device_statistics statistics;
  struct tfcompile_device_error error;
  struct tfcompile_device* device;
  int i;
  CHECK(count == 2);
  read_kernels(arguments[1]);
  for (i = 0; i < 1000; ++i) c[i] = (float)(i % 7) / 4;
  device = open_device();
  run_static(device);
  run_loop(device);
  run_failures(device);
  CHECK_STATUS(tfcompile_device_synchronize(device, &error), 0, &error);
  tfcompile_device_get_statistics(device, &statistics);
  CHECK(statistics.used == 0 && statistics.allocations == 0 && statistics.peak > 0 && statistics.reserved > 0);
  tfcompile_device_trim(device);
  tfcompile_device_get_statistics(device, &statistics);
  CHECK(statistics.reserved == 0);
  tfcompile_device_close(device);
  printf("opencl: %ld checks passed\n", check_count);
  return 0;
}
