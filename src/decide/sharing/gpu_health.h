// Whether a GPU may be given work, and what to do when it may not: one state machine for lost devices, critical Xids and
// MPS daemons whose clients were hit by another client's fault.
//
//   serving ──fault──> draining ──no instance left──> repairing ──the device answers, the daemon runs──> serving
//
// On a fault the GPU gets no new work and its instances are drained, not killed: an invocation that runs ends with the
// answer its function gives (mostly the CUDA error it got) or at its deadline, and its instance goes after it. Their
// contexts are of no use any more, so all must go before the GPU serves again. Under MPS the daemon is restarted then:
// a server whose client faulted accepts no others until the last one hit has left.
//
// Example: one of two clients reads out of bounds at 10.0 s. At 10.2 s the daemon says FAULT: drain. The co-client
// answers with error 700 at 10.4 s and is stopped; at 10.5 s its process is gone: restart the daemon; at 10.8 s it runs:
// serve. On a lost device the same happens, and it serves after it has answered for kSteady again.
//
// Time: handed in. Threads: not thread-safe. One per GPU or slice.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/units.h"

namespace fairlead {

enum class GpuState { kServing, kDraining, kRepairing };
std::string_view gpu_state_name(GpuState state);  // "serving", "draining", "repairing"

enum class GpuRemedy {
  kDrain,          // no new work; instances go as they end
  kRestartDaemon,  // no instance is left; answered by daemon_started()
  kServe,          // new work
};

enum class MpsDaemonState { kActive, kFault, kGone };

// Whether an Xid means that contexts of the GPU other than the one that caused it cannot go on. The driver reports what
// programs do wrong to themselves (13, 31, 43, 45, 68, 109) in the same way.
bool ends_all_contexts(unsigned xid);

class GpuHealth {
 public:
  static constexpr Duration kSteady = std::chrono::seconds(1);
  static constexpr Duration kFirstRetry = std::chrono::seconds(1);
  static constexpr Duration kLongestRetry = std::chrono::seconds(30);

  // has_daemon: the GPU is shared through MPS, and its daemon runs.
  explicit GpuHealth(bool has_daemon) : has_daemon_(has_daemon) {}

  // Observations, in any order and any state. At most one thing follows from each.
  std::optional<GpuRemedy> device_answers(Instant now);  // each monitor period, or device_fails
  std::optional<GpuRemedy> device_fails(Instant now, std::string why);
  std::optional<GpuRemedy> xid(unsigned number);
  std::optional<GpuRemedy> daemon(MpsDaemonState state);
  std::optional<GpuRemedy> emptied(Instant now);  // the last instance's process has gone
  std::optional<GpuRemedy> daemon_started(Instant now, bool ok);

  GpuState state() const { return state_; }
  const std::string& reason() const { return reason_; }  // why it does not serve; "" while it does
  unsigned daemon_restarts() const { return daemon_restarts_; }

 private:
  std::optional<GpuRemedy> drain(std::string why);
  std::optional<GpuRemedy> repair(Instant now);

  const bool has_daemon_;
  GpuState state_ = GpuState::kServing;
  std::string reason_;
  std::optional<Instant> answers_since_ = Instant();  // empty: the device does not answer
  bool daemon_runs_ = true;                           // with clients that it can serve
  bool daemon_starting_ = false;
  Instant retry_at_;
  Duration retry_ = kFirstRetry;
  unsigned daemon_restarts_ = 0;
};

}  // namespace fairlead
