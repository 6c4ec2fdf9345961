#include "sim/fairness_meter.h"

#include <algorithm>

namespace fairlead::sim {

void FairnessMeter::on_action(Instant now, const Action& action) {
  if (const auto* deliver = std::get_if<Deliver>(&action)) {
    running_.insert(deliver->invocation);
    received_.started(now, flow_of_.at(deliver->invocation).value() - 1);
  }
  if (const auto* complete = std::get_if<Complete>(&action)) {
    flow_of_.erase(complete->invocation);
    if (running_.erase(complete->invocation) > 0) received_.ended(now, complete->flow.value() - 1);
  }
}

void FairnessMeter::sample(Instant now) {
  const std::vector<Duration> received = normalised_services(now);
  for (std::size_t a = 0; a < weights_.size(); ++a) {
    for (std::size_t b = a + 1; b < weights_.size(); ++b) {
      Range& range = ranges_[{flow(a), flow(b)}];
      const bool was_open = range.open;
      range.open = core_.flow(flow(a)).contends && core_.flow(flow(b)).contends;
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

std::vector<Duration> FairnessMeter::normalised_services(Instant now) {
  std::vector<Duration> normalised;
  for (std::size_t i = 0; i < weights_.size(); ++i) {
    const double ns = static_cast<double>(received_.at(now, i).count()) / weights_[i];
    normalised.push_back(Duration(static_cast<Duration::rep>(ns)) + core_.flow(flow(i)).passed);
  }
  return normalised;
}

}  // namespace fairlead::sim
