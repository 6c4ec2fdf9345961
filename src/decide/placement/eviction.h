// The question "which instance goes when another needs its place?" as an interface, so that strategies can be compared.
// The paper's is LRU among what is expected least (sections 4.3 and 5).
//
// Threads: stateless. Determinism: ties break by InstanceId.
#pragma once

#include <vector>

#include "decide/placement/instance_pool.h"

namespace fairlead {

class EvictionPolicy {
 public:
  virtual ~EvictionPolicy() = default;

  // One of `candidates`, which hold no slot and are not empty.
  virtual const Instance& victim(const std::vector<const Instance*>& candidates) const = 0;
};

// The least recently used. One that is returning goes only when nothing is idle: it is the warmest, and its process may
// still be writing its log.
class LruEviction final : public EvictionPolicy {
 public:
  const Instance& victim(const std::vector<const Instance*>& candidates) const override;
};

// What the queues expect, by whoever keeps them.
class FlowActivity {
 public:
  virtual ~FlowActivity() = default;
  virtual bool is_active(FlowId flow) const = 0;  // neither throttled nor inactive
};

// The paper's pool: instances of throttled and inactive flows first, the least recently used among them; then those of
// active flows, in the same order. So the TTL of an empty flow (alpha) keeps its instance, not only its memory. Example: A
// was used 9 s ago and waits for its turn, B 1 s ago and has passed its TTL: B goes. One that is returning goes only when
// nothing is idle, as with LRU.
class InactiveFirstEviction final : public EvictionPolicy {
 public:
  explicit InactiveFirstEviction(const FlowActivity& activity) : activity_(activity) {}
  const Instance& victim(const std::vector<const Instance*>& candidates) const override;

 private:
  const FlowActivity& activity_;
};

// What is known of restarts, by whoever counts them.
class RestartCosts {
 public:
  virtual ~RestartCosts() = default;
  virtual Duration cold_start(FlowId flow) const = 0;    // as measured; 0: not known
  virtual Duration expected_gap(FlowId flow) const = 0;  // mean time between invocations, at least since the last; > 0
  virtual std::size_t instances(FlowId flow) const = 0;  // of the flow, on the node; > 0
};

// The one whose loss costs least: cold start x rate / duplicates, in seconds of starting per second. Restart costs differ
// a hundredfold between functions; LRU does not see it. Example: A starts in 12 s and is called every 60 s (0.2), B starts
// in 0.1 s and is called every 2 s (0.05): B goes, though it was used last. One that is returning goes only when nothing
// is idle, as with LRU.
class CostAwareEviction final : public EvictionPolicy {
 public:
  explicit CostAwareEviction(const RestartCosts& costs) : costs_(costs) {}
  const Instance& victim(const std::vector<const Instance*>& candidates) const override;

 private:
  const RestartCosts& costs_;
};

}  // namespace fairlead
