// Does a call of a kernel task fit beside those that run, and would it push out what others have there? Memory is a
// dimension of admission: a call that found no room would hold a slot and wait, and calls whose constants do not fit
// together would evict each other's at every turn.
//
// Example: 64 MiB, three sessions with 20 MiB of constants and 2 MiB a call. Two run: 44 MiB are held. The third needs 22,
// and is refused until one of them ends. Were the constants one shared object, the third would need 2.
//
// A session that nothing is known of is never refused, and none is where nothing else of its server runs: it runs at the
// price of whatever is there, rather than never.
//
// Cost: O(1) where all that runs would fit without sharing anything, else O(constants of the session).
// Threads: not thread-safe. Determinism: no order matters.
#pragma once

#include <cstddef>
#include <unordered_map>

#include "base/id_map.h"
#include "base/ids.h"
#include "model/session_memory.h"

namespace fairlead {

class TaskRoom {
 public:
  // What is known of the instance's session from now on. REQUIRES: no call of it runs.
  void set(InstanceId instance, SessionMemory memory);
  void set_residence(InstanceId instance, const SessionResidence& residence);
  void remove(InstanceId instance);  // no effect when nothing is known of it

  // A call of it runs, or is over. No effect when nothing is known of it; begin() and end() take turns.
  void begin(InstanceId instance);
  void end(InstanceId instance);

  bool fits(InstanceId instance) const;    // one more call, beside what runs on its server
  bool evicts(InstanceId instance) const;  // its call brings constants for which others' have to go

 private:
  struct Server {
    std::unordered_map<std::uint64_t, std::size_t> users;  // of an object: calls that run
    Bytes held{0};                                         // by them, shared objects once
    Bytes resident{0};
    std::size_t sessions = 0, running = 0;
  };
  struct Session {
    SessionMemory memory;
    Bytes all{0};  // constants and call
    Bytes missing{0};
    bool runs = false;
  };

  Bytes unheld(const Session& session, const Server& server) const;

  IdMap<InstanceId, Session> sessions_;
  std::unordered_map<std::uint64_t, Server> servers_;
};

}  // namespace fairlead
