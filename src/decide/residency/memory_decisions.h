// What residency decides, what it counts, and what it asks of the layers beside it.
#pragma once

#include <cstdint>
#include <variant>
#include <vector>

#include "base/ids.h"
#include "base/units.h"
#include "decide/residency/memory_use.h"
#include "decide/residency/swap_policy.h"

namespace fairlead {

// ---- what it decides
struct Move {
  InstanceId instance;
  GpuId gpu;
  MoveDirection direction;
  Bytes bytes;  // out: at least so much; in: all
};
struct RoomAnswer {
  InstanceId instance;
  std::uint64_t request;
  bool granted;
};
struct StopIdle {  // its memory cannot leave without it
  InstanceId instance;
};
// It is not ready yet and finds no room beside others: it is stopped, and what it was started for waits for another start.
// Its function would fit alone; the node let too much in.
struct GiveWay {
  InstanceId instance;
};
struct NeedsMore {  // than it was let in with: nobody else may be let into what it waits for
  InstanceId instance;
};
using ResidencyDecision = std::variant<Move, RoomAnswer, StopIdle, GiveWay, NeedsMore>;
using ResidencyDecisions = std::vector<ResidencyDecision>;

// ---- what it asks of the layers beside it
struct FlowDemand {
  Claim claim = Claim::kLeaving;
  std::size_t queued = 0;
};
class ResidencyContext {
 public:
  virtual ~ResidencyContext() = default;
  virtual FlowDemand demand_of(FlowId flow) const = 0;
  // One of `idle`, which is not empty: the instance that is missed least.
  virtual InstanceId cheapest_to_stop(const std::vector<InstanceId>& idle) const = 0;
  virtual bool may_stop(InstanceId) const { return true; }  // an idle one, for its memory
  virtual bool may_move(InstanceId) const { return true; }  // an idle one's memory, to the host
};

struct MemoryCounters {
  std::uint64_t swap_ins = 0, swap_outs = 0;         // asked for
  std::uint64_t swap_failures = 0;                   // answered otherwise than done, or not at all
  std::uint64_t bytes_in = 0, bytes_out = 0;         // of moves that were done
  std::uint64_t bytes_asked_out = 0;                 // of those: more leaves where it lies in large pieces
  std::uint64_t prefetches_in_time = 0;              // back before the invocation was dispatched
  std::uint64_t prefetches_late = 0;                 // on the way when it was dispatched
  std::uint64_t room_granted = 0, room_refused = 0;  // requests of instances
  std::uint64_t starts_gave_way = 0;                 // stopped for want of room, and tried again
  std::uint64_t swap_outs_in_vain = 0;               // their instance was stopped before the move was over
};

}  // namespace fairlead
