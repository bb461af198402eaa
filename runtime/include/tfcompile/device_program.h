// Reads a device program: the tables and the code that `tfcompile` stores in an object for a
// device. Included by device.h only.
//
// Nothing of the program is trusted. Every offset, index, and length is checked once here, so that
// the interpreter of its code cannot leave the tables or the buffers.

#ifndef TFCOMPILE_DEVICE_PROGRAM_H_
#define TFCOMPILE_DEVICE_PROGRAM_H_

#include "tfcompile/device_driver.h"

#ifdef __cplusplus
extern "C" {
#endif

#define TFCOMPILE_PROGRAM_MAGIC "TFCDEV1"
#define TFCOMPILE_PROGRAM_VERSION 1
#define TFCOMPILE_PROGRAM_HEADER 160

// Limits that keep sums of sizes and numbers of parameters small.
#define TFCOMPILE_PROGRAM_MAX_BYTES (UINT64_C(1) << 48)
#define TFCOMPILE_PROGRAM_MAX_PARAMETERS 4095
#define TFCOMPILE_PROGRAM_MAX_DEPTH 32
// Maximum operations of a sequence that is recorded as a graph.
#define TFCOMPILE_PROGRAM_MAX_GRAPH 16384

// Memory that an address is in.
enum tfcompile_space {
  TFCOMPILE_SPACE_ARGUMENT = 0,
  TFCOMPILE_SPACE_RESULT = 1,
  TFCOMPILE_SPACE_TEMPS = 2,
  TFCOMPILE_SPACE_CONSTANTS = 3,
  TFCOMPILE_SPACE_SIZES = 4,
  TFCOMPILE_SPACE_CONTROL = 5,
  TFCOMPILE_SPACE_SCRATCH = 6,
  TFCOMPILE_SPACE_NULL = 7
};

// Instructions.
enum tfcompile_word {
  TFCOMPILE_WORD_LAUNCH = 1,
  TFCOMPILE_WORD_COPY = 2,
  TFCOMPILE_WORD_REPEAT = 3,
  TFCOMPILE_WORD_WHILE = 4,
  TFCOMPILE_WORD_ROTATE = 5,
  TFCOMPILE_WORD_HOME = 6,
  TFCOMPILE_WORD_SKIP = 7
};

struct tfcompile_program_argument {
  uint64_t bytes;
  uint32_t is_written;
};

struct tfcompile_program_result {
  uint64_t bytes;
  uint32_t argument_plus_1;  // Nonzero if the result shares that argument's memory.
};

struct tfcompile_program_slot {
  uint32_t space;
  uint32_t index;
  uint64_t offset;
  uint64_t bytes;  // From the address to the end of its memory. Minimum over slots that rotate.
};

struct tfcompile_program_message {
  const char* text;
  int32_t code;
};

// A checked program. Texts and images point into the blob.
struct tfcompile_program {
  const unsigned char* blob;
  uint64_t size;
  const char* name;
  uint32_t api;  // enum tfcompile_device_kind
  uint64_t temps_bytes;
  uint64_t persistent_bytes;
  uint64_t constants_bytes;
  uint64_t control_bytes;
  uint64_t scratch_bytes;
  uint32_t argument_count;
  uint32_t result_count;
  uint32_t size_count;
  uint32_t kernel_count;
  uint32_t image_count;
  uint32_t slot_count;
  uint32_t word_count;
  uint32_t message_count;
  uint32_t max_parameters;
  uint32_t is_static;     // The sequence does not depend on data.
  uint64_t operations;    // Operations of a static sequence.
  void* memory;           // Owns the tables below.
  struct tfcompile_program_argument* arguments;
  struct tfcompile_program_result* results;
  struct tfcompile_device_image* images;
  struct tfcompile_device_kernel* kernels;
  struct tfcompile_program_slot* slots;
  struct tfcompile_program_message* messages;
  uint32_t* words;
};

static inline uint32_t tfcompile_read_u32(const unsigned char* at) {
  return (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}

static inline uint64_t tfcompile_read_u64(const unsigned char* at) {
  return (uint64_t)tfcompile_read_u32(at) | (uint64_t)tfcompile_read_u32(at + 4) << 32;
}

static inline uint64_t tfcompile_word_u64(const uint32_t* words) {
  return (uint64_t)words[0] | (uint64_t)words[1] << 32;
}

static inline int32_t tfcompile_program_fail(struct tfcompile_device_error* error, const char* format, ...)
    TFCOMPILE_DEVICE_FORMAT(2, 3);
static inline int32_t tfcompile_program_fail(struct tfcompile_device_error* error, const char* format, ...) {
  char text[256];
  va_list arguments;
  va_start(arguments, format);
  (void)vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  return tfcompile_device_fail(error, TFCOMPILE_DEVICE_BAD_PROGRAM, 0,
                               "the device program is malformed: %s; compile the model again with the version of "
                               "tfcompile that these headers come from",
                               text);
}

// Checks that a table is in the blob.
static inline int32_t tfcompile_program_table(const struct tfcompile_program* program, const char* name, uint64_t at,
                                              uint32_t count, uint64_t bytes_of_one,
                                              struct tfcompile_device_error* error) {
  if (count == 0) return TFCOMPILE_DEVICE_OK;
  if (at % 8 == 0 && at >= TFCOMPILE_PROGRAM_HEADER && at <= program->size &&
      count <= (program->size - at) / bytes_of_one) {
    return TFCOMPILE_DEVICE_OK;
  }
  return tfcompile_program_fail(error, "%u %s at offset %llu are outside of its %llu bytes", (unsigned)count, name,
                                (unsigned long long)at, (unsigned long long)program->size);
}

// Stores a text that ends in the blob. Offset 0 is the empty text.
static inline int32_t tfcompile_program_text(const struct tfcompile_program* program, const char* name, uint64_t at,
                                             const char** text, struct tfcompile_device_error* error) {
  *text = "";
  if (at == 0) return TFCOMPILE_DEVICE_OK;
  if (at >= TFCOMPILE_PROGRAM_HEADER && at < program->size &&
      memchr(program->blob + at, 0, (size_t)(program->size - at)) != NULL) {
    *text = (const char*)(program->blob + at);
    return TFCOMPILE_DEVICE_OK;
  }
  return tfcompile_program_fail(error, "the %s at offset %llu is outside of its %llu bytes or has no end", name,
                                (unsigned long long)at, (unsigned long long)program->size);
}

// Returns the bytes of a slot's memory, or UINT64_MAX if it does not exist.
static inline uint64_t tfcompile_program_extent(const struct tfcompile_program* program, uint32_t space,
                                                uint32_t index) {
  switch (space) {
    case TFCOMPILE_SPACE_ARGUMENT:
      return index < program->argument_count ? program->arguments[index].bytes : UINT64_MAX;
    case TFCOMPILE_SPACE_RESULT: return index < program->result_count ? program->results[index].bytes : UINT64_MAX;
    case TFCOMPILE_SPACE_TEMPS: return program->temps_bytes;
    case TFCOMPILE_SPACE_CONSTANTS: return program->constants_bytes;
    case TFCOMPILE_SPACE_SIZES: return 8 * (uint64_t)program->size_count;
    case TFCOMPILE_SPACE_CONTROL: return program->control_bytes;
    case TFCOMPILE_SPACE_SCRATCH: return program->scratch_bytes;
    case TFCOMPILE_SPACE_NULL: return 0;
    default: return UINT64_MAX;
  }
}

// ---- code

// Checks that slots exist and have at least `bytes`.
static inline int32_t tfcompile_program_slots(const struct tfcompile_program* program, const uint32_t* slots,
                                              uint32_t count, uint64_t bytes, struct tfcompile_device_error* error) {
  uint32_t i;
  for (i = 0; i < count; ++i) {
    if (slots[i] >= program->slot_count) {
      return tfcompile_program_fail(error, "its code uses slot %u of %u", (unsigned)slots[i],
                                    (unsigned)program->slot_count);
    }
    if (program->slots[slots[i]].bytes < bytes) {
      return tfcompile_program_fail(error, "its code uses %llu bytes at slot %u, which has %llu",
                                    (unsigned long long)bytes, (unsigned)slots[i],
                                    (unsigned long long)program->slots[slots[i]].bytes);
    }
  }
  return TFCOMPILE_DEVICE_OK;
}

// Returns the words of the instruction at `at`, without those that it repeats or skips, or 0 if it
// does not fit before `end`.
static inline uint64_t tfcompile_program_length(const struct tfcompile_program* program, uint32_t at, uint32_t end) {
  const uint32_t* const word = program->words + at;
  const uint64_t left = end - at;
  uint64_t length = 0;
  switch (word[0]) {
    case TFCOMPILE_WORD_LAUNCH:
      if (left >= 4 && word[1] < program->kernel_count) {
        length = 4 + (uint64_t)program->kernels[word[1]].parameter_count;
      }
      break;
    case TFCOMPILE_WORD_COPY: length = 5; break;
    case TFCOMPILE_WORD_REPEAT: length = 4; break;
    case TFCOMPILE_WORD_WHILE: length = 5; break;
    case TFCOMPILE_WORD_ROTATE:
      if (left >= 2) length = 2 + (uint64_t)word[1];
      break;
    case TFCOMPILE_WORD_HOME:
      if (left >= 3 && word[1] <= 1) length = 5 + (2 + (uint64_t)word[1]) * word[2];
      break;
    case TFCOMPILE_WORD_SKIP: length = 3; break;
    default: break;
  }
  return length <= left ? length : 0;
}

// Checks words [at, end) and adds the number of their operations, saturated.
static inline int32_t tfcompile_program_code(struct tfcompile_program* program, uint32_t at, uint32_t end, int depth,
                                             uint64_t* operations, struct tfcompile_device_error* error) {
  if (depth > TFCOMPILE_PROGRAM_MAX_DEPTH) {
    return tfcompile_program_fail(error, "its loops are nested more than %d deep", TFCOMPILE_PROGRAM_MAX_DEPTH);
  }
  while (at < end) {
    const uint32_t* const word = program->words + at;
    const uint64_t length = tfcompile_program_length(program, at, end);
    const uint32_t next = at + (uint32_t)length;
    uint64_t body = 0;
    uint64_t inner = 0;
    int32_t status = TFCOMPILE_DEVICE_OK;
    if (length == 0) return tfcompile_program_fail(error, "its code has no valid instruction at word %u", (unsigned)at);
    switch (word[0]) {
      case TFCOMPILE_WORD_LAUNCH:
        status = tfcompile_program_slots(program, word + 4, program->kernels[word[1]].parameter_count, 0, error);
        // The guard.
        if (status == TFCOMPILE_DEVICE_OK && program->slots[word[4]].space != TFCOMPILE_SPACE_NULL) {
          status = tfcompile_program_slots(program, word + 4, 1, 4, error);
        }
        inner = 1;
        break;
      case TFCOMPILE_WORD_COPY:
        status = tfcompile_program_slots(program, word + 1, 2, tfcompile_word_u64(word + 3), error);
        inner = 1;
        break;
      case TFCOMPILE_WORD_ROTATE:
        status = tfcompile_program_slots(program, word + 2, word[1], 0, error);
        break;
      case TFCOMPILE_WORD_HOME:
        if (word[2] == 0) return tfcompile_program_fail(error, "its code resets no address at word %u", (unsigned)at);
        status = tfcompile_program_slots(program, word + 3, (2 + word[1]) * word[2],
                                         tfcompile_word_u64(word + 3 + (2 + word[1]) * word[2]), error);
        inner = (1 + (uint64_t)word[1]) * word[2];
        break;
      case TFCOMPILE_WORD_REPEAT: body = word[3]; break;
      case TFCOMPILE_WORD_WHILE:
        body = (uint64_t)word[3] + word[4];
        status = tfcompile_program_slots(program, word + 1, 2, 4, error);
        if (status == TFCOMPILE_DEVICE_OK) {
          const struct tfcompile_program_slot* const guard = &program->slots[word[1]];
          const struct tfcompile_program_slot* const count = &program->slots[word[2]];
          if (count->space != guard->space || count->index != guard->index || count->offset != guard->offset + 4 ||
              guard->bytes < 8) {
            return tfcompile_program_fail(error, "the counter of the loop at word %u does not follow its guard",
                                          (unsigned)at);
          }
        }
        program->is_static = 0;
        break;
      default:
        body = word[2];
        status = tfcompile_program_slots(program, word + 1, 1, 4, error);
        program->is_static = 0;
        break;
    }
    if (status == TFCOMPILE_DEVICE_OK && body > end - next) {
      status = tfcompile_program_fail(error, "the body of word %u has %llu words, but %u follow", (unsigned)at,
                                      (unsigned long long)body, (unsigned)(end - next));
    }
    if (status == TFCOMPILE_DEVICE_OK && body > 0) {
      // The two parts of a loop are separate sequences.
      const uint32_t middle = next + (word[0] == TFCOMPILE_WORD_WHILE ? word[3] : 0);
      const uint64_t trips = word[0] == TFCOMPILE_WORD_REPEAT ? tfcompile_word_u64(word + 1) : 1;
      status = tfcompile_program_code(program, next, middle, depth + 1, &inner, error);
      if (status == TFCOMPILE_DEVICE_OK) {
        status = tfcompile_program_code(program, middle, next + (uint32_t)body, depth + 1, &inner, error);
      }
      // Iterations that do nothing but rotate addresses also take time to record.
      if (inner == 0) inner = 1;
      inner = trips > UINT32_MAX || inner > UINT32_MAX ? (trips > 0 ? UINT32_MAX : 0) : inner * trips;
    }
    if (status != TFCOMPILE_DEVICE_OK) return status;
    *operations = inner > UINT32_MAX - *operations ? UINT32_MAX : *operations + inner;
    at = next + (uint32_t)body;
  }
  return TFCOMPILE_DEVICE_OK;
}

// Lowers the bytes of slots whose addresses are exchanged to their minimum. Needs valid lengths and
// slots, so it stops at the first invalid instruction, which tfcompile_program_code reports.
static inline void tfcompile_program_exchange(struct tfcompile_program* program) {
  int is_changed = 1;
  while (is_changed) {
    uint32_t at = 0;
    is_changed = 0;
    while (at < program->word_count) {
      const uint32_t* const word = program->words + at;
      const uint64_t length = tfcompile_program_length(program, at, program->word_count);
      uint64_t bytes = UINT64_MAX;
      uint32_t i;
      if (length == 0) return;
      if (word[0] == TFCOMPILE_WORD_ROTATE) {
        for (i = 0; i < word[1]; ++i) {
          if (word[2 + i] >= program->slot_count) return;
          if (program->slots[word[2 + i]].bytes < bytes) bytes = program->slots[word[2 + i]].bytes;
        }
        for (i = 0; i < word[1]; ++i) {
          is_changed |= program->slots[word[2 + i]].bytes != bytes;
          program->slots[word[2 + i]].bytes = bytes;
        }
      }
      at += (uint32_t)length;
    }
  }
}

// ---- tables

static inline int32_t tfcompile_program_header(struct tfcompile_program* program,
                                               struct tfcompile_device_error* error) {
  const unsigned char* const blob = program->blob;
  uint32_t* const counts[8] = {&program->argument_count, &program->result_count, &program->size_count,
                               &program->kernel_count,   &program->image_count,  &program->slot_count,
                               &program->word_count,     &program->message_count};
  uint64_t* const sizes[5] = {&program->temps_bytes, &program->persistent_bytes, &program->constants_bytes,
                              &program->control_bytes, &program->scratch_bytes};
  int i;
  if (memcmp(blob, TFCOMPILE_PROGRAM_MAGIC, 8) != 0) {
    return tfcompile_program_fail(error, "its first bytes are not " TFCOMPILE_PROGRAM_MAGIC);
  }
  if (tfcompile_read_u32(blob + 8) != TFCOMPILE_PROGRAM_VERSION) {
    return tfcompile_program_fail(error, "its version is %u, expected %d", (unsigned)tfcompile_read_u32(blob + 8),
                                  TFCOMPILE_PROGRAM_VERSION);
  }
  program->api = tfcompile_read_u32(blob + 12);
  program->size = tfcompile_read_u64(blob + 16);
  if (program->api != TFCOMPILE_DEVICE_CUDA && program->api != TFCOMPILE_DEVICE_OPENCL) {
    return tfcompile_program_fail(error, "it is for programming interface %u", (unsigned)program->api);
  }
  if (program->size < TFCOMPILE_PROGRAM_HEADER || program->size > TFCOMPILE_PROGRAM_MAX_BYTES) {
    return tfcompile_program_fail(error, "its size is %llu bytes", (unsigned long long)program->size);
  }
  for (i = 0; i < 5; ++i) {
    *sizes[i] = tfcompile_read_u64(blob + 24 + 8 * i);
    if (*sizes[i] > TFCOMPILE_PROGRAM_MAX_BYTES) {
      return tfcompile_program_fail(error, "a block of memory has %llu bytes", (unsigned long long)*sizes[i]);
    }
  }
  if (program->persistent_bytes > program->temps_bytes || program->control_bytes < 4) {
    return tfcompile_program_fail(error, "its persistent or control block has the wrong size");
  }
  for (i = 0; i < 8; ++i) *counts[i] = tfcompile_read_u32(blob + 64 + 4 * i);
  return tfcompile_program_text(program, "name", tfcompile_read_u64(blob + 152), &program->name, error);
}

// Allocates the tables, after their counts have been checked against the blob.
static inline int32_t tfcompile_program_allocate(struct tfcompile_program* program,
                                                 struct tfcompile_device_error* error) {
  const size_t bytes[7] = {program->argument_count * sizeof *program->arguments,
                           program->result_count * sizeof *program->results,
                           program->image_count * sizeof *program->images,
                           program->kernel_count * sizeof *program->kernels,
                           program->slot_count * sizeof *program->slots,
                           program->message_count * sizeof *program->messages,
                           program->word_count * sizeof *program->words};
  unsigned char* places[7];
  size_t all = 16;
  int i;
  for (i = 0; i < 7; ++i) all += (bytes[i] + 15) / 16 * 16;
  program->memory = calloc(1, all);
  if (program->memory == NULL) return tfcompile_device_fail_host(error, "a device program");
  places[0] = (unsigned char*)program->memory;
  for (i = 1; i < 7; ++i) places[i] = places[i - 1] + (bytes[i - 1] + 15) / 16 * 16;
  program->arguments = (struct tfcompile_program_argument*)(void*)places[0];
  program->results = (struct tfcompile_program_result*)(void*)places[1];
  program->images = (struct tfcompile_device_image*)(void*)places[2];
  program->kernels = (struct tfcompile_device_kernel*)(void*)places[3];
  program->slots = (struct tfcompile_program_slot*)(void*)places[4];
  program->messages = (struct tfcompile_program_message*)(void*)places[5];
  program->words = (uint32_t*)(void*)places[6];
  return TFCOMPILE_DEVICE_OK;
}

// Reads arguments and results.
static inline int32_t tfcompile_program_interface(struct tfcompile_program* program, const unsigned char* arguments,
                                                  const unsigned char* results,
                                                  struct tfcompile_device_error* error) {
  uint32_t i;
  for (i = 0; i < program->argument_count; ++i) {
    program->arguments[i].bytes = tfcompile_read_u64(arguments + 16 * (size_t)i);
    program->arguments[i].is_written = tfcompile_read_u32(arguments + 16 * (size_t)i + 8);
    if (program->arguments[i].bytes > TFCOMPILE_PROGRAM_MAX_BYTES) {
      return tfcompile_program_fail(error, "argument %u is too large", (unsigned)i);
    }
  }
  for (i = 0; i < program->result_count; ++i) {
    struct tfcompile_program_result* const result = &program->results[i];
    result->bytes = tfcompile_read_u64(results + 16 * (size_t)i);
    result->argument_plus_1 = tfcompile_read_u32(results + 16 * (size_t)i + 8);
    if (result->bytes > TFCOMPILE_PROGRAM_MAX_BYTES) {
      return tfcompile_program_fail(error, "result %u is too large", (unsigned)i);
    }
    if (result->argument_plus_1 > program->argument_count ||
        (result->argument_plus_1 != 0 && program->arguments[result->argument_plus_1 - 1].bytes < result->bytes)) {
      return tfcompile_program_fail(error, "result %u cannot share the memory of an argument", (unsigned)i);
    }
  }
  return TFCOMPILE_DEVICE_OK;
}

static inline int32_t tfcompile_program_images(struct tfcompile_program* program, const unsigned char* images,
                                               struct tfcompile_device_error* error) {
  uint32_t i;
  for (i = 0; i < program->image_count; ++i) {
    const unsigned char* const entry = images + 24 * (size_t)i;
    struct tfcompile_device_image* const image = &program->images[i];
    const uint64_t at = tfcompile_read_u64(entry + 8);
    image->kind = tfcompile_read_u32(entry);
    image->arch = tfcompile_read_u32(entry + 4);
    image->size = tfcompile_read_u64(entry + 16);
    if (image->size == 0 || at < TFCOMPILE_PROGRAM_HEADER || at > program->size || image->size > program->size - at) {
      return tfcompile_program_fail(error, "image %u is outside of its %llu bytes", (unsigned)i,
                                    (unsigned long long)program->size);
    }
    image->bytes = program->blob + at;
    if (image->kind < TFCOMPILE_IMAGE_PTX || image->kind > TFCOMPILE_IMAGE_OPENCL_C ||
        (image->kind >= TFCOMPILE_IMAGE_SPIRV) != (program->api == TFCOMPILE_DEVICE_OPENCL)) {
      return tfcompile_program_fail(error, "image %u has kind %u", (unsigned)i, (unsigned)image->kind);
    }
    if ((image->kind == TFCOMPILE_IMAGE_PTX || image->kind == TFCOMPILE_IMAGE_OPENCL_C) &&
        image->bytes[image->size - 1] != 0) {
      return tfcompile_program_fail(error, "the text of image %u has no end", (unsigned)i);
    }
  }
  return TFCOMPILE_DEVICE_OK;
}

static inline int32_t tfcompile_program_kernels(struct tfcompile_program* program, const unsigned char* kernels,
                                                struct tfcompile_device_error* error) {
  uint32_t i;
  for (i = 0; i < program->kernel_count; ++i) {
    const unsigned char* const entry = kernels + 64 * (size_t)i;
    struct tfcompile_device_kernel* const kernel = &program->kernels[i];
    int32_t status = tfcompile_program_text(program, "name of a kernel", tfcompile_read_u64(entry), &kernel->name,
                                            error);
    if (status == TFCOMPILE_DEVICE_OK) {
      status = tfcompile_program_text(program, "label of a kernel", tfcompile_read_u64(entry + 8), &kernel->label,
                                      error);
    }
    if (status != TFCOMPILE_DEVICE_OK) return status;
    kernel->threads = tfcompile_read_u32(entry + 16);
    kernel->parameter_count = tfcompile_read_u32(entry + 20);
    kernel->flops = tfcompile_read_u64(entry + 24);
    kernel->bytes = tfcompile_read_u64(entry + 32);
    if (kernel->name[0] == '\0' || kernel->threads == 0 || kernel->threads > 65536 || kernel->parameter_count == 0 ||
        kernel->parameter_count > TFCOMPILE_PROGRAM_MAX_PARAMETERS) {
      return tfcompile_program_fail(error, "kernel %u has %u threads and %u parameters", (unsigned)i,
                                    (unsigned)kernel->threads, (unsigned)kernel->parameter_count);
    }
    if (kernel->parameter_count > program->max_parameters) program->max_parameters = kernel->parameter_count;
  }
  return TFCOMPILE_DEVICE_OK;
}

static inline int32_t tfcompile_program_addresses(struct tfcompile_program* program, const unsigned char* slots,
                                                  struct tfcompile_device_error* error) {
  uint32_t i;
  for (i = 0; i < program->slot_count; ++i) {
    const unsigned char* const entry = slots + 16 * (size_t)i;
    struct tfcompile_program_slot* const slot = &program->slots[i];
    uint64_t bytes;
    slot->space = tfcompile_read_u32(entry);
    slot->index = tfcompile_read_u32(entry + 4);
    slot->offset = tfcompile_read_u64(entry + 8);
    bytes = tfcompile_program_extent(program, slot->space, slot->index);
    if (bytes == UINT64_MAX || slot->offset > bytes) {
      return tfcompile_program_fail(error, "slot %u is outside of its memory", (unsigned)i);
    }
    slot->bytes = bytes - slot->offset;
  }
  return TFCOMPILE_DEVICE_OK;
}

static inline int32_t tfcompile_program_tables(struct tfcompile_program* program,
                                               struct tfcompile_device_error* error) {
  static const char* const names[7] = {"arguments", "results", "images", "kernels", "slots", "words", "messages"};
  static const unsigned char sizes[7] = {16, 16, 24, 64, 16, 4, 16};
  const uint32_t counts[7] = {program->argument_count, program->result_count, program->image_count,
                              program->kernel_count,   program->slot_count,   program->word_count,
                              program->message_count};
  const unsigned char* at[7];
  int32_t status = TFCOMPILE_DEVICE_OK;
  uint32_t i;
  for (i = 0; i < 7; ++i) {
    const uint64_t offset = tfcompile_read_u64(program->blob + 96 + 8 * (size_t)i);
    status = tfcompile_program_table(program, names[i], offset, counts[i], sizes[i], error);
    if (status != TFCOMPILE_DEVICE_OK) return status;
    at[i] = counts[i] == 0 ? program->blob : program->blob + offset;
  }
  status = tfcompile_program_allocate(program, error);
  if (status == TFCOMPILE_DEVICE_OK) status = tfcompile_program_interface(program, at[0], at[1], error);
  if (status == TFCOMPILE_DEVICE_OK) status = tfcompile_program_images(program, at[2], error);
  if (status == TFCOMPILE_DEVICE_OK) status = tfcompile_program_kernels(program, at[3], error);
  if (status == TFCOMPILE_DEVICE_OK) status = tfcompile_program_addresses(program, at[4], error);
  if (status != TFCOMPILE_DEVICE_OK) return status;
  for (i = 0; i < program->word_count; ++i) program->words[i] = tfcompile_read_u32(at[5] + 4 * (size_t)i);
  for (i = 0; i < program->message_count && status == TFCOMPILE_DEVICE_OK; ++i) {
    program->messages[i].code = (int32_t)tfcompile_read_u32(at[6] + 16 * (size_t)i + 8);
    status = tfcompile_program_text(program, "text of a message", tfcompile_read_u64(at[6] + 16 * (size_t)i),
                                    &program->messages[i].text, error);
  }
  return status;
}

static inline void tfcompile_program_release(struct tfcompile_program* program) {
  free(program->memory);
  program->memory = NULL;
}

// Reads and checks a program. Its blob must stay valid. Allocates nothing on failure.
static inline int32_t tfcompile_program_parse(const void* blob, struct tfcompile_program* program,
                                              struct tfcompile_device_error* error) {
  int32_t status;
  memset(program, 0, sizeof *program);
  if (blob == NULL) {
    return tfcompile_device_fail(error, TFCOMPILE_DEVICE_INVALID_ARGUMENT, 0, "the device program is null");
  }
  program->blob = (const unsigned char*)blob;
  program->is_static = 1;
  status = tfcompile_program_header(program, error);
  if (status == TFCOMPILE_DEVICE_OK) status = tfcompile_program_tables(program, error);
  if (status == TFCOMPILE_DEVICE_OK) {
    tfcompile_program_exchange(program);
    status = tfcompile_program_code(program, 0, program->word_count, 0, &program->operations, error);
  }
  if (status != TFCOMPILE_DEVICE_OK) tfcompile_program_release(program);
  return status;
}

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // TFCOMPILE_DEVICE_PROGRAM_H_
