// Tests that malformed device programs are rejected: single faults with their texts, and many
// random changes, which must not make the reader leave the program's memory.

#ifndef TESTS_DEVICE_MALFORMED_H_
#define TESTS_DEVICE_MALFORMED_H_

#include "programs.h"

static int parse(const void* blob, struct tfcompile_device_error* error) {
  struct tfcompile_program program;
  const int status = tfcompile_program_parse(blob, &program, error);
  if (status == TFCOMPILE_DEVICE_OK) tfcompile_program_release(&program);
  return status;
}

// Checks that a program with another u32 at an offset of its header is rejected.
static void reject_header(unsigned at, uint32_t value, const char* text) {
  struct tfcompile_device_error error;
  unsigned char* const program = make_static();
  put32(program + at, value);
  CHECK_STATUS(parse(program, &error), TFCOMPILE_DEVICE_BAD_PROGRAM, &error);
  CHECK_TEXT(error.text, text);
  free(program);
}

// Checks that code with these words is rejected.
static void reject_words(const char* text, int count, ...) {
  struct tfcompile_device_error error;
  struct blob blob;
  struct names k;
  unsigned char* program;
  va_list words;
  start(&blob, &k);
  blob.temps = 256;
  blob_argument(&blob, 64, 0);
  blob_slot(&blob, TEMPS, 0, 0);       // 4
  blob_slot(&blob, ARGUMENT, 0, 0);    // 5
  va_start(words, count);
  while (count-- > 0) blob_words(&blob, 1, va_arg(words, unsigned));
  va_end(words);
  program = blob_finish(&blob, NULL);
  CHECK_STATUS(parse(program, &error), TFCOMPILE_DEVICE_BAD_PROGRAM, &error);
  CHECK_TEXT(error.text, text);
  free(program);
}

// Checks that a text must end in the program.
static void reject_text(void) {
  struct tfcompile_device_error error;
  unsigned char* const program = make_static();
  const size_t size = (size_t)tfcompile_read_u64(program + 16);
  program[size - 1] = 'x';
  put64(program + 152, size - 1);
  CHECK_STATUS(parse(program, &error), TFCOMPILE_DEVICE_BAD_PROGRAM, &error);
  CHECK_TEXT(error.text, "or has no end");
  free(program);
}

// A generator of pseudorandom numbers: xorshift.
static uint32_t next_random(void) {
  static uint32_t state = 2463534242u;
  state ^= state << 13;
  state ^= state >> 17;
  state ^= state << 5;
  return state;
}

static void test_random_changes(void) {
  struct tfcompile_device_error error;
  unsigned char* programs[3];
  size_t size;
  long rejected = 0;
  long i;
  int kind;
  programs[0] = make_static();
  programs[1] = make_loop(1, 1);
  programs[2] = make_branch();
  for (i = 0; i < 30000; ++i) {
    unsigned char* const program = programs[i % 3];
    unsigned char* copy;
    size = (size_t)tfcompile_read_u64(program + 16);
    copy = (unsigned char*)malloc(size);
    CHECK(copy != NULL);
    memcpy(copy, program, size);
    for (kind = (int)(next_random() % 3); kind >= 0; --kind) {
      // The size is the caller's promise: it is at most that of the memory.
      const size_t at = next_random() % 2 != 0 ? 24 + next_random() % 136 : 24 + next_random() % (size - 24);
      copy[at] = (unsigned char)(next_random() % 4 != 0 ? next_random() % 8 : next_random());
    }
    if (i % 7 == 0) put64(copy + 16, 160 + next_random() % (size - 160));
    rejected += parse(copy, &error) != TFCOMPILE_DEVICE_OK;
    free(copy);
  }
  for (kind = 0; kind < 3; ++kind) free(programs[kind]);
  CHECK(rejected > 3000 && rejected < 30000);
  printf("cuda: 30000 randomly changed programs, %ld rejected\n", rejected);
}

static void test_malformed(void) {
  struct tfcompile_device_error error;
  CHECK_STATUS(parse(NULL, &error), TFCOMPILE_DEVICE_INVALID_ARGUMENT, &error);
  reject_header(0, 1, "its first bytes are not TFCDEV1");
  reject_header(8, 2, "its version is 2, expected 1");
  reject_header(12, 3, "it is for programming interface 3");
  reject_header(16, 100, "its size is 100 bytes");
  reject_header(16, 161, "outside of its 161 bytes");
  reject_header(28, 1u << 31, "a block of memory has");
  reject_header(32, 2000, "its persistent or control block has the wrong size");
  reject_header(48, 3, "its persistent or control block has the wrong size");
  reject_header(64, 1u << 30, "1073741824 arguments at offset");
  reject_header(76, 1000, "1000 kernels at offset");
  reject_header(96, 4, "arguments at offset 4 are outside");
  reject_header(104, 161, "results at offset 161 are outside");
  reject_header(152, 1u << 30, "the name at offset 1073741824 is outside");
  reject_text();
  reject_words("no valid instruction at word 0", 1, 0);
  reject_words("no valid instruction at word 0", 1, 8);
  reject_words("no valid instruction at word 0", 2, LAUNCH, 0);
  reject_words("no valid instruction at word 0", 8, LAUNCH, 99, 1, 0, 0, 4, 4, 4);
  reject_words("no valid instruction at word 0", 7, LAUNCH, 0, 1, 0, 0, 4, 4);
  reject_words("uses slot 6 of 6", 8, LAUNCH, 0, 1, 0, 0, 4, 4, 6);
  reject_words("uses 65 bytes at slot 5, which has 64", 5, COPY, 4, 5, 65, 0);
  reject_words("uses 4294967296 bytes at slot 4", 5, COPY, 4, 5, 0, 1);
  reject_words("uses 64 bytes at slot 0, which has 0", 5, COPY, 0, 5, 64, 0);
  // A rotation limits both buffers to the smaller one.
  reject_words("uses 65 bytes at slot 4, which has 64", 9, COPY, 4, 4, 65, 0, ROTATE, 2, 4, 5);
  reject_words("no valid instruction at word 0", 3, ROTATE, 2, 4);
  reject_words("no valid instruction at word 0", 2, ROTATE, UINT32_MAX);
  reject_words("has 6 words, but 5 follow", 9, REPEAT, 2, 0, 6, COPY, 4, 5, 4, 0);
  reject_words("no valid instruction at word 4", 9, REPEAT, 2, 0, 4, COPY, 4, 5, 4, 0);
  reject_words("has 8589934590 words", 5, WHILE, 1, 2, UINT32_MAX, UINT32_MAX);
  reject_words("the counter of the loop at word 0 does not follow its guard", 5, WHILE, 2, 1, 0, 0);
  reject_words("the counter of the loop at word 0 does not follow its guard", 5, WHILE, 1, 4, 0, 0);
  reject_words("resets no address", 5, HOME, 0, 0, 4, 0);
  reject_words("no valid instruction at word 0", 7, HOME, 2, 1, 4, 4, 4, 0);
  reject_words("uses 65 bytes at slot 5", 7, HOME, 0, 1, 4, 5, 65, 0);
  reject_words("uses 4 bytes at slot 0", 3, SKIP, 0, 0);
  reject_words("has 1 words, but 0 follow", 3, SKIP, 1, 1);
  test_random_changes();
}

#endif  // TESTS_DEVICE_MALFORMED_H_
