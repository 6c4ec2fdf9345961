#include "decide/sharing/gpu_health.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace fairlead {

std::string_view gpu_state_name(GpuState state) {
  switch (state) {
    case GpuState::kServing: return "serving";
    case GpuState::kDraining: return "draining";
    case GpuState::kRepairing: return "repairing";
  }
  return "unknown";
}

bool ends_all_contexts(unsigned xid) {
  constexpr unsigned kOfOneProgram[] = {13, 31, 43, 45, 68, 109};
  return std::find(std::begin(kOfOneProgram), std::end(kOfOneProgram), xid) == std::end(kOfOneProgram);
}

std::optional<GpuRemedy> GpuHealth::device_answers(Instant now) {
  if (!answers_since_) answers_since_ = now;
  return repair(now);
}

std::optional<GpuRemedy> GpuHealth::device_fails(Instant, std::string why) {
  answers_since_.reset();
  return drain(std::move(why));
}

std::optional<GpuRemedy> GpuHealth::xid(unsigned number) {
  if (!ends_all_contexts(number)) return std::nullopt;
  return drain(fmt::format("Xid {}", number));
}

std::optional<GpuRemedy> GpuHealth::daemon(MpsDaemonState state) {
  if (!has_daemon_ || state == MpsDaemonState::kActive || state_ != GpuState::kServing) return std::nullopt;
  return drain(state == MpsDaemonState::kFault ? "a fault of an MPS client" : "the MPS daemon has ended");
}

// Under MPS every drain ends with a new daemon: whatever ended the clients' contexts ended the server's.
std::optional<GpuRemedy> GpuHealth::drain(std::string why) {
  if (state_ != GpuState::kServing) return std::nullopt;
  state_ = GpuState::kDraining;
  reason_ = std::move(why);
  daemon_runs_ = !has_daemon_;
  return GpuRemedy::kDrain;
}

std::optional<GpuRemedy> GpuHealth::emptied(Instant now) {
  if (state_ != GpuState::kDraining) return std::nullopt;
  state_ = GpuState::kRepairing;
  return repair(now);
}

std::optional<GpuRemedy> GpuHealth::daemon_started(Instant now, bool ok) {
  if (!daemon_starting_) return std::nullopt;
  daemon_starting_ = false;
  daemon_runs_ = ok;
  if (ok) {
    ++daemon_restarts_;
    retry_ = kFirstRetry;
  } else {
    retry_at_ = now + retry_;
    retry_ = std::min(2 * retry_, kLongestRetry);
  }
  return repair(now);
}

std::optional<GpuRemedy> GpuHealth::repair(Instant now) {
  if (state_ != GpuState::kRepairing || !answers_since_ || now - *answers_since_ < kSteady) return std::nullopt;
  if (daemon_starting_) return std::nullopt;
  if (!daemon_runs_) {
    if (now < retry_at_) return std::nullopt;
    daemon_starting_ = true;
    return GpuRemedy::kRestartDaemon;
  }
  state_ = GpuState::kServing;
  reason_.clear();
  return GpuRemedy::kServe;
}

}  // namespace fairlead
