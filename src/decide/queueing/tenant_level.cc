#include "decide/queueing/tenant_level.h"

#include <algorithm>

#include "base/check.h"

namespace fairlead {
namespace {

// What a flow that was never measured is charged at dispatch; corrected at completion.
constexpr Duration kFirstCharge = std::chrono::milliseconds(1);

}  // namespace

TenantLevel::Row TenantLevel::row_of(TenantId tenant) {
  const auto [found, is_new] = rows_.try_emplace(tenant, static_cast<Row>(tenants_.size()));
  if (is_new) tenants_.push_back({tenant, {}});
  return found->second;
}

void TenantLevel::set_share(Row row, const TenantShare& share) {
  FL_CHECK(share.weight > 0, "weight={}", share.weight);
  tenants_[row].share = share;
}

void TenantLevel::begin(Row row, InvocationId invocation, std::optional<Duration> expected) {
  Tenant& tenant = tenants_[row];
  const Duration charge = cost(tenant, expected.value_or(kFirstCharge));
  charged_[invocation] = {charge};
  tenant.virtual_time += charge;
  tenant.guessed += charge;
  ++tenant.in_flight;
}

void TenantLevel::begin_seated(Row row, InvocationId invocation) {
  charged_[invocation] = {.is_seated = true};
  ++tenants_[row].in_flight;
  ++tenants_[row].seated;
}

// The charge of an invocation that is over, replaced by what it really took.
void TenantLevel::end(Row row, InvocationId invocation, Duration service) {
  Tenant& tenant = tenants_[row];
  const Charge* charged = charged_.find(invocation);
  FL_CHECK(charged != nullptr, "invocation {} is not in flight", invocation.value());
  tenant.virtual_time += cost(tenant, service) - charged->cost;
  tenant.guessed -= charged->cost;
  if (charged->is_seated) --tenant.seated;
  charged_.erase(invocation);
  --tenant.in_flight;
}

void TenantLevel::charge_start(Row row, Duration took) {
  Tenant& tenant = tenants_[row];
  tenant.virtual_time = std::max(tenant.virtual_time, global_) + cost(tenant, took);
}

bool TenantLevel::is_at_limit(Row row) const {
  const Tenant& tenant = tenants_[row];
  return tenant.share.max_concurrency && tenant.in_flight >= *tenant.share.max_concurrency;
}

Duration TenantLevel::cost(const Tenant& tenant, Duration service) {
  return Duration(static_cast<Duration::rep>(static_cast<double>(service.count()) / tenant.share.weight));
}

void TenantLevel::settle(Row row, const FlowTable& flows) {
  Tenant& tenant = tenants_[row];
  const bool waits = flows.queued_for_slots() > 0 && !is_at_limit(row);
  const bool contends = waits && (flows.contends() || tenant.in_flight > tenant.seated);
  if (contends && !contending_.contains(row)) tenant.virtual_time = std::max(tenant.virtual_time, global_);
  const ByVirtualTime key{tenant.virtual_time, tenant.id};
  waits ? least_served_.set(row, key) : least_served_.erase(row);
  waits ? by_start_.set(row, {tenant.start_given, tenant.id}) : by_start_.erase(row);
  contends ? contending_.set(row, {tenant.virtual_time - tenant.guessed, tenant.id}) : contending_.erase(row);
  if (!contending_.empty()) global_ = std::max(global_, contending_.top_key().virtual_time);
}

}  // namespace fairlead
