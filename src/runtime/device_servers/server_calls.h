// The calls of one device server: what each is at, the order in which they are sent, and which must be alone on the device.
//
// Each goes as soon as its inputs and its session are there. A suspect of a server's end runs alone, and nothing overtakes
// one that waits to be alone: with many callers it would wait for ever.
//
// Pure. Threads: none of its own.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/ids.h"
#include "runtime/device_servers/server_recovery.h"
#include "runtime/device_servers/server_states.h"

namespace fairlead {

class ServerCalls {
 public:
  // Opened again more often than that, a call has no room in the host tier.
  static constexpr int kMaxReopened = 8;

  struct Call {
    InstanceId session;
    std::string tenant;
    CallState state = CallState::kOpening;
    int suspected = 0;  // so many processes ended while it ran
    int reopened = 0;   // objects were missing, or outputs were lost before they were kept
  };

  const Call* find(InvocationId id) const;  // null: it is over
  bool on_device(InvocationId id) const { return sent_.contains(id); }
  bool device_is_empty() const { return sent_.empty(); }
  std::vector<ServerRecovery::SentCall> sent() const;

  // REQUIRES of all below: the call is there, and in a state in which that may happen.
  void add(InvocationId id, InstanceId session,
           const std::string& tenant);  // behind all others. REQUIRES: it is not there
  void remove(InvocationId id);
  void opened(InvocationId id) { take(id, CallEvent::kOpened); }
  void dropped(InvocationId id) { take(id, CallEvent::kDropped); }
  void keep(InvocationId id);
  // Ready sessions' next one that may be sent; it is sent now.
  std::optional<InvocationId> send_next(const std::function<bool(InstanceId session)>& is_ready);
  // Its inputs are opened again, because some were missing, or because it runs once more: it goes first, or last. False: that
  // was too often; it is over.
  bool reopen(InvocationId id, bool is_first);
  // The process has ended, and nothing is on the device: these run again, before all others.
  void run_again(const std::vector<ServerRecovery::Send>& calls);
  // Of another process objects have other numbers: those that were not sent, in their order, are opened again.
  std::vector<InvocationId> reopen_unsent();
  // To another server, of these sessions; what is opened again there, in its order. REQUIRES: nothing is on the device.
  std::vector<InvocationId> move(const std::set<InstanceId>& sessions, ServerCalls& to);

 private:
  Call& take(InvocationId id, CallEvent event);
  bool is_suspect(InvocationId id) const { return calls_.at(id).suspected > 0; }

  std::map<InvocationId, Call> calls_;
  std::deque<InvocationId> unsent_;  // opening or waiting, in the order in which they go
  std::set<InvocationId> sent_;      // sent or unwanted
};

}  // namespace fairlead
