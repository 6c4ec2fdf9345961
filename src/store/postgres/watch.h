// One thread that keeps a node's epoch alive and looks at what others did: renews its lease each second, ends those of nodes that are
// gone, reads functions and documents that changed when somebody notifies, and every 10 s in case a notice was lost.
//
//   begin epoch ──> each second: renew, end others' ──notice, or 10 s──> functions with a later revision ──> the io_context
//                         │ ended by another: lease_lost, a new epoch
//                         │ its row is older than what was granted: the store was restored, all functions are read anew
//
// Threads: as each method says.
#pragma once

#include <boost/asio/io_context.hpp>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "base/mutex.h"
#include "base/unique_fd.h"
#include "store/postgres/connection.h"
#include "store/postgres/lease.h"
#include "store/postgres/steadiness.h"
#include "store/shared_store.h"

namespace fairlead::postgres {

// An epoch as the state folder remembers it. The token is known to its node alone, so that no other server's epoch of the same number
// is ended by mistake.
struct EpochMark {
  std::int64_t epoch = 0;  // 0: none
  std::string token;
};
EpochMark read_epoch(const std::string& state_dir);

struct WatchOptions {
  std::string state_dir;
  std::string node_name;
  Duration renewal = std::chrono::seconds(1);
  Duration reading = std::chrono::seconds(10);
  Duration housekeeping = std::chrono::seconds(10);
};

class Watch {
 public:
  Watch(boost::asio::io_context& io, Target target, WatchOptions options, Lease& lease);
  ~Watch();  // ends the epoch, so that others need not wait for that

  // Ends the epoch that this folder had, and begins one. Synchronous, once, before the thread starts. The epoch that ended, 0: none.
  Result<std::int64_t> begin(std::unique_ptr<Connection> connection);
  // The thread. Without begin() it begins an epoch once the server is there. `known`: functions that were loaded, up to `revision`.
  void start(SharedStore::Watcher watcher, std::set<std::string> known, std::int64_t revision);

 private:
  void run();
  bool connect();
  Status tick();
  Status begin_epoch(const EpochMark& earlier);
  Status renew();
  Status end_others();
  Status read_changes();
  Status read_one(const std::string& name, const std::string& record, std::vector<FunctionChange>& changes);
  Status compare_names();
  Status read_documents();
  Status look_for_events();
  Status keep_house();
  Status keep_what_is_known();
  void lose_lease(std::string_view why);
  void read_anew();
  void took_lease(Instant asked, std::int64_t store_ms, std::int64_t until_us);
  template <typename Call>
  void tell(Call call);
  bool stops() const;

  boost::asio::io_context& io_;
  const Target target_;
  const WatchOptions options_;
  Lease& lease_;
  std::shared_ptr<const SharedStore::Watcher> watcher_;  // with what was posted

  // The thread's, or begin()'s.
  std::unique_ptr<Connection> connection_;
  std::int64_t epoch_ = 0;  // 0: it was lost
  bool is_notified_ = true;
  struct Seen {
    std::set<std::string> functions;  // that are there, as far as was told
    std::int64_t revision = 0;        // the last one
    bool compares = true;             // functions that are not there any more are looked for
    std::int64_t kept_revision = -1;  // in the state folder, for a start without the server
    std::int64_t documents = -1;      // their revision as it was told; -1: anew
    Instant next_reading, next_keeping;
  } seen_;
  struct Server {
    bool is_said_away = false;  // in the log
    Duration retry = std::chrono::milliseconds(100);
    Steadiness steadiness;
    std::int64_t granted_us = 0;  // until when this epoch's lease is, as the server last answered
  } server_;
  Instant next_house_;

  UniqueFd wake_;
  mutable Mutex mutex_;
  bool stopping_ FL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace fairlead::postgres
