// What the generated test and the generated benchmark have in common: descriptions of buffers, inputs, constants.
//
// Comes behind the C header of a program with the prefix `tfcompile_program` in a generated file, and before tables
// that are made from the program. C99 that is C++11 as well; needs the C library and nothing else.

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// The numbers that a buffer holds. A complex number is two.
enum number_kind { NUMBER_INTEGER, NUMBER_FLOAT };

struct number_type {
  enum number_kind kind;
  int bytes;            // Of one number in memory.
  int per_element;      // Numbers in an element.
  int largest;          // NUMBER_INTEGER: the largest value to give, at most 7.
  int has_sign;         // NUMBER_FLOAT, and what follows.
  int exponent_bits;
  int fraction_bits;
  int bias;
};

struct buffer_table {
  const char* name;
  struct number_type type;
  uint64_t count;         // Elements.
  int rank;
  const int64_t* sizes;   // Of each dimension, its bound if only a run knows it.
  const int* size_index;  // Where a run says how large each dimension is, or -1; null if all are fixed.
};

// The next of a sequence of random bits: a counter whose steps are mixed (splitmix64).
static uint64_t next_random(uint64_t* state) {
  uint64_t bits = (*state += UINT64_C(0x9e3779b97f4a7c15));
  bits = (bits ^ (bits >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
  bits = (bits ^ (bits >> 27)) * UINT64_C(0x94d049bb133111eb);
  return bits ^ (bits >> 31);
}

// Bits of a number: an integer from 0 to the largest, which may count a loop's rounds and so is small; or a
// floating-point number of either sign from 1/16 to 1.
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

// Seed 0 gives zeros.
static void fill_buffer(void* memory, const struct buffer_table* buffer, uint64_t seed) {
  unsigned char* to = (unsigned char*)memory;
  const uint64_t numbers = buffer->count * (uint64_t)buffer->type.per_element;
  uint64_t i;
  for (i = 0; i < numbers; ++i, to += buffer->type.bytes) {
    store_number(to, seed == 0 ? 0 : random_number(&buffer->type, &seed), buffer->type.bytes);
  }
}

// Memory that starts at a multiple of 64; ends the program if there is none. It is never given back.
static void* aligned_memory(size_t bytes) {
  unsigned char* const memory = (unsigned char*)malloc(bytes + 64);
  if (memory == NULL) {
    fprintf(stderr, "there are no %lu bytes of memory\n", (unsigned long)bytes);
    exit(1);
  }
  return memory + (64 - (uintptr_t)memory % 64);
}

// The constants' file, in memory.
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
    fprintf(stderr, "cannot read the constants '%s': name their file with --constants=FILE\n", path);
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

// The value of a flag `--name=value`; null if the word is another one.
static const char* flag_value(const char* word, const char* name) {
  const size_t length = strlen(name);
  if (strncmp(word, "--", 2) != 0 || strncmp(word + 2, name, length) != 0 || word[2 + length] != '=') return NULL;
  return word + 2 + length + 1;
}
