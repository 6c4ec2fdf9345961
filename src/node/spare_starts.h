// Which starts that a scaler asks for may be asked for now: what the rate needs, at once; a spare, where nothing else is to be done.
//
// A spare is lent a seat until it has started. Parked instances of the function take free seats first, so each of those on the spare's device is
// lent one, too. Spares come one at a time, and are bounded by the contexts that they keep on devices and by the pool.
//
// Pure.
#pragma once

#include <string>
#include <vector>

#include "decide/core/core.h"
#include "decide/scaling/scaler.h"

namespace fairlead {

struct SpareRoom {
  std::size_t parked = 0;        // instances of all functions that are scaled
  std::size_t serving = 0;       // devices
  std::size_t pool = 32;         // instances of a device
  Bytes device_memory{0};        // of the least
  std::vector<GpuId> with_room;  // devices whose pool has room for one
  bool is_due = true;            // it is long enough since the last one, and starts do not fail
};

struct AllowedStarts {
  std::size_t allowed = 0;
  GpuId spare_on = {};  // they are for a spare, on this device
  std::string refused;  // why there is no spare; "": none is refused
};

// `there`: the function's instances, as the core has them.
AllowedStarts allowed_starts(const ScalingDecision& decision, const ScalerView& view,
                             const std::vector<InstanceView>& there, const SpareRoom& room);

}  // namespace fairlead
