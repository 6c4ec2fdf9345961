// Resident first, within a window of service: MQFQ's over-run T (Hedayati et al. 2019) applied to constants on devices.
//
// Idea. Fair order serves clients in turn. Where their constants do not all fit, turns are a cyclic sweep: under LRU each
// client finds its own evicted just before its turn, and every request loads. Fairness over a second needs no strict
// turns, though: among clients within T of the least served, one whose constants are on the idle GPU goes first. Those
// without are served when the others are T ahead; each load then pays for T of service instead of one request.
//
// Example: 32 clients of 2 GB on 4 GPUs with room for 7 each, requests of 39 ms, 167 ms to load. In turns, each costs
// 206 ms. With T = 500 ms a client that was loaded has about 13 requests before it is T ahead: 39 + 167 / 13 = 52 ms.
//
//   1. clients within T of the minimum before those that are not (who go only where a GPU would else idle)
//   2. least loading on that GPU first; then the GPU with fewest requests, then the least served
//   3. a client whose constants are on another GPU does not leave it before its request has waited as long as loading
//      them here takes, four times. Once would be the ski rental rule, if the load were all it costs; but it also fills
//      the link before others' inputs, and on a full device pushes out somebody who then loads too. Near the edge of
//      memory that is a sweep again: 24 clients at 80 % of the peak, p90 1.1 s with once, 0.17 s with four times.
//      Only this holds work back from an idle GPU, and only for so long.
//
// Time, threads, determinism: as worker_pool.h.
#pragma once

#include "placement/fair_clients.h"

namespace fairlead {

class ResidentWindow final : public WorkerPool {
 public:
  explicit ResidentWindow(const WorkerPoolOptions& options)
      : over_run_(options.over_run), patience_reloads_(options.patience_reloads), lanes_(options.gpus, options.lanes) {}
  std::string_view name() const override { return "resident-window"; }

  void add_client(FlowId client) override { clients_.add(client); }
  void on_arrival(Instant now, FlowId client) override { clients_.arrive(now, client); }
  std::optional<Assignment> assign(Instant now, const ReloadCost& reloads) override;
  std::optional<Instant> next_chance() const override { return next_chance_; }
  void on_completion(Instant now, FlowId client, GpuId gpu, const Spent& spent) override;

  Duration runtime(FlowId client) const { return clients_.all().at(client).runtime; }

 private:
  struct Rank;
  bool at_home_elsewhere(FlowId client, const ReloadCost& reloads) const;
  Duration patience(Duration reload) const;
  void consider(Instant now, FlowId id, const FairClients::Client& client, const ReloadCost& reloads,
                std::optional<Rank>& best);

  const Duration over_run_;
  const double patience_reloads_;
  FairClients clients_;
  Lanes lanes_;
  std::optional<Instant> next_chance_;
};

}  // namespace fairlead
