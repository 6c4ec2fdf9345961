// The time of day to the nanosecond, for spans, which others put beside their own.
#pragma once

#include <cstdint>

namespace fairlead {

// Since the epoch; never for measuring.
std::int64_t wall_clock_ns();

}  // namespace fairlead
