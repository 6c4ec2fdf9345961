// What `fairlead` tells the shell. Scripts rely on these numbers.
#pragma once

#include "base/result.h"

namespace fairlead::cli {

enum ExitStatus : int {
  kOk = 0,
  kFunctionError = 1,  // the function answered with an error; `doctor`: something is missing
  kUsage = 2,          // the command line, or an argument the node refused
  kNotFound = 3,
  kUnreachable = 4,  // no node answers at the endpoint
  kThrottled = 5,    // a queue or limit is full: try again later
  kFailed = 6,       // anything else
};

inline constexpr const char* kExitStatusHelp =
    "Exit status: 0 success, 1 function error, 2 usage, 3 not found, 4 node unreachable, 5 throttled, 6 other failure.";

constexpr ExitStatus exit_status(Errc code) {
  switch (code) {
    case Errc::kInvalidArgument: return kUsage;
    case Errc::kTooLarge: return kUsage;
    case Errc::kNotFound: return kNotFound;
    case Errc::kUnavailable: return kUnreachable;
    case Errc::kResourceExhausted: return kThrottled;
    default: return kFailed;
  }
}

}  // namespace fairlead::cli
