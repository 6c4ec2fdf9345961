#include "queueing/mqfq_setup.h"

#include <algorithm>

namespace fairlead {

MqfqSetup::Preference MqfqSetup::preference(const Flow& flow, Duration setup) {
  const Duration each = setup / static_cast<Duration::rep>(flow.queue.size()) + flow.service.value_or(Duration(0));
  return objectives_first(flow, static_cast<std::uint64_t>(each.count()));
}

void MqfqSetup::set_setup_on(FlowId flow, GpuId gpu, std::optional<Duration> setup) {
  const Row row = flows_.row_of(flow);
  residency_.set_setup(row, gpu, setup);
  settle(row);
}

void MqfqSetup::remove_flow(FlowId flow) {
  residency_.forget(flows_.row_of(flow));
  MqfqSticky::remove_flow(flow);
}

void MqfqSetup::on_eligible(Row row) {
  if (residency_.has_places(row)) {
    preferred_.erase(row);
    residency_.enter(flows_[row], row);
  } else {
    residency_.leave(flows_[row], row);
    MqfqSticky::on_eligible(row);
  }
}

void MqfqSetup::on_ineligible(Row row) {
  residency_.leave(flows_[row], row);
  MqfqSticky::on_ineligible(row);
}

std::optional<MqfqSetup::Pick> MqfqSetup::pick_place(Instant now, const Placeable& placeable) {
  const auto elsewhere = MqfqSticky::pick_place(now, placeable);
  const auto by_residency = residency_.pick(now, flows_, placeable);
  if (!elsewhere && !by_residency) return pick_start(placeable);
  if (!by_residency) return elsewhere;
  const Row row = by_residency->row;
  const Preference here = preference(flows_[row], by_residency->setup);
  if (elsewhere && preference(flows_[elsewhere->row]) <= here) return elsewhere;
  if (flows_[row].behind_starts) look_at(placeable, row);  // not any more
  return Pick{row, by_residency->gpu};
}

// Of those in the index, who could run on a new instance alone: where starts hold a slot, choosing is starting.
std::optional<MqfqSetup::Pick> MqfqSetup::pick_start(const Placeable& placeable) {
  using Unpicked = ResidencyIndex::Unpicked;
  data_waits_for_memory_ = false;
  const auto row = residency_.find_first([&](Row candidate) {
    const Obstacle obstacle = look_at_unpicked(placeable, candidate);
    data_waits_for_memory_ |= obstacle == Obstacle::kMemory;
    if (obstacle != Obstacle::kNothing) return false;
    const Unpicked why = residency_.why_unpicked(now(), flows_[candidate], candidate, placeable);
    if (why == Unpicked::kKept) placeable.is_kept(flows_[candidate].id);
    return why == Unpicked::kNoPlaceIsFree;
  });
  return row ? std::optional(Pick{*row}) : std::nullopt;
}

// One that could run and was not picked waits for a slot of the GPU that has its data, or until loading it is worth it.
Obstacle MqfqSetup::look_at_unpicked(const Placeable& placeable, Row row) {
  const Obstacle obstacle = look_at(placeable, row);
  one_waits_elsewhere_ |= obstacle == Obstacle::kNothing;
  return obstacle;
}

// Memory of kernel tasks' calls cannot be claimed. So while one of them waits for it within the window, those beyond take no
// more of it: it comes when what runs has ended.
std::optional<GpuId> MqfqSetup::place_beyond_window(Row row, const Placeable& placeable) {
  if (!residency_.has_places(row)) return MqfqSticky::place_beyond_window(row, placeable);
  if (data_waits_for_memory_) return std::nullopt;
  const auto gpu = residency_.place_of_one(now(), flows_[row], row, placeable);
  if (!gpu && look_at_unpicked(placeable, row) == Obstacle::kNothing) placeable.is_kept(flows_[row].id);
  return gpu;
}

std::optional<QueuePolicy::Choice> MqfqSetup::choose(Instant now, const Placeable& placeable) {
  const auto choice = MqfqSticky::choose(now, placeable);
  if (!choice) return choice;
  const Row row = flows_.row_of(choice->flow);
  residency_.on_begin(flows_[row], row);
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
  const Row row = flows_.row_of(flow);
  residency_.on_end(now, flows_[row], row);
}

std::optional<Instant> MqfqSetup::next_chance() const {
  const auto chance = MqfqSticky::next_chance(), patience = residency_.next_chance();
  return chance && patience ? std::min(chance, patience) : chance ? chance : patience;
}

}  // namespace fairlead
