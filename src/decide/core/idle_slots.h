// Why slots idle beside queued work. A slot that nobody uses while somebody waits is either explained by one of a few
// reasons, each with a bound on how long it can last (docs/explanation/fairness.md), or a fault of the scheduler.
//
// Example: D = 2; A runs for 3 s, B's first instance starts for 5 s and nothing else is queued. One slot idles for 3 s
// and two for 2 s, all because of a start: 7 slot seconds under kStart.
//
// Time: given. Threads: not thread-safe.
#pragma once

#include <array>
#include <cstddef>
#include <string_view>

#include "base/units.h"

namespace fairlead {

// Of the flow whose turn it is.
enum class IdleReason {
  kOwnInstance,  // its own instance is busy, and free sooner than another start would end; at most its timeout
  kStart,        // its instance starts; at most start_deadline
  kStartLimit,  // as many instances start as may; at most start_deadline for each that is before it, divided by that number
  kMemory,      // what runs has the memory that it needs; at most what runs takes to end
  kStartMemory,  // instances that start have the memory, or the place, that it needs; at most start_deadline
  kConcurrency,  // it is at its reserved concurrency, or its tenant at its limit; at most its timeout
  kPatience,     // its policy keeps it for the GPU that has its data, or is its own; as the policy says
  kLanes,        // its instance is free on a GPU whose lanes, or slots, are taken; at most the longest timeout
  kLoad,         // its data, or another's before it, comes to the GPU; at most four times what that should take, or 2 s
  kUnnamed,      // none of these: a fault
};
constexpr std::size_t kIdleReasons = 10;
std::string_view idle_reason_name(IdleReason reason);  // "own-instance", "start", ...

// Slot seconds by reason: two slots that idle for 3 s are 6.
using IdleSeconds = std::array<Duration, kIdleReasons>;

class IdleSlots {
 public:
  // From `now` on so many slots idle beside queued work, because of `reason`. Returns the slot time that has passed
  // since the call before, all of it for the reason that held since then.
  Duration note(Instant now, std::size_t slots, IdleReason reason);

  IdleReason reason() const { return reason_; }  // as told last
  const IdleSeconds& seconds() const { return seconds_; }

 private:
  IdleSeconds seconds_{};
  Instant since_{};
  std::size_t slots_ = 0;
  IdleReason reason_ = IdleReason::kUnnamed;
};

}  // namespace fairlead
