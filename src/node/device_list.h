// Which devices a node has, from what the driver lists each time it is asked: who is new, who is gone.
//
// One that is missing once may only be in the middle of a change (a GPU whose MIG mode is switched, slices that are made), so it is
// gone when it is missing twice running. One that comes back after that is new: what it held is lost.
//
// A slice that is made anew where another was may have its UUID: with another profile, place or size it is another device, at once.
//
// Example: listed A; A B; A B; B; B: B appears as device 2 at the second look, A is gone at the fifth.
//
// Pure. Threads: not thread-safe.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "model/device.h"

namespace fairlead {

class DeviceList {
 public:
  struct Change {
    std::vector<Device> appeared;  // with their ids
    std::vector<GpuId> went;
  };

  // `listed`: in the driver's order, without ids. Ids count up from 1 in that order.
  Change look(std::vector<Device> listed) {
    Change change;
    for (Known& known : known_) {
      const auto is_it = [&](const Device& device) { return device.uuid == known.device.uuid; };
      const auto there = std::find_if(listed.begin(), listed.end(), is_it);
      const bool is_another = there != listed.end() && !is_same(*there, known.device);
      known.missing = is_another ? kMissing : there != listed.end() ? 0 : known.missing + 1;
      if (known.missing >= kMissing) change.went.push_back(known.device.id);
    }
    std::erase_if(known_, [](const Known& known) { return known.missing >= kMissing; });
    for (Device& device : listed) {
      const auto is_it = [&](const Known& known) { return known.device.uuid == device.uuid; };
      if (std::any_of(known_.begin(), known_.end(), is_it)) continue;
      device.id = GpuId(++last_id_);
      known_.push_back({device});
      change.appeared.push_back(std::move(device));
    }
    return change;
  }

 private:
  static constexpr int kMissing = 2;

  static bool is_same(const Device& a, const Device& b) { return a.slice == b.slice && a.memory == b.memory; }

  struct Known {
    Device device;
    int missing = 0;  // looks, the last ones running
  };
  std::vector<Known> known_;
  std::uint64_t last_id_ = 0;
};

}  // namespace fairlead
