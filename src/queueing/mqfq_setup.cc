#include "queueing/mqfq_setup.h"

namespace fairlead {

MqfqSetup::Preference MqfqSetup::preference(const Flow& flow, Duration setup) {
  const Duration each = setup / static_cast<Duration::rep>(flow.queue.size()) + flow.service.value_or(Duration(0));
  return objectives_first(flow, static_cast<std::uint64_t>(each.count()));
}

void MqfqSetup::set_setup_on(FlowId flow, GpuId gpu, std::optional<Duration> setup) {
  const Slot slot = flows_.slot_of(flow);
  residency_.set_setup(slot, gpu, setup);
  settle(slot);
}

void MqfqSetup::remove_flow(FlowId flow) {
  residency_.forget(flows_.slot_of(flow));
  MqfqSticky::remove_flow(flow);
}

void MqfqSetup::on_eligible(Slot slot) {
  if (residency_.has_places(slot)) {
    preferred_.erase(slot);
    residency_.enter(flows_[slot], slot);
  } else {
    residency_.leave(slot);
    MqfqSticky::on_eligible(slot);
  }
}

void MqfqSetup::on_ineligible(Slot slot) {
  residency_.leave(slot);
  MqfqSticky::on_ineligible(slot);
}

std::optional<MqfqSetup::Pick> MqfqSetup::pick_place(Instant now, const Placeable& placeable) {
  const auto elsewhere = MqfqSticky::pick_place(now, placeable);
  const auto by_residency = residency_.pick(now, flows_, placeable);
  if (!by_residency) return elsewhere;
  const bool first =
      !elsewhere || preference(flows_[by_residency->slot], by_residency->setup) < preference(flows_[elsewhere->slot]);
  return first ? Pick{by_residency->slot, by_residency->gpu} : *elsewhere;
}

std::optional<QueuePolicy::Choice> MqfqSetup::choose(Instant now, const Placeable& placeable) {
  const auto choice = MqfqSticky::choose(now, placeable);
  if (!choice) return choice;
  const Slot slot = flows_.slot_of(choice->flow);
  residency_.on_begin(flows_[slot], slot);
  return choice;
}

void MqfqSetup::on_completion(Instant now, FlowId flow, InvocationId invocation, Duration service) {
  MqfqSticky::on_completion(now, flow, invocation, service);
  const Slot slot = flows_.slot_of(flow);
  residency_.on_end(now, flows_[slot], slot);
}

// Flows that have a place may want another one.
std::optional<FlowId> MqfqSetup::next_start(const Placeable& startable) {
  if (const auto flow = MqfqSticky::next_start(startable)) return flow;
  const auto slot = residency_.find_first([&](Slot candidate) { return startable.can_run(flows_[candidate].id); });
  return slot ? std::optional(flows_[*slot].id) : std::nullopt;
}

}  // namespace fairlead
