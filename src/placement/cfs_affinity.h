// CFS-Affinity: every client gets its fair share of GPU time, near its data where that costs little fairness
// (KaaS, section 4.1.4, figure 6a). An idle GPU takes the client with the least accumulated run time; on a GPU that is not
// its own (where its last request ran) a client counts with ten of its mean request latencies more. Work-conserving: an
// idle GPU takes somebody whenever anybody waits. Where several GPUs are idle the least of all pairs is next, so that a
// client goes home when it can.
//
// Example: A has run 30 ms, its own GPU is 1, its mean latency 5 ms; B has run 70 ms, its own GPU is 2. GPU 2 becomes
// idle: A counts with 30 + 10 x 5 = 80 ms there, so B is next. With A's latency 3 ms, A (60 ms) is.
//
// What the paper leaves open: a client without a GPU of its own is penalised nowhere; new and returning clients, and what
// is charged, as fair_clients.h.
// Time, threads, determinism: as worker_pool.h.
#pragma once

#include "placement/fair_clients.h"

namespace fairlead {

class CfsAffinity final : public WorkerPool {
 public:
  explicit CfsAffinity(const WorkerPoolOptions& options)
      : penalty_latencies_(options.penalty_latencies), lanes_(options.gpus, options.lanes) {}
  std::string_view name() const override { return "cfs-affinity"; }

  void add_client(FlowId client) override { clients_.add(client); }
  void on_arrival(Instant now, FlowId client) override { clients_.arrive(now, client); }
  std::optional<Assignment> assign(Instant now, const ReloadCost& reloads) override;
  void on_completion(Instant now, FlowId client, GpuId gpu, const Spent& spent) override;

  Duration runtime(FlowId client) const { return clients_.all().at(client).runtime; }

 private:
  Duration weighted(const FairClients::Client& client, GpuId gpu) const;

  const double penalty_latencies_;
  FairClients clients_;
  Lanes lanes_;
};

}  // namespace fairlead
