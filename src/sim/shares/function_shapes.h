// Functions as the laboratory of scaling models them: throughput by (width, quota), objective, memory.
//
// Where the numbers are from (FaST-GShare, V100 16 GB):
//   ResNet    71.4 requests/s on the whole device, 37.1 at 12 % (296.8 / 8), saturates at 24 %; objective 69 ms; 1,525 MiB
//   RNNT      12.5 and 5.4 (43.24 / 8); objective 500 ms ("tail latency below 500 ms")
//   GNMT      28.85 and 5.47 (43.79 / 8)
//   ResNeXt, ViT-huge   memory of 16 GiB / 4 and 4,735 MiB; nothing is said of their throughput
// Assumptions: where RNNT, GNMT saturate (50 and 80 %, the least points of the profiler's grid for which the fixed part is not negative);
// all of BERT (objective 400 ms), ResNeXt and ViT-huge but their memory; objective of GNMT as of RNNT; 2 GiB for RNNT, GNMT and BERT.
//
// What moves when an instance is parked is its memory without its context (300 MiB, the paper's figure), at 12 GB/s; a start from nothing
// takes 5 s, which is short: programs with TensorFlow took 3 to 15 s.
//
// Plain values.
#pragma once

#include <string>
#include <vector>

#include "decide/scaling/sizes.h"

namespace fairlead::sim {

struct FunctionShape {
  std::string name;
  ThroughputModel model;
  Duration objective{0};
  Bytes memory{0};
  Duration return_time() const;  // from parked to ready
};

inline constexpr Bytes kDeviceMemory = gib(16);
inline constexpr Duration kColdStart = std::chrono::seconds(5);

// ResNet, RNNT, GNMT, BERT, ResNeXt, ViT-huge.
const std::vector<FunctionShape>& function_shapes();
FunctionTerms terms_of(const FunctionShape& shape);

}  // namespace fairlead::sim
