// The life of one device server as the node sees it: whether it has a process, which sessions it has and which calls they
// have, and what follows from what happens. Events append the actions that follow; who carries them out has the processes,
// sockets, timers and objects (device_servers.h). What can happen to what is in server_states.h; who is to blame for the end
// of a process is decided by server_recovery.h.
//
// Which call is sent when is said in server_calls.h.
//
// Example: sessions a and b have a call each on the device, 1 and 2, and call 3 waits for its inputs. The process ends and has
// said nothing: 1 and 2 are suspects, and RestartAfter{0} follows. restart(): StartProcess, OpenConstants of a and b,
// OpenInputs of 1, 2 and 3. Once all is there: Run 1. 1 is over: Run 2, alone as well. The process ends again: Fail 2.
//
// An action may be carried out while others of the same event wait for their turn, and what it leads to may be the next
// event. REQUIRES of all events: the session or call is there, unless stated otherwise.
//
// Pure: time is told. Threads: none of its own.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "base/ids.h"
#include "base/units.h"
#include "runtime/device_servers/server_calls.h"
#include "runtime/device_servers/server_recovery.h"
#include "runtime/device_servers/server_states.h"

namespace fairlead {

class ServerLife {
 public:
  // ---- actions
  struct StartProcess {  // process_ready() or process_gone() follows
    bool operator==(const StartProcess&) const = default;
  };
  struct EndProcess {  // kill it; process_gone() follows
    bool operator==(const EndProcess&) const = default;
  };
  struct RestartAfter {  // restart() after the wait
    Duration wait{0};
    bool operator==(const RestartAfter&) const = default;
  };
  struct WatchIdle {  // idle_over() when it has idled for so long
    bool operator==(const WatchIdle&) const = default;
  };
  struct Retire {  // nothing of it is left
    bool operator==(const Retire&) const = default;
  };
  struct OpenConstants {  // anew; constants_opened() follows, or the session is removed
    InstanceId session;
    bool operator==(const OpenConstants&) const = default;
  };
  struct Register {
    InstanceId session;
    bool operator==(const Register&) const = default;
  };
  struct DropSession {  // tell the process
    InstanceId session;
    bool operator==(const DropSession&) const = default;
  };
  struct Announce {  // it is registered, and may have calls
    InstanceId session;
    bool operator==(const Announce&) const = default;
  };
  enum class SessionEnd { kCausedEnd, kNoServer };
  struct EndSession {  // remove_session() follows
    InstanceId session;
    SessionEnd why = SessionEnd::kCausedEnd;
    bool operator==(const EndSession&) const = default;
  };
  struct OpenInputs {  // anew; inputs_opened() follows, or the call is over
    InvocationId call;
    bool operator==(const OpenInputs&) const = default;
  };
  struct Run {
    InvocationId call;
    bool operator==(const Run&) const = default;
  };
  enum class Failure { kCausedEnd, kNoRoom, kOutputsLost };
  struct Fail {  // it is over already
    InvocationId call;
    Failure why = Failure::kCausedEnd;
    bool operator==(const Fail&) const = default;
  };
  struct Forget {  // it is over already, and nobody waits for its answer
    InvocationId call;
    bool operator==(const Forget&) const = default;
  };
  struct Quarantine {  // move_tenant() to a server of its own
    std::string tenant;
    bool operator==(const Quarantine&) const = default;
  };
  using Action = std::variant<StartProcess, EndProcess, RestartAfter, WatchIdle, Retire, OpenConstants, Register,
                              Announce, DropSession, EndSession, OpenInputs, Run, Fail, Forget, Quarantine>;
  using Actions = std::vector<Action>;

  // `is_shared`: by several tenants.
  ServerLife(ServerRecovery::Options options, bool is_shared)
      : options_(options), is_shared_(is_shared), recovery_(options) {}

  // ---- the process
  void process_ready(Actions& out);
  void process_faulted(std::set<InvocationId> named) { named_ = std::move(named); }  // its end follows
  void process_gone(Instant now, Actions& out);
  void restart(Instant now, Actions& out);
  void idle_over(Actions& out);

  // ---- sessions
  void add_session(Instant now, InstanceId id, const std::string& tenant, Actions& out);
  void constants_opened(InstanceId id, Actions& out);
  // What the process says of a session. Unknown, or not in that state: no effect.
  void session_on_trial(InstanceId id, bool is_on_trial);
  void session_ready(InstanceId id, Actions& out);
  void remove_session(InstanceId id, Actions& out);  // unknown: no effect
  // Sessions of the tenant, with what they have waiting, are from now on the other server's. REQUIRES: no process.
  void move_tenant(Instant now, const std::string& tenant, ServerLife& to, Actions& out_of_other);

  // ---- calls
  void add_call(InvocationId id, InstanceId session, Actions& out);  // REQUIRES: the session has none
  void inputs_opened(InvocationId id, Actions& out);
  // What the process says of a call. REQUIRES: it is on the device.
  void objects_missing(InvocationId id, Actions& out);
  void keep_outputs(InvocationId id, Actions& out);
  void outputs_lost(InvocationId id, Actions& out);  // before they were kept
  void end_call(InvocationId id, Actions& out);      // answered, failed or, unwanted, done; unknown: no effect
  // It runs past its deadline: its process is ended, and it is the only suspect. Not on the device: no effect.
  void overdue(InvocationId id, Actions& out);

  // ---- views
  ServerPhase phase() const { return phase_; }
  bool is_idle() const { return sessions_.empty() && calls_.device_is_empty(); }
  std::vector<InstanceId> sessions() const;
  const ServerCalls& calls() const { return calls_; }

 private:
  struct Session {
    std::string tenant;
    SessionState state = SessionState::kOpening;
    int suspected = 0;  // so many processes ended while it was registered
    std::optional<InvocationId> call;
  };

  void start(Instant now, Actions& out);
  void register_if_opened(InstanceId id, Session& session, Actions& out);
  ServerRecovery::End describe_end(Instant now, bool was_ready) const;
  void recover(const ServerRecovery::End& end, Actions& out);
  void reopen(InvocationId id, bool is_first, Failure if_too_often, Actions& out);
  void send_calls(Actions& out);
  void leave_session(InvocationId id);

  const ServerRecovery::Options options_;
  const bool is_shared_;
  ServerRecovery recovery_;
  ServerPhase phase_ = ServerPhase::kOver;
  std::map<InstanceId, Session> sessions_;
  ServerCalls calls_;
  // The calls that were on the device when it faulted, as the process says. None: it has said nothing.
  std::optional<std::set<InvocationId>> named_;
};

}  // namespace fairlead
