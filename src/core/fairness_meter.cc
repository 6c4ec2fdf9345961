#include "core/fairness_meter.h"

#include <algorithm>

namespace fairlead {

void FairnessMeter::on_action(Instant now, const Action& action) {
  if (const auto* deliver = std::get_if<Deliver>(&action)) running_[deliver->invocation] = now;
  if (const auto* complete = std::get_if<Complete>(&action)) {
    const auto run = running_.find(complete->invocation);
    flow_of_.erase(complete->invocation);
    if (run == running_.end()) return;
    served_[complete->flow] += now - run->second;
    running_.erase(run);
  }
}

void FairnessMeter::sample(Instant now) {
  const std::vector<Duration> received = normalised_services(now);
  for (std::size_t a = 0; a < flows_.size(); ++a) {
    for (std::size_t b = a + 1; b < flows_.size(); ++b) {
      Range& range = ranges_[{flows_[a].flow, flows_[b].flow}];
      const bool was_open = range.open;
      range.open = core_.flow(flows_[a].flow).contends && core_.flow(flows_[b].flow).contends;
      if (!was_open && !range.open) continue;
      // The event that empties a queue ends the interval at its own instant, so it still counts.
      const Duration difference = received[a] - received[b];
      range.least = was_open ? std::min(range.least, difference) : difference;
      range.most = was_open ? std::max(range.most, difference) : difference;
      range.gap = std::max(range.gap, range.most - range.least);
    }
  }
}

Duration FairnessMeter::gap(FlowId i, FlowId j) const {
  const auto found = ranges_.find({i, j});
  return found == ranges_.end() ? Duration(0) : found->second.gap;
}

std::vector<Duration> FairnessMeter::normalised_services(Instant now) const {
  std::map<FlowId, Duration> service = served_;
  for (const auto& [invocation, since] : running_) service[flow_of_.at(invocation)] += now - since;
  std::vector<Duration> normalised;
  for (const FlowOfInterest& flow : flows_) {
    const double ns = static_cast<double>(service[flow.flow].count()) / flow.weight;
    normalised.push_back(Duration(static_cast<Duration::rep>(ns)) + core_.flow(flow.flow).passed);
  }
  return normalised;
}

}  // namespace fairlead
