#include "placement/exclusive_pools.h"

#include <algorithm>
#include <tuple>

#include "base/check.h"

namespace fairlead {

void ExclusivePools::add_client(FlowId client) {
  const bool added = clients_.emplace(client, Client{}).second;
  FL_CHECK(added, "client {} is there already", client.value());
}

void ExclusivePools::on_arrival(Instant, FlowId client) {
  clients_.at(client).waiting.push_back(++arrivals_);
}

std::vector<GpuId> ExclusivePools::pool(FlowId client) const {
  std::vector<GpuId> pool;
  for (std::size_t i = 0; i < gpus_.size(); ++i) {
    if (gpus_[i].owner == client) pool.emplace_back(i + 1);
  }
  return pool;
}

std::size_t ExclusivePools::pool_size(FlowId client) const {
  return static_cast<std::size_t>(
      std::count_if(gpus_.begin(), gpus_.end(), [&](const Gpu& gpu) { return gpu.owner == client; }));
}

std::size_t ExclusivePools::takeable(FlowId client) const {
  return static_cast<std::size_t>(std::count_if(gpus_.begin(), gpus_.end(), [&](const Gpu& gpu) {
    return gpu.owner == client && (!gpu.busy || gpu.worker == client);
  }));
}

std::vector<FlowId> ExclusivePools::by_oldest_request() const {
  std::vector<std::pair<std::uint64_t, FlowId>> order;
  for (const auto& [id, client] : clients_) {
    if (!client.waiting.empty()) order.emplace_back(client.waiting.front(), id);
  }
  std::sort(order.begin(), order.end());
  std::vector<FlowId> ids;
  for (const auto& [arrival, id] : order) ids.push_back(id);
  return ids;
}

FlowId ExclusivePools::victim() const {
  std::optional<std::tuple<std::size_t, std::uint64_t, FlowId>> best;  // GPUs that are not in the pool: fewest
  for (const auto& [id, client] : clients_) {
    const std::tuple rank{gpus_.size() - takeable(id), client.evicted, id};
    if (!best || rank < *best) best = rank;
  }
  return std::get<FlowId>(*best);
}

// A busy GPU was promised to it that others' requests have not left yet: its waiting requests ask for no second one
// before they outnumber what comes.
bool ExclusivePools::awaits_a_gpu(FlowId client) const {
  const auto coming = std::count_if(gpus_.begin(), gpus_.end(), [&](const Gpu& gpu) {
    return gpu.owner == client && gpu.busy && gpu.worker != client;
  });
  return static_cast<std::size_t>(coming) >= clients_.at(client).waiting.size();
}

std::optional<std::size_t> ExclusivePools::idle_gpu_of(FlowId owner) const {
  std::optional<std::size_t> any;
  for (std::size_t i = 0; i < gpus_.size(); ++i) {
    if (gpus_[i].owner != owner || gpus_[i].busy) continue;
    if (gpus_[i].worker == owner) return i;  // warm
    if (!any) any = i;
  }
  return any;
}

// Moves a GPU between pools; it is given only if it is idle.
std::optional<std::size_t> ExclusivePools::take_from(FlowId loser, FlowId client) {
  clients_.at(loser).evicted = ++evictions_;
  std::optional<std::size_t> taken = idle_gpu_of(loser);
  const bool idle = taken.has_value();
  for (std::size_t i = 0; i < gpus_.size() && !taken; ++i) {
    if (gpus_[i].owner == loser && gpus_[i].worker == loser) taken = i;
  }
  gpus_[*taken].owner = client;
  return idle ? taken : std::nullopt;
}

std::optional<std::size_t> ExclusivePools::gpu_for(FlowId client) {
  if (const auto own = idle_gpu_of(client)) return own;
  if (awaits_a_gpu(client)) return std::nullopt;
  if (const auto nobodys = idle_gpu_of(FlowId())) {
    gpus_[*nobodys].owner = client;
    return nobodys;
  }
  const FlowId loser = victim();
  if (pool_size(client) >= takeable(loser)) return std::nullopt;
  return take_from(loser, client);
}

std::optional<WorkerPool::Assignment> ExclusivePools::assign(Instant, const ReloadCost&) {
  for (const FlowId id : by_oldest_request()) {
    const auto index = gpu_for(id);
    if (!index) continue;
    Gpu& gpu = gpus_[*index];
    Client& client = clients_.at(id);
    client.waiting.erase(client.waiting.begin());
    const bool new_worker = gpu.worker != id;
    gpu.busy = true;
    gpu.worker = id;
    return Assignment{id, GpuId(*index + 1), new_worker};
  }
  return std::nullopt;
}

void ExclusivePools::on_completion(Instant, FlowId client, GpuId gpu, const Spent&) {
  Gpu& served = gpus_[gpu.value() - 1];
  FL_CHECK(served.busy && served.worker == client, "client {} does not run on GPU {}", client.value(), gpu.value());
  served.busy = false;
}

}  // namespace fairlead
