// Names and lines for people: logs, metrics, traces, test failures.
#include <fmt/core.h>

#include "decide/core/core.h"

namespace fairlead {
namespace {

std::string line(const StartInstance& a) {
  return fmt::format("start instance={} flow={} gpu={}{}", a.instance.value(), a.flow.value(), a.gpu.value(),
                     a.entitled ? " entitled" : "");
}

std::string line(const SeatChange& a) {
  return fmt::format("seat instance={} flow={} gpu={}{}", a.instance.value(), a.flow.value(), a.gpu.value(),
                     a.entitled ? " entitled" : " parked");
}

std::string line(const StopInstance& a) {
  return fmt::format("stop instance={} reason={}", a.instance.value(), stop_reason_name(a.reason));
}

std::string line(const Deliver& a) {
  return fmt::format("deliver invocation={} instance={} gpu={} start={} deadline_ns={}", a.invocation.value(),
                     a.instance.value(), a.gpu.value(), start_kind_name(a.start),
                     a.deadline.time_since_epoch().count());
}

std::string line(const Complete& a) {
  return fmt::format("complete invocation={} flow={} outcome={} start={} queue_ns={} start_ns={} service_ns={}",
                     a.invocation.value(), a.flow.value(), outcome_name(a.outcome), start_kind_name(a.start),
                     a.queue_time.count(), a.start_time.count(), a.service.count());
}

std::string line(const SwapOutMemory& a) {
  return fmt::format("swap_out instance={} gpu={} bytes={}", a.instance.value(), a.gpu.value(), a.bytes.count());
}

std::string line(const SwapInMemory& a) {
  return fmt::format("swap_in instance={} gpu={}", a.instance.value(), a.gpu.value());
}

std::string line(const GrantRoom& a) {
  return fmt::format("room instance={} request={} granted={}", a.instance.value(), a.request, a.granted);
}

std::string line(const Charge& a) {
  return fmt::format("charge invocation={} flow={} service_ns={} after_answer_ns={}", a.invocation.value(),
                     a.flow.value(), a.service.count(), a.after_answer.count());
}

std::string line(const DeviceChange& a) {
  switch (a.kind) {
    case DeviceChange::Kind::kDrained: return fmt::format("device gpu={} drained", a.gpu.value());
    case DeviceChange::Kind::kRestartDaemon: return fmt::format("device gpu={} restart_daemon", a.gpu.value());
    case DeviceChange::Kind::kServes: return fmt::format("device gpu={} serves", a.gpu.value());
    case DeviceChange::Kind::kGone: return fmt::format("device gpu={} gone", a.gpu.value());
    case DeviceChange::Kind::kSlots: return fmt::format("device gpu={} slots", a.gpu.value());
  }
  return "device";
}

}  // namespace

std::string_view stop_reason_name(StopReason reason) {
  switch (reason) {
    case StopReason::kEvicted: return "evicted";
    case StopReason::kTimeout: return "timeout";
    case StopReason::kFunctionChanged: return "function_changed";
    case StopReason::kStartFailed: return "start_failed";
    case StopReason::kShutdown: return "shutdown";
    case StopReason::kGpuDrained: return "gpu_drained";
    case StopReason::kNoRoom: return "no_room";
    case StopReason::kKeptLongEnough: return "kept_long_enough";
  }
  return "unknown";
}

std::string to_string(const Action& action) {
  return std::visit([](const auto& a) { return line(a); }, action);
}

}  // namespace fairlead
