#include "node/async_invocations.h"

#include <algorithm>
#include <boost/asio/post.hpp>
#include <memory>
#include <utility>

#include "base/clock.h"
#include "base/log.h"
#include "model/tenant.h"

namespace fairlead {
namespace {

constexpr std::size_t kMostRedriven = 1000;  // dead letters at a time

EventTime this_moment() {
  return {.now = monotonic_now(), .wall_ms = wall_clock_ms()};
}

}  // namespace

AsyncInvocations::AsyncInvocations(boost::asio::io_context& io, EventQueueOptions options, Store& store,
                                   Functions& functions, RequestIds& request_ids, Invocations& invocations,
                                   FailureWords words, std::function<void()> written)
    : io_(io),
      queue_(options),
      configs_(store, functions),
      store_(store),
      functions_(functions),
      request_ids_(request_ids),
      invocations_(invocations),
      words_(std::move(words)),
      written_(std::move(written)),
      timer_(io) {}

void AsyncInvocations::restore(std::vector<QueuedEvent> events, std::map<std::string, EventInvokeConfig> configs) {
  configs_.restore(std::move(configs));
  for (QueuedEvent& event : events) {
    const std::string& id = event.invocation.request_id;
    if (functions_.find(event.invocation.function) == nullptr) {  // before anybody makes one of its name
      store_.finish_event(id, told(id));
      continue;
    }
    const std::string tenant = tenant_of_function(event.invocation.function);
    queue_.restore(std::move(event), tenant, this_moment());
  }
}

void AsyncInvocations::accept(InvokeRequest request, NodeService::Callback<std::string> accepted) {
  const auto function = functions_.get(request.invocation.function);
  if (!function) return accepted(fail(function.error()));
  if (now_.is_draining) return accepted(fail(Errc::kUnavailable, "the node is shutting down; try again"));
  if ((*function)->is_leaving) {
    return accepted(fail(Errc::kConflict, "function {} is being deleted", request.invocation.function));
  }
  const std::string tenant = tenant_of((*function)->record.config.tags);
  request.invocation.request_id = request_ids_.next();
  const auto version = choose_version(request);
  if (!version) return accepted(fail(version.error()));
  QueuedEvent event{.invocation = std::move(request.invocation)};
  event.invocation.version = *version;
  if (Status reserved = queue_.reserve(event, tenant); !reserved) return accepted(fail(reserved.error()));
  event.accepted_ms = wall_clock_ms();
  QueuedEvent durable = event;
  store_.put_event(std::move(durable), [this, event = std::move(event), tenant, accepted](Status written) mutable {
    if (!written) {
      queue_.refused(event, tenant);
      return accepted(fail(written.error()));
    }
    accepted(event.invocation.request_id);
    queue_.accepted(std::move(event), tenant, this_moment());
    submit();
  });
}

void AsyncInvocations::submit() {
  constexpr int kMaxRefusals = 64;  // then the node as a whole has no room
  int refusals = 0;
  while (!now_.is_draining && refusals < kMaxRefusals && (!lease_.may_start || lease_.may_start())) {
    const Instant now = monotonic_now();
    auto event = queue_.next(now);
    if (!event) break;
    const RegisteredFunction* const function = flow_of(event->record.invocation);
    if (function == nullptr) {  // deleted while the event waited on disk
      finish_unrun(*std::move(event), OutcomeKind::kRemoved);
    } else if (EventQueue::is_expired(*event, now)) {
      queue_.finished(*event);
      bury_unrun(event->record, "was not started: its deadline passed while it waited");
    } else if (const EventLimits most = limits(*event); EventQueue::is_too_old(*event, now, most)) {
      queue_.finished(*event);
      bury_unrun(event->record,
                 fmt::format("was not started: it waited longer than its MaximumEventAgeInSeconds, {:.0f}",
                             to_seconds(most.age)));
    } else {
      const auto shared = std::make_shared<HeldEvent>(*std::move(event));  // with what is called when it is over
      const Status submitted =
          invocations_.submit(function->flow, shared->record.invocation, shared->deadline,
                              [this, shared, flow = function->flow, lease = lease_.number](const Ended& ended) {
                                const bool has_run = ended.outcome != nullptr && !ended.outcome->failed();
                                if (lease != lease_.number && !has_run) return over_elsewhere(*shared);
                                over(std::move(*shared), flow, ended);
                              });
      if (submitted) continue;
      finish_unrun(std::move(*shared), OutcomeKind::kCancelled);
      ++refusals;
    }
  }
  arm_timer();
}

Result<std::uint64_t> AsyncInvocations::choose_version(const InvokeRequest& request) const {
  if (versions_ == nullptr) return 0;
  return versions_->choose(request.invocation.function, request.qualifier, request.invocation.request_id);
}

RegisteredFunction* AsyncInvocations::flow_of(const Invocation& invocation) const {
  if (versions_ == nullptr) return functions_.find(invocation.function);
  return versions_->flow_of(invocation.function, invocation.version);
}

void AsyncInvocations::over(HeldEvent event, FlowId flow, const Ended& ended) {
  if (ended.outcome == nullptr) {
    finish_unrun(std::move(event), ended.complete.outcome);
    return arm_timer();
  }
  // The function of that name, if there is one, may be somebody else's by now: nothing is tried again or kept for it.
  if (functions_.find(flow) == nullptr) {
    finish_unrun(std::move(event), OutcomeKind::kRemoved);
    boost::asio::post(io_, [this] { submit(); });
    return;
  }
  const Outcome& outcome = *ended.outcome;
  if (!outcome.failed()) {
    queue_.finished(event);
    const std::string& id = event.record.invocation.request_id;
    store_.finish_event(id, told(id));
    if (told_over_) told_over_(event.record.invocation, outcome);
  } else if (outcome.kind == OutcomeKind::kExpired) {  // it has not run: that is no attempt
    queue_.finished(event);
    bury(event.record, outcome);
  } else if (ended.is_nodes_fault) {
    ++counters_.node_faults;
    spdlog::log(event.postponed == 0 ? spdlog::level::warn : spdlog::level::debug,
                "asynchronous invocation {} of {} did not run, it will be tried again: {}",
                event.record.invocation.request_id, event.record.invocation.function, outcome.failure.text);
    postpone(std::move(event), outcome);
  } else {
    failed(std::move(event), outcome);
  }
  boost::asio::post(io_, [this] { submit(); });
}

// Who claimed it tries it again.
void AsyncInvocations::over_elsewhere(const HeldEvent& event) {
  queue_.finished(event);
  written_();
  boost::asio::post(io_, [this] { submit(); });
}

void AsyncInvocations::failed(HeldEvent event, Outcome outcome) {
  const EventLimits most = limits(event);
  if (queue_.failed(event, this_moment(), most) == EventQueue::Verdict::kBury) {
    return bury(event.record, std::move(outcome));
  }
  ++counters_.retries;
  Store::Done done = told(event.record.invocation.request_id);
  store_.retry_event(std::move(event.record), std::move(done));
}

// What is on disk of it stays as it is: after a restart it is tried at once.
void AsyncInvocations::postpone(HeldEvent event, Outcome outcome) {
  QueuedEvent record = event.record;
  const EventLimits most = limits(event);
  if (queue_.postpone(std::move(event), monotonic_now(), most) == EventQueue::Verdict::kRetry) return;
  if (outcome.failure.text.empty()) outcome.failure.text = "was not started: there was no room for it";
  outcome.failure.text += fmt::format(
      "; no attempt is left within its MaximumEventAgeInSeconds, {:.0f}, and its deadline", to_seconds(most.age));
  bury(record, std::move(outcome));
}

// Of a deleted function: gone with it. At a graceful stop: left on disk for the next start. Else its function has no
// concurrency left, or the core no room: later.
void AsyncInvocations::finish_unrun(HeldEvent event, OutcomeKind kind) {
  const Invocation& invocation = event.record.invocation;
  if (kind == OutcomeKind::kRemoved && invocation.version != 0 && functions_.find(invocation.function) != nullptr) {
    queue_.finished(event);
    bury_unrun(event.record, fmt::format("was not run: version {} of the function was deleted", invocation.version));
  } else if (kind == OutcomeKind::kRemoved) {
    queue_.finished(event);
    const std::string& id = event.record.invocation.request_id;
    store_.finish_event(id, told(id));
  } else if (now_.is_draining) {
    queue_.finished(event);
  } else {
    Outcome outcome{.request_id = event.record.invocation.request_id, .kind = OutcomeKind::kExpired};
    postpone(std::move(event), std::move(outcome));
  }
}

void AsyncInvocations::bury_unrun(const QueuedEvent& event, std::string why) {
  Outcome outcome{.request_id = event.invocation.request_id, .kind = OutcomeKind::kExpired};
  outcome.failure.text = std::move(why);
  bury(event, std::move(outcome));
}

void AsyncInvocations::bury(const QueuedEvent& event, Outcome outcome) {
  ++counters_.dead_letters;
  spdlog::warn("asynchronous invocation {} of {} is a dead letter after {} attempts: {}", event.invocation.request_id,
               event.invocation.function, event.attempts, outcome_name(outcome.kind));
  if (told_over_) told_over_(event.invocation, outcome);
  DeadLetter letter{.request_id = event.invocation.request_id,
                    .function = event.invocation.function,
                    .payload = event.invocation.payload,
                    .client_context = event.invocation.client_context,
                    .trace_id = event.invocation.trace_id,
                    .http = event.invocation.http};
  letter.version = event.invocation.version;
  letter.error_type = std::string(outcome_name(outcome.kind));
  letter.error_message = words_.document(std::move(outcome)).substr(0, 4096);
  letter.attempts = event.attempts;
  letter.accepted_ms = event.accepted_ms;
  letter.failed_ms = wall_clock_ms();
  Store::Done done = told(letter.request_id);
  store_.bury_event(std::move(letter), std::move(done));
}

// What could not be written is tried again after the next start, from what is on disk.
Store::Done AsyncInvocations::told(const std::string& request_id) const {
  return [written = written_, request_id](const Status& status) {
    if (!status) {
      spdlog::error("what became of asynchronous invocation {} could not be written, a start runs it again: {}",
                    request_id, status.error().message);
    }
    written();
  };
}

void AsyncInvocations::function_changed(const std::string& name) {
  queue_.wake(name, monotonic_now());
  submit();
}

void AsyncInvocations::node_recovered() {
  queue_.wake_all(monotonic_now());
  submit();
}

void AsyncInvocations::function_removed(const std::string& name) {
  configs_.function_removed(name);
  for (const QueuedEvent& event : queue_.remove_function(name)) {
    store_.finish_event(event.invocation.request_id, told(event.invocation.request_id));
  }
}

// ---- EventService

void AsyncInvocations::set_config(std::string function, EventInvokeConfig config, Callback<EventInvokeConfig> done) {
  configs_.set(std::move(function), config, std::move(done));
}

void AsyncInvocations::remove_config(std::string function, std::function<void(Status)> done) {
  configs_.remove(std::move(function), std::move(done));
}

// They take their places in the queue before the store makes them events, so that its limit holds. One at a time: the places
// that two take and give back again are what others' events are refused for.
void AsyncInvocations::redrive(std::string function, Callback<RedriveResult> done) {
  if (now_.is_draining) return done(fail(Errc::kUnavailable, "the node is shutting down; try again"));
  if (!function.empty()) {
    if (const auto known = functions_.get(function); !known) return done(fail(known.error()));
  }
  if (now_.is_redriving) {
    return done(fail(Errc::kResourceExhausted, "dead letters are being redriven by another request; try again"));
  }
  const std::string tenant = function.empty() ? std::string() : tenant_of_function(function);
  const std::size_t places = queue_.reserve_places(kMostRedriven, tenant);
  if (places == 0) {
    return done(
        fail(Errc::kResourceExhausted,
             "the queue of asynchronous invocations has {} of them, {} bytes, and no room for more{}: try again later",
             queue_.size(), queue_.bytes(), tenant.empty() ? "" : " of tenant " + tenant));
  }
  now_.is_redriving = true;
  store_.redrive_dead_letters(std::move(function), places, wall_clock_ms(),
                              [this, places, done = std::move(done)](Result<Redriven> redriven) {
                                now_.is_redriving = false;
                                const std::size_t taken = redriven ? redriven->events.size() : 0;
                                queue_.release_places(places - taken);
                                if (!redriven) return done(fail(redriven.error()));
                                const RedriveResult result{.redriven = taken, .left = redriven->left};
                                take_in(*std::move(redriven));
                                done(result);
                              });
}

void AsyncInvocations::take_in(Redriven redriven) {
  counters_.redriven += redriven.events.size();
  for (QueuedEvent& event : redriven.events) {
    const std::string tenant = tenant_of_function(event.invocation.function);
    queue_.take_place(std::move(event), tenant, this_moment());
  }
  submit();
}

void AsyncInvocations::lose_lease() {
  ++lease_.number;
  for (const auto& [name, function] : functions_.all()) (void)queue_.remove_function(name);
}

void AsyncInvocations::take_claimed(std::size_t reserved, std::vector<QueuedEvent> events) {
  queue_.release_places(reserved - events.size());
  if (!events.empty()) spdlog::info("{} events of nodes that are gone are claimed", events.size());
  for (QueuedEvent& event : events) {
    const std::string tenant = tenant_of_function(event.invocation.function);
    queue_.take_place(std::move(event), tenant, this_moment());
  }
  submit();
}

// Empty of one that is gone: its events are dropped when their turn comes.
std::string AsyncInvocations::tenant_of_function(const std::string& name) const {
  const RegisteredFunction* const function = functions_.find(name);
  return function == nullptr ? std::string() : tenant_of(function->record.config.tags);
}

EventCounters AsyncInvocations::counters() const {
  EventCounters counters = counters_;
  counters.waiting = queue_.waiting();
  counters.running = queue_.running();
  return counters;
}

void AsyncInvocations::arm_timer() {
  constexpr Duration kFullNodeRetry = std::chrono::milliseconds(100);  // ready events are here for lack of room
  const Instant now = monotonic_now();
  const auto due = queue_.next_due(now);
  if (now_.is_draining || !due) return;
  timer_.expires_after(std::max<Duration>(kFullNodeRetry, *due - now));
  timer_.async_wait([this](boost::system::error_code error) {
    if (!error) submit();
  });
}

}  // namespace fairlead
