// An invocation that is over, as one line of a node's history: what a simulator needs to play it again.
//
//   at_us,function,outcome,start,gpu,queue_us,start_us,run_us,gpu_us,instance_start_us
//   1763800000000000,fft,success,cold,1,260012,0,22013,21800,259411
//
// at_us: arrival, microseconds since the epoch. The times follow each other: queue_us from arrival to dispatch, start_us
// to delivery, run_us to the answer; gpu_us is the GPU time charged. instance_start_us is how long the instance of a cold
// one took to start: within start_us where the start held its slot, within queue_us where it ran ahead of it. One that
// was refused at its arrival has the outcome "refused"; one that never ran has no start and GPU 0.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "decide/core/core.h"
#include "model/function.h"

namespace fairlead {

// Fixed in size, so that noting one allocates nothing.
struct InvocationRecord {
  std::int64_t at_us = 0;
  std::array<char, kMaxFunctionNameLength + 1> name{};  // ends with a NUL
  std::optional<OutcomeKind> outcome;                   // empty: refused
  std::optional<StartKind> start;                       // empty: it never ran
  GpuId gpu;
  Duration queue{0}, starting{0}, run{0}, gpu_time{0}, instance_start{0};

  std::string_view function() const { return name.data(); }
  void set_function(std::string_view function);  // what is too long is cut off
  Instant arrived() const { return Instant(std::chrono::microseconds(at_us)); }
  bool operator==(const InvocationRecord&) const = default;
};

inline constexpr std::string_view kInvocationRecordHeading =
    "at_us,function,outcome,start,gpu,queue_us,start_us,run_us,gpu_us,instance_start_us";

// Without the end of the line. Equal records give equal lines; times are cut to microseconds.
std::string to_line(const InvocationRecord& record);

// kCorrupt names the field, its text and what it may be.
Result<InvocationRecord> record_of(std::string_view line);

}  // namespace fairlead
