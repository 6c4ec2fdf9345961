// What was measured of a function on a model of device: trials, and the three numbers that follow from them
// (decide/profiling/throughput_model.h). Kept by function, version of its code and device model; carried to other nodes as JSON.
//
// Plain values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/units.h"

namespace fairlead {

inline constexpr std::size_t kMaxProfileTrials = 400;
inline constexpr std::size_t kMaxProfileBytes = 1 << 20;  // as JSON
inline constexpr std::size_t kMaxComponentTimes = 1024;
inline constexpr double kLeastSlowdown = 0.01, kMostSlowdown = 1000;

struct MeasuredTrial {
  int width_percent = 100;  // of the SMs
  int quota_percent = 100;  // of the time: request and limit
  double rate_per_s = 0;    // requests, above 0
  double error = 0;         // of it, one standard deviation, as a part
  double p50_ms = 0, p99_ms = 0;
  double utilisation = 0;  // of the device's time, by the function alone: 0-1
  Bytes memory{0};         // on the device, the most that was seen; 0: the function has no shim, nobody knows
  std::uint64_t requests = 0;
  std::string why;  // it was measured
  bool operator==(const MeasuredTrial&) const = default;
};

// Beside a copy of itself, of the same rectangle, on the same device. Under MPS a neighbour's use of the memory's bandwidth shows as one's own time.
struct TrialBeside {
  MeasuredTrial trial;  // of one of the two
  double slowdown = 1;  // throughput of the same rectangle alone, by that beside the copy; above 0
  double error = 0;     // of the slowdown, one standard deviation, as a part
  bool operator==(const TrialBeside&) const = default;
};

// Of a pipeline: what one of its components takes on a type of slice.
struct ComponentTime {
  std::string component;
  std::string slice;  // "1g"
  double ms = 0, deviation_ms = 0;
  std::uint64_t runs = 0;  // that were seen; 0: it is predicted
  bool operator==(const ComponentTime&) const = default;
};

struct FunctionProfile {
  std::string function;
  std::string code_sha256;  // FunctionRecord's
  std::string device;       // its model: Device::name
  std::vector<MeasuredTrial> trials;
  double fixed_ms = 0, work_ms = 0, saturation_percent = 100;  // ThroughputModel
  double error = 0;              // of the model at the rectangle of interest, two standard deviations, as a part
  std::string ended;             // why no more was measured
  std::int64_t measured_ms = 0;  // since 1970
  bool is_imported = false;
  std::optional<TrialBeside> beside = {};
  std::vector<ComponentTime> components = {};  // of a pipeline, which has one trial, on its slices, and no rectangle
  std::string alone = {};  // why there is no trial beside a copy; "" too: it was measured before there were any
  bool operator==(const FunctionProfile&) const = default;

  Bytes memory() const;  // the most of its trials
  // By how much an instance is slower that has a neighbour, at least 1. A slowdown below 1 is noise.
  double slowdown() const;
};

std::string to_json(const FunctionProfile& profile);
// kInvalidArgument names the field, its value and the bound. Untrusted input.
Result<FunctionProfile> profile_from_json(std::string_view text);

}  // namespace fairlead
