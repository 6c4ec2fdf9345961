// What edges ask of a node about requests that are over: where the time of one went, and who was ahead of it.
//
// Threads: the io_context's.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/units.h"
#include "model/invocation.h"

namespace fairlead {

// Calls of one function that ran on the node while a request waited.
struct AheadOf {
  std::string function;
  std::string tenant;
  std::size_t ran = 0;     // when the request came
  std::size_t chosen = 0;  // while it waited
  Duration gpu_time{0};    // charged to those of both that are over
};

struct RequestTrace {
  std::string request_id;
  std::string function;
  std::string tenant;
  std::uint64_t version = 0;
  OutcomeKind outcome = OutcomeKind::kSuccess;
  std::string failure;           // "": it did not fail, or its function said why
  std::int64_t accepted_ms = 0;  // since 1970
  StartKind start = StartKind::kDeviceWarm;
  GpuId gpu;             // none: it never ran
  Duration queue{0};     // from arrival to the choice
  Duration starting{0};  // from the choice to delivery
  // Of a cold one: how long its instance took to be ready, in `starting` or, where it began ahead, in `queue`.
  Duration instance_start{0};
  Duration memory{0};    // of bringing its instance's memory back to the device since it came; in the other times
  Duration run{0};       // from delivery to the answer
  Duration gpu_time{0};  // charged
  std::optional<Duration> first_byte;  // as Outcome has it
  std::vector<AheadOf> ahead;          // who has most calls first
  bool is_ahead_whole = true;          // false: some of those that ran meanwhile are forgotten
};

class RequestService {
 public:
  virtual ~RequestService() = default;
  // kNotFound: it is not over, or it is forgotten.
  virtual Result<RequestTrace> trace(const std::string& request_id) = 0;
};

}  // namespace fairlead
