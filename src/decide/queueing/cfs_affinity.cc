// CFS-Affinity: every function gets its fair share of GPU time, near its data where that costs little fairness
// (KaaS, section 4.1.4, figure 6a). An idle GPU takes the flow with the least virtual time; on a GPU that is not its own
// (where its last invocation ran) a flow counts with ten of its mean latencies more. Work-conserving: an idle GPU takes
// somebody whenever anybody waits. Where several GPUs are idle the least of all pairs is next, so that a flow goes home
// when it can.
//
// Example: A has run 30 ms, its own GPU is 1, its mean latency 5 ms; B has run 70 ms, its own GPU is 2. GPU 2 becomes
// idle: A counts with 30 + 10 x 5 = 80 ms there, so B is next. With A's latency 3 ms, A (60 ms) is.
//
// What the paper leaves open: a flow without a GPU of its own is penalised nowhere; new and returning flows, and what is
// charged, as gpu_order.h. Cost, time, threads, determinism: as there.
#include <compare>

#include "decide/queueing/gpu_order.h"

namespace fairlead {
namespace {

constexpr Parameter<double> kPenaltyLatencies{"penalty_latencies",
                                              "what a flow counts with more on a GPU that is not its own, in its mean "
                                              "latencies",
                                              0, 1e6, 10};

class CfsAffinity final : public GpuOrder {
 public:
  CfsAffinity(FlowTable& flows, const PolicyOptions& options)
      : GpuOrder(flows), penalty_latencies_(options.get(kPenaltyLatencies)) {}

  void add(Row row) override;
  std::optional<Pick> pick(Instant now, const Placeable& placeable) override;
  void began(const Pick& pick) override;
  void ended(Row row, const Ended& end) override;

 private:
  struct Home {
    GpuId gpu;  // where the last invocation began; none at first
    std::optional<Duration> latency;
  };
  Duration weighted(Row row, GpuId gpu) const;

  const double penalty_latencies_;
  std::vector<Home> homes_;  // by row
};

void CfsAffinity::add(Row row) {
  GpuOrder::add(row);
  if (row >= homes_.size()) homes_.resize(row + 1);
  homes_[row] = Home();
}

void CfsAffinity::began(const Pick& pick) {
  homes_[pick.row].gpu = pick.gpu;
  settle(pick.row);
}

// 0.9 old + 0.1 new, as service is estimated.
void CfsAffinity::ended(Row row, const Ended& end) {
  std::optional<Duration>& mean = homes_[row].latency;
  if (end.answered) mean = mean ? *mean + (end.latency - *mean) / 10 : end.latency;
  settle(row);
}

Duration CfsAffinity::weighted(Row row, GpuId gpu) const {
  const Home& home = homes_[row];
  const Flow& flow = flows_[row];
  if (!home.gpu || home.gpu == gpu || !home.latency) return flow.virtual_time;
  const double penalty = penalty_latencies_ * static_cast<double>(home.latency->count());
  return flow.virtual_time + Duration(static_cast<Duration::rep>(penalty));
}

std::optional<Order::Pick> CfsAffinity::pick(Instant, const Placeable& placeable) {
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
      if (!best || rank < best->first) best = {rank, pick_of(row, place.gpu, place.setup)};
    }
    return false;
  });
  if (!best) return std::nullopt;
  return best->second;
}

}  // namespace

constinit const Policy cfs_affinity_policy{
    .name = "cfs-affinity",
    .next_is = "the least GPU time; on a GPU not its own a function counts with 10 of its mean latencies more",
    .make = make_order<CfsAffinity>,
    .looks_at_every_flow = true,
    .parameters = {&kPenaltyLatencies}};

}  // namespace fairlead
