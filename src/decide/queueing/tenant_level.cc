#include "decide/queueing/tenant_level.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace fairlead {
namespace {

// What a flow that was never measured is charged at dispatch; corrected at completion.
constexpr Duration kFirstCharge = std::chrono::milliseconds(1);

// A weight of 0.01 at a factor of 1/1024 makes virtual time pass 100,000 times as fast as service, which 63 bits of nanoseconds hold for
// a day. So virtual time begins anew when it is old, and one charge has a bound of 13 days of it.
constexpr Duration kOldVirtualTime{Duration::rep{1} << 61};
constexpr double kMostCost = 0x1p50, kMostLead = 0x1p60;  // ns

Duration scaled(Duration virtual_time, double ratio) {
  return Duration(static_cast<Duration::rep>(std::min(static_cast<double>(virtual_time.count()) * ratio, kMostLead)));
}

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

void TenantLevel::set_factor(Row row, double factor) {
  FL_CHECK(factor > 0, "factor={}", factor);
  Tenant& tenant = tenants_[row];
  const double ratio = tenant.factor / factor;
  Duration lead = tenant.virtual_time - tenant.guessed - global_;
  if (lead > Duration(0)) lead = scaled(lead, ratio);
  tenant.guessed = scaled(tenant.guessed, ratio);
  tenant.virtual_time = global_ + lead + tenant.guessed;
  tenant.factor = factor;
}

TenantUse TenantLevel::use(TenantId tenant) const {
  const auto found = rows_.find(tenant);
  if (found == rows_.end()) return {};
  return {.served = tenants_[found->second].served, .is_waiting = tenants_[found->second].waits_for_others};
}

void TenantLevel::begin(Row row, InvocationId invocation, std::optional<Duration> expected) {
  Tenant& tenant = tenants_[row];
  const Duration charge = cost(tenant, expected.value_or(kFirstCharge));
  charged_[invocation] = {.cost = charge, .factor = tenant.factor};
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
  const bool is_as_charged = charged->factor == tenant.factor;
  const Duration guess = is_as_charged ? charged->cost : scaled(charged->cost, charged->factor / tenant.factor);
  tenant.served += service;
  tenant.virtual_time += cost(tenant, service) - guess;
  tenant.guessed -= guess;
  if (charged->is_seated) --tenant.seated;
  charged_.erase(invocation);
  --tenant.in_flight;
  // Guesses that were scaled to and fro leave a remainder.
  if (tenant.in_flight == 0) tenant.virtual_time -= std::exchange(tenant.guessed, Duration(0));
}

void TenantLevel::charge_start(Row row, Duration took) {
  Tenant& tenant = tenants_[row];
  tenant.served += took;
  tenant.virtual_time = std::max(tenant.virtual_time, global_) + cost(tenant, took);
}

bool TenantLevel::is_at_limit(Row row) const {
  const Tenant& tenant = tenants_[row];
  return tenant.share.max_concurrency && tenant.in_flight >= *tenant.share.max_concurrency;
}

Duration TenantLevel::cost(const Tenant& tenant, Duration service) {
  const double weight = tenant.share.weight * tenant.factor;
  return Duration(static_cast<Duration::rep>(std::min(static_cast<double>(service.count()) / weight, kMostCost)));
}

void TenantLevel::settle(Row row, const FlowTable& flows) {
  Tenant& tenant = tenants_[row];
  const bool waits = flows.queued_for_slots() > 0 && !is_at_limit(row);
  tenant.waits_for_others = waits && flows.contends();
  const bool contends = waits && (flows.contends() || tenant.in_flight > tenant.seated);
  if (contends && !contending_.contains(row)) tenant.virtual_time = std::max(tenant.virtual_time, global_);
  const ByVirtualTime key{tenant.virtual_time, tenant.id};
  waits ? least_served_.set(row, key) : least_served_.erase(row);
  waits ? by_start_.set(row, {tenant.start_given, tenant.id}) : by_start_.erase(row);
  contends ? contending_.set(row, {tenant.virtual_time - tenant.guessed, tenant.id}) : contending_.erase(row);
  if (!contending_.empty()) global_ = std::max(global_, contending_.top_key().virtual_time);
  if (global_ > kOldVirtualTime) begin_virtual_time_anew();
}

// All of it is relative: who is ahead stays ahead by as much. Who is behind joins, as ever, at the global virtual time.
void TenantLevel::begin_virtual_time_anew() {
  for (Row row = 0; row < tenants_.size(); ++row) {
    Tenant& tenant = tenants_[row];
    const Duration lead = std::max(Duration(0), tenant.virtual_time - tenant.guessed - global_);
    tenant.virtual_time = lead + tenant.guessed;
    if (least_served_.contains(row)) least_served_.set(row, {tenant.virtual_time, tenant.id});
    if (contending_.contains(row)) contending_.set(row, {lead, tenant.id});
  }
  global_ = Duration(0);
}

}  // namespace fairlead
