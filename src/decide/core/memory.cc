#include <algorithm>

#include "base/check.h"
#include "decide/core/state.h"

namespace fairlead {

// ---- events

void Core::memory_report(Instant now, InstanceId instance, const MemoryUse& use, Actions& out) {
  if (!state_->residency.report(instance, use)) return;
  if (Instance* there = state_->pool.find(instance)) state_->count_memory(*there);
  state_->dispatch(now, out);
}

void Core::memory_moved(Instant now, InstanceId instance, MoveDirection direction, MoveOutcome outcome, Actions& out) {
  if (!state_->residency.moved(now, instance, direction, outcome)) return;
  if (Instance* there = state_->pool.find(instance)) state_->count_memory(*there);
  state_->dispatch(now, out);
}

void Core::needs_room(Instant now, InstanceId instance, std::uint64_t request, Bytes bytes, Actions& out) {
  if (state_->residency.needs_room(now, instance, request, bytes)) state_->dispatch(now, out);
}

void Core::device_memory_used(Instant now, GpuId gpu, Bytes used, Actions& out) {
  if (!state_->devices.all.contains(gpu)) return;
  const std::optional<Bytes> unreported = state_->residency.device_used(gpu, used);
  if (!unreported) return;
  state_->pool.set_unreported(gpu, *unreported);
  state_->dispatch(now, out);
}

void Core::wants_memory(Instant now, InstanceId instance, Actions& out) {
  if (state_->residency.wants_memory(instance)) state_->dispatch(now, out);
}

// ---- what residency decides

void Core::State::settle_memory(Instant now, Actions& out) {
  latest = now;
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
      if (Instance* there = pool.find(grown->instance)) count_memory(*there);
    } else if (const auto* start = std::get_if<GiveWay>(&decision)) {
      give_way(now, start->instance, out);
    } else {
      evict(now, std::get<StopIdle>(decision).instance, out);
    }
  }
}

// Nothing is charged and nothing fails: the node let more in than there was room for.
void Core::State::give_way(Instant now, InstanceId id, Actions& out) {
  const InvocationId bound = pool.find(id)->bound;
  stop(now, id, StopReason::kNoRoom, out);
  if (bound) requeue(now, bound, out);
}

// Placement counts what residency knows.
void Core::State::count_memory(Instance& instance) {
  const Residency::Standing standing = residency.standing(instance.id);
  instance.needed = counted_memory(instance, standing.needed);
  pool.count_memory(instance, std::max(instance.memory, instance.needed), counted_memory(instance, standing.pinned));
  if (standing.reload) note_reload(instance, *standing.reload);
}

// ---- what residency and eviction ask

FlowDemand Core::State::demand_of(FlowId flow) const {
  if (!functions.contains(flow)) return {};
  const std::size_t queued = policy->queued(flow);
  const bool is_kept = !functions.at(flow).spec.seats.empty();
  if (policy->state(flow) != FlowState::kActive && !is_kept) return {Claim::kLeaving, queued};
  return {queued > 0 ? Claim::kQueued : Claim::kKept, queued};
}

InstanceId Core::State::cheapest_to_stop(const std::vector<InstanceId>& idle) const {
  std::vector<const Instance*> candidates;
  for (const InstanceId id : idle) candidates.push_back(pool.find(id));
  return eviction->victim(candidates).id;
}

bool Core::State::is_active(FlowId flow) const {
  return functions.contains(flow) && policy->state(flow) == FlowState::kActive;
}

Duration Core::State::expected_gap(FlowId flow) const {
  const Function* function = functions.find(flow);
  if (function == nullptr) return ArrivalPace::kNeverCalled;
  const std::size_t queued = policy->queued(flow);
  return std::max(Duration(1), function->pace.gap(latest, queued > 0 && is_active(flow) ? queued : 0));
}

std::size_t Core::State::instances(FlowId flow) const {
  return std::max<std::size_t>(1, pool.of_flow(flow).size());
}

}  // namespace fairlead
