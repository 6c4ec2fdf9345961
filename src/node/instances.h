// The instances that the core believes to be there: what each is of, and who runs it. One that the core has stopped is not
// here any more, though its process may take a moment to end.
//
// Threads: not thread-safe; owned by the core thread.
#pragma once

#include <optional>
#include <unordered_map>

#include "node/runner.h"

namespace fairlead {

struct LiveInstance {
  FlowId flow;
  GpuId gpu;
  Runner* runner = nullptr;  // never null
  bool ready = false;        // has asked for its first invocation
  MemoryUse reported{};      // to the core, last
  LaunchCounts counted{};    // in the function's statistics already
  // The last time that its memory came back to the device.
  struct Return {
    Instant ended{};
    Duration took{0};
  };
  Return returned = {};
};

class Instances {
 public:
  void add(InstanceId instance, LiveInstance live) { by_id_[instance] = live; }
  void remove(InstanceId instance) { by_id_.erase(instance); }

  // Null: it is not there. Valid until instances are added or removed.
  LiveInstance* find(InstanceId instance) {
    const auto it = by_id_.find(instance);
    return it == by_id_.end() ? nullptr : &it->second;
  }
  // Empty: it is not there, or has never used its device.
  std::optional<DeviceUse> use(InstanceId instance) {
    const LiveInstance* const live = find(instance);
    return live == nullptr ? std::nullopt : live->runner->use(instance);
  }

  const std::unordered_map<InstanceId, LiveInstance>& all() const { return by_id_; }

 private:
  std::unordered_map<InstanceId, LiveInstance> by_id_;
};

}  // namespace fairlead
