// Defines CHECK for the programs in this folder: prints the location of a failed condition and ends
// the program.

#ifndef CHECK_H_
#define CHECK_H_

#include <cstdio>
#include <cstdlib>

#define CHECK(condition)                                                       \
  do {                                                                         \
    if (!(condition)) {                                                        \
      std::fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);     \
      std::exit(1);                                                            \
    }                                                                          \
  } while (false)

#endif  // CHECK_H_
