// Device profiles: what a modelled GPU is made of. A profile is a text of `key = value` lines ('#' begins a comment).
// The profiles of softgpu/profiles are compiled in; any other is loaded by its path.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "softgpu/device/mig/mig_profile.h"
#include "softgpu/device/result.h"

namespace softgpu {

struct Profile {
  std::string name;
  int compute_major = 0;
  int compute_minor = 0;
  std::uint64_t sm_count = 0;
  std::uint64_t cores_per_sm = 0;  // lanes that one SM executes per clock
  std::uint64_t clock_mhz = 0;
  std::uint64_t memory_clock_mhz = 0;
  std::uint64_t memory_bus_bits = 0;
  std::uint64_t memory_mib = 0;
  std::uint64_t memory_bandwidth_gb_s = 0;
  std::uint64_t link_bandwidth_gb_s = 0;
  std::uint64_t l2_kib = 0;
  std::uint64_t shared_per_sm_kib = 0;
  std::uint64_t shared_per_block_kib = 0;  // the most a kernel may opt in to
  std::uint64_t power_idle_watts = 0;
  std::uint64_t power_max_watts = 0;
  std::uint64_t temperature_idle_celsius = 0;
  std::uint64_t temperature_max_celsius = 0;
  std::uint64_t context_mib = 0;  // memory that one context takes for itself
  std::uint64_t launch_overhead_us = 0;
  std::uint64_t time_slice_us = 0;  // how long a process computes while others wait; optional, 2000
  std::uint64_t page_fault_us = 0;  // what moving a group of managed pages costs besides the bytes; optional, 20
  std::string text;                 // what it was parsed from
  std::uint64_t pci_device_id = 0;  // the vendor is NVIDIA; optional, 0
  MigGeometry mig;                  // what it can be cut into; optional
};

// Parses a profile. Error: the key or line that is wrong and the bound it breaks. Keys that are not said to be optional
// must be present.
Result<Profile> parse_profile(std::string_view text);

// Names of the compiled-in profiles, in alphabetical order.
std::vector<std::string_view> builtin_profile_names();

// The text of a compiled-in profile or, when `name` contains a '/', of a file. Error: names what exists.
Result<std::string> load_profile_text(const std::string& name);

}  // namespace softgpu
