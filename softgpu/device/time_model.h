// Modelled durations: how long the profile's GPU would take for what a kernel or copy did.
//
//   kernel: max(lane instructions / (SMs x lanes per SM x clock), bytes / memory bandwidth) + launch overhead
//   copy:   bytes / link bandwidth, or bytes x 2 / memory bandwidth within the device
//
// Example: 10^9 lane instructions on a V100 (80 SMs, 64 lanes, 1.53 GHz) take 128 us; 100 MB over a link of 12 GB/s
// take 8.3 ms. Counts are exact, so the same program has the same modelled times.
#pragma once

#include <cstdint>

#include "softgpu/device/profile.h"
#include "softgpu/ptx/machine.h"

namespace softgpu {

std::uint64_t kernel_ns(const Profile& profile, const ptx::Outcome& outcome);
std::uint64_t link_copy_ns(const Profile& profile, std::uint64_t bytes);
std::uint64_t device_copy_ns(const Profile& profile, std::uint64_t bytes);

}  // namespace softgpu
