// The one home of "what time is it". The daemon and the edges read clocks here; decision layers are handed an Instant.
#pragma once

#include "base/units.h"

namespace fairlead {

Instant monotonic_now();

// Milliseconds since the epoch, for people, headers and stored records; never for measuring.
std::int64_t wall_clock_ms();

}  // namespace fairlead
