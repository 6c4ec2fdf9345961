// Outputs on their way from a server's process to the data layer: who waits for which.
//
// Threads: none of its own.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <utility>

#include "base/result.h"

namespace fairlead {

class ServerFetches {
 public:
  using Done = std::function<void(Status)>;

  // The number under which the process answers; never used again by this server.
  std::uint64_t add(Done done) {
    waiting_[++last_] = std::move(done);
    return last_;
  }
  // The process has answered. One that nobody waits for: no effect.
  void fetched(std::uint64_t number, Status status) {
    const auto fetch = waiting_.extract(number);
    if (!fetch.empty()) fetch.mapped()(std::move(status));
  }
  // The process has ended: nobody waits any more, and these are the caller's to tell.
  std::map<std::uint64_t, Done> take_all() { return std::exchange(waiting_, {}); }

 private:
  std::map<std::uint64_t, Done> waiting_;
  std::uint64_t last_ = 0;
};

}  // namespace fairlead
