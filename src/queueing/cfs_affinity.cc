#include "queueing/cfs_affinity.h"

#include <compare>

namespace fairlead {

void CfsAffinity::on_added(Slot slot) {
  if (slot >= homes_.size()) homes_.resize(slot + 1);
  homes_[slot] = Home();
}

// 0.9 old + 0.1 new, as service is estimated.
void CfsAffinity::on_answer(Slot slot, Duration latency) {
  std::optional<Duration>& mean = homes_[slot].latency;
  mean = mean ? *mean + (latency - *mean) / 10 : latency;
}

Duration CfsAffinity::weighted(Slot slot, GpuId gpu) const {
  const Home& home = homes_[slot];
  const Flow& flow = flows_[slot];
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
  each_waiting([&](Slot slot) {
    if (best && flows_[slot].virtual_time > best->first.virtual_time) return true;  // a penalty only adds
    const FlowId flow = flows_[slot].id;
    for (const Placeable::Place& place : placeable.places(flow)) {
      if (!place.free) continue;
      const Rank rank{weighted(slot, place.gpu), place.running, flow, place.gpu};
      if (!best || rank < best->first) best = {rank, {slot, place.gpu, place.setup}};
    }
    return false;
  });
  if (!best) return std::nullopt;
  return best->second;
}

}  // namespace fairlead
