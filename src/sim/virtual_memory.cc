#include "sim/virtual_memory.h"

#include <algorithm>
#include <utility>

#include "sim/virtual_node.h"

namespace fairlead::sim {
namespace {

constexpr int kRoomRequests = 3;  // then an instance that repeats its request gives up

Bytes whole_regions(Bytes bytes, Bytes region) {
  if (region == Bytes(0)) return bytes;
  const std::int64_t regions = (bytes.count() + region.count() - 1) / region.count();
  return Bytes(regions * region.count());
}

}  // namespace

void VirtualMemory::add_gpu(GpuId gpu, const DeviceModel& device) {
  if (devices_.size() < gpu.value()) devices_.resize(gpu.value());
  devices_[gpu.value() - 1].model = &device;
}

void VirtualMemory::add(InstanceId id, GpuId gpu, Bytes size, int parts) {
  const Bytes most = devices_[gpu.value() - 1].model->memory;
  holdings_[id] = {.gpu = gpu, .size = std::min(size, most), .parts = parts, .parts_left = parts};
}

void VirtualMemory::release(InstanceId id) {
  const Holding* holding = holdings_.find(id);
  if (holding == nullptr) return;
  device_of(*holding).used -= holding->resident + holding->incoming;
  if (holding->is_unreported) --unreported_;
  holdings_.erase(id);
}

void VirtualMemory::allocate(InstanceId id) {
  Holding* found = holdings_.find(id);
  // Not modelled, or stopped meanwhile: a real one would still say that it is ready.
  if (found == nullptr || found->parts == 0)
    return node_.report([&](Actions& out) { node_.core_->instance_ready(node_.now(), id, out); });
  Holding& holding = *found;
  Device& device = device_of(holding);
  const Bytes part(holding.size.count() / holding.parts);
  const Bytes needed = device.used + part;
  if (needed > device.model->memory || (node_.mishaps_ != nullptr && node_.mishaps_->refuses_allocation())) {
    const bool repeats = node_.model_.room_request() == InstanceModel::RoomRequest::kRepeats;
    if (repeats && holding.room_requests == kRoomRequests) {
      node_.events_.add(node_.now(), VirtualNode::Kind::kGone, id.value());
      return;
    }
    return ask_for_room(id, holding, repeats ? std::max(needed - device.model->memory, mib(1)) : part);
  }
  device.used += part;
  // One that is told to start again, by what was meant for another, loses what it had.
  holding.resident = std::min(holding.resident + part, holding.size);
  const bool has_all = --holding.parts_left <= 0;
  report(id);
  if (!has_all) return node_.go_on_starting(id);
  node_.report([&](Actions& out) { node_.core_->instance_ready(node_.now(), id, out); });
}

bool VirtualMemory::admits(InstanceId id, InvocationId invocation) {
  Holding* holding = holdings_.find(id);
  if (holding == nullptr) return true;
  if (holding->parts == 0 && holding->resident + holding->away == Bytes(0)) {
    holding->waiting = invocation;
    take_all(id, *holding);
    return false;
  }
  if (holding->away == Bytes(0)) return true;
  holding->waiting = invocation;
  if (holding->away > holding->incoming) wait_at_the_gate(id, *holding);
  return false;
}

// What the first invocation needs; then it begins.
void VirtualMemory::take_all(InstanceId id, Holding& holding) {
  Device& device = device_of(holding);
  if (device.used + holding.size > device.model->memory) {
    node_.events_.add(node_.now(), VirtualNode::Kind::kAsksForRoom, id.value());
    return;
  }
  device.used += holding.size;
  holding.resident = holding.size;
  holding.is_unreported = true;
  ++unreported_;
  node_.begin_run(id, std::exchange(holding.waiting, InvocationId()));
}

void VirtualMemory::ask_for_all(InstanceId id) {
  Holding* holding = holdings_.find(id);
  if (holding != nullptr && holding->waiting) ask_for_room(id, *holding, holding->size);
}

void VirtualMemory::ask_for_room(InstanceId id, Holding& holding, Bytes bytes) {
  holding.waits_for_room = true;
  const auto request = static_cast<std::uint64_t>(++holding.room_requests);
  node_.report([&](Actions& out) { node_.core_->needs_room(node_.now(), id, request, bytes, out); });
}

void VirtualMemory::perform(const GrantRoom& action) {
  Holding* holding = holdings_.find(action.instance);
  if (holding == nullptr || !std::exchange(holding->waits_for_room, false)) return;  // answered before
  if (holding->waiting) {
    if (action.granted) return take_all(action.instance, *holding);
    const InvocationId invocation = std::exchange(holding->waiting, InvocationId());
    return node_.events_.add(node_.now(), VirtualNode::Kind::kOutOfMemory, action.instance.value(), invocation.value());
  }
  if (action.granted && node_.model_.room_request() == InstanceModel::RoomRequest::kWaits)
    return allocate(action.instance);
  const auto kind = action.granted ? VirtualNode::Kind::kStarted : VirtualNode::Kind::kGone;
  node_.events_.add(node_.now(), kind, action.instance.value());
}

void VirtualMemory::wait_at_the_gate(InstanceId id, const Holding& holding) {
  if (!holding.waiting) return;
  const auto after = node_.model_.gate_asks_after();
  if (after) node_.events_.add(node_.now() + *after, VirtualNode::Kind::kAsksAtGate, id.value());
}

void VirtualMemory::ask_at_the_gate(InstanceId id) {
  const Holding* holding = holdings_.find(id);
  if (holding == nullptr || !holding->waiting || holding->away == holding->incoming) return;
  node_.report([&](Actions& out) { node_.core_->wants_memory(node_.now(), id, out); });
}

// Empty: it is refused, and the core was told.
std::optional<Duration> VirtualMemory::begin_move(InstanceId id, MoveDirection direction, const DeviceModel& device,
                                                  Bytes bytes) {
  const Duration link_time = from_seconds(static_cast<double>(bytes.count()) / device.link_bytes_per_second);
  if (node_.mishaps_ == nullptr) return link_time;
  const auto takes = node_.mishaps_->move_time(direction, link_time);
  if (!takes) {
    node_.tell([&](Actions& out) { node_.core_->memory_moved(node_.now(), id, direction, MoveOutcome::kBusy, out); });
  }
  return takes;
}

void VirtualMemory::end_move(InstanceId id, MoveDirection direction, MoveOutcome outcome) {
  report(id);
  if (node_.mishaps_ != nullptr && node_.mishaps_->loses(Mishaps::Report::kMoved)) return;
  node_.report([&](Actions& out) { node_.core_->memory_moved(node_.now(), id, direction, outcome, out); });
}

void VirtualMemory::perform(const SwapOutMemory& action) {
  const Holding& holding = holdings_.at(action.instance);
  Device& device = device_of(holding);
  const Bytes bytes = std::min(whole_regions(action.bytes, device.model->region), holding.resident);
  const auto takes = begin_move(action.instance, MoveDirection::kOut, *device.model, bytes);
  if (!takes) return;
  device.out_free = std::max(device.out_free, node_.now()) + *takes;
  node_.events_.add(device.out_free, VirtualNode::Kind::kSwappedOut, action.instance.value(),
                    static_cast<std::uint64_t>(bytes.count()));
}

void VirtualMemory::end_swap_out(InstanceId id, Bytes bytes) {
  Holding* holding = holdings_.find(id);
  if (holding == nullptr) return;
  Mishaps::MoveEnd end;
  if (node_.mishaps_ != nullptr) end = node_.mishaps_->move_end(MoveDirection::kOut);
  if (end.moves) {
    bytes = std::min(bytes, holding->resident);
    holding->resident -= bytes;
    holding->away += bytes;
    device_of(*holding).used -= bytes;
  }
  end_move(id, MoveDirection::kOut, end.outcome);
}

void VirtualMemory::perform(const SwapInMemory& action) {
  Holding& holding = holdings_.at(action.instance);
  Device& device = device_of(holding);
  if (device.used + holding.away > device.model->memory) {  // nothing comes
    node_.events_.add(node_.now(), VirtualNode::Kind::kSwappedIn, action.instance.value());
    return;
  }
  const auto takes = begin_move(action.instance, MoveDirection::kIn, *device.model, holding.away);
  if (!takes) return;
  device.used += holding.away;
  holding.incoming = holding.away;
  device.in_free = std::max(device.in_free, node_.now()) + *takes;
  node_.events_.add(device.in_free, VirtualNode::Kind::kSwappedIn, action.instance.value());
}

void VirtualMemory::end_swap_in(InstanceId id) {
  Holding* holding = holdings_.find(id);
  if (holding == nullptr) return;
  Mishaps::MoveEnd end;
  if (holding->incoming == Bytes(0)) {
    end = {.moves = false, .outcome = MoveOutcome::kNoRoom};
  } else if (node_.mishaps_ != nullptr) {
    end = node_.mishaps_->move_end(MoveDirection::kIn);
  }
  const Bytes came = std::exchange(holding->incoming, Bytes(0));
  if (end.moves) {
    holding->resident += came;
    holding->away -= came;
    if (holding->waiting) node_.begin_run(id, std::exchange(holding->waiting, InvocationId()));
  } else {
    device_of(*holding).used -= came;
    wait_at_the_gate(id, *holding);
  }
  end_move(id, MoveDirection::kIn, end.outcome);
}

void VirtualMemory::report_unreported(InstanceId id) {
  Holding* holding = holdings_.find(id);
  if (holding == nullptr || !std::exchange(holding->is_unreported, false)) return;
  --unreported_;
  report(id);
}

void VirtualMemory::report(InstanceId id) {
  if (node_.mishaps_ != nullptr && node_.mishaps_->loses(Mishaps::Report::kMemory)) return;
  const Holding* holding = holdings_.find(id);
  if (holding == nullptr) return;
  const Bytes resident = holding->resident, away = holding->away;
  const MemoryUse use{.held = resident + away, .resident = resident, .away = away};
  node_.report([&](Actions& out) { node_.core_->memory_report(node_.now(), id, use, out); });
}

}  // namespace fairlead::sim
