// What must hold, or the same memory would be given to two owners. A check that fails ends the process: its kernels would go
// on to read and write each other's data, and nobody would know.
#pragma once

#include <cstdio>
#include <cstdlib>

#define SOFTGPU_CHECK(condition)                                                                  \
  do {                                                                                            \
    if (__builtin_expect(!(condition), 0)) {                                                      \
      std::fprintf(stderr, "softgpu: %s:%d: %s does not hold\n", __FILE__, __LINE__, #condition); \
      std::abort();                                                                               \
    }                                                                                             \
  } while (false)
