#include "softgpu/driver/memory/address_space.h"

#include <algorithm>

#include "softgpu/driver/context/context.h"
#include "softgpu/driver/memory/managed_memory.h"
#include "softgpu/driver/memory/pool.h"
#include "softgpu/driver/memory/virtual_memory.h"
#include "softgpu/mutex.h"

namespace softgpu {

ContextSpace::ContextSpace(CUctx_st& context) : own_(context.owner()) {}

Extent ContextSpace::find(std::uint64_t address, std::atomic<std::uint64_t>& migrated) const {
  const Window& window = own_.device->window();
  if (window.contains(address)) return window.find(address);
  if (DriverDevice* owner = Process::get()->owner_of(address); owner != nullptr) {
    return find_at_peer(*owner, address);
  }
  if (const Extent mapped = VirtualMemory::instance().find(own_.ordinal, address); mapped.end != 0) return mapped;
  if (const Extent held = ManagedMemory::instance().touch(own_, address, migrated); held.end != 0) return held;
  return window.find_host(address);
}

// Memory of pools goes by the pool's own list of devices.
Extent ContextSpace::find_at_peer(const DriverDevice& peer, std::uint64_t address) const {
  const Extent extent = peer.device->window().find(address);
  if (extent.end == 0) return extent;
  const auto pool = Pools::instance().find(extent.begin);
  const bool allowed = pool != nullptr ? (pool->access.load() & 1U << own_.ordinal) != 0 : is_peer(peer);
  return allowed ? extent : Extent{};
}

// A sum of counters that only grow changes whenever one of them does.
std::uint64_t ContextSpace::epoch() const {
  std::uint64_t sum =
      changes_.load(std::memory_order_acquire) + VirtualMemory::instance().epoch() + ManagedMemory::instance().epoch();
  for (const auto& device : Process::get()->devices()) sum += device->device->window().epoch();
  return sum;
}

bool ContextSpace::enable_peer(CUcontext peer) {
  const LockGuard guard(mutex_);
  if (std::find(peers_.begin(), peers_.end(), peer) != peers_.end()) return false;
  peers_.push_back(peer);
  return true;
}

bool ContextSpace::disable_peer(CUcontext peer) {
  const LockGuard guard(mutex_);
  changes_.fetch_add(1);
  return std::erase(peers_, peer) != 0;
}

void ContextSpace::close() {
  const LockGuard guard(mutex_);
  peers_.clear();
  changes_.fetch_add(1);
}

bool ContextSpace::is_peer(const DriverDevice& device) const {
  const ReadGuard guard(mutex_);
  return std::any_of(peers_.begin(), peers_.end(),
                     [&](CUcontext peer) { return peer->active() && &peer->owner() == &device; });
}

}  // namespace softgpu
