#include "queueing/resident_window.h"

#include <algorithm>
#include <compare>

namespace fairlead {

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
  return Duration(static_cast<Duration::rep>(options_.patience_reloads * static_cast<double>(setup.count())));
}

void ResidentWindow::consider(Instant now, Row row, const std::vector<Placeable::Place>& places,
                              std::optional<Candidate>& best) {
  const Flow& flow = flows_[row];
  const bool outside = flow.virtual_time - minimum() > options_.over_run;
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

std::optional<GpuPolicy::Pick> ResidentWindow::pick(Instant now, const Placeable& placeable) {
  next_chance_.reset();
  std::optional<Candidate> best;
  each_waiting([&](Row row) {
    consider(now, row, placeable.places(flows_[row].id), best);
    return false;
  });
  if (!best) return std::nullopt;
  next_chance_.reset();
  return Pick{best->row, best->gpu, best->setup};
}

}  // namespace fairlead
