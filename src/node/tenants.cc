#include "node/tenants.h"

namespace fairlead {

Tenants::Tenants(const std::vector<TenantEntry>& entries) {
  by_name_["default"] = {};
  set_shares(entries);
}

void Tenants::set_shares(const std::vector<TenantEntry>& entries) {
  for (auto& [name, known] : by_name_) known.share = {};
  for (const TenantEntry& entry : entries) {
    id_of(entry.name);
    by_name_.at(entry.name).share = entry.share;
  }
}

TenantId Tenants::id_of(const std::string& name) {
  const auto [found, is_new] = by_name_.try_emplace(name);
  if (is_new) found->second.id = TenantId(++last_);
  return found->second.id;
}

void Tenants::tell(FlowQueue& policy) const {
  for (const auto& [name, known] : by_name_) policy.set_tenant(known.id, known.share);
}

}  // namespace fairlead
