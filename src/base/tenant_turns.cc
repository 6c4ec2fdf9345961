#include "base/tenant_turns.h"

#include <utility>

#include "base/check.h"

namespace fairlead {

void TenantTurns::add(std::uint64_t piece, const std::string& tenant) {
  const bool added = tenant_of_.emplace(piece, tenant).second;
  FL_CHECK(added, "piece {} is there already", piece);
  const auto [found, is_new] = tenants_.try_emplace(tenant);
  if (is_new) turns_.push_back(tenant);
  found->second.waiting.push_back(piece);
}

std::optional<std::uint64_t> TenantTurns::take_next() {
  if (running_ >= at_once_) return std::nullopt;
  for (const std::string& name : turns_) {
    Tenant& tenant = tenants_.at(name);
    if (tenant.running || tenant.waiting.empty()) continue;
    tenant.running = tenant.waiting.front();
    tenant.waiting.pop_front();
    ++running_;
    return tenant.running;
  }
  return std::nullopt;
}

void TenantTurns::rest(std::uint64_t piece) {
  const auto known = tenant_of_.find(piece);
  FL_CHECK(known != tenant_of_.end(), "piece {} is not there", piece);
  Tenant& tenant = tenants_.at(known->second);
  FL_CHECK(tenant.running == piece && !tenant.rests, "piece {} does not run", piece);
  tenant.rests = true;
  --running_;
}

void TenantTurns::remove(std::uint64_t piece) {
  const auto known = tenant_of_.extract(piece);
  FL_CHECK(!known.empty(), "piece {} is not there", piece);
  const std::string& name = known.mapped();
  Tenant& tenant = tenants_.at(name);
  if (tenant.running == piece) {
    tenant.running.reset();
    if (!std::exchange(tenant.rests, false)) --running_;
    std::erase(turns_, name);
    turns_.push_back(name);
  } else {
    std::erase(tenant.waiting, piece);
  }
  if (tenant.running || !tenant.waiting.empty()) return;
  tenants_.erase(name);
  std::erase(turns_, name);
}

}  // namespace fairlead
