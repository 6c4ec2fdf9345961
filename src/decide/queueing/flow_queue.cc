// The queue with what it is made of, flow_group.h and flow_groups.h, in one file: the compiler then makes one function of what the
// core calls.
#include "decide/queueing/flow_queue.h"

#include <algorithm>
#include <limits>

#include "base/check.h"

namespace fairlead {

// ---- a group

FlowGroup::FlowGroup(const Policy& policy, const PolicyOptions& options)
    : flows(options),
      order(policy.make(flows, options)),
      by_service_(dynamic_cast<ByService*>(order.get())),
      starts_(dynamic_cast<Starts*>(order.get())),
      patient_(dynamic_cast<Patient*>(order.get())),
      data_places_(dynamic_cast<DataPlaces*>(order.get())) {}

inline std::optional<FlowGroup::Begun> FlowGroup::choose(Instant now, const Placeable& placeable) {
  const auto pick = order->pick(now, placeable);
  if (!pick) return std::nullopt;
  Flow& flow = flows[pick->row];
  const Duration charged = charge(flow, pick->expected);
  const InvocationId invocation = flows.dispatch(pick->row, charged);
  flow.virtual_time += charged;
  flow.last_turn = now;
  order->began(*pick);
  tell_family(pick->row);
  return Begun{pick->row, invocation, pick->gpu};
}

inline std::optional<InvocationId> FlowGroup::take_head(Row row) {
  if (flows[row].queue.empty() || !flows[row].is_below_limit()) return std::nullopt;
  const InvocationId head = flows.dispatch(row, Duration(0), /*is_seated=*/true);
  order->settle(row);
  tell_family(row);
  return head;
}

inline void FlowGroup::tell_family(Row row) {
  flows.tell_family(row, [this](Row other) { order->settle(other); });
}

inline std::optional<FlowId> FlowGroup::next_start(Instant now, const Placeable& startable) {
  std::optional<Row> row;
  if (starts_) {
    row = starts_->pick_start(now, startable);
  } else if (startable.may_start()) {
    const auto pick = order->pick(now, startable);
    if (pick) row = pick->row;
  }
  return row ? std::optional(flows[*row].id) : std::nullopt;
}

inline Duration FlowGroup::charge(const Flow& flow, Duration service) const {
  return by_service_ ? flow.cost(by_service_->fixed_charge.value_or(service)) : Duration(0);
}

inline Duration FlowGroup::charged_in_seats(const Flow& flow, Duration owed) const {
  if (!by_service_) return owed;
  const Duration left = by_service_->global_virtual_time() + by_service_->window() - flow.virtual_time;
  return std::min(owed, std::max(Duration(0), left));
}

inline void FlowGroup::charge_start(Row row, Duration cost, bool is_ready) {
  if (starts_) starts_->charge_start(flows[row], flows[row].cost(cost), is_ready);
  order->settle(row);
  tell_family(row);
}

inline void FlowGroup::finish(Instant now, Row row, InvocationId invocation, const Over& over) {
  const InFlight ended = flows.finish(now, row, invocation);
  Flow& flow = flows[row];
  const Duration beyond = over.service - over.entitled;
  const bool is_paid = over.entitled > Duration(0) && beyond <= Duration(0);
  // What it held a slot for without an answer counts as it is.
  const Duration owed = is_paid         ? Duration(0)
                        : over.answered ? charge(flow, beyond)
                        : by_service_   ? flow.cost(beyond)
                                        : Duration(0);
  const bool stays_in_seats = ended.is_seated && flow.supply == Supply::kSeats;
  flow.virtual_time += stays_in_seats ? charged_in_seats(flow, owed) : owed - ended.charged;
  if (over.answered) flows.record_service(row, over.service);
  order->ended(row, {now, over.answered, over.service, now - ended.queued.arrived});
  tell_family(row);
}

inline void FlowGroup::requeue(Instant now, Row row, InvocationId invocation) {
  flows[row].virtual_time -= flows.requeue(row, invocation).charged;
  order->ended(row, {.now = now});
  tell_family(row);
}

inline void FlowGroup::set_setup_on(Row row, GpuId gpu, std::optional<Duration> setup) {
  if (data_places_) data_places_->set_setup_on(row, gpu, setup);
}

// ---- all groups

FlowGroups::FlowGroups(const Policy& policy, const PolicyOptions& options) : policy_(policy), options_(options) {
  if (options.by_tenant) {
    tenants_.emplace();
  } else {
    groups_.push_back(std::make_unique<FlowGroup>(policy, options));
  }
}

[[gnu::always_inline]] inline FlowGroups::At FlowGroups::find(FlowId flow) const {
  Row tenant = 0;
  if (tenants_) [[unlikely]] {
    const Row* found = tenant_of_.find(flow);
    FL_CHECK(found != nullptr, "flow {} was not added", flow.value());
    tenant = *found;
  }
  FlowGroup& group = *groups_[tenant];
  return {tenant, group, group.flows.row_of(flow)};
}

std::size_t FlowGroups::queued(FlowId flow) const {
  if (!tenants_) return groups_.front()->flows.queued(flow);
  const Row* tenant = tenant_of_.find(flow);
  return tenant == nullptr ? 0 : groups_[*tenant]->flows.queued(flow);
}

FlowGroups::Row FlowGroups::row_of(TenantId tenant) {
  if (!tenants_) return 0;
  const Row row = tenants_->row_of(tenant);
  if (row == groups_.size()) groups_.push_back(std::make_unique<FlowGroup>(policy_, options_));
  return row;
}

void FlowGroups::add(FlowId flow, const FlowShare& share) {
  const Row tenant = row_of(share.tenant);
  if (tenants_) {
    FL_CHECK(tenant_of_.try_emplace(flow, tenant).second, "flow {} is there already", flow.value());
  }
  FlowGroup& group = *groups_[tenant];
  group.order->add(group.flows.add(flow, share));
}

void FlowGroups::remove(FlowId flow) {
  const At at = find(flow);
  const FlowFamily* const family = at.group.flows[at.row].limit.family;
  std::vector<Row> others = family == nullptr ? std::vector<Row>() : family->rows;
  std::erase(others, at.row);
  at.group.order->remove(at.row);
  at.group.flows.remove(flow);
  for (const Row other : others) at.group.order->settle(other);  // what it had in flight counts for their limit no more
  if (!tenants_) return;
  tenant_of_.erase(flow);
  settle(at.tenant);
}

void FlowGroups::set_tenant(TenantId tenant, const TenantShare& share) {
  if (!tenants_) return;
  const Row row = row_of(tenant);
  tenants_->set_share(row, share);
  settle(row);
}

void FlowGroups::set_tenant_factor(TenantId tenant, double factor) {
  if (!tenants_) return;
  const Row row = row_of(tenant);
  tenants_->set_factor(row, factor);
  settle(row);
}

// The tenant's limit holds for what goes at once too.
std::optional<FlowGroups::Choice> FlowGroups::take(FlowId flow) {
  const At at = find(flow);
  if (tenants_ && tenants_->is_at_limit(at.tenant)) return std::nullopt;
  const auto head = at.group.take_head(at.row);
  if (!head) return std::nullopt;
  if (tenants_) tenants_->begin_seated(at.tenant, *head);
  settle(at.tenant);
  return Choice{flow, *head};
}

inline std::optional<FlowGroups::Choice> FlowGroups::choose(Instant now, const Placeable& placeable) {
  if (const FlowId flow = placeable.at_once()) [[unlikely]]
    return take(flow);
  if (tenants_) return choose_by_tenant(now, placeable);
  FlowGroup& group = *groups_.front();
  const auto begun = group.choose(now, placeable);
  if (!begun) return std::nullopt;
  return Choice{group.flows[begun->row].id, begun->invocation, begun->gpu};
}

std::optional<FlowGroups::Choice> FlowGroups::choose_by_tenant(Instant now, const Placeable& placeable) {
  std::optional<FlowGroup::Begun> begun;
  next_chance_.reset();
  const auto tenant = tenants_->first_by_service([&](Row candidate) {
    asked_.push_back(candidate);
    begun = groups_[candidate]->choose(now, placeable);
    return begun.has_value();
  });
  settle_asked();
  if (!tenant) return std::nullopt;
  const Flow& flow = groups_[*tenant]->flows[begun->row];
  tenants_->begin(*tenant, begun->invocation,
                  flow.service ? std::optional(flow.of_whole_device(*flow.service)) : std::nullopt);
  settle(*tenant);
  return Choice{flow.id, begun->invocation, begun->gpu};
}

std::optional<FlowId> FlowGroups::next_start(Instant now, const Placeable& startable) {
  if (!tenants_) return groups_.front()->next_start(now, startable);
  std::optional<FlowId> next;
  const auto tenant = tenants_->first_by_start([&](Row candidate) {
    asked_.push_back(candidate);
    next = groups_[candidate]->next_start(now, startable);
    return next.has_value();
  });
  if (tenant) tenants_->give_start(now, *tenant);
  settle_asked();
  return next;
}

// An order that was asked may see its flows' waiting in another light, and its tenant have become a contender or ceased to
// be one.
void FlowGroups::settle_asked() {
  for (const Row tenant : asked_) {
    settle(tenant);
    const auto chance = groups_[tenant]->next_chance();
    if (chance) next_chance_ = std::min(next_chance_.value_or(*chance), *chance);
  }
  asked_.clear();
}

// A tenant below its limit may have nothing but flows at theirs.
bool FlowGroups::contends() const {
  for (Row tenant = 0; tenant < groups_.size(); ++tenant) {
    if (groups_[tenant]->flows.contends() && !(tenants_ && tenants_->is_at_limit(tenant))) return true;
  }
  return false;
}

// ---- the queue

FlowQueue::FlowQueue(const Policy& policy, const PolicyOptions& options) : policy_(policy), groups_(policy, options) {}

// ---- flows

void FlowQueue::set_share(FlowId flow, const FlowShare& share) {
  const auto at = groups_.find(flow);
  at.group.flows.set_share(at.row, share);
  at.group.order->reweighed(at.row);
}

void FlowQueue::set_max_concurrency(FlowId flow, std::optional<std::size_t> limit) {
  const auto at = groups_.find(flow);
  at.group.flows[at.row].limit.in_flight = limit.value_or(std::numeric_limits<std::size_t>::max());
  at.group.order->settle(at.row);
}

void FlowQueue::remove_flow(FlowId flow) {
  queued_ -= groups_.queued(flow);
  groups_.remove(flow);
}

void FlowQueue::set_setup(FlowId flow, Duration setup) {
  const auto at = groups_.find(flow);
  at.group.flows[at.row].setup = setup;
  at.group.order->reweighed(at.row);
}

void FlowQueue::set_supply(FlowId flow, Supply supply) {
  const auto at = groups_.find(flow);
  at.group.flows.set_supply(at.row, supply);
  at.group.order->settle(at.row);
  groups_.settle(at.tenant);
}

void FlowQueue::set_setup_on(FlowId flow, GpuId gpu, std::optional<Duration> setup) {
  const auto at = groups_.find(flow);
  at.group.set_setup_on(at.row, gpu, setup);
}

// ---- invocations

void FlowQueue::on_arrival(Instant now, FlowId flow, InvocationId invocation) {
  const auto at = groups_.find(flow);
  at.group.flows.arrive(now, at.row, invocation);
  ++queued_;
  at.group.order->settle(at.row);
  groups_.settle(at.tenant);
}

bool FlowQueue::cancel(Instant now, FlowId flow, InvocationId invocation) {
  const auto at = groups_.find(flow);
  if (!at.group.flows.cancel(now, at.row, invocation)) return false;
  --queued_;
  at.group.order->settle(at.row);
  groups_.settle(at.tenant);
  return true;
}

std::optional<FlowQueue::Choice> FlowQueue::choose(Instant now, const Placeable& placeable) {
  const auto choice = groups_.choose(now, placeable);
  if (choice) --queued_;
  return choice;
}

// Without tenants this and next_expiry() need no loop; both are asked for after every event.
FlowId FlowQueue::claimant() const {
  if (groups_.tenants() == nullptr) return groups_.all().front()->claimant();
  for (const auto& group : groups_.all()) {
    if (const FlowId claimant = group->claimant()) return claimant;
  }
  return FlowId();
}

void FlowQueue::on_started(FlowId flow, Duration cost) {
  const auto at = groups_.find(flow);
  at.group.charge_start(at.row, cost, /*is_ready=*/true);
  if (auto* tenants = groups_.tenants()) tenants->charge_start(at.tenant, cost);
  groups_.settle(at.tenant);
}

std::optional<InvocationId> FlowQueue::fail_head(Instant now, FlowId flow, Duration took) {
  const auto at = groups_.find(flow);
  const auto head = at.group.flows.drop_head(now, at.row);
  if (head) --queued_;
  at.group.charge_start(at.row, took, /*is_ready=*/false);
  if (auto* tenants = groups_.tenants()) tenants->charge_start(at.tenant, took);
  groups_.settle(at.tenant);
  return head;
}

void FlowQueue::on_completion(Instant now, FlowId flow, InvocationId invocation, Duration service, Duration entitled) {
  const auto at = groups_.find(flow);
  at.group.finish(now, at.row, invocation, {.service = service, .answered = true, .entitled = entitled});
  if (auto* tenants = groups_.tenants()) {
    tenants->end(at.tenant, invocation, at.group.flows[at.row].of_whole_device(service - entitled));
  }
  groups_.settle(at.tenant);
}

void FlowQueue::on_requeue(Instant now, FlowId flow, InvocationId invocation) {
  const auto at = groups_.find(flow);
  at.group.requeue(now, at.row, invocation);
  ++queued_;
  if (auto* tenants = groups_.tenants()) tenants->end(at.tenant, invocation, Duration(0));
  groups_.settle(at.tenant);
}

void FlowQueue::on_failed_start(Instant now, FlowId flow, InvocationId invocation, Duration held) {
  const auto at = groups_.find(flow);
  at.group.finish(now, at.row, invocation, {.service = held, .answered = false});
  if (auto* tenants = groups_.tenants()) {
    tenants->end(at.tenant, invocation, at.group.flows[at.row].of_whole_device(held));
  }
  groups_.settle(at.tenant);
}

// ---- states

std::optional<Instant> FlowQueue::next_expiry() const {
  if (groups_.tenants() == nullptr) return groups_.all().front()->flows.next_expiry();
  std::optional<Instant> next;
  for (const auto& group : groups_.all()) {
    const auto expiry = group->flows.next_expiry();
    if (expiry && (!next || *expiry < *next)) next = expiry;
  }
  return next;
}

void FlowQueue::expire(Instant now) {
  for (const auto& group : groups_.all()) group->flows.expire(now);
}

FlowView FlowQueue::view(FlowId flow) const {
  const auto at = groups_.find(flow);
  FlowView view = at.group.flows.view(at.row, at.group.is_throttled(at.row));
  // As far ahead of the node's as of its tenant's.
  if (groups_.tenants() != nullptr) view.virtual_time += groups_.global_virtual_time() - at.group.global_virtual_time();
  return view;
}

FlowState FlowQueue::state(FlowId flow) const {
  const auto at = groups_.find(flow);
  return at.group.flows.state(at.row, at.group.is_throttled(at.row));
}

}  // namespace fairlead
