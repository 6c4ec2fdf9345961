// Work of which a few pieces go on at a time, of one tenant at most half of them. What waits has its turns by tenant, so that nobody
// waits behind all that another one has asked for.
//
//   at most 4: a1 a2 run, a3 and a4 wait although there is room; b1 runs at once; a1 ends: a3
//
// Not thread-safe.
#pragma once

#include <algorithm>
#include <cstddef>
#include <deque>
#include <functional>
#include <map>
#include <string>
#include <utility>

namespace fairlead {

class Turns {
 public:
  using Work = std::function<void()>;

  Turns(std::size_t at_a_time, std::size_t most_waiting)
      : at_a_time_(at_a_time), of_one_(std::max<std::size_t>(1, at_a_time / 2)), most_waiting_(most_waiting) {}

  // Begins it now or later; then end() is owed, with the same tenant. False: as much of that tenant waits as may.
  bool begin(const std::string& tenant, Work work) {
    Tenant& one = tenants_[tenant];
    if (may_run(one)) {
      run(one, work);
      return true;
    }
    if (one.waiting.size() >= most_waiting_) return false;
    one.waiting.push_back(std::move(work));
    return true;
  }

  void end(const std::string& tenant) {
    --running_;
    const auto ended = tenants_.find(tenant);
    if (--ended->second.running == 0 && ended->second.waiting.empty()) tenants_.erase(ended);
    const auto start = tenants_.upper_bound(last_);
    auto next = std::find_if(start, tenants_.end(), [this](const auto& entry) { return waits(entry.second); });
    if (next == tenants_.end()) {
      next = std::find_if(tenants_.begin(), start, [this](const auto& entry) { return waits(entry.second); });
      if (next == start) return;
    }
    last_ = next->first;
    const Work work = std::move(next->second.waiting.front());
    next->second.waiting.pop_front();
    run(next->second, work);
  }

 private:
  struct Tenant {
    std::size_t running = 0;
    std::deque<Work> waiting;
  };

  bool may_run(const Tenant& tenant) const { return running_ < at_a_time_ && tenant.running < of_one_; }
  bool waits(const Tenant& tenant) const { return !tenant.waiting.empty() && may_run(tenant); }
  void run(Tenant& tenant, const Work& work) {
    ++running_;
    ++tenant.running;
    work();
  }

  const std::size_t at_a_time_, of_one_, most_waiting_;
  std::size_t running_ = 0;
  std::map<std::string, Tenant> tenants_;  // each has something that runs or waits
  std::string last_;                       // whose turn it was
};

}  // namespace fairlead
