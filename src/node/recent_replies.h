// Replies to invocations that ended a moment ago, by the client's own invocation id. An AWS SDK whose read timed out sends
// the same invocation again, up to five times, under the same id: the repeat gets the first one's reply instead of
// running the function once more (reference: apis.md 2.1, wire fact 5).
//
// Bounded three ways: age, number, bytes; the oldest goes first.
// Threads: not thread-safe; owned by the core thread.
#pragma once

#include <deque>
#include <string>
#include <unordered_map>

#include "base/units.h"
#include "edge/node_service.h"

namespace fairlead {

class RecentReplies {
 public:
  static constexpr Duration kMaxAge = std::chrono::seconds(120);  // twice the SDKs' read timeout
  static constexpr std::size_t kMaxReplies = 10'000;
  static constexpr std::size_t kMaxBytes = 16 << 20;

  void put(Instant now, const std::string& key, const Outcome& reply);
  const Outcome* find(Instant now, const std::string& key);  // null when not kept

 private:
  struct Kept {
    Instant since;
    std::string key;
    Outcome reply;
  };
  void drop_oldest();
  void drop_expired(Instant now);

  std::deque<Kept> by_age_;
  std::unordered_map<std::string, Kept*> by_key_;  // into by_age_, whose elements do not move at push_back / pop_front
  std::size_t bytes_ = 0;
};

}  // namespace fairlead
