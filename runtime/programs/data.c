// Common part of the generated test and benchmark: descriptions of buffers, inputs, and constants.
//
// In a generated file, this text follows a C header with the prefix `tfcompile_program` and
// precedes the tables of the program. C99 that is also C++11; needs only the C library.

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Kind of the numbers in a buffer. A complex number consists of two.
enum number_kind { NUMBER_INTEGER, NUMBER_FLOAT };

struct number_type {
  enum number_kind kind;
  int bytes;            // Size of a number in memory.
  int per_element;      // Numbers per element.
  int largest;          // NUMBER_INTEGER: the largest generated value, at most 7.
  int has_sign;         // NUMBER_FLOAT only, like the following fields.
  int exponent_bits;
  int fraction_bits;
  int bias;
};

// Range of an argument that is the size of a named dimension.
struct size_range {
  int64_t low;
  int64_t high;
};

struct buffer_table {
  const char* name;
  struct number_type type;
  uint64_t count;         // Number of elements.
  int rank;
  const int64_t* sizes;   // Size of each dimension, or the upper bound if it is data-dependent.
  const int* size_index;  // Index of each dimension's reported size, or of the argument that holds
                          // it, or -1; null if all are static.
  const struct size_range* range;  // Null unless the buffer is such an argument.
};

// Next element of a random sequence: a counter whose values are mixed (splitmix64).
static uint64_t next_random(uint64_t* state) {
  uint64_t bits = (*state += UINT64_C(0x9e3779b97f4a7c15));
  bits = (bits ^ (bits >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
  bits = (bits ^ (bits >> 27)) * UINT64_C(0x94d049bb133111eb);
  return bits ^ (bits >> 31);
}

// Bits of a random number: an integer from 0 to `largest`, small because it may be a trip count, or
// a floating-point number of either sign from 1/16 to 1.
static uint64_t random_number(const struct number_type* type, uint64_t* state) {
  const uint64_t random = next_random(state);
  uint64_t bits;
  int exponent;
  if (type->kind == NUMBER_INTEGER) return (random >> 32) % (uint64_t)(type->largest + 1);
  exponent = type->bias - 1 - (int)(random & 3);
  if (exponent < 0) exponent = 0;
  bits = (uint64_t)exponent << type->fraction_bits;
  bits |= (random >> 3) & ((UINT64_C(1) << type->fraction_bits) - 1);
  if (type->has_sign) bits |= (random >> 63) << (type->exponent_bits + type->fraction_bits);
  return bits;
}

static void store_number(unsigned char* to, uint64_t bits, int bytes) {
  const uint8_t one = (uint8_t)bits;
  const uint16_t two = (uint16_t)bits;
  const uint32_t four = (uint32_t)bits;
  memcpy(to, bytes == 1 ? (const void*)&one : bytes == 2 ? (const void*)&two : bytes == 4 ? (const void*)&four : &bits,
         (size_t)bytes);
}

// Seed 0 generates zeros, and the largest sizes.
static void fill_buffer(void* memory, const struct buffer_table* buffer, uint64_t seed) {
  unsigned char* to = (unsigned char*)memory;
  const uint64_t numbers = buffer->count * (uint64_t)buffer->type.per_element;
  uint64_t i;
  if (buffer->range != NULL) {
    const uint64_t sizes = (uint64_t)(buffer->range->high - buffer->range->low) + 1;
    const uint64_t below = seed == 0 ? 0 : next_random(&seed) % sizes;
    store_number(to, (uint64_t)buffer->range->high - below, buffer->type.bytes);
    return;
  }
  for (i = 0; i < numbers; ++i, to += buffer->type.bytes) {
    store_number(to, seed == 0 ? 0 : random_number(&buffer->type, &seed), buffer->type.bytes);
  }
}

// Returns memory aligned to 64 bytes, which is never freed. Ends the program if out of memory.
static void* aligned_memory(size_t bytes) {
  unsigned char* const memory = (unsigned char*)malloc(bytes + 64);
  if (memory == NULL) {
    fprintf(stderr, "out of memory: cannot allocate %lu bytes\n", (unsigned long)bytes);
    exit(1);
  }
  return memory + (64 - (uintptr_t)memory % 64);
}

// The constants file in memory.
struct constants {
  void* bytes;
  size_t size;
};

#ifdef PROGRAM_CONSTANTS
static struct constants read_constants(const char* path) {
  struct constants constants = {NULL, 0};
  FILE* const file = fopen(path, "rb");
  long size = -1;
  if (file != NULL && fseek(file, 0, SEEK_END) == 0) size = ftell(file);
  if (size < 0 || fseek(file, 0, SEEK_SET) != 0) {
    fprintf(stderr, "cannot read the constants file '%s': set --constants=FILE\n", path);
    exit(1);
  }
  constants.bytes = aligned_memory((size_t)size);
  constants.size = fread(constants.bytes, 1, (size_t)size, file);
  fclose(file);
  return constants;
}

static void set_constants(tfcompile_program_state* state, const struct constants* constants) {
  const char* const error = tfcompile_program_set_constants(state, constants->bytes, constants->size);
  if (error != NULL) {
    fprintf(stderr, "%s\n", error);
    exit(1);
  }
}
#endif

#ifdef PROGRAM_DEVICE
// Number of the device of all states.
static int32_t device_ordinal = 0;
#endif

static tfcompile_program_state* new_state(void* memory) {
  tfcompile_program_state* const state = tfcompile_program_init(memory);
#ifdef PROGRAM_DEVICE
  (void)tfcompile_program_set_device(state, device_ordinal);
#endif
  return state;
}

// Returns the value of a flag `--name=value`, or null if `word` is not this flag.
static const char* flag_value(const char* word, const char* name) {
  const size_t length = strlen(name);
  if (strncmp(word, "--", 2) != 0 || strncmp(word + 2, name, length) != 0 || word[2 + length] != '=') return NULL;
  return word + 2 + length + 1;
}
