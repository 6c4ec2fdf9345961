// What paced-program says of itself, in memory that it shares with whoever started it.
#pragma once

#include <atomic>
#include <cstdint>

namespace fairlead::pacing_tests {

struct Progress {
  std::atomic<std::uint64_t> kernels{0};  // that have ended
  // Of `requests`: how many were answered, and how many of those after their objective.
  std::atomic<std::uint64_t> answered{0}, missed{0};
};

}  // namespace fairlead::pacing_tests
