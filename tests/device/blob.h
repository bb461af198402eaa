// Builds device programs by hand, and checks of the tests in this folder.

#ifndef TESTS_DEVICE_BLOB_H_
#define TESTS_DEVICE_BLOB_H_

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tfcompile/device.h"

// Checks of the thread.
static __thread long check_count;

// Ends the test with the line of the failure.
#define CHECK(condition)                                                            \
  do {                                                                              \
    ++check_count;                                                                  \
    if (!(condition)) {                                                             \
      fprintf(stderr, "%s:%d: failed: %s\n", __FILE__, __LINE__, #condition);       \
      exit(1);                                                                      \
    }                                                                               \
  } while (0)

// Checks that a text contains another one.
#define CHECK_TEXT(text, part)                                                      \
  do {                                                                              \
    ++check_count;                                                                  \
    if (strstr(text, part) == NULL) {                                               \
      fprintf(stderr, "%s:%d: '%s' is not in '%s'\n", __FILE__, __LINE__, part, text); \
      exit(1);                                                                      \
    }                                                                               \
  } while (0)

// Checks a status, and prints the error's text if it is another.
#define CHECK_STATUS(status, expected, error)                                       \
  do {                                                                              \
    const int got = (int)(status);                                                  \
    ++check_count;                                                                  \
    if (got != (int)(expected)) {                                                   \
      fprintf(stderr, "%s:%d: status %d, expected %d: %s\n", __FILE__, __LINE__, got, (int)(expected), (error)->text); \
      exit(1);                                                                      \
    }                                                                               \
  } while (0)

enum { BLOB_ENTRIES = 64, BLOB_WORDS = 1024, BLOB_TEXT = 65536 };

enum { ARGUMENT, RESULT, TEMPS, CONSTANTS, SIZES, CONTROL, SCRATCH, NOWHERE };
enum { LAUNCH = 1, COPY, REPEAT, WHILE, ROTATE, HOME, SKIP };

// Parts of a device program. The sizes may be set directly.
struct blob {
  uint32_t api;
  uint64_t temps, persistent, constants, control, scratch;
  uint32_t arguments, results, sizes, kernels, images, slots, words, messages;
  struct { uint64_t bytes; uint32_t is_written; } argument[BLOB_ENTRIES];
  struct { uint64_t bytes; uint32_t argument_plus_1; } result[BLOB_ENTRIES];
  struct { uint32_t kind, arch; uint64_t at, bytes; } image[BLOB_ENTRIES];
  struct { uint64_t name; uint32_t threads, parameters; } kernel[BLOB_ENTRIES];
  struct { uint32_t space, index; uint64_t offset; } slot[BLOB_ENTRIES];
  struct { uint64_t text; int32_t code; } message[BLOB_ENTRIES];
  uint32_t word[BLOB_WORDS];
  unsigned char text[BLOB_TEXT];  // Texts and images, at offset TEXT_AT of the blob.
  size_t text_bytes;
};

enum { TEXT_AT = 160 };

static inline void blob_init(struct blob* blob, uint32_t api) {
  memset(blob, 0, sizeof *blob);
  blob->api = api;
  blob->control = 16;
}

static inline uint64_t blob_bytes(struct blob* blob, const void* bytes, size_t size) {
  const size_t at = (blob->text_bytes + 7) / 8 * 8;
  CHECK(at + size <= BLOB_TEXT);
  memcpy(blob->text + at, bytes, size);
  blob->text_bytes = at + size;
  return TEXT_AT + at;
}

static inline void blob_argument(struct blob* blob, uint64_t bytes, uint32_t is_written) {
  blob->argument[blob->arguments].bytes = bytes;
  blob->argument[blob->arguments++].is_written = is_written;
}

static inline void blob_result(struct blob* blob, uint64_t bytes, uint32_t argument_plus_1) {
  blob->result[blob->results].bytes = bytes;
  blob->result[blob->results++].argument_plus_1 = argument_plus_1;
}

static inline void blob_image(struct blob* blob, uint32_t kind, uint32_t arch, const void* bytes, size_t size) {
  blob->image[blob->images].kind = kind;
  blob->image[blob->images].arch = arch;
  blob->image[blob->images].at = blob_bytes(blob, bytes, size);
  blob->image[blob->images++].bytes = size;
}

static inline uint32_t blob_kernel(struct blob* blob, const char* name, uint32_t threads, uint32_t parameters) {
  blob->kernel[blob->kernels].name = blob_bytes(blob, name, strlen(name) + 1);
  blob->kernel[blob->kernels].threads = threads;
  blob->kernel[blob->kernels].parameters = parameters;
  return blob->kernels++;
}

static inline uint32_t blob_slot(struct blob* blob, uint32_t space, uint32_t index, uint64_t offset) {
  blob->slot[blob->slots].space = space;
  blob->slot[blob->slots].index = index;
  blob->slot[blob->slots].offset = offset;
  return blob->slots++;
}

static inline void blob_message(struct blob* blob, const char* text, int32_t code) {
  blob->message[blob->messages].text = blob_bytes(blob, text, strlen(text) + 1);
  blob->message[blob->messages++].code = code;
}

// Appends words.
static inline void blob_words(struct blob* blob, int count, ...) {
  va_list words;
  va_start(words, count);
  while (count-- > 0) blob->word[blob->words++] = (uint32_t)va_arg(words, unsigned);
  va_end(words);
}

static inline void put32(unsigned char* at, uint32_t value) {
  int i;
  for (i = 0; i < 4; ++i) at[i] = (unsigned char)(value >> (8 * i));
}

static inline void put64(unsigned char* at, uint64_t value) {
  put32(at, (uint32_t)value);
  put32(at + 4, (uint32_t)(value >> 32));
}

// Returns the program, to be freed, and stores its size. Its parts stay usable.
static inline unsigned char* blob_finish(struct blob* blob, size_t* size) {
  const uint64_t name = blob_bytes(blob, "test", 5);
  const size_t counts[7] = {blob->arguments, blob->results, blob->images, blob->kernels,
                            blob->slots,     blob->words,   blob->messages};
  const size_t sizes[7] = {16, 16, 24, 64, 16, 4, 16};
  size_t at[7];
  size_t all = TEXT_AT + (blob->text_bytes + 7) / 8 * 8;
  unsigned char* out;
  size_t i;
  for (i = 0; i < 7; ++i) {
    at[i] = all;
    all += (counts[i] * sizes[i] + 7) / 8 * 8;
  }
  // Exactly as large as the header says, so that a sanitizer finds reads beyond it.
  out = (unsigned char*)calloc(1, all);
  CHECK(out != NULL);
  memcpy(out, "TFCDEV1", 8);
  put32(out + 8, 1);
  put32(out + 12, blob->api);
  put64(out + 16, all);
  put64(out + 24, blob->temps);
  put64(out + 32, blob->persistent);
  put64(out + 40, blob->constants);
  put64(out + 48, blob->control);
  put64(out + 56, blob->scratch);
  put32(out + 64, blob->arguments);
  put32(out + 68, blob->results);
  put32(out + 72, blob->sizes);
  put32(out + 76, blob->kernels);
  put32(out + 80, blob->images);
  put32(out + 84, blob->slots);
  put32(out + 88, blob->words);
  put32(out + 92, blob->messages);
  for (i = 0; i < 7; ++i) put64(out + 96 + 8 * i, at[i]);
  put64(out + 152, name);
  memcpy(out + TEXT_AT, blob->text, blob->text_bytes);
  for (i = 0; i < counts[0]; ++i) {
    put64(out + at[0] + 16 * i, blob->argument[i].bytes);
    put32(out + at[0] + 16 * i + 8, blob->argument[i].is_written);
  }
  for (i = 0; i < counts[1]; ++i) {
    put64(out + at[1] + 16 * i, blob->result[i].bytes);
    put32(out + at[1] + 16 * i + 8, blob->result[i].argument_plus_1);
  }
  for (i = 0; i < counts[2]; ++i) {
    put32(out + at[2] + 24 * i, blob->image[i].kind);
    put32(out + at[2] + 24 * i + 4, blob->image[i].arch);
    put64(out + at[2] + 24 * i + 8, blob->image[i].at);
    put64(out + at[2] + 24 * i + 16, blob->image[i].bytes);
  }
  for (i = 0; i < counts[3]; ++i) {
    put64(out + at[3] + 64 * i, blob->kernel[i].name);
    put32(out + at[3] + 64 * i + 16, blob->kernel[i].threads);
    put32(out + at[3] + 64 * i + 20, blob->kernel[i].parameters);
    put64(out + at[3] + 64 * i + 24, 100 + i);
    put64(out + at[3] + 64 * i + 32, 200 + i);
  }
  for (i = 0; i < counts[4]; ++i) {
    put32(out + at[4] + 16 * i, blob->slot[i].space);
    put32(out + at[4] + 16 * i + 4, blob->slot[i].index);
    put64(out + at[4] + 16 * i + 8, blob->slot[i].offset);
  }
  for (i = 0; i < counts[5]; ++i) put32(out + at[5] + 4 * i, blob->word[i]);
  for (i = 0; i < counts[6]; ++i) {
    put64(out + at[6] + 16 * i, blob->message[i].text);
    put32(out + at[6] + 16 * i + 8, (uint32_t)blob->message[i].code);
  }
  if (size != NULL) *size = all;
  return out;
}

#endif  // TESTS_DEVICE_BLOB_H_
