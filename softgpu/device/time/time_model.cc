#include "softgpu/device/time/time_model.h"

#include <algorithm>
#include <cstring>

#include "softgpu/device/control.h"

namespace softgpu {
namespace {

using Wide = unsigned __int128;

std::uint64_t narrow(Wide value) {
  return static_cast<std::uint64_t>(std::min<Wide>(value, kForeverNs - 1));
}

// bytes / (GB/s) is nanoseconds.
std::uint64_t transfer_ns(std::uint64_t bytes, std::uint64_t gb_per_s, std::uint64_t users = 1) {
  return narrow(Wide{bytes} * users / gb_per_s);
}

}  // namespace

std::uint64_t kernel_ns(const Profile& profile, const KernelWork& work, const KernelGrant& grant) {
  if (grant.milli_sms == 0) return kForeverNs;
  const Wide milli_sms = std::min<Wide>(grant.milli_sms, Wide{std::max<std::uint64_t>(work.blocks, 1)} * 1000);
  const std::uint64_t compute =
      narrow(Wide{work.lane_instructions} * 1'000'000 / (milli_sms * profile.cores_per_sm * profile.clock_mhz));
  const std::uint64_t memory = transfer_ns(work.global_bytes, profile.memory_bandwidth_gb_s, grant.memory_users);
  const std::uint64_t migration = migration_ns(profile, work.migrated_pages, work.migrated_pages * kPageBytes);
  return narrow(Wide{std::max(compute, memory)} + migration + profile.launch_overhead_us * 1000);
}

std::uint64_t kernel_ns(const Profile& profile, const KernelWork& work) {
  return kernel_ns(profile, work, {profile.sm_count * 1000});
}

std::uint64_t link_copy_ns(const Profile& profile, std::uint64_t bytes, std::uint64_t users) {
  return transfer_ns(bytes, profile.link_bandwidth_gb_s, users);
}

std::uint64_t device_copy_ns(const Profile& profile, std::uint64_t bytes) {
  return transfer_ns(bytes, profile.memory_bandwidth_gb_s, 2);
}

std::uint64_t migration_ns(const Profile& profile, std::uint64_t faults, std::uint64_t bytes) {
  return narrow(Wide{faults} * profile.page_fault_us * 1000 + link_copy_ns(profile, bytes));
}

std::optional<KernelWork> synthetic_work(const ptx::KernelInfo& kernel, std::span<const std::byte> parameters,
                                         std::uint64_t blocks) {
  if (kernel.name.find(kSyntheticMark) == std::string::npos || kernel.parameters.size() < 2) return std::nullopt;
  KernelWork work;
  std::uint64_t* const counts[] = {&work.lane_instructions, &work.global_bytes};
  for (std::size_t i = 0; i < 2; ++i) {
    const ptx::Parameter& parameter = kernel.parameters[i];
    if (parameter.size != sizeof(std::uint64_t) || parameter.offset + parameter.size > parameters.size()) {
      return std::nullopt;
    }
    std::memcpy(counts[i], parameters.data() + parameter.offset, sizeof(std::uint64_t));
    const bool is_of_block = kernel.name.find(kSyntheticBlocksMark) != std::string::npos;
    if (is_of_block) *counts[i] = narrow(Wide{*counts[i]} * blocks);
  }
  return work;
}

}  // namespace softgpu
