// What is kept for a collector, what is sent again, and what is dropped. A collector is a stranger: what it does not take costs memory up
// to a bound, and after that spans, never a caller's time.
//
// Example: a collector hangs. A batch of 512 requests waits 10 s for an answer, then 1, 2, 4 and 8 s between attempts, and is dropped after
// the fifth, a bit more than a minute in all. Meanwhile 8,192 requests wait at most; those that end beyond that are dropped at once, and
// counted.
//
// Pure: no clock, thread, IO.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>

#include "base/units.h"

namespace fairlead {

inline constexpr std::size_t kMostWaitingTraces = 8192;  // requests
inline constexpr std::size_t kTraceBatch = 512;
inline constexpr unsigned kMostExportAttempts = 5;

enum class ExportVerdict { kTaken, kAgain, kDropped };

// Of a collector's status. Those that the protocol calls retryable are tried again.
constexpr ExportVerdict judge_export(unsigned status, unsigned attempts) {
  if (status >= 200 && status < 300) return ExportVerdict::kTaken;
  const bool is_passing = status == 429 || status == 502 || status == 503 || status == 504;
  return is_passing && attempts < kMostExportAttempts ? ExportVerdict::kAgain : ExportVerdict::kDropped;
}
// Of no answer at all.
constexpr ExportVerdict judge_silence(unsigned attempts) {
  return attempts < kMostExportAttempts ? ExportVerdict::kAgain : ExportVerdict::kDropped;
}

// Before the next attempt, after so many. `retry_after`: the collector's header, in seconds; what is no such number is left alone.
inline Duration export_pause(unsigned attempts, std::string_view retry_after) {
  constexpr unsigned kMostSeconds = 60;
  unsigned wanted = 0;
  for (const char c : retry_after) {
    if (c < '0' || c > '9') return std::chrono::seconds(1 << std::min(attempts - 1, 5U));
    wanted = std::min(wanted * 10 + static_cast<unsigned>(c - '0'), kMostSeconds);
  }
  return std::chrono::seconds(retry_after.empty() ? 1U << std::min(attempts - 1, 5U) : wanted);
}

// Who may have a place among those that wait. From half full on, a tenant has at most a quarter of all places: one whose callers have
// everything sampled does not push out what others are to see.
class TracePlaces {
 public:
  bool take(const std::string& tenant) {
    std::size_t& his = by_tenant_[tenant];
    if (all_ >= kMostWaitingTraces || (all_ >= kMostWaitingTraces / 2 && his >= kMostWaitingTraces / 4)) {
      if (his == 0) by_tenant_.erase(tenant);
      return false;
    }
    ++his;
    ++all_;
    return true;
  }
  void give_back(const std::string& tenant) {
    const auto at = by_tenant_.find(tenant);
    if (--at->second == 0) by_tenant_.erase(at);
    --all_;
  }
  std::size_t taken() const { return all_; }

 private:
  std::unordered_map<std::string, std::size_t> by_tenant_;
  std::size_t all_ = 0;
};

// Whether a trace is kept of which nobody has said so yet: the same on every node that is asked. By the 56 bits of its id that are random
// (W3C Trace Context, level 2, section 4).
constexpr bool is_sampled(std::uint64_t trace_low, double ratio) {
  constexpr std::uint64_t kAll = std::uint64_t{1} << 56;
  return static_cast<double>(trace_low & (kAll - 1)) >= (1 - ratio) * static_cast<double>(kAll);
}

}  // namespace fairlead
