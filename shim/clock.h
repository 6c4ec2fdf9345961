#pragma once

#include <time.h>

#include <cstdint>

namespace fairlead::shim {

// Nanoseconds of the monotonic clock.
inline std::uint64_t now_ns() {
  timespec now = {};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1000000000 + static_cast<std::uint64_t>(now.tv_nsec);
}

}  // namespace fairlead::shim
