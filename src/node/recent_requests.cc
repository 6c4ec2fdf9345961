#include "node/recent_requests.h"

#include <algorithm>
#include <utility>

namespace fairlead {
namespace {

constexpr std::size_t kMostFailureBytes = 256;

// Calls of a function while a request waited, as they are found. The names that it sees outlive it.
class Ahead {
 public:
  explicit Ahead(const RecentRequests::Times& waited) : waited_(waited) {}

  // One that was delivered, and is over, or not yet (Instant::max()).
  void see(std::string_view function, std::string_view tenant, Instant delivered, Instant over, Duration gpu_time) {
    if (delivered >= waited_.chosen || over <= waited_.arrived) return;
    AheadOf& of = by_name_[{tenant, function}];
    ++(delivered < waited_.arrived ? of.ran : of.chosen);
    of.gpu_time += gpu_time;
  }

  std::vector<AheadOf> take() {
    std::vector<AheadOf> all;
    for (auto& [name, of] : by_name_) {
      of.tenant = std::string(name.first);
      of.function = std::string(name.second);
      all.push_back(std::move(of));
    }
    std::stable_sort(all.begin(), all.end(),
                     [](const AheadOf& a, const AheadOf& b) { return a.ran + a.chosen > b.ran + b.chosen; });
    return all;
  }

 private:
  const RecentRequests::Times& waited_;
  std::map<std::pair<std::string_view, std::string_view>, AheadOf> by_name_;
};

}  // namespace

void RecentRequests::add(RequestTrace trace, const Times& times) {
  if (trace.failure.size() > kMostFailureBytes) trace.failure.resize(kMostFailureBytes);
  const std::string tenant = trace.tenant;
  if (rings_[tenant].size() >= kMostOfTenant) drop_oldest(tenant);
  if (size_ >= kMost) drop_oldest(std::string(by_size_.rbegin()->second));
  Ring& ring = rings_[tenant];
  by_size_.erase({ring.size(), tenant});
  ring.push_back({std::move(trace), times});
  by_size_.emplace(ring.size(), tenant);
  by_id_.erase(ring.back().trace.request_id);  // of an event's attempt before: the last one is what is asked for
  by_id_.emplace(ring.back().trace.request_id, std::prev(ring.end()));
  ++size_;
}

void RecentRequests::drop_oldest(const std::string& tenant) {
  const auto at = rings_.find(tenant);
  Ring& ring = at->second;
  forgotten_[tenant] = std::max(forgotten_[tenant], ring.front().times.over);
  const auto named = by_id_.find(ring.front().trace.request_id);
  if (named != by_id_.end() && named->second == ring.begin()) by_id_.erase(named);
  by_size_.erase({ring.size(), tenant});
  ring.pop_front();
  --size_;
  if (!ring.empty()) by_size_.emplace(ring.size(), tenant);
}

Result<RequestTrace> RecentRequests::trace(const std::string& request_id) {
  const auto found = by_id_.find(request_id);
  if (found == by_id_.end()) {
    return fail(Errc::kNotFound,
                "there is no such request that is over, or it is forgotten: the last {} of a tenant are kept, until "
                "the node stops",
                kMostOfTenant);
  }
  Kept asked = *found->second;
  find_ahead(asked);
  return std::move(asked.trace);
}

// The newest of each tenant, and of these the newest.
std::vector<RequestTrace> RecentRequests::recent(const RecentQuery& query) const {
  std::vector<const Kept*> found;
  for (const auto& [tenant, ring] : rings_) {
    if (!query.tenant.empty() && tenant != query.tenant) continue;
    std::size_t left = query.most;
    for (auto one = ring.rbegin(); one != ring.rend() && left > 0; ++one) {
      if (!query.function.empty() && one->trace.function != query.function) continue;
      found.push_back(&*one);
      --left;
    }
  }
  std::stable_sort(found.begin(), found.end(),
                   [](const Kept* a, const Kept* b) { return a->times.over > b->times.over; });
  if (found.size() > query.most) found.resize(query.most);
  std::vector<RequestTrace> traces;
  for (const Kept* one : found) traces.push_back(one->trace);
  return traces;
}

void RecentRequests::find_ahead(Kept& of) const {
  Ahead ahead(of.times);
  for (const auto& [tenant, ring] : rings_) {
    // Requests were added as they ended: before one that ended too early there are none that matter.
    for (auto at = ring.rbegin(); at != ring.rend() && at->times.over > of.times.arrived; ++at) {
      const Kept& one = *at;
      const bool ran = one.times.delivered != Instant();
      if (!ran || one.trace.request_id == of.trace.request_id) continue;
      ahead.see(one.trace.function, tenant, one.times.delivered, one.times.over, one.trace.gpu_time);
    }
  }
  const Visit running = [&](const Running& one) {
    ahead.see(one.function, one.tenant, one.delivered, Instant::max(), Duration(0));
  };
  if (each_running_) each_running_(running);
  of.trace.ahead = ahead.take();
  of.trace.is_ahead_whole = std::none_of(forgotten_.begin(), forgotten_.end(),
                                         [&](const auto& lost) { return lost.second > of.times.arrived; });
}

}  // namespace fairlead
