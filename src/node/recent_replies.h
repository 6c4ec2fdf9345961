// Replies to invocations that ended a moment ago, by the client's own invocation id. An AWS SDK whose read timed out sends
// the same invocation again, up to five times, under the same id: the repeat gets the first one's reply instead of
// running the function once more (reference: apis.md 2.1, wire fact 5).
//
// Bounded three ways: age, number, bytes. Beyond number or bytes the oldest one of the tenant that has the most goes first
// (base/fair_memory.h): a reply that a neighbour's flood pushes out would be a function that runs twice.
// Threads: not thread-safe; owned by the core thread.
#pragma once

#include <limits>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>

#include "base/byte_budget.h"
#include "base/fair_memory.h"
#include "base/units.h"
#include "edge/node_service.h"

namespace fairlead {

class RecentReplies {
 public:
  static constexpr Duration kMaxAge = std::chrono::seconds(120);  // twice the SDKs' read timeout
  static constexpr std::size_t kMaxReplies = 10'000;
  static constexpr std::size_t kMaxBytes = 16 << 20;

  // What is kept counts in `memory` too, by tenant, and is kept though that is full: else a repeat would run a second time. It is
  // kMaxBytes at most. REQUIRES: before the first put().
  void count_in(std::shared_ptr<ByteBudget> memory) { memory_ = std::move(memory); }
  // REQUIRES: times do not go back.
  void put(Instant now, const std::string& tenant, const std::string& key, const Outcome& reply);
  const Outcome* find(Instant now, const std::string& key);  // null when not kept

 private:
  using Item = FairMemory::Item;
  struct Kept {
    Instant since;
    std::string key;
    Outcome reply;
    ByteBudget::Lease lease;
  };
  void drop(Item item);
  void drop_expired(Instant now);

  std::shared_ptr<ByteBudget> memory_ = std::make_shared<ByteBudget>(std::numeric_limits<std::size_t>::max());
  std::map<Item, Kept> by_age_;
  std::unordered_map<std::string, Item> by_key_;
  FairMemory held_{{.items = kMaxReplies, .bytes = kMaxBytes}};
  Item last_ = 0;
};

}  // namespace fairlead
