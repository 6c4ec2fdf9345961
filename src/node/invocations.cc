#include "node/invocations.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/clock.h"
#include "base/wall_clock.h"
#include "model/tenant.h"

namespace fairlead {
namespace {

std::string repeat_key(const InvokeRequest& request) {
  if (request.sdk_invocation_id.empty()) return {};
  return request.invocation.function + '\n' + request.sdk_invocation_id;
}

// Ends that are not a function's answer but the platform's: errors of the API. Empty for the others.
std::optional<Error> api_error(OutcomeKind outcome) {
  switch (outcome) {
    case OutcomeKind::kRemoved:
      return Error{Errc::kNotFound, "the function was deleted before the invocation could run"};
    case OutcomeKind::kShutdown: return Error{Errc::kUnavailable, "the node is shutting down; try again"};
    case OutcomeKind::kCancelled: return Error{Errc::kUnavailable, "the invocation was cancelled"};
    default: return std::nullopt;
  }
}

constexpr std::size_t kMostFailureBytes = 256;  // in a trace

std::string expiry_text(Duration waited) {
  return fmt::format("was not started: its deadline passed after {:.2f} seconds in the queue", to_seconds(waited));
}

// By the clock that the core goes by.
Instant deadline_of(const Invocation& invocation) {
  if (!invocation.deadline_ms) return Instant::max();
  return monotonic_now() + std::chrono::milliseconds(*invocation.deadline_ms - wall_clock_ms());
}

}  // namespace

Invocations::Invocations(CoreDriver& driver, Functions& functions, RequestIds& request_ids, Charges& charges,
                         InvocationNotes& notes)
    : driver_(driver), functions_(functions), request_ids_(request_ids), charges_(charges), notes_(notes) {
  requests_.set_running([this](const RecentRequests::Visit& visit) { each_running(visit); });
}

Invocations::CancelHandle Invocations::invoke(const RegisteredFunction& function, InvokeRequest request,
                                              Callback<Outcome> done) {
  const std::string key = repeat_key(request);
  if (!key.empty()) {
    if (const Outcome* known = recent_.find(monotonic_now(), key)) {
      done(*known);
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
    if (live.invocation.request_id.empty()) live.invocation.request_id = request_ids_.next();
    live.repeat_key = key;
    live.stream = std::move(request.stream);
    Callback<Outcome> refuse = waiter.done;
    live.waiters.push_back(std::move(waiter));
    const Instant deadline = deadline_of(live.invocation);
    const auto admitted = admit(std::move(live), deadline);
    if (!admitted) {
      refuse(fail(admitted.error()));
      return {};
    }
    invocation = *admitted;
  }
  return [this, invocation, ticket] { cancel_waiter(invocation, ticket); };
}

Status Invocations::submit(FlowId flow, Invocation invocation, Instant deadline, Over over) {
  Live live{.flow = flow, .invocation = std::move(invocation)};
  live.over = std::move(over);
  const auto admitted = admit(std::move(live), deadline);
  if (!admitted) return fail(admitted.error());
  return {};
}

Result<InvocationId> Invocations::admit(Live live, Instant deadline) {
  const InvocationId invocation(++last_invocation_);
  const FlowId flow = live.flow;
  live.arrived = monotonic_now();
  const RegisteredFunction* const function = functions_.find(flow);
  if (function != nullptr) live.invocation.tenant = tenant_of(function->record.config.tags);
  if (!live.repeat_key.empty()) live_by_repeat_key_[live.repeat_key] = invocation;
  if (sinks_->traces != nullptr) live.spans = sinks_->traces->begin(live.invocation.trace_id);
  const auto it = live_.emplace(invocation, std::move(live)).first;
  Actions actions;
  if (Status arrived = driver_.core().arrive(it->second.arrived, invocation, flow, actions, deadline); !arrived) {
    if (arrived.error().code == Errc::kResourceExhausted) notes_.refused(it->second.arrived, flow);
    live_by_repeat_key_.erase(it->second.repeat_key);
    live_.erase(it);
    return fail(arrived.error());
  }
  driver_.carry_out(std::move(actions));
  return invocation;
}

// What nobody waits for any more leaves the queue; of what is delivered the runner is told. What already runs, runs on.
void Invocations::cancel_waiter(InvocationId invocation, std::uint64_t ticket) {
  const auto it = live_.find(invocation);
  if (it == live_.end()) return;
  std::erase_if(it->second.waiters, [&](const Waiter& waiter) { return waiter.ticket == ticket; });
  if (!it->second.waiters.empty() || it->second.over) return;
  if (it->second.instance) {
    if (abandoned_) abandoned_(it->second.instance, invocation);
    return;
  }
  driver_.tell([&](Core& core, Instant now, Actions& out) { core.cancel(now, invocation, out); });
}

bool Invocations::is_wanted(InvocationId invocation) const {
  const auto it = live_.find(invocation);
  return it != live_.end() && (it->second.over || !it->second.waiters.empty());
}

void Invocations::cancel_submitted(Instant now, Actions& out) {
  for (const auto& [invocation, live] : live_) {
    if (live.over) driver_.core().cancel(now, invocation, out);
  }
}

DeliverRequest Invocations::deliver(const Deliver& action) {
  const auto it = live_.find(action.invocation);
  FL_CHECK(it != live_.end(), "invocation {} is not live", action.invocation.value());
  Live& live = it->second;
  live.instance = action.instance;
  live.gpu = action.gpu;
  live.delivered = monotonic_now();
  live.timeout = action.deadline - live.delivered;
  DeliverRequest request{.id = action.invocation};
  std::string payload = live.over ? live.invocation.payload : std::exchange(live.invocation.payload, {});
  request.invocation = live.invocation;
  request.stream = live.stream;
  request.delivery = {.start = action.start, .queue_time = live.delivered - live.arrived, .gpu = action.gpu};
  request.invocation.payload = std::move(payload);
  const auto left_ms = std::chrono::duration_cast<std::chrono::milliseconds>(live.timeout).count();
  request.deadline_epoch_ms = wall_clock_ms() + left_ms;
  return request;
}

bool Invocations::wants_log_tail(InvocationId invocation) const {
  const auto it = live_.find(invocation);
  return it != live_.end() && std::any_of(it->second.waiters.begin(), it->second.waiters.end(),
                                          [](const Waiter& waiter) { return waiter.want_log_tail; });
}

void Invocations::set_log_tail(InvocationId invocation, std::string log_tail) {
  live_.at(invocation).log_tail = std::move(log_tail);
}

void Invocations::memory_returned(InvocationId invocation, Instant ended, Duration took) {
  const auto it = live_.find(invocation);
  if (it == live_.end() || ended <= it->second.arrived) return;
  it->second.memory = std::min(took, ended - it->second.arrived);
  it->second.memory_ended = ended;
}

// What is not deployed has no name that says anything.
std::string_view Invocations::name_of(FlowId flow, const Invocation& invocation) const {
  const RegisteredFunction* const function = functions_.find(flow);
  return function != nullptr && function->requested ? "(one-off request)" : std::string_view(invocation.function);
}

void Invocations::each_running(const RecentRequests::Visit& visit) const {
  for (const auto& [invocation, live] : live_) {
    if (!live.gpu) continue;
    visit({.function = name_of(live.flow, live.invocation),
           .tenant = live.invocation.tenant,
           .delivered = live.delivered});
  }
}

bool Invocations::answered(Answer answer) {
  const auto it = live_.find(answer.invocation);
  if (it == live_.end()) return false;  // timed out a moment ago
  Live& live = it->second;
  live.is_nodes_fault = answer.is_nodes_fault;
  if (live.is_nodes_fault) live.failure = answer.failure.text;
  live.answer = std::move(answer);
  return true;
}

void Invocations::instance_gone(InvocationId invocation, const ExitInfo& exit) {
  const auto it = live_.find(invocation);
  if (it == live_.end()) return;
  it->second.failure = exit.reason;
  it->second.is_nodes_fault = exit.is_nodes_fault;
  if (!exit.init_error_payload.empty() || exit.init_failure != Failure()) {  // what was said of a failed start
    it->second.answer = Answer{.payload = exit.init_error_payload, .failure = exit.init_failure};
  }
}

void Invocations::act(const Complete& complete) {
  const auto node = live_.extract(complete.invocation);
  FL_CHECK(!node.empty(), "invocation {} is not live", complete.invocation.value());
  Live live = std::move(node.mapped());
  live_by_repeat_key_.erase(live.repeat_key);
  if (live.instance) charges_.completed(live.instance, complete);
  note(live, complete);
  if (const auto error = api_error(complete.outcome)) {
    remember(live, complete, error->message, std::nullopt);
    if (live.over) live.over({.complete = complete, .outcome = nullptr});
    for (Waiter& waiter : live.waiters) waiter.done(fail(*error));
    return;
  }
  functions_.count(complete);
  if (sinks_->usage != nullptr) {
    const bool has_failed = complete.outcome != OutcomeKind::kSuccess;
    sinks_->usage->called(live.invocation.tenant, name_of(complete.flow, live.invocation), has_failed,
                          complete.service);
  }
  Outcome outcome = outcome_of(live, complete);
  if (outcome.first_byte) functions_.count_first_byte(complete.flow, *outcome.first_byte);
  remember(live, complete, live.is_nodes_fault ? live.failure : outcome.failure.text, outcome.first_byte);
  if (live.is_nodes_fault) return end_by_nodes_fault(live, complete, std::move(outcome));
  const bool has_run = complete.outcome != OutcomeKind::kExpired;  // who asks again after that may be luckier
  if (has_run && !live.repeat_key.empty()) {
    recent_.put(monotonic_now(), live.invocation.tenant, live.repeat_key, outcome);
  }
  if (live.over) live.over({.complete = complete, .outcome = &outcome});
  if (live.waiters.empty()) return;
  const Waiter last = std::move(live.waiters.back());  // spared a copy of the payload; mostly the only one
  live.waiters.pop_back();
  for (Waiter& waiter : live.waiters) waiter.done(outcome);
  last.done(std::move(outcome));
}

// An error of the API instead of the function's, and nothing that a repeat would be given.
void Invocations::end_by_nodes_fault(Live& live, const Complete& complete, Outcome outcome) {
  outcome.failure.text = live.failure;
  if (live.over) live.over({.complete = complete, .outcome = &outcome, .is_nodes_fault = true});
  const bool has_begun = complete.outcome != OutcomeKind::kStartFailed;
  for (Waiter& waiter : live.waiters) {
    waiter.done(fail(Errc::kUnavailable, "the node failed the invocation, {}: {}; try again",
                     has_begun ? "which had begun" : "which did not begin", outcome.failure.text));
  }
}

void Invocations::note(const Live& live, const Complete& complete) {
  auto record = notes_.record_of(live.arrived, complete);
  if (!record) return;
  record->gpu = live.gpu;
  if (live.gpu) {
    record->start = complete.start;
    record->run = monotonic_now() - live.delivered;
    record->gpu_time = complete.service - complete.owed;
  }
  charges_.is_open(complete.invocation) ? charges_.keep(complete.invocation, *record) : notes_.add(*record);
}

void Invocations::remember(const Live& live, const Complete& complete, std::string failure,
                           std::optional<Duration> first_byte) {
  const Instant now = monotonic_now();
  const bool has_run = static_cast<bool>(live.gpu);
  RequestTrace trace{.request_id = live.invocation.request_id,
                     .function = std::string(name_of(live.flow, live.invocation)),
                     .tenant = live.invocation.tenant,
                     .version = live.invocation.version,
                     .outcome = complete.outcome,
                     .failure = std::move(failure)};
  trace.accepted_ms =
      wall_clock_ms() - std::chrono::duration_cast<std::chrono::milliseconds>(now - live.arrived).count();
  trace.start = complete.start;
  trace.gpu = live.gpu;
  trace.queue = complete.queue_time;
  trace.starting = complete.start_time;
  trace.instance_start = complete.instance_start;
  trace.memory = live.memory;
  if (has_run) trace.run = now - live.delivered;
  trace.gpu_time = complete.service - complete.owed;
  trace.first_byte = first_byte;
  const RecentRequests::Times times{.arrived = live.arrived,
                                    .chosen = has_run ? live.arrived + complete.queue_time : now,
                                    .delivered = has_run ? live.delivered : Instant(),
                                    .over = now};
  tell(live, trace, times);
  requests_.add(std::move(trace), times);
}

void Invocations::tell(const Live& live, const RequestTrace& trace, const RecentRequests::Times& times) {
  const bool is_there = functions_.find(live.flow) != nullptr;
  if (sinks_->latencies != nullptr && is_there && !api_error(trace.outcome)) {
    sinks_->latencies->add(trace, live.spans ? &live.spans->caller : nullptr);
  }
  if (!live.spans) return;
  const auto since = [&](Instant at) { return at == Instant() ? Duration(0) : at - times.arrived; };
  TracedRequest traced{.ids = *live.spans,
                       .request = trace,
                       .peer = {},
                       .began_ns = wall_clock_ns() - since(times.over).count(),
                       .chosen = since(times.chosen),
                       .delivered = since(times.delivered),
                       .memory_ended = since(live.memory_ended),
                       .over = since(times.over)};
  std::string& failure = traced.request.failure;
  failure.resize(std::min(failure.size(), kMostFailureBytes));
  sinks_->traces->over(std::move(traced));
}

Outcome Invocations::outcome_of(Live& live, const Complete& complete) {
  Outcome outcome{.request_id = live.invocation.request_id, .kind = complete.outcome};
  outcome.log_tail = std::move(live.log_tail);
  outcome.start = complete.start;
  outcome.queue_time = complete.queue_time + complete.start_time;
  outcome.gpu_time = complete.service - complete.owed;
  outcome.gpu = live.gpu;
  outcome.version = live.invocation.version;
  if (complete.outcome == OutcomeKind::kTimeout) {
    outcome.failure.text = fmt::format("timed out after {:.2f} seconds", to_seconds(live.timeout));
  } else if (complete.outcome == OutcomeKind::kExpired) {
    outcome.failure.text = expiry_text(outcome.queue_time);
  } else if (complete.outcome == OutcomeKind::kCrashed) {
    outcome.failure.text = live.failure;
  } else if (complete.outcome == OutcomeKind::kStartFailed && !live.answer) {
    outcome.failure.text = live.failure.empty() ? "no request for the first invocation in time" : live.failure;
  } else {
    FL_CHECK(live.answer.has_value(), "invocation {} ended without an answer", complete.invocation.value());
    outcome.content_type = std::move(live.answer->content_type);
    outcome.payload = std::move(live.answer->payload);
    outcome.failure = std::move(live.answer->failure);
    outcome.was_streamed = live.answer->was_streamed;
    if (const auto after = live.answer->first_byte) outcome.first_byte = live.delivered - live.arrived + *after;
  }
  return outcome;
}

}  // namespace fairlead
