#include "softgpu/device/faults.h"

#include <algorithm>

#include "softgpu/device/futex.h"

namespace softgpu {

void Faults::raise_xid(unsigned xid) {
  if (xid == kFallenOffBus) control_.lost.store(1);
  std::uint64_t seen = control_.xid.load();
  while (!control_.xid.compare_exchange_weak(seen, ((seen >> 32) + 1) << 32 | xid)) {
  }
  futex_wake_all(control_.hung);
}

void Faults::hang() {
  control_.hung.store(1);
}

// Skipped ones in the upper half, failures in the lower, so that one word changes at a time.
void Faults::fail_allocations(std::uint32_t skip, std::uint32_t count) {
  control_.failing_allocations.store(std::uint64_t{skip} << 32 | count);
}

void Faults::slow_link(double factor) {
  control_.link_factor_milli.store(static_cast<std::uint32_t>(factor * 1000));
}

void Faults::clear() {
  control_.lost.store(0);
  control_.hung.store(0);
  control_.failing_allocations.store(0);
  control_.link_factor_milli.store(0);
  futex_wake_all(control_.hung);
}

void Faults::wait_while_hung(int timeout_ms) const {
  const std::uint32_t hung = control_.hung.load();
  if (hung != 0) futex_wait(control_.hung, hung, timeout_ms);
}

double Faults::link_factor() const {
  return std::max<std::uint32_t>(control_.link_factor_milli.load(std::memory_order_relaxed), 1000) / 1000.0;
}

bool Faults::take_allocation_failure() {
  std::uint64_t seen = control_.failing_allocations.load(std::memory_order_relaxed);
  while (static_cast<std::uint32_t>(seen) != 0) {
    const bool skip = seen >> 32 != 0;
    if (control_.failing_allocations.compare_exchange_weak(seen, seen - (skip ? std::uint64_t{1} << 32 : 1))) {
      return !skip;
    }
  }
  return false;
}

}  // namespace softgpu
