#include "placement/cfs_affinity.h"

#include <tuple>

namespace fairlead {

Duration CfsAffinity::weighted(const FairClients::Client& client, GpuId gpu) const {
  if (!client.own || client.own == gpu) return client.runtime;
  const double penalty = penalty_latencies_ * static_cast<double>(client.mean_latency.count());
  return client.runtime + Duration(static_cast<Duration::rep>(penalty));
}

std::optional<WorkerPool::Assignment> CfsAffinity::assign(Instant, const ReloadCost& reloads) {
  using Rank = std::tuple<Duration, std::size_t, FlowId, GpuId>;  // run time, then the GPU with fewest requests
  std::optional<Rank> best;
  for (const auto& [id, client] : clients_.all()) {
    if (client.waiting.empty()) continue;
    for (std::size_t i = 0; i < lanes_.gpus(); ++i) {
      if (!lanes_.free(i)) continue;
      const Rank rank{weighted(client, lanes_.gpu(i)), lanes_.running(i), id, lanes_.gpu(i)};
      if (!best || rank < *best) best = rank;
    }
  }
  if (!best) return std::nullopt;
  const auto [runtime, running, client, gpu] = *best;
  clients_.begin(client, gpu, reloads.reload(client, gpu));
  lanes_.take(gpu);
  return Assignment{client, gpu};
}

void CfsAffinity::on_completion(Instant, FlowId client, GpuId gpu, const Spent& spent) {
  lanes_.give_back(gpu);
  clients_.end(client, spent);
}

}  // namespace fairlead
