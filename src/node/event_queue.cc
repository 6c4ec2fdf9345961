#include "node/event_queue.h"

#include <algorithm>

namespace fairlead {
namespace {

std::int64_t in_ms(Duration duration) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(duration).count();
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

void EventQueue::add(QueuedEvent event) {
  --reserved_;
  ready_.push_back(std::move(event));
}

void EventQueue::restore(QueuedEvent event) {
  waiting_.emplace(event.not_before_ms, std::move(event));
}

std::optional<QueuedEvent> EventQueue::next(std::int64_t now_ms) {
  while (!waiting_.empty() && waiting_.begin()->first <= now_ms) {
    ready_.push_back(std::move(waiting_.begin()->second));
    waiting_.erase(waiting_.begin());
  }
  if (ready_.empty() || running_ >= options_.running_limit) return std::nullopt;
  QueuedEvent event = std::move(ready_.front());
  ready_.pop_front();
  ++running_;
  return event;
}

void EventQueue::postpone(QueuedEvent event, std::int64_t now_ms) {
  --running_;
  waiting_.emplace(now_ms + in_ms(kPostponement), std::move(event));
}

EventQueue::Verdict EventQueue::failed(QueuedEvent& event, std::int64_t now_ms) {
  --running_;
  ++event.attempts;
  if (event.attempts >= options_.max_attempts) return Verdict::kBury;
  const auto delay = options_.first_retry * (1 << (event.attempts - 1));
  event.not_before_ms = now_ms + in_ms(delay);
  if (is_expired(event, event.not_before_ms)) return Verdict::kBury;
  waiting_.emplace(event.not_before_ms, event);
  return Verdict::kRetry;
}

std::optional<std::int64_t> EventQueue::next_due_ms(std::int64_t now_ms) const {
  if (!ready_.empty()) return now_ms;
  if (waiting_.empty()) return std::nullopt;
  return waiting_.begin()->first;
}

std::vector<QueuedEvent> EventQueue::remove_function(const std::string& function) {
  std::vector<QueuedEvent> removed;
  const auto is_gone = [&](const QueuedEvent& event) { return event.invocation.function == function; };
  std::copy_if(ready_.begin(), ready_.end(), std::back_inserter(removed), is_gone);
  std::erase_if(ready_, is_gone);
  for (const auto& [due, event] : waiting_) {
    if (is_gone(event)) removed.push_back(event);
  }
  std::erase_if(waiting_, [&](const auto& entry) { return is_gone(entry.second); });
  return removed;
}

}  // namespace fairlead
