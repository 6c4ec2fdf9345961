#include "node/async_invocations.h"

#include <algorithm>
#include <boost/asio/post.hpp>
#include <memory>
#include <utility>

#include "base/log.h"

namespace fairlead {

AsyncInvocations::AsyncInvocations(boost::asio::io_context& io, EventQueueOptions options, Store& store,
                                   Functions& functions, RequestIds& request_ids, Invocations& invocations,
                                   FailureWords words, std::function<void()> written)
    : io_(io),
      queue_(options),
      store_(store),
      functions_(functions),
      request_ids_(request_ids),
      invocations_(invocations),
      words_(std::move(words)),
      written_(std::move(written)),
      timer_(io) {}

void AsyncInvocations::restore(std::vector<QueuedEvent> events) {
  for (QueuedEvent& event : events) queue_.restore(std::move(event));
}

void AsyncInvocations::accept(InvokeRequest request, NodeService::Callback<std::string> accepted) {
  const auto function = functions_.get(request.invocation.function);
  if (!function) return accepted(fail(function.error()));
  if (draining_) return accepted(fail(Errc::kUnavailable, "the node is shutting down; try again"));
  if (Status reserved = queue_.reserve(); !reserved) return accepted(fail(reserved.error()));

  QueuedEvent event{.invocation = std::move(request.invocation)};
  event.invocation.request_id = request_ids_.next();
  event.accepted_ms = wall_clock_ms();
  QueuedEvent durable = event;
  store_.put_event(std::move(durable), [this, event = std::move(event), accepted](Status written) mutable {
    if (!written) {
      queue_.release();
      return accepted(fail(written.error()));
    }
    accepted(event.invocation.request_id);
    queue_.add(std::move(event));
    submit();
  });
}

void AsyncInvocations::submit() {
  constexpr int kMaxRefusals = 64;  // then the node as a whole has no room
  int refusals = 0;
  while (!draining_ && refusals < kMaxRefusals) {
    auto event = queue_.next(wall_clock_ms());
    if (!event) break;
    if (EventQueue::is_expired(*event, wall_clock_ms())) {
      expire(*event);
      continue;
    }
    const RegisteredFunction* const function = functions_.find(event->invocation.function);
    if (function == nullptr) {  // deleted while the event waited on disk
      queue_.finished();
      store_.finish_event(event->invocation.request_id, {});
      continue;
    }
    const auto shared = std::make_shared<QueuedEvent>(*std::move(event));  // with what is called when it is over
    const Status submitted = invocations_.submit(function->flow, shared->invocation,
                                                 [this, shared](const Complete& complete, const Outcome* outcome) {
                                                   over(std::move(*shared), complete, outcome);
                                                 });
    if (!submitted) {
      queue_.postpone(std::move(*shared), wall_clock_ms());
      ++refusals;
    }
  }
  arm_timer();
}

void AsyncInvocations::over(QueuedEvent event, const Complete& complete, const Outcome* outcome) {
  if (outcome == nullptr) return finish_unrun(std::move(event), complete);
  const auto written = [told = written_](Status) { told(); };
  if (!outcome->failed()) {
    queue_.finished();
    store_.finish_event(event.invocation.request_id, written);
  } else if (outcome->kind == OutcomeKind::kExpired) {  // it has not run: that is no attempt
    queue_.finished();
    bury(event, *outcome);
  } else if (queue_.failed(event, wall_clock_ms()) == EventQueue::Verdict::kRetry) {
    store_.put_event(std::move(event), written);
  } else {
    bury(event, *outcome);
  }
  boost::asio::post(io_, [this] { submit(); });
}

// Its deadline passed before the core had room for it.
void AsyncInvocations::expire(const QueuedEvent& event) {
  queue_.finished();
  Outcome outcome{.request_id = event.invocation.request_id, .kind = OutcomeKind::kExpired};
  outcome.failure.text = "was not started: its deadline passed while it waited";
  bury(event, std::move(outcome));
}

void AsyncInvocations::bury(const QueuedEvent& event, Outcome outcome) {
  spdlog::warn("asynchronous invocation {} of {} is a dead letter after {} attempts: {}", event.invocation.request_id,
               event.invocation.function, event.attempts, outcome_name(outcome.kind));
  DeadLetter letter{.request_id = event.invocation.request_id,
                    .function = event.invocation.function,
                    .payload = event.invocation.payload};
  letter.error_type = std::string(outcome_name(outcome.kind));
  letter.error_message = words_.document(std::move(outcome)).substr(0, 4096);
  letter.attempts = event.attempts;
  letter.accepted_ms = event.accepted_ms;
  letter.failed_ms = wall_clock_ms();
  store_.bury_event(std::move(letter), [told = written_](Status) { told(); });
}

// It did not run. Of a deleted function: gone with it. At a graceful stop: left on disk for the next start. Else its
// function has no concurrency left: later.
void AsyncInvocations::finish_unrun(QueuedEvent event, const Complete& complete) {
  if (complete.outcome == OutcomeKind::kRemoved) {
    queue_.finished();
    store_.finish_event(event.invocation.request_id, {});
  } else if (draining_) {
    queue_.finished();
  } else {
    queue_.postpone(std::move(event), wall_clock_ms());
    arm_timer();
  }
}

void AsyncInvocations::function_removed(const std::string& name) {
  for (const QueuedEvent& event : queue_.remove_function(name)) store_.finish_event(event.invocation.request_id, {});
}

void AsyncInvocations::arm_timer() {
  constexpr std::int64_t kFullNodeRetryMs = 100;  // ready events are still here because the node has no room
  const std::int64_t now = wall_clock_ms();
  const auto due = queue_.next_due_ms(now);
  if (draining_ || !due) return;
  timer_.expires_after(std::chrono::milliseconds(std::max(kFullNodeRetryMs, *due - now)));
  timer_.async_wait([this](boost::system::error_code error) {
    if (!error) submit();
  });
}

}  // namespace fairlead
