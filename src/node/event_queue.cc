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

// What it takes in memory, roughly.
std::size_t memory_of(const QueuedEvent& event) {
  constexpr std::size_t kRecordBytes = 512;
  const Invocation& call = event.invocation;
  std::size_t bytes = kRecordBytes + call.payload.size() + call.client_context.size() + call.trace_id.size();
  if (call.http) {
    bytes += call.http->path.size();
    for (const auto& [name, value] : call.http->headers) bytes += name.size() + value.size();
  }
  return bytes;
}

bool is_of(const HeldEvent& event, const std::string& function) {
  return event.record.invocation.function == function;
}

}  // namespace

std::size_t EventQueue::bytes_of(const QueuedEvent& event) const {
  return std::max(memory_of(event), least_bytes());
}

Status EventQueue::reserve(const QueuedEvent& event, const std::string& tenant) {
  if (size() >= options_.limit) {
    return fail(Errc::kResourceExhausted, "{} asynchronous invocations are waiting, the limit is {}; try again later",
                size(), options_.limit);
  }
  if (Status held = memory_.try_hold(tenant, bytes_of(event)); !held) return held;
  ++reserved_;
  return {};
}

void EventQueue::accepted(QueuedEvent event, const std::string& tenant, EventTime time) {
  --reserved_;
  ready_.push(held(std::move(event), tenant, time));
}

void EventQueue::refused(const QueuedEvent& event, const std::string& tenant) {
  --reserved_;
  memory_.let_go(tenant, bytes_of(event));
}

// Their sizes are not known yet, so a tenant may come to hold more than its part by what one redrive brings.
std::size_t EventQueue::reserve_places(std::size_t most, const std::string& tenant) {
  if (size() >= options_.limit || memory_.is_full()) return 0;
  std::size_t places = std::min(most, options_.limit - size());
  if (!tenant.empty()) {
    places = std::min(places, memory_.room_for(tenant) / std::max<std::size_t>(least_bytes(), 1));
  }
  reserved_ += places;
  return places;
}

void EventQueue::take_place(QueuedEvent event, const std::string& tenant, EventTime time) {
  memory_.hold(tenant, bytes_of(event));
  accepted(std::move(event), tenant, time);
}

// Accepted in the future: the wall clock was set back, and its age begins now.
HeldEvent EventQueue::held(QueuedEvent record, const std::string& tenant, EventTime time) const {
  HeldEvent event{.tenant = tenant, .bytes = bytes_of(record), .due = time.now};
  event.accepted = time.now - std::max(between(record.accepted_ms, time.wall_ms), Duration(0));
  if (record.invocation.deadline_ms) event.deadline = time.now + between(time.wall_ms, *record.invocation.deadline_ms);
  event.record = std::move(record);
  return event;
}

void EventQueue::restore(QueuedEvent event, const std::string& tenant, EventTime time) {
  memory_.hold(tenant, bytes_of(event));
  HeldEvent restored = held(std::move(event), tenant, time);
  if (restored.record.attempts > 0) {
    const Duration left = between(time.wall_ms, restored.record.not_before_ms);
    restored.due =
        time.now + std::clamp(left, Duration(0), backoff(std::min(restored.record.attempts, kMaxEventRetries)));
  }
  waiting_.emplace(restored.due, std::move(restored));
}

std::optional<HeldEvent> EventQueue::next(Instant now) {
  while (!waiting_.empty() && waiting_.begin()->first <= now) {
    ready_.push(std::move(waiting_.begin()->second));
    waiting_.erase(waiting_.begin());
  }
  return ready_.take();
}

void EventQueue::finished(const HeldEvent& event) {
  ready_.give_back(event);
  memory_.let_go(event.tenant, event.bytes);
}

EventQueue::Verdict EventQueue::failed(HeldEvent& event, EventTime time, const EventLimits& limits) {
  event.postponed = 0;
  if (++event.record.attempts > limits.retries) {
    finished(event);
    return Verdict::kBury;
  }
  const Duration delay = backoff(event.record.attempts);
  event.record.not_before_ms = time.wall_ms + in_ms(delay);
  return wait_until(time.now + delay, event, limits);
}

EventQueue::Verdict EventQueue::postpone(HeldEvent event, Instant now, const EventLimits& limits) {
  Duration delay = kFirstPostponement;
  for (int i = 0; i < event.postponed && delay < kLongestPostponement; ++i) delay *= 2;
  ++event.postponed;
  return wait_until(now + std::min(delay, kLongestPostponement), std::move(event), limits);
}

EventQueue::Verdict EventQueue::wait_until(Instant due, HeldEvent event, const EventLimits& limits) {
  event.due = due;
  if (is_expired(event, due) || is_too_old(event, due, limits)) {
    finished(event);
    return Verdict::kBury;
  }
  ready_.give_back(event);
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
  if (ready_.waiting() > 0) return now;
  if (waiting_.empty()) return std::nullopt;
  return waiting_.begin()->first;
}

std::vector<QueuedEvent> EventQueue::remove_function(const std::string& function) {
  std::vector<HeldEvent> gone = ready_.remove_function(function);
  for (auto it = waiting_.begin(); it != waiting_.end();) {
    const bool is_gone = is_of(it->second, function);
    if (is_gone) gone.push_back(std::move(it->second));
    it = is_gone ? waiting_.erase(it) : std::next(it);
  }
  std::vector<QueuedEvent> removed;
  for (HeldEvent& event : gone) {
    memory_.let_go(event.tenant, event.bytes);
    removed.push_back(std::move(event.record));
  }
  return removed;
}

}  // namespace fairlead
