#include "softgpu/device/time_model.h"

#include <algorithm>

namespace softgpu {
namespace {

// bytes / (GB/s) is nanoseconds.
std::uint64_t transfer_ns(std::uint64_t bytes, std::uint64_t gb_per_s) {
  return bytes / gb_per_s;
}

}  // namespace

std::uint64_t kernel_ns(const Profile& profile, const ptx::Outcome& outcome) {
  const double lanes_per_ns = static_cast<double>(profile.sm_count * profile.cores_per_sm * profile.clock_mhz) / 1000.0;
  const auto compute = static_cast<std::uint64_t>(static_cast<double>(outcome.lane_instructions) / lanes_per_ns);
  const std::uint64_t memory = transfer_ns(outcome.global_bytes, profile.memory_bandwidth_gb_s);
  return std::max(compute, memory) + profile.launch_overhead_us * 1000;
}

std::uint64_t link_copy_ns(const Profile& profile, std::uint64_t bytes) {
  return transfer_ns(bytes, profile.link_bandwidth_gb_s);
}

std::uint64_t device_copy_ns(const Profile& profile, std::uint64_t bytes) {
  return transfer_ns(2 * bytes, profile.memory_bandwidth_gb_s);
}

}  // namespace softgpu
