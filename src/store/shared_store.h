// A store that several nodes have: what one of them accepts or deploys, the others run.
//
// Who runs an event. Each start of a node has an epoch in the store, with a lease by the store's clock: 5 s, renewed each second. An
// accepted event is of the epoch that accepted it. An epoch whose lease has run out is ended by any other node, and its events may be
// claimed by all; it never comes back, its node begins a new one. A node that could not renew for 4 s starts no event.
//
//   accept at A: owner = A's epoch ──A dies──> 5 s ──> B ends the epoch, claims the event, runs it
//
// At least once: an event that A ran to its end while A was cut off may run again at B.
//
// Threads: calls from the io_context's thread, callbacks on it; but for code.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.h"
#include "model/shared_document.h"
#include "store/store.h"

namespace fairlead {

inline constexpr Duration kEventLease = std::chrono::seconds(5);
inline constexpr Duration kStartsAfterRenewal = std::chrono::seconds(4);  // and no longer
inline constexpr std::size_t kMostClaimed = 64;                           // events at a time

// A function as the store has it now.
struct FunctionChange {
  std::string function;
  std::optional<FunctionRecord> record;  // none: it was deleted
  PublishedState published;              // of it
  std::optional<EventInvokeConfig> event_config;
};

class SharedStore : public Store {
 public:
  struct Watcher {
    std::function<void(std::vector<FunctionChange>)>
        changed;  // by whichever node, this one too; the last state of each
    // Its epoch was ended: what it accepted and has not started is not its own any more.
    std::function<void()> lease_lost;
    std::function<void()> claimable;  // there are events whose epoch has ended
    // Documents as they are now, whoever changed them; before functions that changed at the same time. None: nobody wants to know.
    std::function<void(SharedDocuments)> documents = {};
  };
  virtual void watch(Watcher watcher) = 0;  // REQUIRES: once, after the functions were loaded

  virtual bool may_start_events() const = 0;
  // At most `limit`, of these functions. They are this node's from then on.
  virtual void claim_events(std::vector<std::string> functions, std::size_t limit,
                            std::function<void(Result<std::vector<QueuedEvent>>)> done) = 0;

  // Code by the digest of what is in it (the name of its folder below <state>/code). Any thread; blocks. fetch: kNotFound.
  virtual Status put_code(const std::string& digest, std::string_view zip) = 0;
  virtual Result<std::string> fetch_code(const std::string& digest) = 0;

  // As PublishDocuments says. Any thread; blocks.
  virtual Result<std::int64_t> change_documents(const DocumentChanges& changes) = 0;
};

struct PostgresOptions {
  std::string url;            // postgresql://..., without a password
  std::string password_file;  // "": PGPASSFILE
  std::string node_name;      // for people
};
// Takes the state folder's lock, connects, makes what is missing, begins an epoch. An earlier epoch of this folder ends: its process
// is dead. kUnavailable: the server cannot be reached, or this program was built without libpq.
Result<std::unique_ptr<SharedStore>> open_postgres_store(boost::asio::io_context& io, const std::string& state_dir,
                                                         const PostgresOptions& options);

}  // namespace fairlead
