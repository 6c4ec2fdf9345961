// Which client's request does which GPU serve next? The question of KaaS's worker pool (section 4.1.4), where queue and
// GPU are chosen together: what a request costs depends on where its client's constants are. A client is a function (one
// replica, one tenant). A pool orders; it starts, loads and times nothing.
//
//   cfs-affinity      the least served client, other GPUs than its own penalised         the paper's, for kernel tasks
//   exclusive         a GPU serves one client until it is taken away, with a cold start  the paper's, for GPU functions
//   resident-window   within a window of service, a client whose constants are there     ours
//
// Time: every entry point takes `now`; no clock here. Threads: not thread-safe.
// Determinism: ties break by id; the same calls in the same order give the same assignments.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "base/units.h"

namespace fairlead {

struct WorkerPoolOptions {
  std::size_t gpus = 1;
  std::size_t lanes = 1;  // requests at once on a GPU whose worker is shared; exclusive: always one
  double penalty_latencies =
      10;  // cfs-affinity: on a GPU not its own, a client counts with so many mean latencies more
  Duration over_run = std::chrono::milliseconds(500);  // resident-window: T, in GPU time
  double patience_reloads = 4;  // resident-window: what a request waits for the GPU that has its constants
};

// What is where.
class ReloadCost {
 public:
  virtual ~ReloadCost() = default;
  // What bringing the client's missing constants to this GPU takes; 0: all are there or on their way.
  virtual Duration reload(FlowId client, GpuId gpu) const = 0;
};

class WorkerPool {
 public:
  virtual ~WorkerPool() = default;
  virtual std::string_view name() const = 0;

  virtual void add_client(FlowId client) = 0;  // REQUIRES: not there yet

  // One request more waits. REQUIRES: the client was added.
  virtual void on_arrival(Instant now, FlowId client) = 0;

  // The client's oldest waiting request is to run on the GPU. `new_worker`: another client's process must go from it and
  // one for this client start.
  struct Assignment {
    FlowId client;
    GpuId gpu;
    bool new_worker = false;
    bool operator==(const Assignment&) const = default;
  };
  // To be called until it is empty, after every other call and at next_chance().
  virtual std::optional<Assignment> assign(Instant now, const ReloadCost& reloads) = 0;

  // When assign() may say more though nothing else happened; empty: never.
  virtual std::optional<Instant> next_chance() const { return std::nullopt; }

  struct Spent {
    Duration gpu_time{0};  // as measured, with the loading that the request caused
    Duration latency{0};   // from on_arrival
  };
  // A request ended. REQUIRES: assign() gave the client this GPU, and it has not ended there yet.
  virtual void on_completion(Instant now, FlowId client, GpuId gpu, const Spent& spent) = 0;
};

// One of worker_pool_names(). kInvalidArgument: no such name, or an option out of its bounds.
Result<std::unique_ptr<WorkerPool>> make_worker_pool(std::string_view name, const WorkerPoolOptions& options);
std::vector<std::string_view> worker_pool_names();

}  // namespace fairlead
