// The functions that have an instance on a node, as its reports name them: counted, and listed anew only after a change.
#pragma once

#include <map>
#include <memory>
#include <utility>

#include "base/id_map.h"
#include "base/ids.h"
#include "decide/cluster/load_report.h"

namespace fairlead::sim {

class WarmInstances {
 public:
  void started(InstanceId instance, std::uint64_t function) {
    instances_.try_emplace(instance, function);
    if (++count_[function] == 1) listed_.reset();
  }
  void stopped(InstanceId instance) {  // unknown ones: no effect
    const std::uint64_t* function = instances_.find(instance);
    if (function == nullptr) return;
    const auto found = count_.find(*function);
    if (--found->second == 0) {
      count_.erase(found);
      listed_.reset();
    }
    instances_.erase(instance);
  }
  std::shared_ptr<const WarmFunctions> listed() {
    if (listed_ == nullptr) {
      WarmFunctions keys;
      keys.reserve(count_.size());
      for (const auto& [key, instances] : count_) keys.push_back(key);
      listed_ = std::make_shared<const WarmFunctions>(std::move(keys));
    }
    return listed_;
  }

 private:
  IdMap<InstanceId, std::uint64_t> instances_;  // the function's key
  std::map<std::uint64_t, int> count_;          // of instances, by that key
  std::shared_ptr<const WarmFunctions> listed_;
};

}  // namespace fairlead::sim
