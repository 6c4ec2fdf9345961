// Store over PostgreSQL: each call becomes one operation of the commit queue; the watch keeps the lease and sees what others change.
#include <algorithm>
#include <filesystem>
#include <set>
#include <utility>

#include "base/lifetime.h"
#include "base/log.h"
#include "store/postgres/commit_queue.h"
#include "store/postgres/kept_answers.h"
#include "store/postgres/lease.h"
#include "store/postgres/records.h"
#include "store/postgres/schema.h"
#include "store/postgres/watch.h"
#include "store/shared_store.h"
#include "store/state_lock.h"

namespace fairlead {
namespace {

using namespace postgres;  // NOLINT(google-build-using-namespace)

constexpr std::size_t kSmall = 256;  // what an operation weighs besides its payload

class PostgresStore final : public SharedStore {
 public:
  PostgresStore(boost::asio::io_context& io, std::string state_dir, store::StateLock lock, Target target,
                WatchOptions watch)
      : io_(io),
        state_dir_(std::move(state_dir)),
        lock_(std::move(lock)),
        target_(std::move(target)),
        watch_(io, target_, std::move(watch), lease_) {}

  // Synchronous: nobody uses it yet.
  Status begin() {
    auto connection = open_migrated(target_);
    if (!connection) return begin_without(connection.error());
    auto earlier = watch_.begin(*std::move(connection));
    if (!earlier) return fail(earlier.error());
    earlier_epoch_ = *earlier;
    auto writer = open_writer(target_);
    if (!writer) return fail(writer.error());
    commit_.emplace(io_, target_, std::move(writer), lease_);
    return {};
  }

  const StateDamage& damage() const override { return damage_; }

  Result<std::vector<FunctionRecord>> load_functions() override {
    Result<std::vector<FunctionRecord>> functions = fail(Errc::kInternal, "not read");
    // The revision first: what is changed in between is read again. What was only kept is read again as a whole.
    Status read =
        read_now({{kAskRevision, {}}, {kAskFunctions, {}}}, [&](const std::vector<Rows>& rows, std::size_t first) {
          revision_ = kept_ ? 0 : rows[first].integer(0, 0);
          functions = functions_of(rows[first + 1], state_dir_);
          return functions ? Status() : Status(fail(functions.error()));
        });
    if (!read) return fail(read.error());
    known_.clear();
    for (const FunctionRecord& record : *functions) known_.insert(record.name);
    return functions;
  }

  Result<std::vector<QueuedEvent>> load_events() override {
    std::vector<QueuedEvent> events;
    Status read = commit_->run_and_wait(
        {.build = [earlier = earlier_epoch_](const Writer& writer) -> Result<Statements> {
           return take_over(earlier, writer);
         },
         .read =
             [&](const std::vector<Rows>& rows, StatementGroup::Place place, const Writer& writer) {
               events = events_of(rows[place.statement + 1], writer);
               return Status();
             },
         .done = {}});
    if (!read) return fail(read.error());
    return events;
  }

  Result<std::map<std::string, EventInvokeConfig>> load_event_configs() override {
    std::map<std::string, EventInvokeConfig> configs;
    Status read = read_now({{kAskEventConfigs, {}}}, [&](const std::vector<Rows>& rows, std::size_t first) {
      configs = event_configs_of(rows[first]);
      return Status();
    });
    if (!read) return fail(read.error());
    return configs;
  }

  Result<std::vector<FunctionProfile>> load_profiles() override {
    std::vector<FunctionProfile> profiles;
    Status read = read_now({{kAskProfiles, {}}}, [&](const std::vector<Rows>& rows, std::size_t first) {
      for (int row = 0; row < rows[first].size(); ++row) {  // what cannot be read is measured again
        if (auto one = profile_from_json(rows[first].text(row, 0))) profiles.push_back(*std::move(one));
      }
      return Status();
    });
    if (!read) return fail(read.error());
    return profiles;
  }

  Result<PublishedState> load_published() override {
    Result<PublishedState> published = fail(Errc::kInternal, "not read");
    Status read = read_now(postgres::load_published(""), [&](const std::vector<Rows>& rows, std::size_t first) {
      published = published_of(rows, first, state_dir_);
      return published ? Status() : Status(fail(published.error()));
    });
    if (!read) return fail(read.error());
    return published;
  }

  void put_function(FunctionRecord record, Done done) override {
    Operation operation = change(std::move(done));
    operation.read = [name = record.name](const std::vector<Rows>& rows, StatementGroup::Place place,
                                          const Writer&) -> Status {
      if (rows[place.statement + kPutFunctionAt].affected() > 0) return {};
      return fail(Errc::kConflict, "function {} is another tenant's, who deployed it at another node", name);
    };
    operation.build = [this, record = std::move(record)](const Writer&) {
      return postgres::put_function(record, state_dir_);
    };
    commit_->submit(std::move(operation));
  }

  void delete_function(std::string name, Done done) override {
    submit_change([name = std::move(name)] { return postgres::delete_function(name); }, std::move(done));
  }

  void put_event_config(std::string function, EventInvokeConfig config, Done done) override {
    submit_change([function = std::move(function), config] { return postgres::put_event_config(function, config); },
                  std::move(done));
  }

  void delete_event_config(std::string function, Done done) override {
    submit_change([function = std::move(function)] { return postgres::delete_event_config(function); },
                  std::move(done));
  }

  void put_profile(FunctionProfile profile, Done done) override {
    submit_change([profile = std::move(profile)] { return postgres::put_profile(profile); }, std::move(done));
  }

  void put_version(FunctionRecord version, Done done) override {
    submit_change([this, version = std::move(version)] { return postgres::put_version(version, state_dir_); },
                  std::move(done));
  }

  void delete_version(std::string function, std::uint64_t version, Done done) override {
    submit_change([function = std::move(function), version] { return postgres::delete_version(function, version); },
                  std::move(done));
  }

  void put_alias(std::string function, FunctionAlias alias, Done done) override {
    submit_change(
        [function = std::move(function), alias = std::move(alias)] { return postgres::put_alias(function, alias); },
        std::move(done));
  }

  void delete_alias(std::string function, std::string alias, Done done) override {
    submit_change(
        [function = std::move(function), alias = std::move(alias)] { return postgres::delete_alias(function, alias); },
        std::move(done));
  }

  // ---- events

  void put_event(QueuedEvent event, Done done) override {
    const Invocation& invocation = event.invocation;
    Operation operation;
    operation.bytes =
        kSmall + invocation.payload.size() + invocation.client_context.size() + invocation.trace_id.size();
    operation.undo = [id = invocation.request_id](const Writer&) { return statements_of(postgres::finish_event(id)); };
    const auto written_under = std::make_shared<std::int64_t>(0);  // the writer's thread sets it, the callback reads it
    operation.read = [written_under, id = invocation.request_id, name = invocation.function](
                         const std::vector<Rows>& rows, StatementGroup::Place place, const Writer& writer) -> Status {
      *written_under = writer.epoch;
      if (postgres::is_put(rows[place.statement], place.row, id)) return {};
      return fail(Errc::kUnavailable, "function {} was deleted, or this node is about to get a new lease; try again",
                  name);
    };
    operation.row = [event = std::move(event)](const Writer& writer) { return postgres::put_event(event, writer); };
    operation.done = [this, life = life_.watch(), written_under, done = std::move(done)](const Status& status) {
      if (done) done(status);
      if (life.ended()) return;  // the io_context tells what was committed also when the store has gone
      // Under an epoch that has ended meanwhile it is everybody's to claim.
      if (status && *written_under != lease_.writer().epoch && lease_lost_) lease_lost_();
    };
    commit_->submit(std::move(operation));
  }

  void retry_event(QueuedEvent event, Done done) override {
    submit_end([event = std::move(event)](const Writer& writer) { return postgres::retry_event(event, writer); },
               std::move(done));
  }

  void finish_event(std::string request_id, Done done) override {
    Operation operation = end(std::move(done));
    operation.row = [id = std::move(request_id)](const Writer&) { return postgres::finish_event(id); };
    commit_->submit(std::move(operation));
  }

  void bury_event(DeadLetter letter, Done done) override {
    submit_end([letter = std::move(letter)](const Writer& writer) { return postgres::bury_event(letter, writer); },
               std::move(done));
  }

  void list_dead_letters(std::string function, std::size_t limit,
                         std::function<void(Result<std::vector<DeadLetter>>)> done) override {
    submit_for<std::vector<DeadLetter>>(
        [function = std::move(function), limit](const Writer&) { return postgres::list_dead_letters(function, limit); },
        letters_of, std::move(done));
  }

  void redrive_dead_letters(std::string function, std::size_t limit, std::int64_t accepted_ms,
                            std::function<void(Result<Redriven>)> done) override {
    const std::int64_t claim = ++last_claim_;
    submit_for<Redriven>(
        [function = std::move(function), limit, accepted_ms, claim](const Writer& writer) {
          return postgres::redrive(function, limit, accepted_ms, claim, writer);
        },
        redriven_of, std::move(done), claim);
  }

  void claim_events(std::vector<std::string> functions, std::size_t limit,
                    std::function<void(Result<std::vector<QueuedEvent>>)> done) override {
    const std::int64_t claim = ++last_claim_;
    submit_for<std::vector<QueuedEvent>>(
        [functions = std::move(functions), limit, claim](const Writer& writer) {
          return postgres::claim_events(functions, std::min(limit, kMostClaimed), claim, writer);
        },
        events_of, std::move(done), claim);
  }

  std::size_t pending_writes() const override { return commit_->pending(); }

  // ---- of several nodes

  void watch(Watcher watcher) override {
    kept_.reset();
    lease_lost_ = watcher.lease_lost;
    watch_.start(std::move(watcher), std::move(known_), revision_);
  }

  bool may_start_events() const override { return lease_.is_valid(monotonic_now()); }

  Status put_code(const std::string& digest, std::string_view zip) override {
    constexpr std::size_t kPart = 1 << 20;
    auto connection = connect();
    if (!connection) return fail(connection.error());
    Statements statements{{"DELETE FROM code WHERE digest = $1::text", {digest}}};
    std::int64_t parts = 0;
    for (std::size_t at = 0; at < zip.size(); at += kPart) {
      statements.push_back({"INSERT INTO code VALUES ($1::text, $2::int, $3::bytea)",
                            {digest, parts++, std::string(zip.substr(at, kPart))}});
    }
    statements.push_back(
        {"INSERT INTO code_heads (digest, parts, size) VALUES ($1::text, $2::int, $3::bigint) ON CONFLICT "
         "(digest) DO UPDATE SET parts = excluded.parts, size = excluded.size, stored = now()",
         {digest, parts, static_cast<std::int64_t>(zip.size())}});
    const auto stored = (*connection)->transact(statements);
    return stored ? Status() : Status(fail(stored.error()));
  }

  Result<std::string> fetch_code(const std::string& digest) override {
    auto connection = connect();
    if (!connection) return fail(connection.error());
    const auto head = (*connection)->run({"SELECT parts, size FROM code_heads WHERE digest = $1::text", {digest}});
    if (!head) return fail(head.error());
    if (head->size() == 0) return fail(Errc::kNotFound, "{} has no code {}", target_.label, digest);
    std::string zip;
    for (std::int64_t part = 0; part < head->integer(0, 0); ++part) {
      const auto bytes =
          (*connection)->run({"SELECT bytes FROM code WHERE digest = $1::text AND part = $2::int", {digest, part}});
      if (!bytes) return fail(bytes.error());
      if (bytes->size() > 0) zip += bytes->text(0, 0);
    }
    if (static_cast<std::int64_t>(zip.size()) == head->integer(0, 1)) return zip;
    return fail(Errc::kCorrupt, "{}: code {} has {} bytes of {}", target_.label, digest, zip.size(),
                head->integer(0, 1));
  }

  Result<std::int64_t> change_documents(const DocumentChanges& changes) override {
    auto connection = connect();
    if (!connection) return fail(connection.error());
    const auto rows = (*connection)->transact(postgres::change_documents(changes));
    if (!rows) return fail(told(rows.error()));
    return revision_of(*rows, changes);
  }

 private:
  static Error told(const Error& error) { return error.code == Errc::kUnavailable ? unreachable(error) : error; }

  // Of its own, for what takes long, or is called by another thread.
  Result<std::unique_ptr<Connection>> connect() const {
    if (Status there = commit_->reachable(); !there) return fail(there.error());
    auto connection = Connection::open(target_);
    if (!connection) return fail(told(connection.error()));
    return connection;
  }

  // With what it last knew, if the server is all that is missing.
  Status begin_without(const Error& why) {
    auto kept = why.code == Errc::kUnavailable ? kept_answers(state_dir_, target_) : fail(why);
    if (!kept) return fail(why);
    spdlog::error("{}; the functions that this node knew are served until it can be reached", why.message);
    kept_ = *std::move(kept);
    commit_.emplace(io_, target_, fail(why), lease_);
    return {};
  }

  Operation change(Done done) {
    Operation operation;
    operation.bytes = kSmall;
    operation.done = std::move(done);
    return operation;
  }

  Operation end(Done done) {
    Operation operation = change(std::move(done));
    operation.is_required = true;
    return operation;
  }

  template <typename Build>
  void submit_change(Build build, Done done) {
    Operation operation = change(std::move(done));
    operation.build = [build = std::move(build)](const Writer&) -> Result<Statements> { return build(); };
    commit_->submit(std::move(operation));
  }

  template <typename Build>
  void submit_end(Build build, Done done) {
    Operation operation = end(std::move(done));
    operation.build = [build = std::move(build)](const Writer& writer) -> Result<Statements> { return build(writer); };
    commit_->submit(std::move(operation));
  }

  // Of one statement that gives something back; `claim`, of one that gives events to this node.
  template <typename T, typename Build, typename Read>
  void submit_for(Build build, Read read, std::function<void(Result<T>)> done, std::optional<std::int64_t> claim = {}) {
    const auto value = std::make_shared<T>();  // the writer's thread fills it, the callback reads it afterwards
    Operation operation = change([value, done = std::move(done)](const Status& status) {
      if (!done) return;
      if (status)
        done(std::move(*value));
      else
        done(fail(status.error()));
    });
    if (claim) operation.undo = [claim = *claim](const Writer& writer) { return postgres::void_claim(claim, writer); };
    operation.build = [build = std::move(build)](const Writer& writer) -> Result<Statements> { return build(writer); };
    operation.read = [value, read](const std::vector<Rows>& rows, StatementGroup::Place place, const Writer& writer) {
      *value = read(rows[place.statement], writer);
      return Status();
    };
    commit_->submit(std::move(operation));
  }

  template <typename Read>
  Status read_now(Statements statements, Read read) {
    if (kept_) return read_kept(statements, read);
    Operation operation;
    operation.build = [&](const Writer&) -> Result<Statements> { return statements; };
    operation.read = [&](const std::vector<Rows>& rows, StatementGroup::Place place, const Writer&) {
      return read(rows, place.statement);
    };
    return commit_->run_and_wait(std::move(operation));
  }

  template <typename Read>
  Status read_kept(const Statements& statements, Read read) {
    std::vector<Rows> rows;
    for (const Statement& statement : statements) {
      auto answer = kept_->extract(statement.sql);
      if (answer.empty()) return fail(Errc::kInternal, "what {} says is not kept", target_.label);
      rows.push_back(std::move(answer.mapped()));
    }
    return read(rows, 0);
  }

  boost::asio::io_context& io_;
  const std::string state_dir_;
  const store::StateLock lock_;
  const Target target_;
  std::optional<KeptAnswers> kept_;  // until watch(): the server was not there at the start
  const StateDamage damage_;         // PostgreSQL looks after its own: checksums of pages are initdb's choice
  std::int64_t earlier_epoch_ = 0;
  std::int64_t revision_ = 0;
  std::int64_t last_claim_ = 0;
  std::set<std::string> known_;
  std::function<void()> lease_lost_;
  Lease lease_;
  Watch watch_;  // ends the epoch after the last commit
  std::optional<CommitQueue> commit_;
  Lifetime life_;
};

}  // namespace

Result<std::unique_ptr<SharedStore>> open_postgres_store(boost::asio::io_context& io, const std::string& state_dir,
                                                         const PostgresOptions& options) {
  auto target = parse_target(options.url, options.password_file);
  if (!target) return fail(target.error());
  std::error_code error;
  const std::string absolute = std::filesystem::absolute(state_dir, error).lexically_normal().string();
  if (!std::filesystem::exists(absolute, error)) {
    std::filesystem::create_directories(absolute, error);
    if (error) return fail(errno_error(error.value(), "create state folder " + absolute));
    std::filesystem::permissions(absolute, std::filesystem::perms::owner_all, error);  // code is private
  }
  Result<store::StateLock> lock = store::StateLock::acquire(absolute);
  if (!lock) return fail(lock.error());
  WatchOptions watch{.state_dir = absolute, .node_name = options.node_name};
  auto store = std::make_unique<PostgresStore>(io, absolute, std::move(*lock), *std::move(target), std::move(watch));
  if (Status begun = store->begin(); !begun) return fail(begun.error());
  return store;
}

}  // namespace fairlead
