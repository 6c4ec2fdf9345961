// What the console shows live, as items of a LiveView: one for the node, and one for each function, GPU, tenant and instance.
//
//   "node"        versions, counters, virtual time, how many functions there are and how many are shown
//   "fn/NAME"     queue, state, why it waits, instances, memory, counters, the histogram of durations
//   "gpu/1"       slots, memory, use
//   "tenant/NAME" share, queue, GPU time
//   "inst/7"      whose, where, state, memory
//
// A viewer of one tenant gets "node" without what it says of others, and its own functions without their place in virtual time: that one says how
// busy others are. Nothing else: /fairlead/v1/status, which has it all, is closed to him.
//
// Pure. Threads: one.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "edge/console/live_view.h"
#include "edge/node_service.h"

namespace fairlead {

// Of those that have most to do; a frame of so many has less than half of Watch::kViewerBytes.
inline constexpr std::size_t kMostShownFunctions = 1000;
inline constexpr std::size_t kMostShownInstances = 1000;

struct LiveSource {
  const NodeStatus& status;
  // The reserved concurrency of a function; asked of those that wait.
  std::function<std::optional<int>(const std::string& function)> reserved;
};

LiveView::Items live_items(const LiveSource& source, const std::optional<std::string>& tenant);

}  // namespace fairlead
