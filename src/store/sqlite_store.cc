// Store over SQLite: each call becomes one operation of the group commit.
#include <algorithm>
#include <filesystem>
#include <utility>

#include "base/log.h"
#include "store/group_commit.h"
#include "store/records.h"
#include "store/schema.h"
#include "store/state_lock.h"
#include "store/state_tally.h"
#include "store/store.h"

namespace fairlead {
namespace {

using store::Database;
using store::GroupCommit;
using enum store::GroupCommit::Admission;

class SqliteStore final : public Store {
 public:
  SqliteStore(boost::asio::io_context& io, std::string state_dir, store::StateLock lock, store::StateTally tally,
              StateDamage damage, std::unique_ptr<Database> database)
      : state_dir_(std::move(state_dir)),
        lock_(std::move(lock)),
        tally_(std::move(tally)),
        damage_(std::move(damage)),
        commit_(io, std::move(database), {}, [this](Database& committed) { count(committed); }) {
    report(0);
  }

  const StateDamage& damage() const override { return damage_; }

  Result<std::vector<FunctionRecord>> load_functions() override {
    std::vector<FunctionRecord> functions;
    Status status = commit_.run_and_wait(
        [&](Database& database) { return store::load_functions(database, state_dir_, functions); });
    if (!status) return fail(status.error());
    return functions;
  }

  Result<std::vector<QueuedEvent>> load_events() override {
    std::vector<QueuedEvent> events;
    StateDamage found;
    Status status = commit_.run_and_wait([&](Database& database) {
      found = damage_;
      return store::load_events(database, events, found);
    });
    if (!status) return fail(status.error());
    const std::size_t reported = damage_.findings.size();
    damage_ = std::move(found);
    report(reported);
    return events;
  }

  Result<std::map<std::string, EventInvokeConfig>> load_event_configs() override {
    std::map<std::string, EventInvokeConfig> configs;
    Status status =
        commit_.run_and_wait([&](Database& database) { return store::load_event_configs(database, configs); });
    if (!status) return fail(status.error());
    return configs;
  }

  void put_function(FunctionRecord record, Done done) override {
    auto apply = [this, record = std::move(record)](Database& database) {
      return store::put_function(database, state_dir_, record);
    };
    commit_.submit(std::move(apply), kSmall, kRefusable, std::move(done));
  }

  void delete_function(std::string name, Done done) override {
    auto apply = [name = std::move(name)](Database& database) { return store::delete_function(database, name); };
    commit_.submit(std::move(apply), kSmall, kRefusable, std::move(done));
  }

  void put_event(QueuedEvent event, Done done) override {
    const std::size_t bytes = kSmall + event.invocation.payload.size() + event.invocation.client_context.size() +
                              event.invocation.trace_id.size();
    auto apply = [event = std::move(event)](Database& database) { return store::put_event(database, event); };
    commit_.submit(std::move(apply), bytes, kRefusable, std::move(done));
  }

  void retry_event(QueuedEvent event, Done done) override {
    const std::size_t bytes = kSmall + event.invocation.payload.size();
    auto apply = [event = std::move(event)](Database& database) { return store::update_event(database, event); };
    commit_.submit(std::move(apply), bytes, kRequired, std::move(done));
  }

  void finish_event(std::string request_id, Done done) override {
    auto apply = [id = std::move(request_id)](Database& database) { return store::delete_event(database, id); };
    commit_.submit(std::move(apply), kSmall, kRequired, std::move(done));
  }

  void bury_event(DeadLetter letter, Done done) override {
    const std::size_t bytes = kSmall + letter.payload.size() + letter.error_message.size();
    auto apply = [letter = std::move(letter)](Database& database) { return store::bury_event(database, letter); };
    commit_.submit(std::move(apply), bytes, kRequired, std::move(done));
  }

  void list_dead_letters(std::string function, std::size_t limit,
                         std::function<void(Result<std::vector<DeadLetter>>)> done) override {
    submit_for<std::vector<DeadLetter>>(
        [function = std::move(function), limit](Database& database, std::vector<DeadLetter>& letters) {
          return store::load_dead_letters(database, function, limit, letters);
        },
        std::move(done));
  }

  void put_event_config(std::string function, EventInvokeConfig config, Done done) override {
    auto apply = [function = std::move(function), config](Database& database) {
      return store::put_event_config(database, function, config);
    };
    commit_.submit(std::move(apply), kSmall, kRefusable, std::move(done));
  }

  void delete_event_config(std::string function, Done done) override {
    auto apply = [function = std::move(function)](Database& database) {
      return store::delete_event_config(database, function);
    };
    commit_.submit(std::move(apply), kSmall, kRefusable, std::move(done));
  }

  void put_profile(FunctionProfile profile, Done done) override {
    const std::size_t bytes = kSmall + profile.trials.size() * sizeof(MeasuredTrial);
    auto apply = [profile = std::move(profile)](Database& database) { return store::put_profile(database, profile); };
    commit_.submit(std::move(apply), bytes, kRefusable, std::move(done));
  }

  Result<std::vector<FunctionProfile>> load_profiles() override {
    std::vector<FunctionProfile> profiles;
    Status status = commit_.run_and_wait([&](Database& database) { return store::load_profiles(database, profiles); });
    if (!status) return fail(status.error());
    return profiles;
  }

  Result<PublishedState> load_published() override {
    PublishedState published;
    Status status = commit_.run_and_wait(
        [&](Database& database) { return store::load_published(database, state_dir_, published); });
    if (!status) return fail(status.error());
    return published;
  }

  void put_version(FunctionRecord version, Done done) override {
    auto apply = [this, version = std::move(version)](Database& database) {
      return store::put_version(database, state_dir_, version);
    };
    commit_.submit(std::move(apply), kSmall, kRefusable, std::move(done));
  }

  void delete_version(std::string function, std::uint64_t version, Done done) override {
    auto apply = [function = std::move(function), version](Database& database) {
      return store::delete_version(database, function, version);
    };
    commit_.submit(std::move(apply), kSmall, kRefusable, std::move(done));
  }

  void put_alias(std::string function, FunctionAlias alias, Done done) override {
    auto apply = [function = std::move(function), alias = std::move(alias)](Database& database) {
      return store::put_alias(database, function, alias);
    };
    commit_.submit(std::move(apply), kSmall, kRefusable, std::move(done));
  }

  void delete_alias(std::string function, std::string alias, Done done) override {
    auto apply = [function = std::move(function), alias = std::move(alias)](Database& database) {
      return store::delete_alias(database, function, alias);
    };
    commit_.submit(std::move(apply), kSmall, kRefusable, std::move(done));
  }

  void redrive_dead_letters(std::string function, std::size_t limit, std::int64_t accepted_ms,
                            std::function<void(Result<Redriven>)> done) override {
    submit_for<Redriven>(
        [wanted = store::Redrive{std::move(function), limit, accepted_ms}](Database& database, Redriven& redriven) {
          return store::redrive_dead_letters(database, wanted, redriven);
        },
        std::move(done));
  }

  std::size_t pending_writes() const override { return commit_.pending(); }

 private:
  static constexpr std::size_t kSmall = 256;  // what an operation weighs besides its payload

  // Of an operation that gives something back.
  template <typename Value, typename Apply>
  void submit_for(Apply apply, std::function<void(Result<Value>)> done) {
    // Shared: the writer's thread fills it, the callback on the io_context reads it afterwards.
    auto value = std::make_shared<Value>();
    auto run = [value, apply = std::move(apply)](Database& database) { return apply(database, *value); };
    auto deliver = [value, done = std::move(done)](const Status& status) {
      if (!done) return;
      if (status)
        done(std::move(*value));
      else
        done(fail(status.error()));
    };
    commit_.submit(std::move(run), kSmall, kRefusable, std::move(deliver));
  }

  // On the writer's thread. A count that cannot be written makes a loss unseen, not worse.
  void count(Database& committed) {
    const Result<store::Tally> tally = store::tally_of(committed);
    const Status written = tally ? tally_.write(*tally) : Status(fail(tally.error()));
    if (!written && !std::exchange(count_failed_, true)) spdlog::error("{}", written.error().message);
  }

  void report(std::size_t from) const {
    constexpr std::size_t kMostLines = 20;
    const std::vector<std::string>& all = damage_.findings;
    for (std::size_t i = from; i < std::min(all.size(), from + kMostLines); ++i) spdlog::error("{}", all[i]);
    if (all.size() > from + kMostLines) spdlog::error("and {} findings more", all.size() - from - kMostLines);
  }

  const std::string state_dir_;
  const store::StateLock lock_;  // before commit_: the lock is given back after the last commit
  store::StateTally tally_;      // the writer's thread
  bool count_failed_ = false;    // the writer's thread
  StateDamage damage_;
  GroupCommit commit_;
};

}  // namespace

Result<std::unique_ptr<Store>> Store::open(boost::asio::io_context& io, const std::string& state_dir) {
  std::error_code error;
  const std::string absolute = std::filesystem::absolute(state_dir, error).lexically_normal().string();
  if (!std::filesystem::exists(absolute, error)) {
    std::filesystem::create_directories(absolute, error);
    if (error) return fail(errno_error(error.value(), "create state folder " + absolute));
    std::filesystem::permissions(absolute, std::filesystem::perms::owner_all, error);  // payloads are private
  }
  Result<store::StateLock> lock = store::StateLock::acquire(absolute);
  if (!lock) return fail(lock.error());
  StateDamage damage;
  Result<std::unique_ptr<Database>> database = store::open_state_database(absolute, damage);
  if (!database) return fail(database.error());
  Result<store::StateTally> tally = store::StateTally::open(absolute);
  if (!tally) return fail(tally.error());
  const Result<store::Tally> counted = store::tally_of(**database);
  if (!counted) return fail(counted.error());
  store::compare(tally->read(), *counted, damage);
  if (Status written = tally->write(*counted); !written) return fail(written.error());
  return std::make_unique<SqliteStore>(io, absolute, std::move(*lock), std::move(*tally), std::move(damage),
                                       std::move(*database));
}

}  // namespace fairlead
