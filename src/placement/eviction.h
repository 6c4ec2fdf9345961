// The question "which instance goes when another needs its place?" as an interface, so that strategies can be compared.
// The paper's is LRU (section 4.3).
//
// Threads: stateless. Determinism: ties break by InstanceId.
#pragma once

#include <vector>

#include "placement/instance_pool.h"

namespace fairlead {

class EvictionPolicy {
 public:
  virtual ~EvictionPolicy() = default;

  // One of `candidates`, which hold no token and are not empty.
  virtual const Instance& victim(const std::vector<const Instance*>& candidates) const = 0;
};

// The least recently used. One that is returning goes only when nothing is idle: it is the warmest, and its process may
// still be writing its log.
class LruEviction final : public EvictionPolicy {
 public:
  const Instance& victim(const std::vector<const Instance*>& candidates) const override;
};

}  // namespace fairlead
