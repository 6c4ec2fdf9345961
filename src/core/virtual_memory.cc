// The modelled device memory of a virtual node.
#include <algorithm>

#include "base/check.h"
#include "core/virtual_node.h"

namespace fairlead {
namespace {

// A thread that waits at the gate for memory nobody brings back says so.
constexpr Duration kGateAsksAfter = std::chrono::milliseconds(100);

}  // namespace

void VirtualNode::add_gpu(GpuId gpu, Bytes memory, std::int64_t link_bytes_per_second) {
  devices_[gpu] = {.memory = memory, .link_bytes_per_second = link_bytes_per_second};
  core_.add_gpu({.gpu = gpu, .memory = memory});
}

// One of the equal parts in which a start takes its memory. When it has all, it is ready; refused, it exits.
void VirtualNode::allocate_next(InstanceId instance) {
  const auto found = holdings_.find(instance);
  if (found == holdings_.end()) return;
  Holding& holding = found->second;
  Device& device = devices_.at(holding.gpu);
  const Bytes part((holding.size - holding.use.held).count() / holding.start.allocations);
  if (device.used + part > device.memory) {
    apply([&](Actions& out) { core_.needs_room(now_, instance, next_request_++, part, out); });
    return;
  }
  device.used += part;
  holding.use.held = holding.use.resident = holding.use.held + part;
  --holding.start.allocations;
  report(instance);
  schedule(now_ + holding.start.after, [this, instance, is_last = holding.start.allocations == 0] {
    if (!is_last) return allocate_next(instance);
    apply([&](Actions& out) { core_.instance_ready(now_, instance, out); });
  });
}

// The first invocation allocates; later ones wait at the gate until everything is back.
void VirtualNode::run_if_resident(InstanceId instance) {
  Holding& holding = holdings_.at(instance);
  if (!holding.waiting) return;
  Device& device = devices_.at(holding.gpu);
  if (holding.use.held == Bytes(0)) {
    if (device.used + holding.size > device.memory) {
      schedule(now_, [this, instance, request = next_request_++, bytes = holding.size] {
        apply([&](Actions& out) { core_.needs_room(now_, instance, request, bytes, out); });
      });
      return;
    }
    device.used += holding.size;
    holding.use.held = holding.use.resident = holding.size;
  }
  if (holding.arriving > Bytes(0)) return;
  if (holding.use.away > Bytes(0)) {
    schedule(now_ + kGateAsksAfter, [this, instance] {
      const auto found = holdings_.find(instance);
      if (found == holdings_.end() || !found->second.waiting || found->second.use.away == Bytes(0)) return;
      apply([&](Actions& out) { core_.wants_memory(now_, instance, out); });
    });
    return;
  }
  const auto [invocation, run] = *std::exchange(holding.waiting, std::nullopt);
  start_run(instance, invocation, run);
}

void VirtualNode::perform(const GrantRoom& action) {
  const auto found = holdings_.find(action.instance);
  if (found == holdings_.end()) return;
  if (found->second.start.allocations > 0) {
    return action.granted ? allocate_next(action.instance) : instance_gone_after(Duration(0), action.instance);
  }
  if (!found->second.waiting) return;
  if (action.granted) return run_if_resident(action.instance);
  auto [invocation, run] = *std::exchange(found->second.waiting, std::nullopt);  // out of memory
  run.end = InstanceModel::RunEnd::kReportsError;
  run.after = Duration(0);
  start_run(action.instance, invocation, run);
}

void VirtualNode::perform(const SwapOutMemory& action) {
  const auto found = holdings_.find(action.instance);
  if (found == holdings_.end()) return;
  move(action.instance, MoveDirection::kOut, std::min(action.bytes, found->second.use.resident));
}

void VirtualNode::perform(const SwapInMemory& action) {
  const auto found = holdings_.find(action.instance);
  if (found == holdings_.end()) return;
  Holding& holding = found->second;
  Device& device = devices_.at(holding.gpu);
  if (device.used + holding.use.away > device.memory) {
    end_move(action.instance, MoveDirection::kIn, Bytes(0), {.moves = false, .outcome = MoveOutcome::kNoRoom});
    return;
  }
  move(action.instance, MoveDirection::kIn, holding.use.away);
}

void VirtualNode::move(InstanceId instance, MoveDirection direction, Bytes bytes) {
  Holding& holding = holdings_.at(instance);
  Device& device = devices_.at(holding.gpu);
  const auto link_time =
      from_seconds(static_cast<double>(bytes.count()) / static_cast<double>(device.link_bytes_per_second));
  const InstanceModel::Transfer transfer = model_.transfer(instance, direction, link_time);
  if (transfer.moves && direction == MoveDirection::kIn) {
    holding.arriving += bytes;
    holding.use.away -= bytes;
    device.used += bytes;
  }
  Instant& link_free = device.link_free[static_cast<int>(direction)];
  link_free = std::max(link_free, now_) + transfer.after;
  schedule(link_free, [this, instance, direction, bytes, transfer] { end_move(instance, direction, bytes, transfer); });
}

void VirtualNode::end_move(InstanceId instance, MoveDirection direction, Bytes bytes,
                           const InstanceModel::Transfer& transfer) {
  const auto found = holdings_.find(instance);
  if (found == holdings_.end()) return;
  Holding& holding = found->second;
  if (transfer.moves && direction == MoveDirection::kOut) {
    // One whose answer was lost may have moved it before.
    const Bytes moved = std::min(bytes, holding.use.resident);
    holding.use.resident -= moved;
    holding.use.away += moved;
    devices_.at(holding.gpu).used -= moved;
  } else if (transfer.moves) {
    holding.arriving -= bytes;
    holding.use.resident += bytes;
  }
  if (transfer.is_answered) {
    schedule(now_, [this, instance, direction, outcome = transfer.outcome] {
      apply([&](Actions& out) { core_.memory_moved(now_, instance, direction, outcome, out); });
      report(instance);
    });
  }
  run_if_resident(instance);
}

void VirtualNode::report(InstanceId instance) {
  const auto found = holdings_.find(instance);
  if (found == holdings_.end()) return;
  MemoryUse use = found->second.use;
  use.away += found->second.arriving;
  apply([&](Actions& out) { core_.memory_report(now_, instance, use, out); });
}

void VirtualNode::release_memory(InstanceId instance) {
  const auto found = holdings_.find(instance);
  if (found == holdings_.end()) return;
  devices_.at(found->second.gpu).used -= found->second.use.resident + found->second.arriving;
  holdings_.erase(found);
}

}  // namespace fairlead
