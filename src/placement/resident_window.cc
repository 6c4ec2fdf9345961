#include "placement/resident_window.h"

#include <algorithm>
#include <compare>

namespace fairlead {

struct ResidentWindow::Rank {
  bool outside_window;
  Duration runtime_outside;  // 0 within the window: there the load decides
  Duration reload;
  std::size_t running;
  Duration runtime;
  FlowId client;
  GpuId gpu;
  auto operator<=>(const Rank&) const = default;
};

bool ResidentWindow::at_home_elsewhere(FlowId client, const ReloadCost& reloads) const {
  for (std::size_t i = 0; i < lanes_.gpus(); ++i) {
    if (reloads.reload(client, lanes_.gpu(i)) == Duration(0)) return true;
  }
  return false;
}

Duration ResidentWindow::patience(Duration reload) const {
  return Duration(static_cast<Duration::rep>(patience_reloads_ * static_cast<double>(reload.count())));
}

void ResidentWindow::consider(Instant now, FlowId id, const FairClients::Client& client, const ReloadCost& reloads,
                              std::optional<Rank>& best) {
  const bool outside = client.runtime - clients_.minimum() > over_run_;
  for (std::size_t i = 0; i < lanes_.gpus(); ++i) {
    if (!lanes_.free(i)) continue;
    const GpuId gpu = lanes_.gpu(i);
    const Duration reload = reloads.reload(id, gpu);
    const Instant may_leave = client.waiting.front() + patience(reload);
    if (now < may_leave && at_home_elsewhere(id, reloads)) {
      next_chance_ = next_chance_ ? std::min(*next_chance_, may_leave) : may_leave;
      continue;
    }
    const Rank rank{outside, outside ? client.runtime : Duration(0), reload, lanes_.running(i), client.runtime, id,
                    gpu};
    if (!best || rank < *best) best = rank;
  }
}

std::optional<WorkerPool::Assignment> ResidentWindow::assign(Instant now, const ReloadCost& reloads) {
  next_chance_.reset();
  std::optional<Rank> best;
  for (const auto& [id, client] : clients_.all()) {
    if (!client.waiting.empty()) consider(now, id, client, reloads, best);
  }
  if (!best) return std::nullopt;
  clients_.begin(best->client, best->gpu, best->reload);
  lanes_.take(best->gpu);
  return Assignment{best->client, best->gpu};
}

void ResidentWindow::on_completion(Instant, FlowId client, GpuId gpu, const Spent& spent) {
  lanes_.give_back(gpu);
  clients_.end(client, spent);
}

}  // namespace fairlead
