#include "queueing/tenant_level.h"

#include <algorithm>

#include "base/check.h"

namespace fairlead {
namespace {

// What a flow that was never measured is charged at dispatch; corrected at completion.
constexpr Duration kMinCharge = std::chrono::milliseconds(1);

}  // namespace

TenantLevel::Slot TenantLevel::slot_of(TenantId tenant) {
  const auto [found, is_new] = slots_.try_emplace(tenant, static_cast<Slot>(tenants_.size()));
  if (is_new) tenants_.push_back({tenant, {}});
  return found->second;
}

void TenantLevel::set_share(Slot slot, const TenantShare& share) {
  FL_CHECK(share.weight > 0, "weight={}", share.weight);
  tenants_[slot].share = share;
}

void TenantLevel::begin(Slot slot, InvocationId invocation, Duration expected) {
  Tenant& tenant = tenants_[slot];
  const Duration charge = cost(tenant, std::max(kMinCharge, expected));
  charged_[invocation] = charge;
  tenant.virtual_time += charge;
  ++tenant.in_flight;
}

// The charge of an invocation that is over, replaced by what it really took.
void TenantLevel::end(Slot slot, InvocationId invocation, Duration service) {
  Tenant& tenant = tenants_[slot];
  const Duration* charged = charged_.find(invocation);
  FL_CHECK(charged != nullptr, "invocation {} is not in flight", invocation.value());
  tenant.virtual_time += cost(tenant, service) - *charged;
  charged_.erase(invocation);
  --tenant.in_flight;
}

void TenantLevel::charge_start(Slot slot, Duration took) {
  Tenant& tenant = tenants_[slot];
  tenant.virtual_time = std::max(tenant.virtual_time, global_) + cost(tenant, took);
}

bool TenantLevel::is_at_limit(Slot slot) const {
  const Tenant& tenant = tenants_[slot];
  return tenant.share.max_concurrency && tenant.in_flight >= *tenant.share.max_concurrency;
}

Duration TenantLevel::cost(const Tenant& tenant, Duration service) {
  return Duration(static_cast<Duration::rep>(static_cast<double>(service.count()) / tenant.share.weight));
}

void TenantLevel::settle(Slot slot, const FlowTable& flows) {
  Tenant& tenant = tenants_[slot];
  const bool waits = flows.queued() > 0 && !is_at_limit(slot);
  const bool contends = waits && (flows.contends() || tenant.in_flight > 0);
  if (contends && !contending_.contains(slot)) tenant.virtual_time = std::max(tenant.virtual_time, global_);
  const ByVirtualTime key{tenant.virtual_time, tenant.id};
  waits ? least_served_.set(slot, key) : least_served_.erase(slot);
  waits ? by_start_.set(slot, {tenant.start_given, tenant.id}) : by_start_.erase(slot);
  contends ? contending_.set(slot, key) : contending_.erase(slot);
  if (!contending_.empty()) global_ = std::max(global_, contending_.top_key().virtual_time);
}

}  // namespace fairlead
