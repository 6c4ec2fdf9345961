#include "queueing/cfs_affinity.h"

#include <compare>

namespace fairlead {

void CfsAffinity::on_added(Row row) {
  if (row >= homes_.size()) homes_.resize(row + 1);
  homes_[row] = Home();
}

// 0.9 old + 0.1 new, as service is estimated.
void CfsAffinity::on_answer(Row row, Duration latency) {
  std::optional<Duration>& mean = homes_[row].latency;
  mean = mean ? *mean + (latency - *mean) / 10 : latency;
}

Duration CfsAffinity::weighted(Row row, GpuId gpu) const {
  const Home& home = homes_[row];
  const Flow& flow = flows_[row];
  if (!home.gpu || home.gpu == gpu || !home.latency) return flow.virtual_time;
  const double penalty = options_.penalty_latencies * static_cast<double>(home.latency->count());
  return flow.virtual_time + Duration(static_cast<Duration::rep>(penalty));
}

std::optional<GpuPolicy::Pick> CfsAffinity::pick(Instant, const Placeable& placeable) {
  struct Rank {
    Duration virtual_time;
    std::size_t running;
    FlowId flow;
    GpuId gpu;
    auto operator<=>(const Rank&) const = default;
  };
  std::optional<std::pair<Rank, Pick>> best;
  each_waiting([&](Row row) {
    if (best && flows_[row].virtual_time > best->first.virtual_time) return true;  // a penalty only adds
    const FlowId flow = flows_[row].id;
    for (const Placeable::Place& place : placeable.places(flow)) {
      if (!place.free) continue;
      const Rank rank{weighted(row, place.gpu), place.running, flow, place.gpu};
      if (!best || rank < best->first) best = {rank, {row, place.gpu, place.setup}};
    }
    return false;
  });
  if (!best) return std::nullopt;
  return best->second;
}

}  // namespace fairlead
