// What fair pools know of their clients: what each has been served, who waits, who runs, how long its requests take.
//
// Run time is GPU time as measured, loading that the request caused included. A request is charged its client's mean when
// it begins, put right when it ends: with several lanes a client would else look unserved for as long as its first request
// runs. A client that was idle returns at the greater of its own run time and the minimum, so idling saves up nothing, and
// a closed loop of one request (idle for an instant after each) keeps its debt.
//
// Example: A has 300 ms, B 100 ms and works, the minimum is 100 ms. C arrives for the first time: it has 100 ms. A, idle
// meanwhile, returns: it still has 300 ms.
//
// Time, threads, determinism: as worker_pool.h; integers only.
#pragma once

#include <cstddef>
#include <map>
#include <vector>

#include "placement/worker_pool.h"

namespace fairlead {

class FairClients {
 public:
  struct Client {
    Duration runtime{0};
    std::vector<Instant> waiting;   // arrivals, oldest first; few
    std::vector<Duration> charged;  // of what runs; which request has which does not matter
    Duration mean_gpu_time{0}, mean_latency{0};
    GpuId own;  // where its last request began; none at first

    bool busy() const { return !waiting.empty() || !charged.empty(); }
  };

  void add(FlowId id);
  void arrive(Instant now, FlowId id);
  // The oldest waiting request begins on the GPU, `reload` of loading ahead of it. REQUIRES: one waits.
  void begin(FlowId id, GpuId gpu, Duration reload);
  void end(FlowId id, const WorkerPool::Spent& spent);

  // The least run time of clients that wait or run; while nobody does, as it was.
  Duration minimum() const { return minimum_; }
  const std::map<FlowId, Client>& all() const { return clients_; }

 private:
  Client& at(FlowId id);
  void raise_minimum();

  std::map<FlowId, Client> clients_;
  Duration minimum_{0};
};

// How many requests each GPU of a pool runs.
class Lanes {
 public:
  Lanes(std::size_t gpus, std::size_t lanes) : running_(gpus, 0), lanes_(lanes) {}

  std::size_t gpus() const { return running_.size(); }
  GpuId gpu(std::size_t index) const { return GpuId(index + 1); }
  bool free(std::size_t index) const { return running_[index] < lanes_; }
  std::size_t running(std::size_t index) const { return running_[index]; }
  void take(GpuId gpu) { ++running_[gpu.value() - 1]; }
  void give_back(GpuId gpu) { --running_[gpu.value() - 1]; }

 private:
  std::vector<std::size_t> running_;
  std::size_t lanes_;
};

}  // namespace fairlead
