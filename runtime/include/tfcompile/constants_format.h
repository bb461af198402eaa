// The file that holds the constants of a program compiled with --constants=file: its header, and when it fits a
// program. Usable from C and C++; needs no library.
//
// Behind the header of 64 bytes stands the block of constants. Numbers are little-endian. The layout hash covers the
// code, and place and size of each constant, but not what the constants are: files of one layout are interchangeable.
// Two trainings of one network have one layout, unless weights of one of them have values that simplify the code: an
// untrained bias of zeros is not added at all, and two equal arrays are one.

#ifndef TFCOMPILE_CONSTANTS_FORMAT_H_
#define TFCOMPILE_CONSTANTS_FORMAT_H_

#include <stddef.h>
#include <stdint.h>

// Where things are in the header, in bytes.
#define TFCOMPILE_CONSTANTS_MAGIC "TFCCONST"
#define TFCOMPILE_CONSTANTS_VERSION 1
#define TFCOMPILE_CONSTANTS_VERSION_OFFSET 8
#define TFCOMPILE_CONSTANTS_HASH_OFFSET 16
#define TFCOMPILE_CONSTANTS_HASH_BYTES 32
#define TFCOMPILE_CONSTANTS_SIZE_OFFSET 48
#define TFCOMPILE_CONSTANTS_HEADER_BYTES 64

// Why `size` bytes at `file` are no constants file for a program with this layout hash; null if they are one.
static inline const char* tfcompile_check_constants(const void* file, size_t size, const unsigned char* layout_hash) {
  const unsigned char* const bytes = (const unsigned char*)file;
  uint64_t block = 0;
  uint32_t version = 0;
  int i;
  if (file == NULL) return "there are no constants: the pointer is null";
  if (size < TFCOMPILE_CONSTANTS_HEADER_BYTES) return "the constants end within their header";
  for (i = 0; i < TFCOMPILE_CONSTANTS_VERSION_OFFSET; ++i) {
    if (bytes[i] != (unsigned char)TFCOMPILE_CONSTANTS_MAGIC[i]) {
      return "these are no constants of tfcompile: the first bytes are not TFCCONST";
    }
  }
  for (i = 3; i >= 0; --i) version = version << 8 | bytes[TFCOMPILE_CONSTANTS_VERSION_OFFSET + i];
  if (version != TFCOMPILE_CONSTANTS_VERSION) {
    return "the constants have a version that this program does not know: use one tfcompile for both";
  }
  for (i = 0; i < TFCOMPILE_CONSTANTS_HASH_BYTES; ++i) {
    if (bytes[TFCOMPILE_CONSTANTS_HASH_OFFSET + i] != layout_hash[i]) {
      return "the constants are for other code: their layout hash is not that of this program (another network, other "
             "flags, another tfcompile; or untrained weights, such as zeros, which simplify the code: build the "
             "program from trained ones)";
    }
  }
  for (i = 7; i >= 0; --i) block = block << 8 | bytes[TFCOMPILE_CONSTANTS_SIZE_OFFSET + i];
  if (block != (uint64_t)size - TFCOMPILE_CONSTANTS_HEADER_BYTES) {
    return "the constants have another size than their header says: they are cut off";
  }
  return NULL;
}

#endif  // TFCOMPILE_CONSTANTS_FORMAT_H_
