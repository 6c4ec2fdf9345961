// How long a caller waits: X-Fairlead-Deadline-Ms, in milliseconds from the arrival of its request. It bounds the time in the queue
// and the run together; the function's own timeout bounds the run alone.
#pragma once

#include <cstdint>
#include <optional>

#include "base/clock.h"
#include "base/result.h"
#include "edge/query.h"
#include "net/http_server.h"

namespace fairlead {

inline constexpr std::string_view kDeadlineHeader = "X-Fairlead-Deadline-Ms";
inline constexpr std::int64_t kMaxDeadlineMs = 24 * 3600 * 1000;

// Milliseconds since 1970; none: the caller names no deadline. kInvalidArgument names the header, its text and the bounds.
inline Result<std::optional<std::int64_t>> deadline_of(const net::HttpRequest& request) {
  const std::string_view text = request.header(kDeadlineHeader);
  if (text.empty()) return std::nullopt;
  const auto patience = number_in<std::int64_t>(kDeadlineHeader, text, 1, kMaxDeadlineMs);
  if (!patience) return fail(patience.error());
  return wall_clock_ms() + *patience;
}

}  // namespace fairlead
