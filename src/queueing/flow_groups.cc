#include "queueing/flow_groups.h"

#include <algorithm>

#include "base/check.h"

namespace fairlead {

FlowGroups::FlowGroups(const Policy& policy, const PolicyOptions& options) : policy_(policy), options_(options) {
  if (options.by_tenant) {
    tenants_.emplace();
  } else {
    groups_.push_back(std::make_unique<FlowGroup>(policy, options));
  }
}

FlowGroups::At FlowGroups::find(FlowId flow) const {
  Row tenant = 0;
  if (tenants_) {
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
  at.group.order->remove(at.row);
  at.group.flows.remove(flow);
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

std::optional<FlowGroups::Choice> FlowGroups::choose(Instant now, const Placeable& placeable) {
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
  tenants_->begin(*tenant, begun->invocation, flow.service.value_or(Duration(0)));
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

}  // namespace fairlead
