#include "sharing/pacing/paced_share.h"

namespace fairlead {

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
  if (share.weight < 1 || share.weight > 1000) {
    return fail(Errc::kInvalidArgument, "the weight is {}, it must be 1 to 1000", share.weight);
  }
  if (share.memory < Bytes(0)) {
    return fail(Errc::kInvalidArgument, "gpu:memory-mib is {:.0f}, it must be at least 0", share.memory.mib());
  }
  return {};
}

}  // namespace fairlead
