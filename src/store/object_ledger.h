// Who may have how much memory for objects, and which objects go to disk to make room. Decides only: writes, copies and
// times nothing.
//
//   request ──Grant──> writing ──settle──> in memory ──Spill──> spilling ──spilled──> on disk
//                                              ^                                         │
//                                              └──settle── reading <──Grant── request_back
//
// Example, a limit of 100 bytes: a (60) was used before b (30). A request for 50 finds 10 free, so Spill a; once a has
// left, Grant. Requests are served in order: a large one is not overtaken for ever by small ones. One that no spilling
// can help is refused at once, unless somebody is just writing or reading (bytes on their way become spillable).
// Invariant: what is granted, in memory or reading is at most the memory limit; what is spilling or on disk at most the
// spill limit.
//
// Determinism: no clock; the order of use is the order of calls. Threads: not thread-safe.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/result.h"
#include "base/units.h"

namespace fairlead::store {

class ObjectLedger {
 public:
  using Id = std::uint64_t;

  struct Limits {
    Bytes memory{0}, spill{0}, tenant{0};
  };
  struct Grant {
    Id id = 0;
    bool operator==(const Grant&) const = default;
  };
  struct Refuse {
    Id id = 0;
    Error why;
  };
  struct Spill {
    Id id = 0;
    bool operator==(const Spill&) const = default;
  };
  using Action = std::variant<Grant, Refuse, Spill>;
  using Actions = std::vector<Action>;

  explicit ObjectLedger(Limits limits) : limits_(limits) {}

  // Who fills the bytes: the store itself, soon, or a client, who may take for ever.
  enum class Writer { kStore, kClient };
  // kTooLarge, kResourceExhausted (the tenant's quota): nothing was noted. Else Grant or Refuse follows, now or later;
  // a refused id is forgotten. REQUIRES: `id` is new.
  Status request(Id id, const std::string& tenant, Bytes bytes, Writer writer, Actions& out);
  // Room in the tenant's quota for an object whose bytes come later, with request(), right after unclaim(). Errors as of
  // request(): who cannot be kept is refused before it is made.
  Status claim(const std::string& tenant, Bytes bytes);
  void unclaim(const std::string& tenant, Bytes bytes);  // REQUIRES: claimed
  void written_by_client(Id id);                         // the store goes on with it
  // Of one on disk. Grant or Refuse follows; refused, it stays on disk.
  void request_back(Id id, Actions& out);
  void back_failed(Id id, Actions& out);
  void settle(Id id, Actions& out);  // written or read back: may be spilled from now on
  void touch(Id id);                 // was used just now

  void spilled(Id id, Actions& out);
  void spill_failed(Id id, const Error& why, Actions& out);  // stays in memory; who waits first is refused
  void drop(Id id, Actions& out);                            // in whatever state; one that waits gets no answer

  // Found at start, the least recently used first; spills what is over the limit.
  enum class Place { kMemory, kDisk };
  void adopt(Id id, const std::string& tenant, Bytes bytes, Place place, Actions& out);

  bool knows(Id id) const { return holdings_.contains(id); }
  Bytes memory_used() const { return memory_; }
  Bytes disk_used() const { return disk_; }
  Bytes tenant_used(const std::string& tenant) const;

 private:
  enum class State { kWaiting, kWaitingBack, kHeldByClient, kWriting, kReading, kSettled, kSpilling, kOnDisk };
  struct Holding {
    std::string tenant;
    Bytes bytes{0};
    State state = State::kWaiting;
    Writer writer = Writer::kStore;
    std::uint64_t last_used = 0;
  };

  Status check(const std::string& tenant, Bytes bytes) const;
  Holding& at(Id id);
  void enter(Holding& holding, State state);  // keeps the sums
  void account(const Holding& holding, int sign);
  void serve(Actions& out);
  bool spill_for(Bytes needed, Actions& out);
  void refuse_front(Error why, Actions& out);
  Error no_room(const Holding& holding) const;

  const Limits limits_;
  std::map<Id, Holding> holdings_;
  std::deque<Id> queue_;
  std::set<std::pair<std::uint64_t, Id>> by_use_;  // settled ones, the least recently used first
  std::map<std::string, Bytes> tenants_;
  std::uint64_t uses_ = 0;
  Bytes memory_{0};          // granted, settled, spilling, reading
  Bytes disk_{0};            // spilling, on disk, reading
  Bytes spilling_{0};        // in both
  std::size_t passing_ = 0;  // writing or reading by the store: will be settled or dropped
};

}  // namespace fairlead::store
