#include "decide/queueing/exclusive.h"

#include <algorithm>
#include <tuple>

namespace fairlead {

std::vector<GpuId> Exclusive::pool(FlowId flow) const {
  std::vector<GpuId> pool;
  for (const auto& [id, gpu] : gpus_) {
    if (gpu.owner == flow) pool.push_back(id);
  }
  return pool;
}

void Exclusive::add(Row row) {
  GpuOrder::add(row);
  evicted_.try_emplace(flows_[row].id, 0);
}

void Exclusive::began(const Pick& pick) {
  gpus_[pick.gpu].worker = flows_[pick.row].id;
  settle(pick.row);
}

void Exclusive::remove(Row row) {
  GpuOrder::remove(row);
  const FlowId flow = flows_[row].id;
  evicted_.erase(flow);
  for (auto& [id, gpu] : gpus_) {
    if (gpu.owner == flow) gpu.owner = FlowId();
    if (gpu.worker == flow) gpu.worker = FlowId();
  }
}

// A GPU that serves no more is in nobody's pool: what waits for it looks for another.
void Exclusive::refresh(const std::vector<Placeable::Place>& places) {
  for (auto& [id, gpu] : gpus_) gpu.serves = false;
  for (const Placeable::Place& place : places) {
    gpus_[place.gpu].serves = true;
    gpus_[place.gpu].busy = place.running > 0;
  }
  for (auto& [id, gpu] : gpus_) {
    if (!gpu.serves) gpu.owner = FlowId();
  }
}

std::vector<Exclusive::Row> Exclusive::by_oldest_invocation() {
  std::vector<Row> order;
  each_waiting([&](Row row) {
    order.push_back(row);
    return false;
  });
  std::sort(order.begin(), order.end(),
            [this](Row a, Row b) { return flows_[a].queue.front().sequence < flows_[b].queue.front().sequence; });
  return order;
}

bool Exclusive::takeable(const Gpu& gpu, FlowId flow) const {
  return gpu.owner == flow && (!gpu.busy || gpu.worker == flow);
}

std::size_t Exclusive::takeable(FlowId flow) const {
  return static_cast<std::size_t>(
      std::count_if(gpus_.begin(), gpus_.end(), [&](const auto& entry) { return takeable(entry.second, flow); }));
}

FlowId Exclusive::victim() const {
  std::optional<std::tuple<std::size_t, std::uint64_t, FlowId>> best;  // GPUs that are not in the pool: fewest
  for (const auto& [flow, evicted] : evicted_) {
    const std::tuple rank{gpus_.size() - takeable(flow), evicted, flow};
    if (!best || rank < *best) best = rank;
  }
  return std::get<FlowId>(*best);
}

// A busy GPU was promised to it that others' invocations have not left yet: its queue asks for no second one before it
// outnumbers what comes.
bool Exclusive::awaits_a_gpu(const Flow& flow) const {
  const auto coming = std::count_if(gpus_.begin(), gpus_.end(), [&](const auto& entry) {
    const Gpu& gpu = entry.second;
    return gpu.owner == flow.id && gpu.busy && gpu.worker != flow.id;
  });
  return static_cast<std::size_t>(coming) >= flow.queue.size();
}

std::optional<GpuId> Exclusive::idle_gpu_of(FlowId owner) const {
  std::optional<GpuId> any;
  for (const auto& [id, gpu] : gpus_) {
    if (!gpu.serves || gpu.owner != owner || gpu.busy) continue;
    if (gpu.worker == owner) return id;  // warm
    if (!any) any = id;
  }
  return any;
}

// Moves a GPU between pools; it is given only if it is idle. REQUIRES: takeable(loser) > 0.
std::optional<GpuId> Exclusive::take_from(FlowId loser, FlowId flow) {
  evicted_[loser] = ++evictions_;
  if (const auto idle = idle_gpu_of(loser)) {
    gpus_[*idle].owner = flow;
    return idle;
  }
  const auto busy =
      std::find_if(gpus_.begin(), gpus_.end(), [&](const auto& entry) { return takeable(entry.second, loser); });
  busy->second.owner = flow;
  return std::nullopt;
}

std::optional<GpuId> Exclusive::gpu_for(const Flow& flow) {
  if (const auto own = idle_gpu_of(flow.id)) return own;
  if (awaits_a_gpu(flow)) return std::nullopt;
  if (const auto nobodys = idle_gpu_of(FlowId())) {
    gpus_[*nobodys].owner = flow.id;
    return nobodys;
  }
  const FlowId loser = victim();
  if (pool(flow.id).size() >= takeable(loser)) return std::nullopt;
  return take_from(loser, flow.id);
}

std::optional<Order::Pick> Exclusive::pick(Instant, const Placeable& placeable) {
  for (const Row row : by_oldest_invocation()) {
    const std::vector<Placeable::Place> places = placeable.places(flows_[row].id);
    refresh(places);
    const auto gpu = gpu_for(flows_[row]);
    if (!gpu) continue;
    const auto place = std::find_if(places.begin(), places.end(), [&](const auto& p) { return p.gpu == *gpu; });
    if (place->free) return pick_of(row, *gpu, place->setup);
  }
  return std::nullopt;
}

constinit const Policy exclusive_policy{
    .name = "exclusive",
    .next_is = "a pool of GPUs per function, whose process is alone there; who has fewer takes one from the largest",
    .make = make_order<Exclusive>,
    .one_function_per_gpu = true,
    .looks_at_every_flow = true};

}  // namespace fairlead
