// What paced-program says of itself, in memory that it shares with whoever started it.
#pragma once

#include <atomic>
#include <cstdint>

namespace fairlead::pacing_tests {

struct Progress {
  std::atomic<std::uint64_t> kernels{0};  // that have ended
};

}  // namespace fairlead::pacing_tests
