#include "base/check.h"
#include "decide/core/state.h"

namespace fairlead {

// ---- events

void Core::memory_report(Instant now, InstanceId instance, const MemoryUse& use, Actions& out) {
  if (!state_->residency.report(instance, use)) return;
  if (Instance* there = state_->tables.pool.find(instance)) state_->keeper.count_memory(*there);
  state_->dispatch(now, out);
}

void Core::memory_moved(Instant now, InstanceId instance, MoveDirection direction, MoveOutcome outcome, Actions& out) {
  if (!state_->residency.moved(now, instance, direction, outcome)) return;
  if (Instance* there = state_->tables.pool.find(instance)) state_->keeper.count_memory(*there);
  state_->dispatch(now, out);
}

void Core::needs_room(Instant now, InstanceId instance, std::uint64_t request, Bytes bytes, Actions& out) {
  if (state_->residency.needs_room(now, instance, request, bytes)) state_->dispatch(now, out);
}

void Core::device_memory_used(Instant now, GpuId gpu, Bytes used, Actions& out) {
  if (!state_->devices.contains(gpu)) return;
  const std::optional<Bytes> unreported = state_->residency.device_used(gpu, used);
  if (!unreported) return;
  state_->tables.pool.set_unreported(gpu, *unreported);
  state_->dispatch(now, out);
}

void Core::wants_memory(Instant now, InstanceId instance, Actions& out) {
  if (state_->residency.wants_memory(instance)) state_->dispatch(now, out);
}

// ---- what residency decides

void Core::State::settle_memory(Instant now, Actions& out) {
  tables.latest = now;
  decisions.clear();
  residency.settle(now, decisions);
  for (const ResidencyDecision& decision : decisions) {
    if (const auto* move = std::get_if<Move>(&decision)) {
      if (move->direction == MoveDirection::kOut) {
        out.push_back(SwapOutMemory{move->instance, move->gpu, move->bytes});
      } else {
        out.push_back(SwapInMemory{move->instance, move->gpu});
      }
    } else if (const auto* answer = std::get_if<RoomAnswer>(&decision)) {
      out.push_back(GrantRoom{answer->instance, answer->request, answer->granted});
    } else if (const auto* grown = std::get_if<NeedsMore>(&decision)) {
      if (Instance* there = tables.pool.find(grown->instance)) keeper.count_memory(*there);
    } else if (const auto* start = std::get_if<GiveWay>(&decision)) {
      // Nothing is charged and nothing fails: the node let more in than there was room for.
      stop_and_requeue(now, *tables.pool.find(start->instance), StopReason::kNoRoom, out);
    } else {
      keeper.evict(now, std::get<StopIdle>(decision).instance, out);
    }
  }
}

}  // namespace fairlead
