// Asynchronous invocations between "accepted" (on disk) and "over". Decides which event is submitted next, when a failed
// one is tried again, and when it becomes a dead letter. No IO: the node writes what it is told.
//
//   accepted ──> ready ──> running ──ok──> forgotten
//                  ^          │ error, attempts < 3: waiting until not_before
//                  └──────────┴ error, attempts = 3 or no time for another: buried
//
// Example: an event fails at 0 s, is tried again at 1 s and at 3 s, and is buried when the third attempt fails.
// Threads: not thread-safe; owned by the core thread.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/units.h"
#include "store/store.h"

namespace fairlead {

struct EventQueueOptions {
  std::size_t limit = 100'000;                     // accepted and not over
  std::size_t running_limit = 256;                 // submitted to the core at once, so that synchronous calls find room
  int max_attempts = 3;                            // the first and two retries, as Lambda does
  Duration first_retry = std::chrono::seconds(1);  // then doubled
};

class EventQueue {
 public:
  static constexpr Duration kPostponement = std::chrono::seconds(1);

  explicit EventQueue(EventQueueOptions options) : options_(options) {}

  // kResourceExhausted names the limit. Call before the event is made durable, and add() or release() after.
  Status reserve();
  void release() { --reserved_; }
  void add(QueuedEvent event);      // takes a reservation
  void restore(QueuedEvent event);  // found on disk at start

  // The next event to submit, if one is ready and the running limit allows; it is running from now on.
  std::optional<QueuedEvent> next(std::int64_t now_ms);
  // The core has no room for it now (a full queue, no concurrency left for its function): ready again in kPostponement,
  // attempts unchanged. The events behind it go on.
  void postpone(QueuedEvent event, std::int64_t now_ms);

  // An attempt ended. The verdict says what to write.
  void finished() { --running_; }
  enum class Verdict { kRetry, kBury };
  // kBury also where its deadline comes before the next attempt.
  Verdict failed(QueuedEvent& event, std::int64_t now_ms);  // kRetry: `event` carries the new attempts and not_before

  // When next() may have something again without a completion: now for a ready event, else when the first wait ends.
  std::optional<std::int64_t> next_due_ms(std::int64_t now_ms) const;
  std::size_t size() const { return reserved_ + ready_.size() + waiting_.size() + running_; }

  // Its caller's deadline has passed: it is not to be started any more.
  static bool is_expired(const QueuedEvent& event, std::int64_t now_ms) {
    return event.invocation.deadline_ms && *event.invocation.deadline_ms <= now_ms;
  }

  // The function was deleted: its waiting events, removed.
  std::vector<QueuedEvent> remove_function(const std::string& function);

 private:
  const EventQueueOptions options_;
  std::deque<QueuedEvent> ready_;
  std::multimap<std::int64_t, QueuedEvent> waiting_;  // by not_before_ms
  std::size_t reserved_ = 0;
  std::size_t running_ = 0;
};

}  // namespace fairlead
