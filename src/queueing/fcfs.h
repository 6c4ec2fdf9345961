// First come, first served over all flows: the baseline every fair policy is compared with. The oldest queued invocation
// whose flow can run is next; one that cannot (its flow's reserved concurrency, no device memory) is overtaken and stays
// the oldest. No fairness: a flow that sends twice as much gets twice as much.
//
// Of each flow only the head can be next, so the order is a heap of flows by the arrival number of their heads: 10,000
// queued invocations of 3 flows are a heap of 3.
//
// "fcfs-naive" is the same without a pool of warm instances: what a container per call costs (the paper's worst baseline).
//
// Time, threads, determinism: as policy.h.
#pragma once

#include "queueing/keyed_policy.h"

namespace fairlead {

class Fcfs : public KeyedPolicy<std::uint64_t> {
 public:
  using KeyedPolicy::KeyedPolicy;
  std::string_view name() const override { return "fcfs"; }

 protected:
  std::uint64_t key(const Flow& flow) const override { return flow.queue.front().sequence; }
};

class FcfsNaive final : public Fcfs {
 public:
  using Fcfs::Fcfs;
  std::string_view name() const override { return "fcfs-naive"; }
  bool keeps_instances() const override { return false; }
};

}  // namespace fairlead
