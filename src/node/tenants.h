// The tenants of a node by name, each with the id that the policy knows it by and what it is entitled to. A tenant exists
// as soon as an operator or a function names it; functions that name none are "default"'s, whose id is 0.
//
// Threads: not thread-safe; owned by the core thread.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/ids.h"
#include "decide/queueing/flow_queue.h"
#include "decide/queueing/tenant_entry.h"

namespace fairlead {

class Tenants {
 public:
  explicit Tenants(const std::vector<TenantEntry>& entries);

  TenantId id_of(const std::string& name);                   // made if it is new, with weight 1 and no limit
  void tell(FlowQueue& policy) const;                        // what each is entitled to
  void set_shares(const std::vector<TenantEntry>& entries);  // those not named have weight 1 and no limit from now on

  struct Known {
    TenantId id;
    TenantShare share;
  };
  const std::map<std::string, Known>& all() const { return by_name_; }

 private:
  std::map<std::string, Known> by_name_;
  std::uint64_t last_ = 0;
};

}  // namespace fairlead
