#include "runtime/device_servers/trial_order.h"

#include "base/check.h"

namespace fairlead {

void TrialOrder::add(std::uint64_t trial, const std::string& tenant) {
  const bool added = tenant_of_.emplace(trial, tenant).second;
  FL_CHECK(added, "trial {} is there already", trial);
  const auto [found, is_new] = tenants_.try_emplace(tenant);
  if (is_new) turns_.push_back(tenant);
  found->second.waiting.push_back(trial);
}

std::optional<std::uint64_t> TrialOrder::take_next() {
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

void TrialOrder::remove(std::uint64_t trial) {
  const auto known = tenant_of_.extract(trial);
  FL_CHECK(!known.empty(), "trial {} is not there", trial);
  const std::string& name = known.mapped();
  Tenant& tenant = tenants_.at(name);
  if (tenant.running == trial) {
    tenant.running.reset();
    --running_;
    std::erase(turns_, name);
    turns_.push_back(name);
  } else {
    std::erase(tenant.waiting, trial);
  }
  if (tenant.running || !tenant.waiting.empty()) return;
  tenants_.erase(name);
  std::erase(turns_, name);
}

}  // namespace fairlead
