// What follows when a device server ends: which of its calls run again and which fail, which sessions are registered again
// and which end, whose tenant no longer shares a server, and when the next server starts. State and event give actions; who
// carries them out has the processes, sockets and timers.
//
//   the server ends ─┬─ its fault names calls ────> those are suspects
//                    └─ else ─────────────────────> all calls that were on the device, all sessions that were being
//                                                   registered
//   a suspect ───────┬─ call: the only one named, or suspected before ──> it has caused the end: Fail, Quarantine
//                    ├─ call: one of several ─────────────────────────> Send, alone
//                    ├─ session: the only suspect, or suspected before ─> Quarantine, or, where it shares nothing, End
//                    └─ session: one of several ──────────────────────> Register
//   no suspect ────────────────────────────────────────────────────────> Send, Register
//
// While sessions are suspects no call is: a server that ends at a registration would otherwise fail calls that only ran
// beside it. Each end makes every suspected session one that was suspected before, so that two ends settle it.
//
// The next server starts at once after the first end, and where the cause was found and no longer shares the server; else
// after a wait that doubles from end to end. A server that ran for `calm` is forgiven the ends before it.
//
// Pure: time is told. Threads: none of its own.
#pragma once

#include <set>
#include <string>
#include <variant>
#include <vector>

#include "base/ids.h"
#include "base/units.h"

namespace fairlead {

class ServerRecovery {
 public:
  struct Options {
    Duration first_wait = std::chrono::milliseconds(100);
    Duration longest_wait = std::chrono::seconds(10);
    Duration calm = std::chrono::seconds(60);
    int max_failed_starts = 3;  // in a row
  };
  struct SentCall {
    InvocationId call;
    std::string tenant;
    int suspected = 0;      // so many times before
    bool given_up = false;  // nobody waits for its answer
  };
  struct RegisteringSession {
    InstanceId session;
    std::string tenant;
    int suspected = 0;
  };
  struct End {
    Instant now;
    bool was_ready = false;
    bool is_shared = false;        // by several tenants
    bool names_calls = false;      // the server said which calls were on the device when it faulted
    std::set<InvocationId> named;  // those
    std::vector<SentCall> calls;   // that were not answered
    std::vector<RegisteringSession> registering;
  };

  struct Send {  // the call runs again
    InvocationId call;
    bool is_suspect = false;  // then alone
    bool operator==(const Send&) const = default;
  };
  struct Fail {  // the call has caused the end
    InvocationId call;
    bool operator==(const Fail&) const = default;
  };
  struct Forget {  // the call was given up
    InvocationId call;
    bool operator==(const Forget&) const = default;
  };
  struct Suspect {  // the session is registered again, as all others are
    InstanceId session;
    bool operator==(const Suspect&) const = default;
  };
  struct EndSession {  // its registration has caused the end
    InstanceId session;
    bool operator==(const EndSession&) const = default;
  };
  struct Quarantine {  // the tenant gets a server of its own
    std::string tenant;
    bool operator==(const Quarantine&) const = default;
  };
  struct Restart {
    Duration after{0};
    bool operator==(const Restart&) const = default;
  };
  struct GiveUp {  // the server does not start: its sessions end
    bool operator==(const GiveUp&) const = default;
  };
  using Action = std::variant<Send, Fail, Forget, Suspect, EndSession, Quarantine, Restart, GiveUp>;

  ServerRecovery() : ServerRecovery(Options()) {}
  explicit ServerRecovery(Options options) : options_(options) {}

  void on_start(Instant now) { started_ = now; }
  void on_ready() { failed_starts_ = 0; }
  // Calls in their order, sessions in theirs; last Restart or GiveUp.
  std::vector<Action> on_end(const End& end);

 private:
  bool settle_call(const End& end, const SentCall& call, std::size_t suspects, std::vector<Action>& actions) const;
  static bool settle_session(const End& end, const RegisteringSession& session, bool is_only,
                             std::vector<Action>& actions);
  Duration wait(Instant now);

  Options options_;
  Instant started_{};
  int ends_ = 0;  // since it last ran for `calm`
  int failed_starts_ = 0;
};

}  // namespace fairlead
