// What survives a crash: functions, accepted Event invocations, dead letters. SQLite in WAL mode below the state
// folder, one writer thread with group commit, so that the core thread never waits for a disk.
//
// Threads: calls come from the io_context's thread; callbacks run on it. Loading is synchronous, at start only.
// Durability: a callback with success means committed and synced.
#pragma once

#include <boost/asio/io_context.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "model/function.h"
#include "model/invocation.h"

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
  std::string error_type;
  std::string error_message;
  int attempts = 0;
  std::int64_t accepted_ms = 0;
  std::int64_t failed_ms = 0;
};

class Store {
 public:
  using Done = std::function<void(Status)>;

  // Takes the state folder's lock (kConflict names the process that holds it), opens or creates the database, migrates
  // it. A corrupt database is kCorrupt with what to do; nothing is deleted or overwritten.
  static Result<std::unique_ptr<Store>> open(boost::asio::io_context& io, const std::string& state_dir);
  virtual ~Store() = default;  // commits what is pending

  // Synchronous, at start.
  virtual Result<std::vector<FunctionRecord>> load_functions() = 0;
  virtual Result<std::vector<QueuedEvent>> load_events() = 0;

  // Asynchronous; `done` may be empty.
  virtual void put_function(FunctionRecord record, Done done) = 0;
  virtual void delete_function(std::string name, Done done) = 0;
  virtual void put_event(QueuedEvent event, Done done) = 0;          // insert or replace
  virtual void finish_event(std::string request_id, Done done) = 0;  // success: remove
  virtual void bury_event(DeadLetter letter, Done done) = 0;         // remove from the queue, add to the dead letters
  virtual void list_dead_letters(std::string function, std::size_t limit,
                                 std::function<void(Result<std::vector<DeadLetter>>)> done) = 0;  // "": all functions
  virtual std::size_t pending_writes() const = 0;
};

// Code bundles: content-addressed folders below <state>/code. Blocking; run off the core thread.
struct CodeBundle {
  std::string path;
  std::string sha256;  // as Lambda reports it: base64 for code, hexadecimal for an image
  std::int64_t bytes = 0;
  std::optional<FunctionImage> image;  // when it is one, see image_store.h
};
Result<CodeBundle> store_zip(const std::string& state_dir, std::string_view zip);          // untrusted input
// `deploy` from a folder, read with the rights of that user; empty: the node's own.
Result<CodeBundle> store_folder(const std::string& state_dir, const std::string& folder,
                                std::optional<std::uint32_t> uid = {});
// At start: a bundle stored since then, whose function is not registered yet, would be removed too.
void remove_unused_bundles(const std::string& state_dir, const std::vector<std::string>& used);

}  // namespace fairlead
