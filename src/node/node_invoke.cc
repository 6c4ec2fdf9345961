// Invocations: admission, repeats, replies, and the asynchronous ones.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/check.h"
#include "base/clock.h"
#include "base/log.h"
#include "node/node.h"

namespace fairlead {
namespace {

std::string repeat_key(const InvokeRequest& request) {
  if (request.sdk_invocation_id.empty()) return {};
  return request.invocation.function + '\n' + request.sdk_invocation_id;
}

std::string error_payload(std::string_view type, const std::string& request_id, std::string_view what) {
  const nlohmann::json body{{"errorType", type},
                            {"errorMessage", fmt::format("RequestId: {} Error: {}", request_id, what)}};
  return body.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

// Ends that are not a function's answer but the platform's: errors of the API. Empty for the others.
std::optional<Error> api_error(Outcome outcome) {
  switch (outcome) {
    case Outcome::kRemoved: return Error{Errc::kNotFound, "the function was deleted before the invocation could run"};
    case Outcome::kShutdown: return Error{Errc::kUnavailable, "the node is shutting down; try again"};
    case Outcome::kCancelled: return Error{Errc::kUnavailable, "the invocation was cancelled"};
    default: return std::nullopt;
  }
}

// The history is read by those who take its names for functions' (`fairlead sim record`).
void set_name(InvocationRecord& record, const RegisteredFunction& function) {
  if (!function.requested) return record.set_function(function.record.name);
  std::string name = function.record.name;
  std::replace(name.begin(), name.end(), ':', '-');
  record.set_function(name);
}

}  // namespace

Status Node::check_invoke(const std::string& function) {
  const auto found = functions_.get(function);
  if (!found) return fail(found.error());
  return {};
}

NodeService::CancelHandle Node::invoke(InvokeRequest request, Callback<InvokeReply> done) {
  const auto function = functions_.get(request.invocation.function);
  if (!function) {
    done(fail(function.error()));
    return {};
  }
  return invoke(**function, std::move(request), std::move(done));
}

NodeService::CancelHandle Node::invoke(const RegisteredFunction& function, InvokeRequest request,
                                       Callback<InvokeReply> done) {
  const std::string key = repeat_key(request);
  if (!key.empty()) {
    if (const InvokeReply* reply = recent_.find(monotonic_now(), key)) {
      done(*reply);
      return {};
    }
  }
  const std::uint64_t ticket = ++last_ticket_;
  Waiter waiter{std::move(done), request.want_log_tail, ticket};
  InvocationId invocation;
  if (const auto running = live_by_repeat_key_.find(key); !key.empty() && running != live_by_repeat_key_.end()) {
    invocation = running->second;
    live_.at(invocation).waiters.push_back(std::move(waiter));
  } else {
    Live live{.flow = function.flow, .invocation = std::move(request.invocation)};
    live.invocation.request_id = request_ids_.next();
    live.repeat_key = key;
    Callback<InvokeReply> refuse = waiter.done;
    live.waiters.push_back(std::move(waiter));
    const auto admitted = admit(std::move(live));
    if (!admitted) {
      refuse(fail(admitted.error()));
      return {};
    }
    invocation = *admitted;
  }
  return [this, invocation, ticket] { cancel_waiter(invocation, ticket); };
}

bool Node::wants_log_tail(const Live& live) {
  return std::any_of(live.waiters.begin(), live.waiters.end(),
                     [](const Waiter& waiter) { return waiter.want_log_tail; });
}

// What nobody waits for any more leaves the queue; what already runs, runs on.
void Node::cancel_waiter(InvocationId invocation, std::uint64_t ticket) {
  const auto it = live_.find(invocation);
  if (it == live_.end()) return;
  std::erase_if(it->second.waiters, [&](const Waiter& waiter) { return waiter.ticket == ticket; });
  if (!it->second.waiters.empty() || it->second.event) return;
  Actions actions;
  core_.cancel(monotonic_now(), invocation, actions);
  carry_out(std::move(actions));
}

Result<InvocationId> Node::admit(Live live) {
  const InvocationId invocation(++last_invocation_);
  const FlowId flow = live.flow;
  live.arrived = monotonic_now();
  if (!live.repeat_key.empty()) live_by_repeat_key_[live.repeat_key] = invocation;
  const auto it = live_.emplace(invocation, std::move(live)).first;
  Actions actions;
  if (Status arrived = core_.arrive(it->second.arrived, invocation, flow, actions); !arrived) {
    if (arrived.error().code == Errc::kResourceExhausted) note_refused(flow);
    live_by_repeat_key_.erase(it->second.repeat_key);
    live_.erase(it);
    return fail(arrived.error());
  }
  carry_out(std::move(actions));
  return invocation;
}

void Node::act(const Complete& complete) {
  const auto node = live_.extract(complete.invocation);
  FL_CHECK(!node.empty(), "invocation {} is not live", complete.invocation.value());
  Live live = std::move(node.mapped());
  live_by_repeat_key_.erase(live.repeat_key);
  if (live.instance && !after_answers_->has(complete.invocation)) {
    books_.charged(live.instance, complete.service - complete.owed);
  }
  note(live, complete);
  if (const auto error = api_error(complete.outcome)) {
    if (live.event) finish_unrun_event(live, complete);
    for (Waiter& waiter : live.waiters) waiter.done(fail(*error));
    return;
  }
  if (RegisteredFunction* function = functions_.find(complete.flow)) {
    count(function->stats, complete);
    if (function->requested) count(request_stats_, complete);
  }
  InvokeReply reply = reply_for(live, complete);
  if (!live.repeat_key.empty()) recent_.put(monotonic_now(), live.repeat_key, reply);
  if (live.event) finish_event(live, complete, reply);
  if (live.waiters.empty()) return;
  const Waiter last = std::move(live.waiters.back());  // spared a copy of the payload; mostly the only one
  live.waiters.pop_back();
  for (Waiter& waiter : live.waiters) waiter.done(reply);
  last.done(std::move(reply));
}

// ---- history

void Node::note(const Live& live, const Complete& complete) {
  const RegisteredFunction* function = history_ ? functions_.find(complete.flow) : nullptr;
  if (function == nullptr) return;
  InvocationRecord record{.outcome = complete.outcome, .gpu = live.gpu};
  record.at_us =
      std::chrono::duration_cast<std::chrono::microseconds>(live.arrived.time_since_epoch() + epoch_).count();
  set_name(record, *function);
  record.queue = complete.queue_time;
  record.starting = complete.start_time;
  record.instance_start = complete.instance_start;
  if (live.gpu) {
    record.start = complete.start;
    record.run = monotonic_now() - live.delivered;
    record.gpu_time = complete.service - complete.owed;
  }
  if (after_answers_->has(complete.invocation)) return after_answers_->keep(complete.invocation, record);
  history_->add(record);
}

void Node::note_refused(FlowId flow) {
  if (!history_) return;
  InvocationRecord record;
  record.at_us =
      std::chrono::duration_cast<std::chrono::microseconds>(monotonic_now().time_since_epoch() + epoch_).count();
  set_name(record, *functions_.find(flow));
  history_->add(record);
}

InvokeReply Node::reply_for(Live& live, const Complete& complete) const {
  InvokeReply reply;
  reply.request_id = live.invocation.request_id;
  reply.log_tail = std::move(live.log_tail);
  reply.start = complete.start;
  reply.queue_time = complete.queue_time + complete.start_time;
  reply.exec_time = complete.service - complete.owed;
  reply.gpu = live.gpu;
  if (complete.outcome != Outcome::kSuccess) reply.function_error = "Unhandled";
  switch (complete.outcome) {
    case Outcome::kTimeout:
      reply.payload = error_payload("Sandbox.Timedout", live.invocation.request_id,
                                    fmt::format("Task timed out after {:.2f} seconds", to_seconds(live.timeout)));
      break;
    case Outcome::kCrashed:
      reply.payload = error_payload("Runtime.ExitError", live.invocation.request_id, "Runtime exited: " + live.failure);
      break;
    case Outcome::kStartFailed:
      if (live.answer) {  // what it said at POST /runtime/init/error
        reply.payload = std::move(live.answer->payload);
      } else {
        const std::string what = live.failure.empty() ? "no request for the first invocation in time" : live.failure;
        reply.payload =
            error_payload("Runtime.InitError", live.invocation.request_id, "The function did not start: " + what);
      }
      break;
    default:
      FL_CHECK(live.answer.has_value(), "invocation {} ended without an answer", complete.invocation.value());
      reply.content_type = std::move(live.answer->content_type);
      reply.payload = std::move(live.answer->payload);
  }
  return reply;
}

// ---- asynchronous invocations

void Node::invoke_event(InvokeRequest request, Callback<std::string> accepted) {
  const auto function = functions_.get(request.invocation.function);
  if (!function) return accepted(fail(function.error()));
  if (draining_) return accepted(fail(Errc::kUnavailable, "the node is shutting down; try again"));
  if (Status reserved = events_.reserve(); !reserved) return accepted(fail(reserved.error()));

  QueuedEvent event{.invocation = std::move(request.invocation)};
  event.invocation.request_id = request_ids_.next();
  event.accepted_ms = wall_clock_ms();
  QueuedEvent durable = event;
  store_->put_event(std::move(durable), [this, event = std::move(event), accepted](Status written) mutable {
    if (!written) {
      events_.release();
      return accepted(fail(written.error()));
    }
    accepted(event.invocation.request_id);
    events_.add(std::move(event));
    submit_events();
  });
}

void Node::submit_events() {
  constexpr int kMaxRefusals = 64;  // then the node as a whole has no room
  int refusals = 0;
  while (!draining_ && refusals < kMaxRefusals) {
    auto event = events_.next(wall_clock_ms());
    if (!event) break;
    RegisteredFunction* function = functions_.find(event->invocation.function);
    if (function == nullptr) {  // deleted while the event waited on disk
      events_.finished();
      store_->finish_event(event->invocation.request_id, {});
      continue;
    }
    Live live{.flow = function->flow, .invocation = event->invocation};
    live.event = *event;
    if (!admit(std::move(live))) {
      events_.postpone(*std::move(event), wall_clock_ms());
      ++refusals;
    }
  }
  arm_event_timer();
}

void Node::finish_event(Live& live, const Complete& complete, const InvokeReply& reply) {
  QueuedEvent& event = *live.event;
  if (complete.outcome == Outcome::kSuccess) {
    events_.finished();
    store_->finish_event(event.invocation.request_id, [this](Status) { note_drained(); });
  } else if (events_.failed(event, wall_clock_ms()) == EventQueue::Verdict::kRetry) {
    store_->put_event(event, [this](Status) { note_drained(); });
  } else {
    spdlog::warn("asynchronous invocation {} of {} failed {} times: dead letter", event.invocation.request_id,
                 event.invocation.function, event.attempts);
    DeadLetter letter{.request_id = event.invocation.request_id,
                      .function = event.invocation.function,
                      .payload = event.invocation.payload};
    letter.error_type = std::string(outcome_name(complete.outcome));
    letter.error_message = reply.payload.substr(0, 4096);
    letter.attempts = event.attempts;
    letter.accepted_ms = event.accepted_ms;
    letter.failed_ms = wall_clock_ms();
    store_->bury_event(std::move(letter), [this](Status) { note_drained(); });
  }
  boost::asio::post(io_, [this] { submit_events(); });
}

// It did not run. Of a deleted function: gone with it. At a graceful stop: left on disk for the next start. Else its
// function has no concurrency left: later.
void Node::finish_unrun_event(Live& live, const Complete& complete) {
  if (complete.outcome == Outcome::kRemoved) {
    events_.finished();
    store_->finish_event(live.event->invocation.request_id, {});
  } else if (draining_) {
    events_.finished();
  } else {
    events_.postpone(*std::move(live.event), wall_clock_ms());
    arm_event_timer();
  }
}

void Node::arm_event_timer() {
  constexpr std::int64_t kFullNodeRetryMs = 100;  // ready events are still here because the node has no room
  const std::int64_t now = wall_clock_ms();
  const auto due = events_.next_due_ms(now);
  if (draining_ || !due) return;
  event_timer_.expires_after(std::chrono::milliseconds(std::max(kFullNodeRetryMs, *due - now)));
  event_timer_.async_wait([this](boost::system::error_code error) {
    if (!error) submit_events();
  });
}

}  // namespace fairlead
