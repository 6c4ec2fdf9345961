// What must hold, or the same memory would be given to two owners. A check that fails ends the process, which is the
// program's: its kernels would go on to read and write each other's data, and nobody would know. Without libstdc++.
#pragma once

#include <unistd.h>

#include <cstdlib>
#include <cstring>

namespace fairlead::shim {

[[noreturn]] inline void check_failed(const char* line) {
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, line, std::strlen(line));
  std::abort();
}

}  // namespace fairlead::shim

#define SHIM_CHECK(condition)                                                                   \
  do {                                                                                          \
    if (__builtin_expect(!(condition), 0)) {                                                    \
      ::fairlead::shim::check_failed("fairlead: " __FILE__ ": " #condition " does not hold\n"); \
    }                                                                                           \
  } while (false)
