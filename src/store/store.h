// What survives a crash: functions, accepted Event invocations, dead letters. SQLite in WAL mode below the state
// folder, one writer thread with group commit, so that the core thread never waits for a disk.
//
// Threads: calls come from the io_context's thread; callbacks run on it. Loading is synchronous, at start only.
// Durability: a callback with success means committed and synced.
#pragma once

#include <boost/asio/io_context.hpp>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "model/event_invoke_config.h"
#include "model/function.h"
#include "model/function_profile.h"
#include "model/invocation.h"
#include "model/version.h"

namespace fairlead {

struct QueuedEvent {      // an accepted asynchronous invocation that has not succeeded yet
  Invocation invocation;  // its request_id is the primary key
  int attempts = 0;       // finished ones
  std::int64_t accepted_ms = 0;
  std::int64_t not_before_ms = 0;  // back-off
};

struct DeadLetter {
  std::string request_id;
  std::string function;
  std::string payload;
  std::string client_context;  // with the next two: so that it can be accepted again as it was
  std::string trace_id;
  std::optional<HttpPart> http;
  std::string error_type;
  std::string error_message;
  int attempts = 0;
  std::int64_t accepted_ms = 0;
  std::int64_t failed_ms = 0;
  std::uint64_t version = 0;  // as Invocation has it
};

// Dead letters that are events again.
struct Redriven {
  std::vector<QueuedEvent> events;  // the longest dead first
  std::size_t left = 0;             // dead letters that were asked for too, and did not fit
};

// What a start found damaged or lost, in numbers and in words. All zero and empty: nothing was found.
struct StateDamage {
  std::uint64_t lost_changes = 0;     // acknowledged, and not in the database (store/state_tally.h)
  bool may_lack_changes = false;      // some were lost, or that cannot be told: functions may be missing
  std::uint64_t lost_events = 0;      // accepted ones among them
  std::uint64_t missing_events = 0;   // that the database counts and does not have
  std::uint64_t damaged_events = 0;   // whose checksum is wrong: dead letters now, of the error type "damaged"
  std::vector<std::string> findings;  // the first of them
};

// What is kept of a function beside $LATEST.
struct PublishedState {
  std::vector<FunctionRecord> versions;               // by name and number
  std::map<std::string, std::uint64_t> last_numbers;  // that were given, by function: none is given again
  std::map<std::string, std::vector<FunctionAlias>> aliases;
};

class Store {
 public:
  using Done = std::function<void(Status)>;

  // Takes the state folder's lock (kConflict names the process that holds it), opens or creates the database, migrates
  // it. A corrupt database is kCorrupt with what to do; nothing is deleted or overwritten.
  static Result<std::unique_ptr<Store>> open(boost::asio::io_context& io, const std::string& state_dir);
  virtual ~Store() = default;  // commits what is pending

  // What open() and load_events() found.
  virtual const StateDamage& damage() const = 0;

  // Synchronous, at start.
  virtual Result<std::vector<FunctionRecord>> load_functions() = 0;
  virtual Result<std::vector<QueuedEvent>> load_events() = 0;
  virtual Result<std::map<std::string, EventInvokeConfig>> load_event_configs() = 0;  // by function

  // Asynchronous; `done` may be empty.
  virtual void put_function(FunctionRecord record, Done done) = 0;
  virtual void delete_function(std::string name, Done done) = 0;  // with its events, dead letters and event config
  virtual void put_event(QueuedEvent event, Done done) = 0;       // an event that is not accepted yet
  virtual void retry_event(QueuedEvent event,
                           Done done) = 0;  // attempts and back-off of an accepted one, if it is there
  virtual void finish_event(std::string request_id, Done done) = 0;  // success: remove
  // Removes it from the queue; a dead letter, where its function exists.
  virtual void bury_event(DeadLetter letter, Done done) = 0;
  // The newest `limit` of `function`, "": of all functions, or kMaxLetterBytes of payload.
  virtual void list_dead_letters(std::string function, std::size_t limit,
                                 std::function<void(Result<std::vector<DeadLetter>>)> done) = 0;
  // Of a function that exists, until it is deleted.
  virtual void put_event_config(std::string function, EventInvokeConfig config, Done done) = 0;
  virtual void delete_event_config(std::string function, Done done) = 0;
  // What was measured of a function that exists, in place of what was for the same code and device; goes with the function.
  static constexpr std::size_t kMaxProfilesOfFunction = 16;
  virtual void put_profile(FunctionProfile profile, Done done) = 0;
  virtual Result<std::vector<FunctionProfile>> load_profiles() = 0;  // by function, the oldest first; at start
  // Versions and aliases of a function that exists; they go with it.
  virtual Result<PublishedState> load_published() = 0;              // at start
  virtual void put_version(FunctionRecord version, Done done) = 0;  // its number is the last one that was given
  virtual void delete_version(std::string function, std::uint64_t version, Done done) = 0;
  virtual void put_alias(std::string function, FunctionAlias alias, Done done) = 0;
  virtual void delete_alias(std::string function, std::string alias, Done done) = 0;
  // Dead letters of `function`, "": of all functions that exist, but for damaged ones, become events that are accepted at
  // `accepted_ms`, under their ids and without the deadlines they had: at most `limit` of them, or kMaxLetterBytes of payload.
  static constexpr std::size_t kMaxLetterBytes = 16 << 20;
  virtual void redrive_dead_letters(std::string function, std::size_t limit, std::int64_t accepted_ms,
                                    std::function<void(Result<Redriven>)> done) = 0;
  virtual std::size_t pending_writes() const = 0;
};

// Code bundles: content-addressed folders below <state>/code. Blocking; run off the core thread.
struct CodeBundle {
  std::string path;
  std::string sha256;  // as Lambda reports it: base64 for code, hexadecimal for an image
  std::int64_t bytes = 0;
  std::optional<FunctionImage> image;         // when it is one, see image_store.h
  std::optional<FileIdentity> in_place = {};  // when it is no copy: FunctionRecord has it
};
Result<CodeBundle> store_zip(const std::string& state_dir, std::string_view zip);  // untrusted input
// `deploy` from a folder, read with the rights of that user; empty: the node's own.
Result<CodeBundle> store_folder(const std::string& state_dir, const std::string& folder,
                                std::optional<std::uint32_t> uid = {});
// The folder itself, of any size, for `deploy --in-place`: opened with the rights of that user, no link followed on the way. Nothing in it is
// changed, so its program must be one that an instance may run, who is another user; it is no kernel task. sha256 names this deployment,
// by `deployment`, which is another each time, and not what is in the folder. kInvalidArgument says what is wrong; kNotFound, kForbidden.
Result<CodeBundle> folder_in_place(const std::string& folder, std::optional<std::uint32_t> uid,
                                   const std::string& deployment);
// At start: a bundle stored since then, whose function is not registered yet, would be removed too.
void remove_unused_bundles(const std::string& state_dir, const std::vector<std::string>& used);

}  // namespace fairlead
