// What a simulation has not answered yet, and what is still to come.
#pragma once

#include <cstddef>
#include <optional>

#include "base/id_map.h"
#include "base/ids.h"
#include "base/units.h"
#include "sim/arrivals.h"

namespace fairlead::sim {

struct OpenInvocation {
  std::size_t function = 0;
  Instant arrived;
  Duration work{0};  // alone on the device
  Instant delivered = {};
  GpuId gpu = {};             // once it is delivered
  bool asynchronous = false;  // survives a restart of the node
};

struct OpenWork {
  IdMap<InvocationId, OpenInvocation> invocations;
  std::optional<Arrival> next_arrival;
  std::size_t thinking = 0;  // clients of a closed loop between an answer and their next

  bool any() const { return next_arrival || !invocations.empty() || thinking > 0; }
};

}  // namespace fairlead::sim
