// Resident first, within a window of service: MQFQ's over-run T (Hedayati et al. 2019) applied to data on devices.
//
// Idea. Fair order serves flows in turn. Where their constants do not all fit, turns are a cyclic sweep: under LRU each
// flow finds its own evicted just before its turn, and every invocation loads. Fairness over a second needs no strict
// turns, though: among flows within T of the least served, one whose constants are on the idle GPU goes first. Those
// without are served when the others are T ahead; each load then pays for T of service instead of one invocation.
//
// Example: 32 flows of 2 GB on 4 GPUs with room for 7 each, invocations of 39 ms, 167 ms to load. In turns, each costs
// 206 ms. With T = 500 ms a flow that was loaded has about 13 invocations before it is T ahead: 39 + 167 / 13 = 52 ms.
//
//   1. flows within T of the minimum before those that are not (who go only where a GPU would else idle)
//   2. least set-up on that GPU first; then the GPU with fewest invocations, then the least served
//   3. a flow whose constants are on another GPU does not leave it for one where they push out others' before its invocation
//      has waited as long as loading them there takes, four times. Once would be the ski rental rule, if the load were all
//      it costs; but it also pushes out somebody who then loads too. Near the edge of memory that is a sweep again: 24
//      clients at 80 % of the peak, p90 1.1 s with once, 0.17 s with four times. A copy into free memory costs nobody
//      anything and is made at once. Only this holds work back from an idle GPU, and only for so long.
//
// Cost, time, threads, determinism: as gpu_order.h.
#include <algorithm>
#include <compare>

#include "decide/queueing/gpu_order.h"
#include "decide/queueing/window.h"

namespace fairlead {
namespace {

class ResidentWindow final : public GpuOrder, public Patient {
 public:
  ResidentWindow(FlowTable& flows, const PolicyOptions& options)
      : GpuOrder(flows), over_run_(options.get(kOverRun)), patience_reloads_(options.get(kPatienceReloads)) {}

  std::optional<Pick> pick(Instant now, const Placeable& placeable) override;
  std::optional<Instant> next_chance() const override { return next_chance_; }

 private:
  struct Candidate;
  void consider(Instant now, Row row, const std::vector<Placeable::Place>& places, std::optional<Candidate>& best);
  Duration patience(Duration setup) const;

  const Duration over_run_;
  const double patience_reloads_;
  std::optional<Instant> next_chance_;
};

// The least is next.
struct ResidentWindow::Candidate {
  bool outside_window;
  Duration time_outside;  // 0 within the window: there the set-up decides
  Duration setup;
  std::size_t running;
  Duration virtual_time;
  FlowId flow;
  GpuId gpu;
  Row row;
  auto operator<=>(const Candidate&) const = default;
};

Duration ResidentWindow::patience(Duration setup) const {
  return Duration(static_cast<Duration::rep>(patience_reloads_ * static_cast<double>(setup.count())));
}

void ResidentWindow::consider(Instant now, Row row, const std::vector<Placeable::Place>& places,
                              std::optional<Candidate>& best) {
  const Flow& flow = flows_[row];
  const bool outside = flow.virtual_time - global_virtual_time() > over_run_;
  const bool is_somewhere =
      std::any_of(places.begin(), places.end(), [](const auto& p) { return p.setup == Duration(0); });
  for (const Placeable::Place& place : places) {
    if (!place.free) continue;
    const Instant may_leave = flow.queue.front().arrived + patience(place.setup);
    if (is_somewhere && place.evicts && now < may_leave) {
      next_chance_ = std::min(next_chance_.value_or(may_leave), may_leave);
      continue;
    }
    const Candidate candidate{outside,           outside ? flow.virtual_time : Duration(0),
                              place.setup,       place.running,
                              flow.virtual_time, flow.id,
                              place.gpu,         row};
    if (!best || candidate < *best) best = candidate;
  }
}

std::optional<Order::Pick> ResidentWindow::pick(Instant now, const Placeable& placeable) {
  next_chance_.reset();
  std::optional<Candidate> best;
  each_waiting([&](Row row) {
    consider(now, row, placeable.places(flows_[row].id), best);
    return false;
  });
  if (!best) return std::nullopt;
  next_chance_.reset();
  return pick_of(best->row, best->gpu, best->setup);
}

}  // namespace

constinit const Policy resident_window_policy{
    .name = "resident-window",
    .next_is = "within the window: what is on an idle GPU with all that it needs; chooses the GPU",
    .make = make_order<ResidentWindow>,
    .looks_at_every_flow = true,
    .parameters = {&kOverRun, &kPatienceReloads}};

}  // namespace fairlead
