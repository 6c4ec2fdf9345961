#include "queueing/mqfq_setup.h"

#include <algorithm>

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
    residency_.leave(flows_[slot], slot);
    MqfqSticky::on_eligible(slot);
  }
}

void MqfqSetup::on_ineligible(Slot slot) {
  residency_.leave(flows_[slot], slot);
  MqfqSticky::on_ineligible(slot);
}

std::optional<MqfqSetup::Pick> MqfqSetup::pick_place(Instant now, const Placeable& placeable) {
  const auto elsewhere = MqfqSticky::pick_place(now, placeable);
  const auto by_residency = residency_.pick(now, flows_, placeable);
  if (!elsewhere && !by_residency) return pick_start(placeable);
  if (!by_residency) return elsewhere;
  const Slot slot = by_residency->slot;
  const Preference here = preference(flows_[slot], by_residency->setup);
  if (elsewhere && preference(flows_[elsewhere->slot]) <= here) return elsewhere;
  if (flows_[slot].behind_starts) look_at(placeable, slot);  // not any more
  return Pick{slot, by_residency->gpu};
}

// Of those in the index, who could run on a new instance alone: where starts hold a token, choosing is starting.
std::optional<MqfqSetup::Pick> MqfqSetup::pick_start(const Placeable& placeable) {
  using Unpicked = ResidencyIndex::Unpicked;
  data_waits_for_memory_ = false;
  const auto slot = residency_.find_first([&](Slot candidate) {
    const Obstacle obstacle = look_at_unpicked(placeable, candidate);
    data_waits_for_memory_ |= obstacle == Obstacle::kMemory;
    if (obstacle != Obstacle::kNothing) return false;
    const Unpicked why = residency_.why_unpicked(now(), flows_[candidate], candidate, placeable);
    if (why == Unpicked::kKept) placeable.is_kept(flows_[candidate].id);
    return why == Unpicked::kNoPlaceIsFree;
  });
  return slot ? std::optional(Pick{*slot}) : std::nullopt;
}

// One that could run and was not picked waits for a token of the GPU that has its data, or until loading it is worth it.
Obstacle MqfqSetup::look_at_unpicked(const Placeable& placeable, Slot slot) {
  const Obstacle obstacle = look_at(placeable, slot);
  one_waits_elsewhere_ |= obstacle == Obstacle::kNothing;
  return obstacle;
}

// Memory of kernel tasks' calls cannot be claimed. So while one of them waits for it within the window, those beyond take no
// more of it: it comes when what runs has ended.
std::optional<GpuId> MqfqSetup::place_beyond_window(Slot slot, const Placeable& placeable) {
  if (!residency_.has_places(slot)) return MqfqSticky::place_beyond_window(slot, placeable);
  if (data_waits_for_memory_) return std::nullopt;
  const auto gpu = residency_.place_of_one(now(), flows_[slot], slot, placeable);
  if (!gpu && look_at_unpicked(placeable, slot) == Obstacle::kNothing) placeable.is_kept(flows_[slot].id);
  return gpu;
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
  note_end(now, flow);
}

void MqfqSetup::on_requeue(Instant now, FlowId flow, InvocationId invocation) {
  MqfqSticky::on_requeue(now, flow, invocation);
  note_end(now, flow);
}

void MqfqSetup::on_failed_start(Instant now, FlowId flow, InvocationId invocation, Duration held) {
  MqfqSticky::on_failed_start(now, flow, invocation, held);
  note_end(now, flow);
}

// However an invocation ends, the index waits for its flow no longer than the flow's own load takes.
void MqfqSetup::note_end(Instant now, FlowId flow) {
  const Slot slot = flows_.slot_of(flow);
  residency_.on_end(now, flows_[slot], slot);
}

std::optional<Instant> MqfqSetup::next_chance() const {
  const auto chance = MqfqSticky::next_chance(), patience = residency_.next_chance();
  return chance && patience ? std::min(chance, patience) : chance ? chance : patience;
}

}  // namespace fairlead
