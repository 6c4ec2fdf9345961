// How often and for how long an asynchronous invocation of a function is tried, as its author set it. Names, bounds and
// defaults are AWS Lambda's (PutFunctionEventInvokeConfig).
//
// Plain values.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

#include "base/result.h"
#include "base/units.h"

namespace fairlead {

inline constexpr int kMaxEventRetries = 2;  // also what is done unless an author says less
inline constexpr int kMinEventAgeSeconds = 60;
inline constexpr int kMaxEventAgeSeconds = 21'600;  // six hours; also what is done unless an author says less

struct EventInvokeConfig {
  std::optional<int> retries;      // MaximumRetryAttempts, beside the first attempt
  std::optional<int> age_seconds;  // MaximumEventAgeInSeconds, since the event was accepted
  std::int64_t last_modified_ms = 0;
  bool operator==(const EventInvokeConfig&) const = default;
};

// kInvalidArgument names the field, the value and the bounds.
inline Status validate(const EventInvokeConfig& config) {
  if (config.retries && (*config.retries < 0 || *config.retries > kMaxEventRetries)) {
    return fail(Errc::kInvalidArgument, "MaximumRetryAttempts is {}; it must be between 0 and {}", *config.retries,
                kMaxEventRetries);
  }
  if (config.age_seconds && (*config.age_seconds < kMinEventAgeSeconds || *config.age_seconds > kMaxEventAgeSeconds)) {
    return fail(Errc::kInvalidArgument, "MaximumEventAgeInSeconds is {}; it must be between {} and {}",
                *config.age_seconds, kMinEventAgeSeconds, kMaxEventAgeSeconds);
  }
  return {};
}

// What holds for a function: what its author set, else the defaults.
struct EventLimits {
  int retries = kMaxEventRetries;
  Duration age = std::chrono::seconds(kMaxEventAgeSeconds);
};
inline EventLimits limits_of(const EventInvokeConfig& config) {
  return {.retries = config.retries.value_or(kMaxEventRetries),
          .age = std::chrono::seconds(config.age_seconds.value_or(kMaxEventAgeSeconds))};
}

}  // namespace fairlead
