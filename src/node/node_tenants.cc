#include "node/node_tenants.h"

#include "decide/queueing/queue_tenants.h"

namespace fairlead {

std::vector<OwnTenant> NodeTenants::all() const {
  const FlowQueue& queue = node_.driver_.core().policy();
  std::vector<OwnTenant> list;
  for (const auto& [name, known] : node_.tenants_.all()) {
    const TenantUse use = QueueTenants::use(queue, known.id);
    list.push_back({name, known.share.weight, to_seconds(use.served), use.is_waiting});
  }
  return list;
}

void NodeTenants::set_factors(const TenantFactors& factors) {
  Tuning tuning;
  for (const auto& [name, factor] : factors)
    tuning.tenant_factors.emplace_back(node_.tenants_.all().at(name).id, factor);
  node_.driver_.tell([&](Core& core, Instant now, Actions& out) { core.retune(now, tuning, out); });
}

TenantPorts tenant_ports(Node& node, bool is_fair) {
  if (!is_fair) return {};
  return {.tenants = [&node] { return NodeTenants(node).all(); },
          .set_factors = [&node](const TenantFactors& factors) { NodeTenants(node).set_factors(factors); }};
}

}  // namespace fairlead
