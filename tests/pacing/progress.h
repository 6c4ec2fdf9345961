// What paced-program says of itself, in memory that it shares with whoever started it.
#pragma once

#include <atomic>
#include <cstdint>

namespace fairlead::pacing_tests {

struct Progress {
  std::atomic<std::uint64_t> kernels{0};  // that have ended
  // Of `requests`: how many were answered, and how many of those after their objective.
  std::atomic<std::uint64_t> answered{0}, missed{0};
  // And for how long those together waited behind others, and were served.
  std::atomic<std::uint64_t> queued_ns{0}, served_ns{0};
};

}  // namespace fairlead::pacing_tests
