#include "model/invocation.h"

namespace fairlead {

std::string_view start_kind_name(StartKind start) {
  switch (start) {
    case StartKind::kDeviceWarm: return "device-warm";
    case StartKind::kHostWarm: return "host-warm";
    case StartKind::kCold: return "cold";
  }
  return "unknown";
}

std::string_view outcome_name(OutcomeKind outcome) {
  switch (outcome) {
    case OutcomeKind::kSuccess: return "success";
    case OutcomeKind::kFunctionError: return "function_error";
    case OutcomeKind::kTimeout: return "timeout";
    case OutcomeKind::kCrashed: return "crashed";
    case OutcomeKind::kStartFailed: return "start_failed";
    case OutcomeKind::kCancelled: return "cancelled";
    case OutcomeKind::kRemoved: return "removed";
    case OutcomeKind::kShutdown: return "shutdown";
    case OutcomeKind::kExpired: return "expired";
  }
  return "unknown";
}

}  // namespace fairlead
