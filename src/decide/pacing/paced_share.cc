#include "decide/pacing/paced_share.h"

#include <algorithm>
#include <cmath>

namespace fairlead {
namespace {

constexpr int kLeastWeight = 1, kMostWeight = 1000;
constexpr double kWeightScale = 10;  // a paced weight is a whole number

}  // namespace

PacedShare paced_share(FlowId flow, const Share& share, double weight, Widths widths) {
  const long scaled = std::lround(weight * kWeightScale);
  return {.flow = flow,
          .width_percent = widths == Widths::kByAuthor ? share.width_percent.value_or(kWholeDevice) : kWholeDevice,
          .request_percent = share.request_percent,
          .limit_percent = share.limit_percent,
          .weight = static_cast<int>(std::clamp<long>(scaled, kLeastWeight, kMostWeight)),
          .memory = share.memory.value_or(Bytes(0))};
}

Status check(const PacedShare& share) {
  if (share.width_percent < 1 || share.width_percent > kWholeDevice) {
    return fail(Errc::kInvalidArgument, "gpu:compute-percent is {}, it must be 1 to 100", share.width_percent);
  }
  if (share.limit_percent < 1 || share.limit_percent > 100) {
    return fail(Errc::kInvalidArgument, "gpu:quota-limit is {}, it must be 1 to 100", share.limit_percent);
  }
  if (share.request_percent < 0 || share.request_percent > 100) {
    return fail(Errc::kInvalidArgument, "gpu:quota-request is {}, it must be 0 to 100", share.request_percent);
  }
  if (share.request_percent > share.limit_percent) {
    return fail(Errc::kInvalidArgument, "gpu:quota-request is {}, it must be at most gpu:quota-limit, {}",
                share.request_percent, share.limit_percent);
  }
  if (share.weight < kLeastWeight || share.weight > kMostWeight) {
    return fail(Errc::kInvalidArgument, "the weight is {}, it must be {} to {}", share.weight, kLeastWeight,
                kMostWeight);
  }
  if (share.memory < Bytes(0)) {
    return fail(Errc::kInvalidArgument, "gpu:memory-mib is {:.0f}, it must be at least 0", share.memory.mib());
  }
  return {};
}

}  // namespace fairlead
