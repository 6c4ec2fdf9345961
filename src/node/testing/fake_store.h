// A store in memory whose writes take effect at once and are told when the test says so.
#pragma once

#include <deque>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "store/store.h"

namespace fairlead {

class FakeStore final : public Store {
 public:
  const StateDamage& damage() const override { return found; }
  Result<std::vector<FunctionRecord>> load_functions() override { return values_of(functions); }
  Result<std::vector<QueuedEvent>> load_events() override { return values_of(events); }
  void put_function(FunctionRecord record, Done done) override {
    if (status) functions[record.name] = std::move(record);
    tell(std::move(done));
  }
  void delete_function(std::string name, Done done) override {
    if (status) {
      functions.erase(name);
      configs.erase(name);
      std::erase_if(events, [&](const auto& held) { return held.second.invocation.function == name; });
      std::erase_if(letters, [&](const DeadLetter& letter) { return letter.function == name; });
    }
    tell(std::move(done));
  }
  void put_event(QueuedEvent event, Done done) override {
    if (status) events[event.invocation.request_id] = std::move(event);
    tell(std::move(done));
  }
  void retry_event(QueuedEvent event, Done done) override {
    const auto held = events.find(event.invocation.request_id);
    if (status && held != events.end()) held->second = std::move(event);
    tell(std::move(done));
  }
  void finish_event(std::string request_id, Done done) override {
    if (status) events.erase(request_id);
    tell(std::move(done));
  }
  void bury_event(DeadLetter letter, Done done) override {
    if (status) {
      events.erase(letter.request_id);
      letters.push_back(std::move(letter));
    }
    tell(std::move(done));
  }
  void list_dead_letters(std::string function, std::size_t limit,
                         std::function<void(Result<std::vector<DeadLetter>>)> done) override {
    std::vector<DeadLetter> newest;
    for (auto letter = letters.rbegin(); letter != letters.rend() && newest.size() < limit; ++letter) {
      if (function.empty() || letter->function == function) newest.push_back(*letter);
    }
    done(std::move(newest));
  }
  Result<std::map<std::string, EventInvokeConfig>> load_event_configs() override { return configs; }
  void put_profile(FunctionProfile profile, Done done) override {
    if (status) profiles.push_back(std::move(profile));
    tell(std::move(done));
  }
  Result<std::vector<FunctionProfile>> load_profiles() override { return profiles; }
  Result<PublishedState> load_published() override { return published; }
  void put_version(FunctionRecord version, Done done) override {
    if (status) published.last_numbers[version.name] = version.version;
    if (status) published.versions.push_back(std::move(version));
    tell(std::move(done));
  }
  void delete_version(std::string function, std::uint64_t version, Done done) override {
    if (status) {
      std::erase_if(published.versions,
                    [&](const FunctionRecord& one) { return one.name == function && one.version == version; });
    }
    tell(std::move(done));
  }
  void put_alias(std::string function, FunctionAlias alias, Done done) override {
    auto& aliases = published.aliases[function];
    if (status) std::erase_if(aliases, [&](const FunctionAlias& one) { return one.name == alias.name; });
    if (status) aliases.push_back(std::move(alias));
    tell(std::move(done));
  }
  void delete_alias(std::string function, std::string alias, Done done) override {
    if (status) std::erase_if(published.aliases[function], [&](const FunctionAlias& one) { return one.name == alias; });
    tell(std::move(done));
  }
  void put_event_config(std::string function, EventInvokeConfig config, Done done) override {
    if (status) configs[function] = config;
    tell(std::move(done));
  }
  void delete_event_config(std::string function, Done done) override {
    if (status) configs.erase(function);
    tell(std::move(done));
  }
  void redrive_dead_letters(std::string function, std::size_t limit, std::int64_t accepted_ms,
                            std::function<void(Result<Redriven>)> done) override {
    untold_.push_back([=, this, made = status, done = std::move(done)] {
      if (!made) return done(fail(made.error()));
      done(redrive(function, limit, accepted_ms));
    });
  }
  std::size_t pending_writes() const override { return untold_.size(); }

  // All that was written so far is on disk, or is not: `status` at the time of the write.
  void tell_all() {
    while (!untold_.empty()) {
      const auto tell = std::move(untold_.front());
      untold_.pop_front();
      tell();
    }
  }

  StateDamage found;
  Status status;
  std::map<std::string, FunctionRecord> functions;
  std::map<std::string, QueuedEvent> events;  // by request id
  std::vector<DeadLetter> letters;
  std::vector<FunctionProfile> profiles;
  PublishedState published;
  std::map<std::string, EventInvokeConfig> configs;  // by function

 private:
  template <typename T>
  Result<std::vector<T>> values_of(const std::map<std::string, T>& values) const {
    if (!status) return fail(status.error());
    std::vector<T> all;
    for (const auto& [key, value] : values) all.push_back(value);
    return all;
  }
  void tell(Done done) {
    untold_.push_back([done = std::move(done), written = status] {
      if (done) done(written);
    });
  }
  Redriven redrive(const std::string& function, std::size_t limit, std::int64_t accepted_ms) {
    Redriven redriven;
    std::vector<DeadLetter> stay;
    for (DeadLetter& letter : letters) {
      if (!function.empty() && letter.function != function) {
        stay.push_back(std::move(letter));
        continue;
      }
      if (redriven.events.size() == limit) {
        ++redriven.left;
        stay.push_back(std::move(letter));
        continue;
      }
      QueuedEvent event{.accepted_ms = accepted_ms};
      event.invocation.request_id = letter.request_id;
      event.invocation.function = letter.function;
      event.invocation.payload = letter.payload;
      events[event.invocation.request_id] = event;
      redriven.events.push_back(std::move(event));
    }
    letters = std::move(stay);
    return redriven;
  }

  std::deque<std::function<void()>> untold_;
};

}  // namespace fairlead
