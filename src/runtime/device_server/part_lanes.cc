#include "runtime/device_server/part_lanes.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <utility>
#include <vector>

#include "base/log.h"
#include "decide/residency/least_used_groups.h"

namespace fairlead {
namespace {

// A call that waits for its place counts less than any that runs, and more than nobody.
constexpr std::uint32_t kRests = 1, kRuns = 1000;

std::uint64_t users_of(const SmGroups::Set& groups, const std::vector<std::uint32_t>& users) {
  std::uint64_t all = 0;
  for (std::size_t group = 0; group < users.size(); ++group) all += groups.test(group) ? users[group] : 0;
  return all;
}

}  // namespace

PartLanes::~PartLanes() {
  for (const Lane& lane : lanes_) end(lane);
}

Result<const SmGroups*> PartLanes::groups() {
  if (sms_ && *sms_ == nullptr) sms_ = SmGroups::create(cuda_);
  if (!sms_) return fail(sms_.error());
  return sms_->get();
}

Status PartLanes::need_events(std::uint32_t count) {
  events_ = std::max(events_, count);
  for (const Lane& lane : lanes_) {
    if (Status events = lane.streams->need_events(cuda_, events_); !events) return events;
  }
  return {};
}

std::vector<std::uint32_t> PartLanes::users() const {
  std::vector<std::uint32_t> users((*sms_)->count());
  for (const Lane& lane : lanes_) {
    const std::uint32_t weight = !lane.is_taken ? 0 : lane.streams->rests() ? kRests : kRuns;
    for (std::size_t group = 0; group < users.size(); ++group) users[group] += lane.groups.test(group) ? weight : 0;
  }
  return users;
}

// Of those that are idle and have so many groups, the last whose groups have so many users together at most.
PartLanes::Lanes::iterator PartLanes::idle_of(std::uint32_t count, const std::vector<std::uint32_t>& users,
                                              std::uint64_t most_users) {
  const auto fits = [&](const Lane& lane) {
    return !lane.is_taken && lane.groups.count() == count && users_of(lane.groups, users) <= most_users;
  };
  const auto found = std::find_if(lanes_.rbegin(), lanes_.rend(), fits);
  return found == lanes_.rend() ? lanes_.end() : std::prev(found.base());
}

// One is made only where that is better than what is there.
Result<LaunchLane*> PartLanes::take(std::uint32_t count) {
  if (const auto there = groups(); !there) return fail(there.error());
  const std::vector<std::uint32_t> before = users();
  SmGroups::Set best;
  for (const std::uint32_t group : least_used_groups(before, count)) best.set(group);
  auto lane = idle_of(count, before, users_of(best, before));
  if (lane == lanes_.end()) {
    if (lanes_.size() >= kMost) end_oldest(count);
    Status made = make(best);
    if (!made && end_oldest(count)) made = make(best);
    lane = made ? std::prev(lanes_.end()) : idle_of(count, before, std::numeric_limits<std::uint64_t>::max());
    if (lane == lanes_.end()) return fail(made.error());
    if (!made && !std::exchange(is_said_, true)) {
      spdlog::warn("device server: calls are on SMs that others are on: {}", made.error().message);
    }
  }
  lane->is_taken = true;
  lanes_.splice(lanes_.end(), lanes_, lane);
  return lane->streams.get();
}

bool PartLanes::give_back(const LaunchLane& lane) {
  const auto found = std::ranges::find_if(lanes_, [&](const Lane& one) { return one.streams.get() == &lane; });
  if (found == lanes_.end()) return false;
  found->is_taken = false;
  found->streams->rest(false);
  return true;
}

Status PartLanes::make(const SmGroups::Set& groups) {
  const SmGroups& sms = **sms_;
  const auto context = sms.make(groups);
  if (!context) return fail(context.error());
  const auto streams = make_streams(*context);
  if (!streams) {
    sms.destroy(*context, {});
    return fail(streams.error());
  }
  auto lane = LaunchLane::create(cuda_, *streams);
  Status there = lane ? (*lane)->need_events(cuda_, events_) : Status(fail(lane.error()));
  if (!there) {
    if (lane) (*lane)->destroy_events(cuda_);
    sms.destroy(*context, *streams);
    return there;
  }
  lanes_.push_back({.groups = groups, .context = *context, .streams = *std::move(lane)});
  return {};
}

Result<LaunchLane::Streams> PartLanes::make_streams(CUgreenCtx context) const {
  LaunchLane::Streams streams{};
  for (std::size_t i = 0; i < streams.size(); ++i) {
    const auto made = (*sms_)->make_stream(context);
    if (!made) {
      (*sms_)->destroy_streams(std::span(streams).first(i));
      return fail(made.error());
    }
    streams.at(i) = *made;
  }
  return streams;
}

// Of those that no call is on, first of other sizes; false: there is none.
bool PartLanes::end_oldest(std::uint32_t spared) {
  const auto is_other = [&](const Lane& lane) { return !lane.is_taken && lane.groups.count() != spared; };
  auto idle = std::ranges::find_if(lanes_, is_other);
  if (idle == lanes_.end()) idle = std::ranges::find(lanes_, false, &Lane::is_taken);
  if (idle == lanes_.end()) return false;
  end(*idle);
  lanes_.erase(idle);
  return true;
}

void PartLanes::end(const Lane& lane) {
  (*sms_)->destroy(lane.context, lane.streams->streams());
  lane.streams->destroy_events(cuda_);
}

}  // namespace fairlead
