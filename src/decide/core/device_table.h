// The devices of a node: whether each may have work, and D where it follows the load. What a monitor, the driver and the MPS daemons
// say makes a remedy (sharing/gpu_health.h) or another D (sharing/dynamic_slots.h); Core carries both out.
//
// Three may keep a device from service, each for himself: its health, who withholds it (Core::drain_gpu), and its going (DeviceWent).
// It serves when none does. What goes does not come back: whatever is said of it has no effect.
//
// Example: GPU 1 is withheld for a pipeline and then fails. The remedy for that brings it back to health: it serves when it is no longer
// withheld, and not before.
//
// Time: given. Threads: the core's.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/ids.h"
#include "decide/core/core.h"
#include "decide/sharing/dynamic_slots.h"
#include "decide/sharing/gpu_health.h"

namespace fairlead {

class DeviceTable {
 public:
  // D is `slots`, or follows the load up to that (GpuSpec::is_dynamic). REQUIRES: it is not there.
  void add(const GpuSpec& gpu, std::size_t slots);
  bool contains(GpuId gpu) const { return all_.contains(gpu); }

  // What follows from what was said. Of a device that is not there, or goes: nothing. A DeviceSample that shows no failure says
  // that the device answers.
  std::optional<GpuRemedy> step(Instant now, const DeviceSample& sample);
  std::optional<GpuRemedy> step(Instant now, const DeviceFault& fault);
  std::optional<GpuRemedy> step(Instant now, const DeviceEmptied& emptied);
  std::optional<GpuRemedy> step(Instant now, const DaemonSeen& seen);
  std::optional<GpuRemedy> step(Instant now, const DaemonStarted& started);

  // REQUIRES: it is there; so for all below but leave() and is_present().
  void withhold(GpuId gpu) { all_.at(gpu).is_withheld = true; }
  void give_back(GpuId gpu) { all_.at(gpu).is_withheld = false; }
  bool may_serve(GpuId gpu) const;
  // D after this sample. Empty: D is fixed.
  std::optional<std::size_t> follow_load(Instant now, GpuId gpu, const DynamicSlots::Sample& load);

  bool is_present(GpuId gpu) const;  // false: it is not there, or goes
  bool leave(GpuId gpu);             // it goes from now on. False: it is not there, or goes already
  bool some_leave() const { return !going_.empty(); }
  // Those that go and are empty by `is_empty` are forgotten, in the order in which they left.
  template <typename IsEmpty>
  std::vector<GpuId> forget_empty(IsEmpty is_empty) {
    std::vector<GpuId> gone;
    std::erase_if(going_, [&](GpuId gpu) {
      if (!is_empty(gpu)) return false;
      all_.erase(gpu);
      gone.push_back(gpu);
      return true;
    });
    return gone;
  }

  // As people see it.
  GpuState state(GpuId gpu) const;
  std::string reason(GpuId gpu) const;  // why it does not serve; "": it does, or is withheld
  unsigned daemon_restarts(GpuId gpu) const { return all_.at(gpu).health.daemon_restarts(); }

 private:
  struct Device {
    GpuHealth health;
    std::optional<DynamicSlots> slots;  // none: D is fixed
    bool goes = false;
    bool is_withheld = false;
  };
  Device* present(GpuId gpu);  // null: it is not there, or goes

  std::map<GpuId, Device> all_;
  std::vector<GpuId> going_;
};

}  // namespace fairlead
