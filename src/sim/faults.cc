#include "sim/faults.h"

namespace fairlead::sim {
namespace {

constexpr double kHighest = 0.1;            // of what happens once per start, run or move
constexpr double kHighestPerEvent = 0.002;  // of what may happen at any event
constexpr Fault kFirstPerEvent = Fault::kDeviceLost;

}  // namespace

std::string_view fault_name(Fault fault) {
  switch (fault) {
    case Fault::kStartFails: return "start fails";
    case Fault::kStartHangs: return "start hangs";
    case Fault::kStartSlow: return "start is slow";
    case Fault::kRunCrashes: return "run crashes";
    case Fault::kRunHangs: return "run hangs";
    case Fault::kNeverReturns: return "never returns";
    case Fault::kToldTwice: return "told twice";
    case Fault::kMoveLost: return "move lost";
    case Fault::kMoveFails: return "move fails";
    case Fault::kMoveSlow: return "move is slow";
    case Fault::kReportLost: return "report lost";
    case Fault::kNoMemory: return "no memory";
    case Fault::kDeviceLost: return "device lost";
    case Fault::kClockJumps: return "clock jumps";
    case Fault::kCancelled: return "cancelled";
    case Fault::kUpdated: return "updated";
    case Fault::kDeviceGoes: return "device goes";
    case Fault::kNodeRestarts: return "node restarts";
    case Fault::kCount: break;
  }
  return "unknown";
}

Faults::Faults(std::uint64_t seed) : rng_(seed ^ 0xfa17) {
  for (std::size_t i = 0; i < kKinds; ++i) {
    const bool active = rng_.below(2) == 0;
    const double highest = i >= static_cast<std::size_t>(kFirstPerEvent) ? kHighestPerEvent : kHighest;
    rates_[i] = active ? highest * rng_.uniform() : 0;
  }
}

bool Faults::strikes(Fault fault) {
  const auto kind = static_cast<std::size_t>(fault);
  if (rates_[kind] == 0 || rng_.uniform() >= rates_[kind]) return false;
  ++struck_[kind];
  return true;
}

}  // namespace fairlead::sim
