// Store over SQLite: each call becomes one operation of the group commit.
#include <filesystem>

#include "store/group_commit.h"
#include "store/records.h"
#include "store/schema.h"
#include "store/state_lock.h"
#include "store/store.h"

namespace fairlead {
namespace {

using store::Database;
using store::GroupCommit;
using enum store::GroupCommit::Admission;

class SqliteStore final : public Store {
 public:
  SqliteStore(boost::asio::io_context& io, std::string state_dir, store::StateLock lock,
              std::unique_ptr<Database> database)
      : state_dir_(std::move(state_dir)), lock_(std::move(lock)), commit_(io, std::move(database), {}) {}

  Result<std::vector<FunctionRecord>> load_functions() override {
    std::vector<FunctionRecord> functions;
    Status status = commit_.run_and_wait(
        [&](Database& database) { return store::load_functions(database, state_dir_, functions); });
    if (!status) return fail(status.error());
    return functions;
  }

  Result<std::vector<QueuedEvent>> load_events() override {
    std::vector<QueuedEvent> events;
    Status status = commit_.run_and_wait([&](Database& database) { return store::load_events(database, events); });
    if (!status) return fail(status.error());
    return events;
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
    // Shared: the writer's thread fills it, the callback on the io_context reads it afterwards.
    auto letters = std::make_shared<std::vector<DeadLetter>>();
    auto apply = [letters, function = std::move(function), limit](Database& database) {
      return store::load_dead_letters(database, function, limit, *letters);
    };
    auto deliver = [letters, done = std::move(done)](const Status& status) {
      if (!done) return;
      if (status)
        done(std::move(*letters));
      else
        done(fail(status.error()));
    };
    commit_.submit(std::move(apply), kSmall, kRefusable, std::move(deliver));
  }

  std::size_t pending_writes() const override { return commit_.pending(); }

 private:
  static constexpr std::size_t kSmall = 256;  // what an operation weighs besides its payload

  const std::string state_dir_;
  const store::StateLock lock_;  // before commit_: the lock is given back after the last commit
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
  Result<std::unique_ptr<Database>> database = store::open_state_database(absolute);
  if (!database) return fail(database.error());
  return std::make_unique<SqliteStore>(io, absolute, std::move(*lock), std::move(*database));
}

}  // namespace fairlead
