#include "node/common_store.h"

#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "base/log.h"
#include "node/profiler.h"
#include "node/program_runner.h"

namespace fairlead {
namespace {

constexpr Duration kFirstRetry = std::chrono::milliseconds(100), kLongestRetry = std::chrono::seconds(30);

Duration retry_after(int failures) {
  return std::min<Duration>(kFirstRetry * (1 << std::min(failures, 10)), kLongestRetry);
}

}  // namespace

CommonStore::CommonStore(boost::asio::io_context& io, Ports ports)
    : ports_(std::move(ports)), timer_(io), lease_timer_(io) {}

void CommonStore::start(std::vector<FunctionChange> late) {
  for (FunctionChange& change : late) {
    const std::string name = change.function;
    changes_[name] = {.change = std::move(change), .due = monotonic_now()};
  }
  ports_.events.set_lease([store = &ports_.store] { return store->may_start_events(); });
  ports_.store.watch({.changed = [this](std::vector<FunctionChange> changes) { changed(std::move(changes)); },
                      .lease_lost =
                          [this] {
                            ports_.events.lose_lease();
                            claim();
                          },
                      .claimable = [this] { claim(); },
                      .documents = ports_.documents});
  look_at_lease();
  next();
}

// ---- functions

void CommonStore::changed(std::vector<FunctionChange> changes) {
  for (FunctionChange& change : changes) {
    const std::string name = change.function;
    changes_[name] = {.change = std::move(change), .due = monotonic_now()};
  }
  next();
}

// The one that has been due for longest.
void CommonStore::next() {
  if (is_busy_ || changes_.empty()) return;
  const auto first = std::min_element(changes_.begin(), changes_.end(), [](const auto& one, const auto& other) {
    return one.second.due < other.second.due;
  });
  if (first->second.due <= monotonic_now()) return take_over(std::string(first->first));
  timer_.expires_after(first->second.due - monotonic_now());
  timer_.async_wait([this](boost::system::error_code error) {
    if (!error) next();
  });
}

void CommonStore::take_over(const std::string& name) {
  auto waiting = changes_.extract(name);
  FunctionChange change = std::move(waiting.mapped().change);
  const int failures = waiting.mapped().failures;
  if (Status begun = ports_.functions.begin_change(name); !begun) {  // a change of this node's own is on its way
    changes_[name] = {.change = std::move(change), .due = monotonic_now() + kFirstRetry, .failures = failures};
    return next();
  }
  is_busy_ = true;
  if (!change.record) {
    ports_.functions.end_change(name);
    if (ports_.functions.find(name) != nullptr) {
      ports_.control.drop(name);
      spdlog::info("function {} was deleted at another node", name);
    }
    return done();
  }
  std::vector<FunctionRecord> records = change.published.versions;
  records.push_back(*change.record);
  ports_.control.fetch_code(std::move(records), [this, change = std::move(change), failures](Status fetched) mutable {
    ports_.functions.end_change(change.function);
    if (fetched) return apply(std::move(change), failures);
    try_again(std::move(change), failures, fetched.error());
  });
}

void CommonStore::apply(FunctionChange change, int failures) {
  const RegisteredFunction* const known = ports_.functions.find(change.function);
  const bool is_new = known == nullptr;
  const std::string scope = is_new ? "" : model_scope(known->record);
  // What this node wrote itself comes back, too.
  const bool is_other = is_new || known->record.revision_id != change.record->revision_id;
  if (is_other) {
    if (Status taken = ports_.control.take_in(*change.record); !taken) {
      return try_again(std::move(change), failures, taken.error());
    }
    spdlog::info("function {} is taken over from the store of the cluster", change.function);
    if (!is_new) ports_.updated(scope, *change.record);
  }
  ports_.control.take_in_published(change.function, std::move(change.published));
  ports_.events.config_seen(change.function, change.event_config);
  if (is_other) ports_.events.function_changed(change.function);
  done();
}

void CommonStore::try_again(FunctionChange change, int failures, const Error& error) {
  if (failures == 0) {
    spdlog::warn("function {} cannot be taken over yet: {}", change.function, error.message);
  }
  const std::string name = change.function;
  changes_.try_emplace(name, Waiting{.change = std::move(change),
                                     .due = monotonic_now() + retry_after(failures),
                                     .failures = failures + 1});  // unless it has changed since
  done();
}

void CommonStore::done() {
  is_busy_ = false;
  next();
}

// ---- events

// A second before others may claim what waits here for an instance, that is taken out of the core again.
void CommonStore::look_at_lease() {
  constexpr Duration kOften = std::chrono::milliseconds(250);
  const bool may_start = ports_.store.may_start_events();
  if (std::exchange(may_start_, may_start) && !may_start) ports_.pull_back();
  lease_timer_.expires_after(kOften);
  lease_timer_.async_wait([this](boost::system::error_code error) {
    if (!error) look_at_lease();
  });
}

void CommonStore::claim() {
  if (is_claiming_ || is_draining_ || ports_.runs_nothing) return;
  std::vector<std::string> names;
  for (const auto& [name, function] : ports_.functions.all()) {
    if (!is_trial(name) && !function.is_leaving) names.push_back(name);
  }
  const std::size_t places = names.empty() ? 0 : ports_.events.reserve_claim(kMostClaimed);
  if (places == 0) return;
  is_claiming_ = true;
  ports_.store.claim_events(std::move(names), places, [this, places](Result<std::vector<QueuedEvent>> claimed) {
    is_claiming_ = false;
    const std::size_t found = claimed ? claimed->size() : 0;
    ports_.events.take_claimed(places, claimed ? *std::move(claimed) : std::vector<QueuedEvent>());
    if (found == places) claim();
  });
}

}  // namespace fairlead
