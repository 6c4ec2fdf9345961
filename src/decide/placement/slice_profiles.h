// Which slices each flow may run on (model/mig_tag.h), and what each device is. Empty on a node without slices, and for flows that ask for
// nothing: then everything suits, at the price of one comparison.
//
// Threads: the core's.
#pragma once

#include <string>
#include <unordered_map>

#include "base/ids.h"
#include "model/mig_tag.h"

namespace fairlead {

class SliceProfiles {
 public:
  // "": it is no slice, or is gone.
  void set_profile(GpuId gpu, const std::string& profile) { set(profiles_, gpu, profile); }
  const std::string& of(GpuId gpu) const {
    static const std::string none;
    const auto known = profiles_.find(gpu);
    return known == profiles_.end() ? none : known->second;
  }
  // The flow runs on slices of that profile alone from now on. "": on any device, or it is gone.
  void set_wanted(FlowId flow, const std::string& profile) { set(wanted_, flow, profile); }
  bool suits(GpuId gpu, FlowId flow) const {
    if (wanted_.empty()) return true;
    const auto wanted = wanted_.find(flow);
    return wanted == wanted_.end() || is_of_profile(of(gpu), wanted->second);
  }

 private:
  template <typename Id>
  static void set(std::unordered_map<Id, std::string>& all, Id id, const std::string& profile) {
    if (profile.empty()) {
      all.erase(id);
    } else {
      all[id] = profile;
    }
  }

  std::unordered_map<GpuId, std::string> profiles_;
  std::unordered_map<FlowId, std::string> wanted_;
};

}  // namespace fairlead
