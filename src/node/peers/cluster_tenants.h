// The tenants of a node in its cluster: what its word says of them, and the factors that come back (decide/cluster/own_tenants.h).
//
// Threads: the io_context's.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "decide/cluster/cluster_view.h"
#include "edge/node_service.h"

namespace fairlead {

// Of a node that is fair between its tenants. Empty ones: it is not, or runs nothing.
struct TenantPorts {
  std::function<std::vector<OwnTenant>()> tenants;        // all that it knows
  std::function<void(const TenantFactors&)> set_factors;  // times the weights of those named
};

class ClusterTenants {
 public:
  explicit ClusterTenants(TenantPorts ports) : ports_(std::move(ports)) {}

  std::vector<TenantService> say(std::uint64_t incarnation);
  // Hands on the factors that are news. Of a view that knows nobody but this node: none.
  void advanced(ClusterView& view);

  struct View {
    std::string name;
    TenantOverCluster over_cluster;
  };
  std::vector<View> views(ClusterView& view) const;
  void show(ClusterView& view, std::vector<TenantStatus>& tenants) const;  // fills over_cluster in

 private:
  TenantOverCluster of(ClusterView& view, const std::string& tenant) const;

  const TenantPorts ports_;
  OwnTenants own_;
};

}  // namespace fairlead
