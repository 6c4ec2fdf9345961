#include "runtime/device_server/lane_pool.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace fairlead {

Result<std::unique_ptr<LanePool>> LanePool::create(CudaContext& cuda) {
  std::unique_ptr<LanePool> pool(new LanePool(cuda));
  for (std::size_t i = 0; i < kFirst; ++i) {
    if (Status made = pool->make_lane(); !made) return fail(made.error());
  }
  return pool;
}

Status LanePool::make_lane() {
  auto lane = LaunchLane::create(cuda_);
  if (!lane) return fail(lane.error());
  if (Status events = (*lane)->need_events(cuda_, events_); !events) return events;
  lanes_.push_back({*std::move(lane)});
  return {};
}

Status LanePool::need_events(std::uint32_t count) {
  events_ = std::max(events_, count);
  for (const Held& held : lanes_) {
    if (Status events = held.lane->need_events(cuda_, events_); !events) return events;
  }
  return parts_.need_events(events_);
}

LaunchLane& LanePool::take() {
  auto held = std::ranges::find(lanes_, 0U, &Held::calls);
  if (held == lanes_.end()) {
    const bool made = lanes_.size() < kMost && make_lane();
    held = made ? lanes_.end() - 1 : lanes_.begin() + static_cast<std::ptrdiff_t>(next_++ % lanes_.size());
  }
  ++held->calls;
  return *held->lane;
}

void LanePool::give_back(const LaunchLane& lane) {
  if (parts_.give_back(lane)) return;
  const auto held = std::ranges::find_if(lanes_, [&](const Held& one) { return one.lane.get() == &lane; });
  FL_CHECK(held != lanes_.end() && held->calls > 0, "a lane that no call is on is given back");
  --held->calls;
}

}  // namespace fairlead
