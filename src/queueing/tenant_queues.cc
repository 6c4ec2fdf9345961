#include "queueing/tenant_queues.h"

#include <algorithm>

#include "base/check.h"

namespace fairlead {
namespace {

// What a flow that was never measured is charged at dispatch; corrected at completion.
constexpr Duration kMinCharge = std::chrono::milliseconds(1);

}  // namespace

TenantQueues::Row TenantQueues::row_of(TenantId tenant) {
  const auto [found, is_new] = rows_.try_emplace(tenant, static_cast<Row>(tenants_.size()));
  if (is_new) tenants_.push_back({tenant, {}, make_()});
  return found->second;
}

TenantQueues::Row TenantQueues::row_of(FlowId flow) const {
  const Row* found = tenant_of_.find(flow);
  FL_CHECK(found != nullptr, "flow {} was not added", flow.value());
  return *found;
}

void TenantQueues::add_flow(FlowId flow, const FlowShare& share) {
  const Row row = row_of(share.tenant);
  FL_CHECK(tenant_of_.try_emplace(flow, row).second, "flow {} is there already", flow.value());
  tenants_[row].flows->add_flow(flow, share);
}

void TenantQueues::set_share(FlowId flow, const FlowShare& share) {
  policy_of(flow).set_share(flow, share);
}

void TenantQueues::set_tenant(TenantId tenant, const TenantShare& share) {
  FL_CHECK(share.weight > 0, "weight={}", share.weight);
  const Row row = row_of(tenant);
  tenants_[row].share = share;
  settle(row);
}

void TenantQueues::set_max_concurrency(FlowId flow, std::optional<std::size_t> limit) {
  policy_of(flow).set_max_concurrency(flow, limit);
}

void TenantQueues::set_setup(FlowId flow, Duration setup) {
  policy_of(flow).set_setup(flow, setup);
}

void TenantQueues::set_supply(FlowId flow, Supply supply) {
  const Row row = row_of(flow);
  tenants_[row].flows->set_supply(flow, supply);
  settle(row);
}

void TenantQueues::set_setup_on(FlowId flow, GpuId gpu, std::optional<Duration> setup) {
  policy_of(flow).set_setup_on(flow, gpu, setup);
}

void TenantQueues::remove_flow(FlowId flow) {
  const Row row = row_of(flow);
  QueuePolicy& flows = *tenants_[row].flows;
  queued_ -= flows.queued();
  flows.remove_flow(flow);
  queued_ += flows.queued();
  tenant_of_.erase(flow);
  settle(row);
}

void TenantQueues::on_arrival(Instant now, FlowId flow, InvocationId invocation) {
  const Row row = row_of(flow);
  tenants_[row].flows->on_arrival(now, flow, invocation);
  ++queued_;
  settle(row);
}

bool TenantQueues::cancel(Instant now, FlowId flow, InvocationId invocation) {
  const Row row = row_of(flow);
  if (!tenants_[row].flows->cancel(now, flow, invocation)) return false;
  --queued_;
  settle(row);
  return true;
}

std::optional<QueuePolicy::Choice> TenantQueues::choose(Instant now, const Placeable& placeable) {
  std::optional<Choice> choice;
  next_chance_.reset();
  const auto row = least_served_.find_first([&](Row candidate) {
    asked_.push_back(candidate);
    choice = tenants_[candidate].flows->choose(now, placeable);
    return choice.has_value();
  });
  settle_asked();
  if (!row) return std::nullopt;
  Tenant& tenant = tenants_[*row];
  const Duration charge = cost(tenant, std::max(kMinCharge, tenant.flows->view(choice->flow).service_estimate));
  charged_[choice->invocation] = charge;
  tenant.virtual_time += charge;
  ++tenant.in_flight;
  --queued_;
  settle(*row);
  return choice;
}

std::optional<FlowId> TenantQueues::next_start(Instant now, const Placeable& startable) {
  std::optional<FlowId> next;
  const auto row = by_start_.find_first([&](Row candidate) {
    asked_.push_back(candidate);
    next = tenants_[candidate].flows->next_start(now, startable);
    return next.has_value();
  });
  if (row) tenants_[*row].start_given = now;
  settle_asked();
  return next;
}

// A policy that was asked may see its flows' waiting in another light, and have become a contender or ceased to be one.
void TenantQueues::settle_asked() {
  for (const Row row : asked_) {
    settle(row);
    const auto chance = tenants_[row].flows->next_chance();
    if (chance) next_chance_ = std::min(next_chance_.value_or(*chance), *chance);
  }
  asked_.clear();
}

FlowId TenantQueues::claimant() const {
  for (const Tenant& tenant : tenants_) {
    if (const FlowId claimant = tenant.flows->claimant()) return claimant;
  }
  return FlowId();
}

void TenantQueues::on_started(FlowId flow, Duration cost_of_start) {
  const Row row = row_of(flow);
  Tenant& tenant = tenants_[row];
  tenant.flows->on_started(flow, cost_of_start);
  tenant.virtual_time = std::max(tenant.virtual_time, global_) + cost(tenant, cost_of_start);
  settle(row);
}

std::optional<InvocationId> TenantQueues::fail_head(Instant now, FlowId flow, Duration took) {
  const Row row = row_of(flow);
  Tenant& tenant = tenants_[row];
  const auto head = tenant.flows->fail_head(now, flow, took);
  if (head) --queued_;
  tenant.virtual_time = std::max(tenant.virtual_time, global_) + cost(tenant, took);
  settle(row);
  return head;
}

void TenantQueues::on_completion(Instant now, FlowId flow, InvocationId invocation, Duration service) {
  const Row row = row_of(flow);
  tenants_[row].flows->on_completion(now, flow, invocation, service);
  take_back(row, invocation, service);
}

void TenantQueues::on_requeue(Instant now, FlowId flow, InvocationId invocation) {
  const Row row = row_of(flow);
  tenants_[row].flows->on_requeue(now, flow, invocation);
  ++queued_;
  take_back(row, invocation, Duration(0));
}

void TenantQueues::on_failed_start(Instant now, FlowId flow, InvocationId invocation, Duration held) {
  const Row row = row_of(flow);
  tenants_[row].flows->on_failed_start(now, flow, invocation, held);
  take_back(row, invocation, held);
}

std::optional<Instant> TenantQueues::next_expiry() const {
  std::optional<Instant> next;
  for (const Tenant& tenant : tenants_) {
    const auto expiry = tenant.flows->next_expiry();
    if (expiry && (!next || *expiry < *next)) next = expiry;
  }
  return next;
}

void TenantQueues::expire(Instant now) {
  for (Tenant& tenant : tenants_) tenant.flows->expire(now);
}

std::size_t TenantQueues::queued(FlowId flow) const {
  return tenant_of_.contains(flow) ? policy_of(flow).queued(flow) : 0;
}

FlowView TenantQueues::view(FlowId flow) const {
  const QueuePolicy& flows = policy_of(flow);
  FlowView view = flows.view(flow);
  view.virtual_time += global_ - flows.global_virtual_time();  // as far ahead of the node's as of its tenant's
  return view;
}

// A tenant below its limit may have nothing but flows at theirs.
bool TenantQueues::contends() const {
  return std::any_of(tenants_.begin(), tenants_.end(), [](const Tenant& tenant) {
    const bool limited = tenant.share.max_concurrency && tenant.in_flight >= *tenant.share.max_concurrency;
    return !limited && tenant.flows->contends();
  });
}

Duration TenantQueues::cost(const Tenant& tenant, Duration service) {
  return Duration(static_cast<Duration::rep>(static_cast<double>(service.count()) / tenant.share.weight));
}

// The charge of an invocation that is over, replaced by what it really took.
void TenantQueues::take_back(Row row, InvocationId invocation, Duration instead) {
  Tenant& tenant = tenants_[row];
  const Duration* charged = charged_.find(invocation);
  FL_CHECK(charged != nullptr, "invocation {} is not in flight", invocation.value());
  tenant.virtual_time += cost(tenant, instead) - *charged;
  charged_.erase(invocation);
  --tenant.in_flight;
  settle(row);
}

void TenantQueues::settle(Row row) {
  Tenant& tenant = tenants_[row];
  const bool waits = tenant.flows->queued() > 0 &&
                     tenant.in_flight < tenant.share.max_concurrency.value_or(std::numeric_limits<std::size_t>::max());
  const bool contends = waits && (tenant.flows->contends() || tenant.in_flight > 0);
  if (contends && !contending_.contains(row)) tenant.virtual_time = std::max(tenant.virtual_time, global_);
  const ByVirtualTime key{tenant.virtual_time, tenant.id};
  waits ? least_served_.set(row, key) : least_served_.erase(row);
  waits ? by_start_.set(row, {tenant.start_given, tenant.id}) : by_start_.erase(row);
  contends ? contending_.set(row, key) : contending_.erase(row);
  if (!contending_.empty()) global_ = std::max(global_, contending_.top_key().virtual_time);
}

}  // namespace fairlead
