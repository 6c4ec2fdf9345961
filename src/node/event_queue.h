// Asynchronous invocations between "accepted" (on disk) and "over". Decides which event is submitted next, when one is tried
// again, and when it becomes a dead letter. No IO and no clock: the node writes what it is told.
//
//   accepted ──> ready ──> running ──ok──> forgotten
//                  ^          │ its function failed, it has retries and time left: waiting, 1 min, then 2 min
//                  │          │ the node is at fault, or has no room: waiting, 1 s, 2 s, 4 s ... 5 min; no attempt
//                  └──────────┴ no retries left, or its age or its caller's deadline leaves no time: buried
//
// Example: an event fails at 0 s, is tried again at 60 s and at 180 s, and is buried when the third attempt fails.
//
// Who is next among those that are ready: ready_events.h. What all hold in memory has a bound in bytes, of which a tenant may have as
// much as is left free (base/byte_budget.h); an event counts as a part of it at least, 1 / limit, so that the same holds for their
// number. What is accepted already, found on disk or redriven, is counted and not refused.
//
// Time: waits, ages and deadlines go by the monotonic clock, so that a wall clock that is set holds nothing back. What is on
// disk are times of day: a start takes an event's age from them, and waits for it no longer than its back-off.
// Threads: not thread-safe; owned by the core thread.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/units.h"
#include "model/event_invoke_config.h"
#include "node/event_memory.h"
#include "node/ready_events.h"
#include "store/store.h"

namespace fairlead {

struct EventQueueOptions {
  std::size_t limit = 100'000;                     // accepted and not over
  std::size_t bytes = 1UL << 30;                   // of them
  std::size_t running_limit = 256;                 // submitted to the core at once, so that synchronous calls find room
  Duration first_retry = std::chrono::minutes(1);  // then doubled
};

// The same moment by both clocks.
struct EventTime {
  Instant now;
  std::int64_t wall_ms = 0;
};

class EventQueue {
 public:
  static constexpr Duration kFirstPostponement = std::chrono::seconds(1);
  static constexpr Duration kLongestPostponement = std::chrono::minutes(5);

  explicit EventQueue(EventQueueOptions options)
      : options_(options), memory_(options.bytes), ready_(options.running_limit) {}

  // What events hold counts in `memory` too, which others hold parts of: bodies, answers. REQUIRES: before the first event.
  void count_in(std::shared_ptr<ByteBudget> memory) { memory_.share(std::move(memory)); }

  // kResourceExhausted names the limit. Call before the event is made durable, and accepted() or refused() after.
  Status reserve(const QueuedEvent& event, const std::string& tenant);
  void accepted(QueuedEvent event, const std::string& tenant, EventTime time);
  void refused(const QueuedEvent& event, const std::string& tenant);
  // The same for up to `most` that are on disk already, such as dead letters; how many there is room for: in the tenant's part, or,
  // where they are many tenants' (""), in all.
  std::size_t reserve_places(std::size_t most, const std::string& tenant);
  void take_place(QueuedEvent event, const std::string& tenant, EventTime time);
  void release_places(std::size_t count) { reserved_ -= count; }
  void restore(QueuedEvent event, const std::string& tenant, EventTime time);  // found on disk

  // The next event to submit, if one is ready and the running limit allows; it is running from now on.
  std::optional<HeldEvent> next(Instant now);
  // An attempt ended. The verdict says what to write.
  void finished(const HeldEvent& event);
  enum class Verdict { kRetry, kBury };
  // kRetry: the record of `event` carries the new attempts and not_before. kBury: no retry is left, or none that its age
  // and deadline leave time for.
  Verdict failed(HeldEvent& event, EventTime time, const EventLimits& limits);
  // It did not run: the node is at fault, or has no room for it now (a full queue, no concurrency left for its function).
  // That is no attempt. The events behind it go on. kBury: as failed().
  Verdict postpone(HeldEvent event, Instant now, const EventLimits& limits);
  // Something changed for the function: what was postponed may be tried at once.
  void wake(const std::string& function, Instant now);
  void wake_all(Instant now);  // the same for the node as a whole

  // When next() may have something again without a completion: now for a ready event, else when the first wait ends.
  std::optional<Instant> next_due(Instant now) const;
  std::size_t size() const { return reserved_ + waiting() + running(); }
  std::size_t waiting() const { return ready_.waiting() + waiting_.size(); }
  std::size_t running() const { return ready_.running(); }
  std::size_t bytes() const { return memory_.used(); }

  // Its caller's deadline has passed: it is not to be started any more.
  static bool is_expired(const HeldEvent& event, Instant now) { return event.deadline <= now; }
  static bool is_too_old(const HeldEvent& event, Instant now, const EventLimits& limits) {
    return now - event.accepted > limits.age;
  }

  // The function was deleted: its waiting events, removed.
  std::vector<QueuedEvent> remove_function(const std::string& function);

 private:
  std::size_t least_bytes() const { return options_.bytes / options_.limit; }  // that an event counts as
  std::size_t bytes_of(const QueuedEvent& event) const;
  HeldEvent held(QueuedEvent record, const std::string& tenant, EventTime time) const;
  Duration backoff(int attempts) const { return options_.first_retry * (1 << (attempts - 1)); }
  template <typename Matches>
  void wake_if(Matches matches, Instant now);
  Verdict wait_until(Instant due, HeldEvent event, const EventLimits& limits);

  const EventQueueOptions options_;
  EventMemory memory_;
  ReadyEvents ready_;
  std::multimap<Instant, HeldEvent> waiting_;  // by due
  std::size_t reserved_ = 0;
};

}  // namespace fairlead
