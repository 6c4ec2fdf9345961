// softgpu profiles: the devices that can be modelled.
#include <cstdio>

#include "softgpu/device/profile.h"
#include "softgpu/tools/command.h"

namespace softgpu::tools {

int profiles(Arguments) {
  std::printf("%-10s %-24s %4s %5s %8s %6s\n", "profile", "name", "cc", "SMs", "memory", "GB/s");
  for (const std::string_view name : builtin_profile_names()) {
    const auto profile = parse_profile(*load_profile_text(std::string(name)));
    if (!profile) return fail(profile.error());
    std::printf("%-10s %-24s %d.%d  %5llu %4llu GiB %6llu\n", std::string(name).c_str(), profile->name.c_str(),
                profile->compute_major, profile->compute_minor, static_cast<unsigned long long>(profile->sm_count),
                static_cast<unsigned long long>(profile->memory_mib >> 10),
                static_cast<unsigned long long>(profile->memory_bandwidth_gb_s));
  }
  return 0;
}

}  // namespace softgpu::tools
