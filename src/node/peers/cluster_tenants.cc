#include "node/peers/cluster_tenants.h"

namespace fairlead {

std::vector<TenantService> ClusterTenants::say(std::uint64_t incarnation) {
  if (!ports_.tenants) return {};
  return own_.say(incarnation, ports_.tenants());
}

void ClusterTenants::advanced(ClusterView& view) {
  if (!ports_.tenants || view.size() == 1) return;
  const TenantFactors news = own_.changed(view.tenant_clocks());
  if (!news.empty()) ports_.set_factors(news);
}

TenantOverCluster ClusterTenants::of(ClusterView& view, const std::string& tenant) const {
  const TenantClocks& clocks = view.tenant_clocks();
  return {.factor = own_.factor(tenant), .lead_s = clocks.lead_s(tenant_key(tenant), own_.middle_s(clocks))};
}

std::vector<ClusterTenants::View> ClusterTenants::views(ClusterView& view) const {
  std::vector<View> views;
  if (!ports_.tenants) return views;
  for (const OwnTenant& tenant : ports_.tenants()) views.push_back({tenant.name, of(view, tenant.name)});
  return views;
}

void ClusterTenants::show(ClusterView& view, std::vector<TenantStatus>& tenants) const {
  if (!ports_.tenants) return;
  for (TenantStatus& tenant : tenants) tenant.over_cluster = of(view, tenant.name);
}

}  // namespace fairlead
