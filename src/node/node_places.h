// Who puts kernels on a node's devices when, as people see it: with the names of functions, and times as how long ago they were.
//
// Threads: the io_context's.
#pragma once

#include <utility>
#include <vector>

#include "edge/paced_device.h"
#include "node/node.h"
#include "node/pacing/pace_driver.h"

namespace fairlead {

using PaceSnapshots = std::vector<std::pair<GpuId, PaceSnapshot>>;

// Instances of functions that are not there any more have no name.
std::vector<PacedDevice> paced_devices(const PaceSnapshots& snapshots, Functions& functions, Instant now);

class NodePlaces {
 public:
  explicit NodePlaces(Node& node) : node_(node) {}
  std::vector<PacedDevice> devices() const;  // that are paced

 private:
  Node& node_;
};

}  // namespace fairlead
