#include "decide/queueing/gpu_order.h"

#include <algorithm>

namespace fairlead {

void GpuOrder::remove(Row row) {
  waiting_.erase(row);
  busy_.erase(row);
}

std::optional<GpuOrder::Row> GpuOrder::pick_start(Instant, const Placeable& startable) {
  if (!startable.may_start()) return std::nullopt;
  return waiting_.find_first([&](Row candidate) { return startable.can_run(flows_[candidate].id); });
}

void GpuOrder::settle(Row row) {
  Flow& flow = flows_[row];
  const bool waits = !flow.queue.empty() && flow.supply == Supply::kReady;
  const bool busy = waits || flow.holds_slots();
  if (busy && !busy_.contains(row)) flow.virtual_time = std::max(flow.virtual_time, minimum_);
  const ByVirtualTime key{flow.virtual_time, flow.id};
  if (flow.runnable()) {
    waiting_.set(row, key);
  } else {
    waiting_.erase(row);
  }
  if (busy) {
    busy_.set(row, key);
  } else {
    busy_.erase(row);
  }
  flows_.note_contention(row);
  if (!busy_.empty()) minimum_ = std::max(minimum_, busy_.top_key().time);
}

}  // namespace fairlead
