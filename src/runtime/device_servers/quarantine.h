// Tenants that ended a server which several tenants share. Each has a server of its own until it has ended none for a while.
//
// Pure: time is told. Threads: none of its own.
#pragma once

#include <map>
#include <string>

#include "base/units.h"

namespace fairlead {

class Quarantine {
 public:
  explicit Quarantine(Duration lasts) : lasts_(lasts) {}

  // Anew, where it is there already.
  void add(const std::string& tenant, Instant now) { until_[tenant] = now + lasts_; }
  bool has(const std::string& tenant, Instant now) {
    const auto found = until_.find(tenant);
    if (found == until_.end()) return false;
    if (now < found->second) return true;
    until_.erase(found);
    return false;
  }

 private:
  const Duration lasts_;
  std::map<std::string, Instant> until_;
};

}  // namespace fairlead
