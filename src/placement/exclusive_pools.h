// Exclusive: a GPU serves one client, in a process of that client's, until it is taken away (KaaS, section 4.1.4, figure
// 6b; how the paper schedules ordinary GPU functions, its eTasks). Every client has a pool of GPUs. A request goes to an
// idle GPU of its client's pool; where there is none:
//
//   1. a GPU that nobody has yet joins the pool
//   2. else the largest pool is the victim; of several, the one evicted from longest ago
//   3. if the requester's pool is smaller than the victim's, a GPU changes over: an idle one at once, else a busy one when
//      its request ends
//   4. a requester whose pool is among the largest waits for a GPU of its own
//
// Example: four GPUs; clients A, B with two each, C arrives: A (never evicted from, lowest id) loses one to C. D arrives:
// B is the largest. E arrives: all pools are 1, E's is 0: A is the victim again, E's request waits for A's to end, and
// then for a cold start. From here on every request of five clients in turn is cold: the cliff of figures 10 to 13.
//
// Waiting requests are looked at in the order they arrived. What the paper leaves open: a GPU that was promised counts for
// its new pool at once, and is taken from nobody before it has served there: else the oldest request could wait for ever.
// Time, threads, determinism: as worker_pool.h.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "placement/worker_pool.h"

namespace fairlead {

class ExclusivePools final : public WorkerPool {
 public:
  explicit ExclusivePools(const WorkerPoolOptions& options) : gpus_(options.gpus) {}
  std::string_view name() const override { return "exclusive"; }

  void add_client(FlowId client) override;
  void on_arrival(Instant now, FlowId client) override;
  std::optional<Assignment> assign(Instant now, const ReloadCost& reloads) override;
  void on_completion(Instant now, FlowId client, GpuId gpu, const Spent& spent) override;

  std::vector<GpuId> pool(FlowId client) const;  // what was promised included

 private:
  struct Gpu {
    FlowId owner;   // whose pool it is in; none at first
    FlowId worker;  // whose process is on it
    bool busy = false;
  };
  struct Client {
    std::vector<std::uint64_t> waiting;  // arrival numbers, oldest first
    std::uint64_t evicted = 0;           // when it last lost a GPU; 0: never
  };

  std::vector<FlowId> by_oldest_request() const;
  std::size_t pool_size(FlowId client) const;
  std::size_t takeable(FlowId client) const;
  bool awaits_a_gpu(FlowId client) const;
  FlowId victim() const;
  std::optional<std::size_t> idle_gpu_of(FlowId owner) const;
  std::optional<std::size_t> gpu_for(FlowId client);
  std::optional<std::size_t> take_from(FlowId loser, FlowId client);

  std::vector<Gpu> gpus_;
  std::map<FlowId, Client> clients_;
  std::uint64_t arrivals_ = 0, evictions_ = 0;
};

}  // namespace fairlead
