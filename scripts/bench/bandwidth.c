// Measures how fast threads read memory: `bandwidth THREADS` prints GB/s, the best of some rounds.
// Each thread adds up its part of an array that no cache holds, as four streams.

#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { kBytes = 512 << 20, kRounds = 8, kStreams = 4, kMostThreads = 64 };

static const uint64_t* words;
static int threads;
static uint64_t totals[kMostThreads * 8];

static void* Read(void* argument) {
  const size_t number = (size_t)argument;
  const size_t count = kBytes / sizeof(uint64_t) / (size_t)threads / kStreams / 8 * 8;
  const uint64_t* const first = words + number * count * kStreams;
  uint64_t sums[kStreams][8] = {{0}};
  for (size_t i = 0; i < count; i += 8) {
    for (int stream = 0; stream < kStreams; ++stream) {
      for (int k = 0; k < 8; ++k) sums[stream][k] += first[stream * count + i + k];
    }
  }
  for (int stream = 0; stream < kStreams; ++stream) {
    for (int k = 0; k < 8; ++k) totals[number * 8] += sums[stream][k];
  }
  return NULL;
}

static double Seconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

int main(int argc, char** argv) {
  threads = argc > 1 ? atoi(argv[1]) : 1;
  if (threads < 1 || threads > kMostThreads) return 1;
  void* const memory = aligned_alloc(1 << 21, kBytes);
  if (memory == NULL) return 1;
  memset(memory, 1, kBytes);
  words = memory;
  double best = 0;
  for (int round = 0; round < kRounds; ++round) {
    pthread_t others[kMostThreads];
    const double start = Seconds();
    for (int k = 1; k < threads; ++k) pthread_create(&others[k], NULL, Read, (void*)(size_t)k);
    Read(NULL);
    for (int k = 1; k < threads; ++k) pthread_join(others[k], NULL);
    const double rate = kBytes / (Seconds() - start) / 1e9;
    if (rate > best) best = rate;
  }
  printf("%.2f\n", best);
  return totals[0] == 0;
}
