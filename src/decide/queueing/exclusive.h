// Exclusive: a GPU serves one function, in a process of that function's, until it is taken away (KaaS, section 4.1.4,
// figure 6b; how the paper schedules ordinary GPU functions, its eTasks). Every flow has a pool of GPUs. An invocation goes
// to an idle GPU of its flow's pool; where there is none:
//
//   1. a GPU that nobody has yet joins the pool
//   2. else the largest pool is the victim; of several, the one evicted from longest ago
//   3. if the requester's pool is smaller than the victim's, a GPU changes over: an idle one at once, else a busy one when
//      its invocation ends
//   4. a requester whose pool is among the largest waits for a GPU of its own
//
// Example: four GPUs; flows A, B with two each, C arrives: A (never evicted from, lowest id) loses one to C. D arrives: B
// is the largest. E arrives: all pools are 1, E's is 0: A is the victim again, E's invocation waits for A's to end, and
// then for a cold start. From here on every invocation of five flows in turn is cold: the cliff of figures 10 to 13.
//
// Waiting invocations are looked at in the order they arrived. What the paper leaves open: a GPU that was promised counts
// for its new pool at once, and is taken from nobody before it has served there: else the oldest invocation could wait for
// ever. Weights are not looked at.
// Cost, time, threads, determinism: as gpu_order.h.
#pragma once

#include <cstdint>
#include <map>

#include "decide/queueing/gpu_order.h"

namespace fairlead {

class Exclusive final : public GpuOrder {
 public:
  using GpuOrder::GpuOrder;

  std::vector<GpuId> pool(FlowId flow) const;  // what was promised included

  void add(Row row) override;
  void remove(Row row) override;
  std::optional<Pick> pick(Instant now, const Placeable& placeable) override;
  void began(const Pick& pick) override;

 private:
  struct Gpu {
    FlowId owner;   // whose pool it is in; none at first
    FlowId worker;  // whose process is on it
    bool serves = false;
    bool busy = false;  // something runs there, of whatever function
  };

  void refresh(const std::vector<Placeable::Place>& places);
  std::vector<Row> by_oldest_invocation();
  bool takeable(const Gpu& gpu, FlowId flow) const;
  std::size_t takeable(FlowId flow) const;
  bool awaits_a_gpu(const Flow& flow) const;
  FlowId victim() const;
  std::optional<GpuId> idle_gpu_of(FlowId owner) const;
  std::optional<GpuId> gpu_for(const Flow& flow);
  std::optional<GpuId> take_from(FlowId loser, FlowId flow);

  std::map<GpuId, Gpu> gpus_;
  std::map<FlowId, std::uint64_t> evicted_;  // of every flow, when it last lost a GPU; 0: never
  std::uint64_t evictions_ = 0;
};

}  // namespace fairlead
