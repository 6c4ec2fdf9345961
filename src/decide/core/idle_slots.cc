#include "decide/core/idle_slots.h"

namespace fairlead {

std::string_view idle_reason_name(IdleReason reason) {
  switch (reason) {
    case IdleReason::kOwnInstance: return "own-instance";
    case IdleReason::kStart: return "start";
    case IdleReason::kStartLimit: return "start-limit";
    case IdleReason::kMemory: return "memory";
    case IdleReason::kStartMemory: return "start-memory";
    case IdleReason::kConcurrency: return "concurrency";
    case IdleReason::kPatience: return "patience";
    case IdleReason::kLanes: return "lanes";
    case IdleReason::kLoad: return "load";
    case IdleReason::kUnnamed: return "unnamed";
  }
  return "unnamed";
}

Duration IdleSlots::note(Instant now, std::size_t slots, IdleReason reason) {
  const Duration idled = (now - since_) * static_cast<Duration::rep>(slots_);
  seconds_[static_cast<std::size_t>(reason_)] += idled;
  since_ = now;
  slots_ = slots;
  reason_ = reason;
  return idled;
}

}  // namespace fairlead
