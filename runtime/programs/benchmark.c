// The benchmark: runs the program on random data repeatedly on one thread and prints the time per
// run.

#include <time.h>

#define DEFAULT_MICROS 3000000.0

// Returns the time of a monotonic clock where available.
static double now_micros(void) {
  struct timespec now;
#if defined(_WIN32)
  timespec_get(&now, TIME_UTC);
#else
  clock_gettime(CLOCK_MONOTONIC, &now);
#endif
  return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

// Statistics of the times, in the same unit.
struct statistics {
  double best;
  double worst;
  double median;
  double mean;
  double trimmed_mean;  // Excludes the fastest and the slowest quarter.
  double best_mean;     // Of the fastest tenth, at least one.
};

static int compare_doubles(const void* left, const void* right) {
  const double a = *(const double*)left;
  const double b = *(const double*)right;
  return (a > b) - (a < b);
}

static double mean(const double* values, size_t count) {
  double sum = 0;
  size_t i;
  for (i = 0; i < count; ++i) sum += values[i];
  return sum / (double)count;
}

// Sorts `times`, which must not be empty.
static struct statistics statistics_of(double* times, size_t count) {
  const size_t trimmed = count / 4;
  const size_t best = count < 10 ? 1 : count / 10;
  struct statistics statistics;
  qsort(times, count, sizeof(times[0]), compare_doubles);
  statistics.best = times[0];
  statistics.worst = times[count - 1];
  statistics.median = times[count / 2];
  statistics.mean = mean(times, count);
  statistics.trimmed_mean = mean(times + trimmed, count - 2 * trimmed);
  statistics.best_mean = mean(times, best);
  return statistics;
}

static void print_statistics(const struct statistics* statistics, size_t count, double total) {
  printf("Benchmark ran %lu iterations over %.0f us\n", (unsigned long)count, total);
  printf("  Best:                  %14.3f us\n", statistics->best);
  printf("  Worst:                 %14.3f us\n", statistics->worst);
  printf("  Median:                %14.3f us\n", statistics->median);
  printf("  Mean:                  %14.3f us\n", statistics->mean);
  printf("  Mean with 25%% trimmed: %14.3f us\n", statistics->trimmed_mean);
  printf("  Mean of 10%% best:      %14.3f us\n", statistics->best_mean);
}

static void run_once(tfcompile_program_state* state) {
  if (tfcompile_program_run(state) == 0) return;
  fprintf(stderr, "the program failed: %s\n", tfcompile_program_error(state));
  exit(1);
}

static int usage(const char* program) {
  fprintf(stderr,
          "usage: %s [--max_micros=N] [--max_iters=N] [--warmup=N]" PROGRAM_SIZES_USAGE PROGRAM_DEVICE_USAGE
          PROGRAM_CONSTANTS_USAGE "\n"
          "Runs %s until a limit is reached (default: 3 seconds), after N uncounted warm-up runs (default: 1).\n",
          program, PROGRAM_NAME);
  return 2;
}

// Reads a flag that sets the size of a named dimension, such as --batch=7. Returns 0 if it is none.
static int read_size(const char* word, int64_t* sizes) {
  int a;
  for (a = 0; a < PROGRAM_ARGS; ++a) {
    const struct size_range* const range = program_args[a].range;
    const char* const value = range != NULL ? flag_value(word, program_args[a].name) : NULL;
    char* end = NULL;
    if (value == NULL) continue;
    sizes[a] = strtol(value, &end, 10);
    if (end == value || *end != '\0' || sizes[a] < range->low || sizes[a] > range->high) {
      fprintf(stderr, "--%s: expected a size from %ld to %ld\n", program_args[a].name, (long)range->low,
              (long)range->high);
      exit(2);
    }
    return 1;
  }
  return 0;
}

int main(int argc, char** argv) {
  double max_micros = 0;
  unsigned long max_iters = 0;
  unsigned long warmup = 1;
  double* times = NULL;
  size_t count = 0;
  size_t room = 0;
  double start, total;
  struct statistics statistics;
  uint64_t seed = 1;
  int64_t sizes[PROGRAM_ARGS + 1] = {0};
  tfcompile_program_state* state;
  int i, a;
#ifdef PROGRAM_CONSTANTS
  const char* path = PROGRAM_CONSTANTS;
  struct constants constants;
#endif
  for (a = 0; a < PROGRAM_ARGS; ++a) {
    if (program_args[a].range != NULL) sizes[a] = program_args[a].range->high;
  }
  for (i = 1; i < argc; ++i) {
    const char* value;
    char* end = NULL;
    if (read_size(argv[i], sizes)) continue;
    if ((value = flag_value(argv[i], "max_micros")) != NULL) {
      max_micros = strtod(value, &end);
    } else if ((value = flag_value(argv[i], "max_iters")) != NULL) {
      max_iters = strtoul(value, &end, 10);
    } else if ((value = flag_value(argv[i], "warmup")) != NULL) {
      warmup = strtoul(value, &end, 10);
#ifdef PROGRAM_DEVICE
    } else if ((value = flag_value(argv[i], "device")) != NULL) {
      device_ordinal = (int32_t)strtol(value, &end, 10);
#endif
#ifdef PROGRAM_CONSTANTS
    } else if ((value = flag_value(argv[i], "constants")) != NULL) {
      path = value;
      continue;
#endif
    }
    if (end == NULL || end == value || *end != '\0') return usage(argv[0]);
  }
  if (!(max_micros > 0) && max_iters == 0) max_micros = DEFAULT_MICROS;
  state = new_state(aligned_memory(tfcompile_program_size()));
#ifdef PROGRAM_CONSTANTS
  constants = read_constants(path);
  set_constants(state, &constants);
#endif
  for (a = 0; a < PROGRAM_ARGS; ++a) {
    fill_buffer(state->args[a], &program_args[a], next_random(&seed));
    if (program_args[a].range != NULL) *(int32_t*)state->args[a] = (int32_t)sizes[a];
  }
  for (; warmup > 0; --warmup) run_once(state);
  if (max_micros > 0) {
    printf("Running benchmark for %.0f us\n", max_micros);
  } else {
    printf("Running benchmark for %lu iterations\n", max_iters);
  }
  fflush(stdout);
  start = now_micros();
  do {
    const double begin = now_micros();
    double now;
    run_once(state);
    now = now_micros();
    if (count == room) {
      double* const larger = (double*)realloc(times, (room = room * 2 + 1024) * sizeof(times[0]));
      if (larger == NULL) {
        fprintf(stderr, "out of memory after %lu measurements: set --max_iters\n", (unsigned long)count);
        return 1;
      }
      times = larger;
    }
    times[count++] = now - begin;
    total = now - start;
  } while (!(max_micros > 0 && total >= max_micros) && !(max_iters > 0 && count >= max_iters));
  statistics = statistics_of(times, count);
  print_statistics(&statistics, count, total);
  free(times);
  return 0;
}
