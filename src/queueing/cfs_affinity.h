// CFS-Affinity: every function gets its fair share of GPU time, near its data where that costs little fairness
// (KaaS, section 4.1.4, figure 6a). An idle GPU takes the flow with the least virtual time; on a GPU that is not its own
// (where its last invocation ran) a flow counts with ten of its mean latencies more. Work-conserving: an idle GPU takes
// somebody whenever anybody waits. Where several GPUs are idle the least of all pairs is next, so that a flow goes home
// when it can.
//
// Example: A has run 30 ms, its own GPU is 1, its mean latency 5 ms; B has run 70 ms, its own GPU is 2. GPU 2 becomes
// idle: A counts with 30 + 10 x 5 = 80 ms there, so B is next. With A's latency 3 ms, A (60 ms) is.
//
// What the paper leaves open: a flow without a GPU of its own is penalised nowhere; new and returning flows, and what is
// charged, as gpu_policy.h. Cost, time, threads, determinism: as there.
#pragma once

#include "queueing/gpu_policy.h"

namespace fairlead {

class CfsAffinity final : public GpuPolicy {
 public:
  using GpuPolicy::GpuPolicy;
  std::string_view name() const override { return "cfs-affinity"; }

 protected:
  std::optional<Pick> pick(Instant now, const Placeable& placeable) override;
  void on_added(Row row) override;
  void on_begin(Row row, GpuId gpu) override { homes_[row].gpu = gpu; }
  void on_answer(Row row, Duration latency) override;

 private:
  struct Home {
    GpuId gpu;  // where the last invocation began; none at first
    std::optional<Duration> latency;
  };
  Duration weighted(Row row, GpuId gpu) const;

  std::vector<Home> homes_;  // by row
};

}  // namespace fairlead
