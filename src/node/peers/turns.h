// Work of which a few pieces go on at a time. What waits has its turns by tenant, so that nobody waits behind all that another one has
// asked for.
//
//   at most 2: a1 a2 run; a3, a4, b1 wait; one ends: a3, then b1, then a4
//
// Not thread-safe.
#pragma once

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

  Turns(std::size_t at_a_time, std::size_t most_waiting) : at_a_time_(at_a_time), most_waiting_(most_waiting) {}

  // Begins it now or later; then end() is owed. False: as much of that tenant waits as may.
  bool begin(const std::string& tenant, Work work) {
    if (running_ < at_a_time_) {
      ++running_;
      work();
      return true;
    }
    std::deque<Work>& waiting = waiting_[tenant];
    if (waiting.size() >= most_waiting_) return false;
    waiting.push_back(std::move(work));
    return true;
  }

  void end() {
    --running_;
    if (waiting_.empty()) return;
    auto next = waiting_.upper_bound(last_);
    if (next == waiting_.end()) next = waiting_.begin();
    last_ = next->first;
    const Work work = std::move(next->second.front());
    next->second.pop_front();
    if (next->second.empty()) waiting_.erase(next);
    ++running_;
    work();
  }

 private:
  const std::size_t at_a_time_, most_waiting_;
  std::size_t running_ = 0;
  std::map<std::string, std::deque<Work>> waiting_;  // by tenant; none is empty
  std::string last_;                                 // whose turn it was
};

}  // namespace fairlead
