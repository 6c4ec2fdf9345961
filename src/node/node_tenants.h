// The tenants of a node as its cluster sees them: what each was served and whether it waits; and what the cluster makes of their weights.
//
// Threads: the io_context's.
#pragma once

#include <vector>

#include "decide/cluster/own_tenants.h"
#include "node/node.h"
#include "node/peers/cluster_tenants.h"

namespace fairlead {

class NodeTenants {
 public:
  explicit NodeTenants(Node& node) : node_(node) {}
  std::vector<OwnTenant> all() const;  // by name
  // From now on the weights of those named count times so much, whatever retune() makes of them. REQUIRES: names of all(), factors above 0.
  void set_factors(const TenantFactors& factors);

 private:
  Node& node_;
};

// For a node of a cluster; `is_fair`: between its tenants. `node` outlives them.
TenantPorts tenant_ports(Node& node, bool is_fair);

}  // namespace fairlead
