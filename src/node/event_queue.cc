#include "node/event_queue.h"

#include <algorithm>
#include <utility>

namespace fairlead {
namespace {

std::int64_t in_ms(Duration duration) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(duration).count();
}

// Between two times of day, neither of which has to make sense.
Duration between(std::int64_t from_ms, std::int64_t to_ms) {
  constexpr double kMostMs = 50.0 * 365 * 86'400'000;  // fits a Duration
  const double ms = static_cast<double>(to_ms) - static_cast<double>(from_ms);
  return std::chrono::milliseconds(static_cast<std::int64_t>(std::clamp(ms, -kMostMs, kMostMs)));
}

// Accepted in the future: the wall clock was set back, and its age begins now.
HeldEvent held(QueuedEvent record, EventTime time) {
  HeldEvent event{.due = time.now};
  event.accepted = time.now - std::max(between(record.accepted_ms, time.wall_ms), Duration(0));
  if (record.invocation.deadline_ms) event.deadline = time.now + between(time.wall_ms, *record.invocation.deadline_ms);
  event.record = std::move(record);
  return event;
}

bool is_of(const HeldEvent& event, const std::string& function) {
  return event.record.invocation.function == function;
}

}  // namespace

Status EventQueue::reserve() {
  if (size() >= options_.limit) {
    return fail(Errc::kResourceExhausted, "{} asynchronous invocations are waiting, the limit is {}; try again later",
                size(), options_.limit);
  }
  ++reserved_;
  return {};
}

void EventQueue::add(QueuedEvent event, EventTime time) {
  --reserved_;
  ready_.push_back(held(std::move(event), time));
}

void EventQueue::restore(QueuedEvent event, EventTime time) {
  HeldEvent restored = held(std::move(event), time);
  if (restored.record.attempts > 0) {
    const Duration left = between(time.wall_ms, restored.record.not_before_ms);
    restored.due =
        time.now + std::clamp(left, Duration(0), backoff(std::min(restored.record.attempts, kMaxEventRetries)));
  }
  waiting_.emplace(restored.due, std::move(restored));
}

std::optional<HeldEvent> EventQueue::next(Instant now) {
  while (!waiting_.empty() && waiting_.begin()->first <= now) {
    ready_.push_back(std::move(waiting_.begin()->second));
    waiting_.erase(waiting_.begin());
  }
  if (ready_.empty() || running_ >= options_.running_limit) return std::nullopt;
  HeldEvent event = std::move(ready_.front());
  ready_.pop_front();
  ++running_;
  return event;
}

EventQueue::Verdict EventQueue::failed(HeldEvent& event, EventTime time, const EventLimits& limits) {
  --running_;
  event.postponed = 0;
  if (++event.record.attempts > limits.retries) return Verdict::kBury;
  const Duration delay = backoff(event.record.attempts);
  event.record.not_before_ms = time.wall_ms + in_ms(delay);
  return wait_until(time.now + delay, event, limits);
}

EventQueue::Verdict EventQueue::postpone(HeldEvent event, Instant now, const EventLimits& limits) {
  --running_;
  Duration delay = kFirstPostponement;
  for (int i = 0; i < event.postponed && delay < kLongestPostponement; ++i) delay *= 2;
  ++event.postponed;
  return wait_until(now + std::min(delay, kLongestPostponement), std::move(event), limits);
}

EventQueue::Verdict EventQueue::wait_until(Instant due, HeldEvent event, const EventLimits& limits) {
  event.due = due;
  if (is_expired(event, due) || is_too_old(event, due, limits)) return Verdict::kBury;
  waiting_.emplace(due, std::move(event));
  return Verdict::kRetry;
}

template <typename Matches>
void EventQueue::wake_if(Matches matches, Instant now) {
  std::vector<HeldEvent> woken;
  for (auto it = waiting_.begin(); it != waiting_.end();) {
    const bool is_woken = it->second.postponed > 0 && matches(it->second);
    if (is_woken) woken.push_back(std::move(it->second));
    it = is_woken ? waiting_.erase(it) : std::next(it);
  }
  for (HeldEvent& event : woken) {
    event.postponed = 0;
    event.due = now;
    waiting_.emplace(now, std::move(event));
  }
}

void EventQueue::wake(const std::string& function, Instant now) {
  wake_if([&](const HeldEvent& event) { return is_of(event, function); }, now);
}

void EventQueue::wake_all(Instant now) {
  wake_if([](const HeldEvent&) { return true; }, now);
}

std::optional<Instant> EventQueue::next_due(Instant now) const {
  if (!ready_.empty()) return now;
  if (waiting_.empty()) return std::nullopt;
  return waiting_.begin()->first;
}

std::vector<QueuedEvent> EventQueue::remove_function(const std::string& function) {
  std::vector<QueuedEvent> removed;
  for (const HeldEvent& event : ready_) {
    if (is_of(event, function)) removed.push_back(event.record);
  }
  std::erase_if(ready_, [&](const HeldEvent& event) { return is_of(event, function); });
  for (const auto& [due, event] : waiting_) {
    if (is_of(event, function)) removed.push_back(event.record);
  }
  std::erase_if(waiting_, [&](const auto& entry) { return is_of(entry.second, function); });
  return removed;
}

}  // namespace fairlead
