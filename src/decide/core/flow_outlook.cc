#include "decide/core/flow_outlook.h"

#include <algorithm>

namespace fairlead {
namespace {

std::unique_ptr<const EvictionPolicy> make_eviction(EvictionKind kind, const RestartCosts& costs,
                                                    const FlowActivity& activity) {
  if (kind == EvictionKind::kCost) return std::make_unique<CostAwareEviction>(costs);
  if (kind == EvictionKind::kInactiveFirst) return std::make_unique<InactiveFirstEviction>(activity);
  return std::make_unique<LruEviction>();
}

bool any_held(const std::vector<Instance*>& instances) {
  return std::any_of(instances.begin(), instances.end(),
                     [](const Instance* i) { return i->terms.held != PinKind::kNone; });
}

}  // namespace

FlowOutlook::FlowOutlook(const CoreTables& tables, EvictionKind kind)
    : tables_(tables), eviction_(make_eviction(kind, *this, *this)) {}

FlowDemand FlowOutlook::demand_of(FlowId flow) const {
  const CoreFunction* function = tables_.functions.find(flow);
  if (function == nullptr) return {};
  const std::size_t queued = tables_.queue->queued(flow);
  const bool is_kept = !function->spec.seats.empty() || (function->hold.keep && any_held(tables_.pool.of_flow(flow)));
  if (tables_.queue->state(flow) != FlowState::kActive && !is_kept) {
    return {Claim::kLeaving, queued};
  }
  return {queued > 0 ? Claim::kQueued : Claim::kKept, queued};
}

InstanceId FlowOutlook::cheapest_to_stop(const std::vector<InstanceId>& idle) const {
  std::vector<const Instance*> candidates;
  for (const InstanceId id : idle) candidates.push_back(tables_.pool.find(id));
  return eviction_->victim(candidates).id;
}

bool FlowOutlook::may_stop(InstanceId instance) const {
  return tables_.pool.find(instance)->may_go();
}

bool FlowOutlook::may_move(InstanceId instance) const {
  const Instance* const there = tables_.pool.find(instance);  // none: it is being killed
  return there == nullptr || there->terms.held != PinKind::kDevice;
}

Duration FlowOutlook::cold_start(FlowId flow) const {
  const CoreFunction* function = tables_.functions.find(flow);
  return function == nullptr ? Duration(0) : function->cold_start.or_nothing();
}

Duration FlowOutlook::expected_gap(FlowId flow) const {
  const CoreFunction* function = tables_.functions.find(flow);
  if (function == nullptr) return ArrivalPace::kNeverCalled;
  const std::size_t queued = tables_.queue->queued(flow);
  return std::max(Duration(1), function->pace.gap(tables_.latest, queued > 0 && is_active(flow) ? queued : 0));
}

std::size_t FlowOutlook::instances(FlowId flow) const {
  return std::max<std::size_t>(1, tables_.pool.of_flow(flow).size());
}

}  // namespace fairlead
