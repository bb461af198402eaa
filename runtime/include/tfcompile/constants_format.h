// Format of the constants file of a program compiled with --constants=file: its header, and the
// check that it fits a program. Usable from C and C++; needs no library.
//
// The header has 64 bytes. The block of constants follows. Numbers are little-endian. The layout
// hash covers the code and the offset and size of each constant, but not the values, so files with
// the same layout are interchangeable. Two trainings of one network have the same layout unless
// some weights have values that simplify the code: an untrained bias of zeros is not added at all,
// and equal arrays are merged.

#ifndef TFCOMPILE_CONSTANTS_FORMAT_H_
#define TFCOMPILE_CONSTANTS_FORMAT_H_

#include <stddef.h>
#include <stdint.h>

// Offsets in the header, in bytes.
#define TFCOMPILE_CONSTANTS_MAGIC "TFCCONST"
#define TFCOMPILE_CONSTANTS_VERSION 1
#define TFCOMPILE_CONSTANTS_VERSION_OFFSET 8
#define TFCOMPILE_CONSTANTS_HASH_OFFSET 16
#define TFCOMPILE_CONSTANTS_HASH_BYTES 32
#define TFCOMPILE_CONSTANTS_SIZE_OFFSET 48
#define TFCOMPILE_CONSTANTS_HEADER_BYTES 64

// Checks `size` bytes at `file`. Returns null if they are a constants file for a program with this
// layout hash, and otherwise an error message.
static inline const char* tfcompile_check_constants(const void* file, size_t size, const unsigned char* layout_hash) {
  const unsigned char* const bytes = (const unsigned char*)file;
  uint64_t block = 0;
  uint32_t version = 0;
  int i;
  if (file == NULL) return "the pointer to the constants is null";
  if (size < TFCOMPILE_CONSTANTS_HEADER_BYTES) return "the constants file is truncated within its header";
  for (i = 0; i < TFCOMPILE_CONSTANTS_VERSION_OFFSET; ++i) {
    if (bytes[i] != (unsigned char)TFCOMPILE_CONSTANTS_MAGIC[i]) {
      return "not a constants file of tfcompile: it does not begin with TFCCONST";
    }
  }
  for (i = 3; i >= 0; --i) version = version << 8 | bytes[TFCOMPILE_CONSTANTS_VERSION_OFFSET + i];
  if (version != TFCOMPILE_CONSTANTS_VERSION) {
    return "unsupported version of the constants file: build the program and the file with the same tfcompile";
  }
  for (i = 0; i < TFCOMPILE_CONSTANTS_HASH_BYTES; ++i) {
    if (bytes[TFCOMPILE_CONSTANTS_HASH_OFFSET + i] != layout_hash[i]) {
      return "the constants are for other code: their layout hash differs from this program's (different network, "
             "flags, or tfcompile version; or untrained weights, such as zeros, which simplify the code: build the "
             "program from trained weights)";
    }
  }
  for (i = 7; i >= 0; --i) block = block << 8 | bytes[TFCOMPILE_CONSTANTS_SIZE_OFFSET + i];
  if (block != (uint64_t)size - TFCOMPILE_CONSTANTS_HEADER_BYTES) {
    return "the constants file is truncated: its size differs from the size in its header";
  }
  return NULL;
}

#endif  // TFCOMPILE_CONSTANTS_FORMAT_H_
