#include "sim/service_gaps.h"

#include <algorithm>

namespace fairlead::sim {

ServiceGaps::ServiceGaps(std::vector<double> weights, Duration window)
    : window_(window), flows_(weights.size()), received_(weights.size()), end_(Instant(window)) {
  for (std::size_t i = 0; i < weights.size(); ++i) flows_[i].weight = weights[i];
}

void ServiceGaps::queued(Instant now, std::size_t flow) {
  advance(now);
  if (flows_[flow].waiting++ > 0) return;
  flows_[flow].place = waiting_.size();
  waiting_.push_back(flow);
}

void ServiceGaps::unqueued(Instant now, std::size_t flow) {
  advance(now);
  if (--flows_[flow].waiting > 0) return;
  flows_[flow].empty_in_window = true;
  const std::size_t place = flows_[flow].place;
  waiting_[place] = waiting_.back();
  flows_[waiting_[place]].place = place;
  waiting_.pop_back();
}

void ServiceGaps::started(Instant now, std::size_t flow) {
  advance(now);
  received_.started(now, flow);
}

void ServiceGaps::ended(Instant now, std::size_t flow) {
  advance(now);
  received_.ended(now, flow);
}

void ServiceGaps::advance(Instant now) {
  while (end_ <= now) close_window();
}

void ServiceGaps::close_window() {
  double most = 0, least = 0;
  std::size_t compared = 0;
  for (const std::size_t i : compared_) {
    const Flow& flow = flows_[i];
    if (flow.empty_in_window) continue;
    const double served = to_seconds(received_.at(end_, i) - flow.before) / flow.weight;
    most = compared == 0 ? served : std::max(most, served);
    least = compared == 0 ? served : std::min(least, served);
    ++compared;
  }
  compared_ = waiting_;
  for (const std::size_t i : compared_) {
    flows_[i].before = received_.at(end_, i);
    flows_[i].empty_in_window = false;
  }
  end_ += window_;
  if (compared < 2) return;
  each_.emplace_back(to_seconds(end_ - Instant{}), most - least);
  worst_ = std::max(worst_, most - least);
  sum_ += most - least;
  ++windows_;
}

}  // namespace fairlead::sim
