// A modelled GPU: invocations that run at the same time slow each other down. Each has work left, in seconds alone on the
// device; with k in flight all advance at 1 / slowdown(k). Whoever is next to finish, finishes when nothing changes before.
//
// Example, slowdown 1, 1.3: A of 2 s starts at 0, B of 1 s at 1. At 1 s A has 1 s left; both advance at 1 / 1.3 and end at
// 2.3 s.
//
// Time: given. Threads: not thread-safe. Determinism: integer nanoseconds of work, rounded up at each change.
#pragma once

#include <optional>
#include <vector>

#include "base/ids.h"
#include "base/units.h"
#include "sim/scenario.h"

namespace fairlead::sim {

class GpuModel {
 public:
  explicit GpuModel(const DeviceModel& device) : device_(&device) {}

  void start(Instant now, InvocationId invocation, InstanceId instance, Duration work);
  // The instance starts: `work` is what that takes with nothing beside it.
  void begin_start(Instant now, InstanceId instance, Duration work);
  // No effect when it neither runs nor starts here. True: it was starting.
  bool stop(Instant now, InstanceId instance);

  struct Finished {
    InvocationId invocation;  // none: the instance has started
    InstanceId instance;
  };
  // When something ends, if nothing starts or stops before.
  std::optional<Instant> next_end() const;
  // The one that ends at next_end(), which is `now`; it runs no more.
  Finished finish(Instant now);

  double busy_seconds() const { return to_seconds(busy_); }  // up to the last change
  // Something ran, up to now: what a driver calls utilisation.
  Duration busy(Instant now) const { return busy_ + (running_.size() > starting_ ? now - updated_ : Duration(0)); }
  const DeviceModel& device() const { return *device_; }

 private:
  struct Running {
    InvocationId invocation;
    InstanceId instance;
    Duration left;
  };
  struct Slowdown {
    double of_runs = 1, of_starts = 1;
    double of(const Running& running) const { return running.invocation ? of_runs : of_starts; }
  };
  struct Next {
    std::vector<Running>::const_iterator which;
    Duration left;  // by the clock
  };
  void advance(Instant now);
  void note_slowdown();  // to be called when something begins or ends
  Next next() const;     // REQUIRES: something runs or starts

  const DeviceModel* device_;
  std::vector<Running> running_;  // and what starts: no invocation
  std::size_t starting_ = 0;      // of them
  Slowdown slowdown_;
  Instant updated_{};
  Duration busy_{0};
};

}  // namespace fairlead::sim
