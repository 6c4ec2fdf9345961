// The question "whose memory leaves the device when room is needed?" as an interface, so that strategies can be compared.
// The paper's is LRU (section 4.3).
//
// Threads: stateless. Determinism: ties break by InstanceId.
#pragma once

#include <vector>

#include "base/ids.h"
#include "base/units.h"

namespace fairlead {

// What an idle instance's flow is about to do. Ordered: a lower claim leaves first.
enum class Claim {
  kLeaving,  // throttled or inactive: the paper's states whose memory may go
  kKept,     // empty within its TTL: the next invocation is expected
  kQueued,   // has work queued that may run
};

struct SwapCandidate {
  InstanceId instance;
  Claim claim = Claim::kLeaving;
  Instant last_used;
  Duration expected_gap{0};  // mean time between invocations of its flow, at least the time since the last
  Bytes movable{0};
};

class SwapPolicy {
 public:
  virtual ~SwapPolicy() = default;
  // Index of one of `candidates`. REQUIRES: not empty.
  virtual std::size_t victim(const std::vector<SwapCandidate>& candidates) const = 0;
};

// Lowest claim, then least recently used.
class LruSwap final : public SwapPolicy {
 public:
  std::size_t victim(const std::vector<SwapCandidate>& candidates) const override;
};

// Least expected cost. Moving b bytes out costs b on the link now and b again with the probability p that they are used
// soon; per byte of room gained that is 1 + p, whatever the size, as moves may be partial. So the flow whose next use is
// farthest away goes first: p falls with the expected gap. Example: a function called every 2 s that was used 1 s ago
// stays, one called every 60 s and used 0.5 s ago leaves; LRU does the opposite. Of equal ones the larger goes: fewer
// moves, fewer later calls that find something away.
class CostAwareSwap final : public SwapPolicy {
 public:
  std::size_t victim(const std::vector<SwapCandidate>& candidates) const override;
};

}  // namespace fairlead
