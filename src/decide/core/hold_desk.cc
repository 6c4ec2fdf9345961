#include "decide/core/hold_desk.h"

#include "decide/core/holds.h"
#include "decide/core/pin_check.h"

namespace fairlead {

void HoldDesk::set(Instant now, FlowId flow, const WarmHold& hold, Actions& out) {
  if (!core_.state_->tables.functions.contains(flow)) return;
  Core::State::Holds{*core_.state_, now, out}.keep(flow, hold);
  if (!core_.state_->tables.pool.of_flow(flow).empty()) core_.state_->dispatch(now, out);
}

void HoldDesk::set_bounds(const PinBounds& bounds) {
  core_.state_->tables.pins = bounds;
}

Status HoldDesk::check(FlowId flow, TenantId tenant, const WarmHold& hold, Bytes memory) const {
  if (hold.pin == PinKind::kNone) return {};
  const CoreTables& tables = core_.state_->tables;
  if (!can_hold(tables.queue->policy())) {
    return fail(Errc::kInvalidArgument,
                "gpu:pin is {}; policy '{}' keeps no instances: start the node with another --policy, or leave gpu:pin "
                "and gpu:keep out",
                pin_name(hold.pin), tables.queue->policy().name);
  }
  std::vector<PinAsked> others;
  std::vector<Bytes> devices;
  bool several = false;
  for (const FlowId known : tables.functions.ids()) {
    const CoreFunction& other = tables.functions.at(known);
    several = several || other.spec.tenant != tenant;
    if (known != flow) others.push_back({other.spec.tenant, other.hold.pin, other.spec.expected_memory});
  }
  for (const Gpu* gpu : tables.pool.gpus()) devices.push_back(gpu->capacity.memory);
  return check_pin({tenant, hold.pin, memory}, others, devices, tables.pins, several);
}

std::vector<HoldView> HoldDesk::views() const {
  std::vector<HoldView> views;
  for (const InstanceId id : core_.state_->tables.pool.ids()) {
    const Instance& instance = *core_.state_->tables.pool.find(id);
    views.push_back({.instance = id, .held = instance.terms.held, .over_bound = instance.over_bound});
    const CoreFunction* function = core_.state_->tables.functions.find(instance.flow);
    const bool ends = function != nullptr && function->hold.keep && instance.spare() && !instance.terms.is_seated;
    if (ends) views.back().kept_until = instance.idle_since + *function->hold.keep;
  }
  return views;
}

}  // namespace fairlead
