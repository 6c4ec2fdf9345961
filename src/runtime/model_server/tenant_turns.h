// In which order a model server works: one piece of each tenant's first work in turn, so that nobody waits for all that another has sent. Of one
// tenant memory is made before anything is hashed, each in the order in which it came.
//
// Example: tenant 1 sends 60 tensors of 4 GiB to hash, then tenant 2 one of 32 MiB. After two pieces of 16 MiB of each, tenant 2 has its answer;
// behind one queue it would have waited for 240 GiB.
//
// Pure. Threads: not thread-safe.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>

namespace fairlead::model_server {

template <typename Work>
class TenantTurns {
 public:
  void add(std::uint32_t tenant, Work work, bool goes_first) {
    Queue& queue = queues_[tenant];
    (goes_first ? queue.first : queue.rest).push_back(std::move(work));
  }
  bool empty() const { return queues_.empty(); }
  // What to do a piece of now. The next call gives another tenant's, as long as there is one. Null: nothing. Valid until the next call.
  Work* next() {
    if (queues_.empty()) return nullptr;
    auto turn = queues_.upper_bound(last_);
    if (turn == queues_.end()) turn = queues_.begin();
    last_ = turn->first;
    return turn->second.first.empty() ? &turn->second.rest.front() : &turn->second.first.front();
  }
  // Those that are over, or wanted no more.
  template <typename Is>
  void remove(Is is) {
    for (auto it = queues_.begin(); it != queues_.end();) {
      std::erase_if(it->second.first, is);
      std::erase_if(it->second.rest, is);
      it = it->second.first.empty() && it->second.rest.empty() ? queues_.erase(it) : std::next(it);
    }
  }

 private:
  struct Queue {
    std::deque<Work> first, rest;
  };
  std::map<std::uint32_t, Queue> queues_;  // of tenants that have work
  std::uint32_t last_ = 0;                 // whose turn it was
};

}  // namespace fairlead::model_server
