// The test: runs the program on zeros and on random data, and expects the same bits regardless of
// the previous contents of the memory and of the distribution of the work.

enum { WORKERS = 3, STEPS = 2 };  // STEPS: each run's final state is the next run's input.

// Processes the ranges from the last to the first, each as a different worker. Pools may use any
// order.
static int32_t reverse_order(void* context, int64_t count, tfcompile_parallel_body body, void* data) {
  const int64_t piece = count / 7 + 1;
  int64_t end = count;
  int64_t worker = 0;
  (void)context;
  while (end > 0) {
    const int64_t begin = end > piece ? end - piece : 0;
    const int32_t error = body(data, begin, end, worker);
    if (error != 0) return error;
    end = begin;
    worker = (worker + 1) % WORKERS;
  }
  return 0;
}

// Configuration of a run: initial contents of the memory, and number of workers.
struct setting {
  const char* what;
  int dirt;
  int64_t workers;
  void* memory;
  void* scratch;
};

static struct setting settings[] = {
    {"", 0x00, 1, NULL, NULL},
    {"in other memory", 0xa5, 1, NULL, NULL},
    {"with other workers", 0x5a, WORKERS, NULL, NULL},
};

enum { SETTINGS = sizeof(settings) / sizeof(settings[0]) };

static void allocate(void) {
  int s;
  for (s = 0; s < SETTINGS; ++s) {
    settings[s].memory = aligned_memory(tfcompile_program_size());
    settings[s].scratch = aligned_memory((size_t)TFCOMPILE_PROGRAM_SCRATCH_BYTES * (size_t)settings[s].workers);
  }
}

static tfcompile_program_state* make_state(const struct setting* setting) {
  tfcompile_program_state* state;
  memset(setting->memory, setting->dirt, tfcompile_program_size());
  memset(setting->scratch, setting->dirt, (size_t)TFCOMPILE_PROGRAM_SCRATCH_BYTES * (size_t)setting->workers);
  state = new_state(setting->memory);
  if (tfcompile_program_set_parallel_for(state, reverse_order, NULL, setting->workers, setting->scratch) != 0) {
    fprintf(stderr, "the program rejects its scratch memory\n");
    exit(1);
  }
  return state;
}

static uint64_t buffer_bytes(const struct buffer_table* buffer) {
  return buffer->count * (uint64_t)(buffer->type.bytes * buffer->type.per_element);
}

// True if the element is part of the array, false if it is padding within a bounded dimension.
static int is_inside(const struct buffer_table* buffer, uint64_t element, const int64_t* actual_sizes) {
  int d;
  if (buffer->size_index == NULL) return 1;
  for (d = buffer->rank - 1; d >= 0; --d) {
    const uint64_t size = (uint64_t)buffer->sizes[d];
    const int index = buffer->size_index[d];
    if (index >= 0 && element % size >= (uint64_t)actual_sizes[index]) return 0;
    element /= size;
  }
  return 1;
}

// Fills the padding of all arguments, on which results must not depend.
static void fill_padding(tfcompile_program_state* state, int dirt) {
  int64_t sizes[PROGRAM_ARGS + 1] = {0};
  int a;
  for (a = 0; a < PROGRAM_ARGS; ++a) {
    if (program_args[a].range != NULL) sizes[a] = *(const int32_t*)state->args[a];
  }
  for (a = 0; a < PROGRAM_ARGS; ++a) {
    const struct buffer_table* const buffer = &program_args[a];
    const size_t bytes = (size_t)(buffer->type.bytes * buffer->type.per_element);
    unsigned char* const start = (unsigned char*)state->args[a];
    uint64_t i;
    for (i = 0; buffer->size_index != NULL && i < buffer->count; ++i) {
      if (!is_inside(buffer, i, sizes)) memset(start + i * bytes, dirt, bytes);
    }
  }
}

// Compares the results of two runs and prints the first difference.
static int same_results(const tfcompile_program_state* one, const tfcompile_program_state* other, const char* what) {
  int r;
#ifdef PROGRAM_DYNAMIC_SIZES
  if (memcmp(one->dynamic_sizes, other->dynamic_sizes, sizeof(one->dynamic_sizes)) != 0) {
    printf("FAIL: the sizes of the results differ between the first run and a run %s\n", what);
    return 0;
  }
#endif
  for (r = 0; r < PROGRAM_RESULTS; ++r) {
    const struct buffer_table* const buffer = &program_results[r];
    const size_t bytes = (size_t)(buffer->type.bytes * buffer->type.per_element);
    const unsigned char* const left = (const unsigned char*)one->results[r];
    const unsigned char* const right = (const unsigned char*)other->results[r];
    uint64_t i;
    if (memcmp(left, right, (size_t)buffer_bytes(buffer)) == 0) continue;
    for (i = 0; i < buffer->count; ++i) {
      if (memcmp(left + i * bytes, right + i * bytes, bytes) != 0 && is_inside(buffer, i, one->frame.dynamic_sizes)) {
        printf("FAIL: element %lu of %s differs between the first run and a run %s\n", (unsigned long)i, buffer->name, what);
        return 0;
      }
    }
  }
  return 1;
}

#ifdef PROGRAM_DEVICE
// True if a run failed because of the device or its driver, not because of an assertion.
static int is_device_failure(const tfcompile_program_state* state) {
  if (state->frame.device == NULL) return 1;
  return tfcompile_device_instance_error(state->frame.device)->status != TFCOMPILE_DEVICE_CHECK_FAILED;
}
#endif

// Runs on one input. Returns 1 on success.
static int check(uint64_t seed, const struct constants* constants) {
  tfcompile_program_state* states[SETTINGS];
  int32_t status[SETTINGS];
  int s, a, step;
  for (s = 0; s < SETTINGS; ++s) {
    uint64_t seeds = seed;
    states[s] = make_state(&settings[s]);
#ifdef PROGRAM_CONSTANTS
    set_constants(states[s], constants);
#endif
    for (a = 0; a < PROGRAM_ARGS; ++a) {
      fill_buffer(states[s]->args[a], &program_args[a], seed == 0 ? 0 : next_random(&seeds));
    }
    fill_padding(states[s], settings[s].dirt);
  }
  (void)constants;
  for (step = 0; step < STEPS; ++step) {
    const char* error;
    for (s = 0; s < SETTINGS; ++s) status[s] = tfcompile_program_run(states[s]);
    error = tfcompile_program_error(states[0]);
    if (status[0] == TFCOMPILE_ABORT) {
      printf("FAIL: an assertion of the graph failed: %s\n", error);
      return 0;
    }
#ifdef PROGRAM_DEVICE
    if (status[0] != 0 && is_device_failure(states[0])) {
      printf("FAIL: %s\n", error);
      return 0;
    }
#endif
    for (s = 1; s < SETTINGS; ++s) {
      const char* const other = tfcompile_program_error(states[s]);
      if (status[s] != status[0] || strcmp(error, other) != 0) {
        printf("FAIL: the first run reports '%s', but a run %s reports '%s'\n", error, settings[s].what, other);
        return 0;
      }
      if (status[0] == 0 && !same_results(states[0], states[s], settings[s].what)) return 0;
    }
    if (status[0] != 0) {
      // The graph's assertions need not hold for such data, so a consistent error is correct
      // behavior.
      printf("note: the program reports: %s\n", error);
      break;
    }
  }
  return 1;
}

int main(int argc, char** argv) {
  uint64_t seeds = 2;
  uint64_t seed;
  int i;
  const struct constants* constants = NULL;
#ifdef PROGRAM_CONSTANTS
  const char* path = PROGRAM_CONSTANTS;
  struct constants file;
#endif
  for (i = 1; i < argc; ++i) {
    const char* const count = flag_value(argv[i], "seeds");
    if (count != NULL) {
      seeds = (uint64_t)strtoul(count, NULL, 10);
#ifdef PROGRAM_DEVICE
    } else if (flag_value(argv[i], "device") != NULL) {
      device_ordinal = (int32_t)strtol(flag_value(argv[i], "device"), NULL, 10);
#endif
#ifdef PROGRAM_CONSTANTS
    } else if (flag_value(argv[i], "constants") != NULL) {
      path = flag_value(argv[i], "constants");
#endif
    } else {
      fprintf(stderr, "usage: %s [--seeds=N]" PROGRAM_DEVICE_USAGE PROGRAM_CONSTANTS_USAGE "\n", argv[0]);
      return 2;
    }
  }
#ifdef PROGRAM_CONSTANTS
  file = read_constants(path);
  constants = &file;
#endif
  allocate();
  for (seed = 0; seed <= seeds; ++seed) {
    if (!check(seed, constants)) return 1;
    if (seed == 0) {
      printf("%s on zeros: ok\n", PROGRAM_NAME);
    } else {
      printf("%s on random data %lu: ok\n", PROGRAM_NAME, (unsigned long)seed);
    }
  }
  return 0;
}
