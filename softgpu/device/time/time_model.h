// Modelled durations: how long the profile's GPU would take for what a kernel or copy did.
//
//   kernel:    max(lane instructions / (SMs x lanes per SM x clock), bytes / memory bandwidth) + launch overhead,
//              where a kernel uses no more SMs than it has blocks
//   copy:      bytes / link bandwidth, or bytes x 2 / memory bandwidth within the device
//   migration: page faults x cost of one + bytes / link bandwidth
//
// Example: 10^9 lane instructions on a V100 (80 SMs, 64 lanes, 1.53 GHz) take 128 us, and 256 us on the 40 SMs of an MPS
// client with 50 %; 100 MB over a link of 12 GB/s take 8.3 ms, twice that beside another copy in the same direction.
// Counts and arithmetic are of whole numbers, so the same program has the same modelled times.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "softgpu/device/profile.h"
#include "softgpu/ptx/machine.h"

namespace softgpu {

// What a kernel does; what it costs depends on who does it.
struct KernelWork {
  std::uint64_t lane_instructions = 0;
  std::uint64_t global_bytes = 0;
  std::uint64_t blocks = UINT32_MAX;
  std::uint64_t migrated_pages = 0;  // managed pages of 2 MiB that were elsewhere; each is a fault and a copy
};

// The part of the device a kernel computes on.
struct KernelGrant {
  std::uint64_t milli_sms = 0;     // 0: it waits, and its duration is kForeverNs
  std::uint64_t memory_users = 1;  // how many kernels share the memory bandwidth equally
};
inline constexpr std::uint64_t kForeverNs = UINT64_MAX;

std::uint64_t kernel_ns(const Profile& profile, const KernelWork& work, const KernelGrant& grant);
// The same, alone on all SMs.
std::uint64_t kernel_ns(const Profile& profile, const KernelWork& work);

// `users`: copies that share the link in this direction.
std::uint64_t link_copy_ns(const Profile& profile, std::uint64_t bytes, std::uint64_t users = 1);
std::uint64_t device_copy_ns(const Profile& profile, std::uint64_t bytes);

// Moving `bytes` of managed memory because of accesses that met `faults` absent page groups; a prefetch has one.
std::uint64_t migration_ns(const Profile& profile, std::uint64_t faults, std::uint64_t bytes);

// A synthetic kernel stands for work too large to compute: in charge mode it is not executed, only charged. It is
// marked by a name that contains kSyntheticMark, and declares the lane instructions and the bytes of the launch as its
// first two parameters, of 64 bits each. With kSyntheticBlocksMark in the name they are of each block: so a kernel that is
// launched a part of its blocks at a time is charged as much in all. Empty when the kernel is not synthetic.
inline constexpr std::string_view kSyntheticMark = "softgpu_charge";
inline constexpr std::string_view kSyntheticBlocksMark = "softgpu_charge_blocks";
std::optional<KernelWork> synthetic_work(const ptx::KernelInfo& kernel, std::span<const std::byte> parameters,
                                         std::uint64_t blocks);

}  // namespace softgpu
