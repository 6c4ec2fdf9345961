// Device memory in virtual time: what instances allocate, and the moves the core asks for.
#include <algorithm>
#include <utility>

#include "sim/simulation.h"

namespace fairlead::sim {
namespace {

constexpr int kRoomRequests = 3;  // then an instance that cannot have its memory gives up

Bytes whole_regions(Bytes bytes, Bytes region) {
  if (region == Bytes(0)) return bytes;
  const std::int64_t regions = (bytes.count() + region.count() - 1) / region.count();
  return Bytes(regions * region.count());
}

}  // namespace

// The instance has started and wants its function's memory; once it has it, it asks for work.
void Simulation::allocate(InstanceId id) {
  LiveInstance* found = instances_.find(id);
  if (found == nullptr) {  // stopped meanwhile; a real one would still say that it is ready
    report([&](Actions& out) { core_->instance_ready(now_, id, out); });
    return;
  }
  LiveInstance& instance = *found;
  Bytes& used = memory_used_[instance.gpu.value() - 1];
  const Bytes wanted = std::min(scenario_.functions[instance.function].memory, scenario_.device.memory);
  if (used + wanted > scenario_.device.memory || strikes(Fault::kNoMemory)) {
    if (++instance.room_requests > kRoomRequests) {
      events_.add(now_, EventKind::kGone, id.value());
      return;
    }
    const Bytes missing = std::max(used + wanted - scenario_.device.memory, mib(1));
    instance.waits_for_room = true;
    const auto request = static_cast<std::uint64_t>(instance.room_requests);
    report([&](Actions& out) { core_->needs_room(now_, id, request, missing, out); });
    return;
  }
  used += wanted;
  instance.resident = wanted;
  report_memory(id);
  report([&](Actions& out) { core_->instance_ready(now_, id, out); });
}

void Simulation::perform(const GrantRoom& action) {
  hash(action.instance.value());
  LiveInstance* instance = instances_.find(action.instance);
  if (instance == nullptr || !std::exchange(instance->waits_for_room, false)) return;  // answered before
  events_.add(now_, action.granted ? EventKind::kReady : EventKind::kGone, action.instance.value());
}

void Simulation::perform(const SwapOutMemory& action) {
  hash(action.instance.value());
  LiveInstance& instance = instances_.at(action.instance);
  if (strikes(Fault::kMoveFails)) {
    tell([&](Actions& out) {
      core_->memory_moved(now_, action.instance, MoveDirection::kOut, MoveOutcome::kBusy, out);
    });
    return;
  }
  const Bytes bytes = std::min(whole_regions(action.bytes, scenario_.device.region), instance.resident);
  Instant& free = links_[action.gpu.value() - 1].out_free;
  free = std::max(free, now_) + move_time(bytes);
  if (strikes(Fault::kMoveSlow)) free += faults_->up_to(std::chrono::seconds(30));
  events_.add(free, EventKind::kSwappedOut, action.instance.value(), static_cast<std::uint64_t>(bytes.count()));
}

void Simulation::end_swap_out(const Event& event) {
  const InstanceId id(event.subject);
  LiveInstance* instance = instances_.find(id);
  if (instance == nullptr) return;
  const Bytes bytes = std::min(Bytes(static_cast<std::int64_t>(event.detail)), instance->resident);
  instance->resident -= bytes;
  instance->away += bytes;
  memory_used_[instance->gpu.value() - 1] -= bytes;
  report_memory(id);
  if (strikes(Fault::kMoveLost)) return;
  report([&](Actions& out) { core_->memory_moved(now_, id, MoveDirection::kOut, MoveOutcome::kDone, out); });
}

void Simulation::perform(const SwapInMemory& action) {
  hash(action.instance.value());
  LiveInstance& instance = instances_.at(action.instance);
  Bytes& used = memory_used_[action.gpu.value() - 1];
  if (used + instance.away > scenario_.device.memory) {
    events_.add(now_, EventKind::kSwappedIn, action.instance.value());
    return;
  }
  used += instance.away;
  instance.incoming = instance.away;
  Instant& free = links_[action.gpu.value() - 1].in_free;
  free = std::max(free, now_) + move_time(instance.incoming);
  events_.add(free, EventKind::kSwappedIn, action.instance.value());
}

void Simulation::end_swap_in(const Event& event) {
  const InstanceId id(event.subject);
  LiveInstance* found = instances_.find(id);
  if (found == nullptr) return;
  LiveInstance& instance = *found;
  const bool moved = instance.incoming > Bytes(0);
  instance.resident += instance.incoming;
  instance.away -= instance.incoming;
  instance.incoming = Bytes(0);
  if (moved && instance.waiting) begin_run(id, std::exchange(instance.waiting, InvocationId()));
  report_memory(id);
  if (strikes(Fault::kMoveLost)) return;
  const MoveOutcome outcome = moved ? MoveOutcome::kDone : MoveOutcome::kNoRoom;
  report([&](Actions& out) { core_->memory_moved(now_, id, MoveDirection::kIn, outcome, out); });
}

void Simulation::report_memory(InstanceId id) {
  if (strikes(Fault::kReportLost)) return;
  const LiveInstance* instance = instances_.find(id);
  if (instance == nullptr) return;
  const Bytes resident = instance->resident, away = instance->away;
  const MemoryUse use{.held = resident + away, .resident = resident, .away = away};
  report([&](Actions& out) { core_->memory_report(now_, id, use, out); });
}

// Its process is gone: it runs no more, and the device takes its memory back.
void Simulation::release(InstanceId id) {
  const LiveInstance* instance = instances_.find(id);
  if (instance == nullptr) return;
  const GpuId on = instance->gpu;
  gpu(on).stop(now_, id);
  schedule_end(on);
  memory_used_[on.value() - 1] -= instance->resident + instance->incoming;
  instances_.erase(id);
}

Duration Simulation::move_time(Bytes bytes) const {
  return from_seconds(static_cast<double>(bytes.count()) / scenario_.device.link_bytes_per_second);
}

}  // namespace fairlead::sim
