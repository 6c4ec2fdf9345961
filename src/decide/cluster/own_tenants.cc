#include "decide/cluster/own_tenants.h"

#include <algorithm>
#include <cmath>
#include <tuple>

namespace fairlead {
namespace {

using Services = std::vector<TenantService>;

// The first kMostTenantsSaid by what matters to others.
void keep_extremes(Services& said) {
  if (said.size() <= kMostTenantsSaid) return;
  std::sort(said.begin(), said.end(), [](const TenantService& a, const TenantService& b) {
    return std::tuple(!a.is_waiting, -a.seconds, a.tenant) < std::tuple(!b.is_waiting, -b.seconds, b.tenant);
  });
  const auto idle = std::find_if(said.begin(), said.end(), [](const TenantService& one) { return !one.is_waiting; });
  const auto waiting = static_cast<std::size_t>(idle - said.begin());
  if (waiting > kMostTenantsSaid) {
    said.resize(waiting);
    said.erase(said.begin() + kMostTenantsSaid / 2, said.end() - kMostTenantsSaid / 2);
  }
  said.resize(kMostTenantsSaid);
}

}  // namespace

std::vector<TenantService> OwnTenants::say(std::uint64_t incarnation, const std::vector<OwnTenant>& tenants) {
  const bool begins_anew = incarnation_ != 0 && incarnation != incarnation_;
  incarnation_ = incarnation;
  if (begins_anew) {
    for (auto& [name, known] : tenants_) known.served_before_s = known.served_s;
  }
  std::vector<TenantService> said;
  waiting_.clear();
  for (const OwnTenant& tenant : tenants) {
    const auto [found, is_new] = tenants_.try_emplace(tenant.name);
    Known& known = found->second;
    if (is_new) known.key = tenant_key(tenant.name);
    known.weight = tenant.weight;
    known.served_s = std::max(known.served_s, tenant.served_s);
    const TenantService service{known.key, known.served_s - known.served_before_s, tenant.is_waiting};
    if (service.is_waiting) waiting_.push_back(known.key);
    if (service.seconds > 0 || service.is_waiting) said.push_back(service);
  }
  keep_extremes(said);
  std::sort(said.begin(), said.end(),
            [](const TenantService& a, const TenantService& b) { return a.tenant < b.tenant; });
  // Two names of one key are one tenant to all nodes; the first is said.
  const auto is_same = [](const TenantService& a, const TenantService& b) { return a.tenant == b.tenant; };
  said.erase(std::unique(said.begin(), said.end(), is_same), said.end());
  return said;
}

TenantFactors OwnTenants::changed(TenantClocks& clocks) {
  TenantFactors news;
  const double middle = middle_s(clocks);
  for (auto& [name, known] : tenants_) {
    clocks.set_weight(known.key, known.weight);
    const double factor = clocks.factor(known.key, middle);
    if (std::abs(factor / known.factor - 1) <= kNewsworthy) continue;
    known.factor = factor;
    news.emplace_back(name, factor);
  }
  return news;
}

double OwnTenants::factor(const std::string& tenant) const {
  const auto found = tenants_.find(tenant);
  return found == tenants_.end() ? 1 : found->second.factor;
}

}  // namespace fairlead
