#include "queueing/gpu_order.h"

#include <algorithm>

namespace fairlead {

void GpuOrder::remove(Slot slot) {
  waiting_.erase(slot);
  busy_.erase(slot);
}

std::optional<GpuOrder::Slot> GpuOrder::pick_start(Instant, const Placeable& startable) {
  if (!startable.may_start()) return std::nullopt;
  return waiting_.find_first([&](Slot candidate) { return startable.can_run(flows_[candidate].id); });
}

void GpuOrder::settle(Slot slot) {
  Flow& flow = flows_[slot];
  const bool waits = !flow.queue.empty() && flow.supply == Supply::kReady;
  const bool busy = waits || !flow.in_flight.empty();
  if (busy && !busy_.contains(slot)) flow.virtual_time = std::max(flow.virtual_time, minimum_);
  const ByVirtualTime key{flow.virtual_time, flow.id};
  if (flow.runnable()) {
    waiting_.set(slot, key);
  } else {
    waiting_.erase(slot);
  }
  if (busy) {
    busy_.set(slot, key);
  } else {
    busy_.erase(slot);
  }
  flows_.note_contention(slot);
  if (!busy_.empty()) minimum_ = std::max(minimum_, busy_.top_key().time);
}

}  // namespace fairlead
