// Faults that tests inject into a device, for all its processes: `softgpu fault`. The state is a few words of the
// control segment; the driver turns it into what programs see.
//
//   Xid            an event: every context that exists gets a sticky error; contexts made afterwards work
//   lost           a state: as Xid 79, and no context can be made and cuInit finds no such device, until clear()
//   hang           a state: kernels do not progress until clear(); cancelling and launch timeouts still end them
//   allocations    the next ones, after as many as are skipped, fail as if the device were full
//   slow link      copies over the link take a multiple of their time
#pragma once

#include <cstdint>

#include "softgpu/device/control.h"

namespace softgpu {

class Faults {
 public:
  static constexpr unsigned kFallenOffBus = 79;  // the Xid of a lost device
  static constexpr unsigned kHighestXid = 1000;
  static constexpr double kMaxLinkFactor = 1e6;

  explicit Faults(Control& control) : control_(control) {}

  void raise_xid(unsigned xid);
  void lose() { raise_xid(kFallenOffBus); }
  void hang();
  void fail_allocations(std::uint32_t skip, std::uint32_t count);
  // REQUIRES: 1 <= factor <= kMaxLinkFactor.
  void slow_link(double factor);
  // Ends all states. What has hit a context stays.
  void clear();

  // How many Xids there were, and the last one (0: none). A context compares the count with that of its creation.
  std::uint32_t xid_count() const { return static_cast<std::uint32_t>(control_.xid.load() >> 32); }
  unsigned last_xid() const { return static_cast<unsigned>(control_.xid.load()); }
  bool lost() const { return control_.lost.load(std::memory_order_relaxed) != 0; }
  bool hung() const { return control_.hung.load(std::memory_order_relaxed) != 0; }
  // Sleeps while kernels hang, for `timeout_ms` at most.
  void wait_while_hung(int timeout_ms) const;
  double link_factor() const;
  // Whether the allocation that asks has to fail. Thread-safe; each failure is given out once.
  bool take_allocation_failure();
  // Failures left to give out.
  std::uint32_t allocation_failures() const { return static_cast<std::uint32_t>(control_.failing_allocations.load()); }

 private:
  Control& control_;
};

}  // namespace softgpu
