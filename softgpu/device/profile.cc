#include "softgpu/device/profile.h"

#include <array>
#include <fstream>
#include <iterator>
#include <sstream>

#include "softgpu/device/key_value.h"

namespace softgpu {
namespace {

struct Builtin {
  std::string_view name;
  std::string_view text;
};

constexpr Builtin kBuiltins[] = {
#include "builtin_profiles.inc"
};

struct NumberField {
  std::string_view key;
  std::uint64_t Profile::*member;
  std::uint64_t low;
  std::uint64_t high;
  const char* fallback = nullptr;  // the value when the key is absent; null: it must be present
};

constexpr std::array kNumberFields = {
    NumberField{"sm_count", &Profile::sm_count, 1, 1024},
    NumberField{"cores_per_sm", &Profile::cores_per_sm, 1, 1024},
    NumberField{"clock_mhz", &Profile::clock_mhz, 1, 10'000},
    NumberField{"memory_clock_mhz", &Profile::memory_clock_mhz, 1, 50'000},
    NumberField{"memory_bus_bits", &Profile::memory_bus_bits, 32, 65'536},
    NumberField{"memory_mib", &Profile::memory_mib, 64, 4'194'304},
    NumberField{"memory_bandwidth_gb_s", &Profile::memory_bandwidth_gb_s, 1, 100'000},
    NumberField{"link_bandwidth_gb_s", &Profile::link_bandwidth_gb_s, 1, 10'000},
    NumberField{"l2_kib", &Profile::l2_kib, 1, 1'048'576},
    NumberField{"shared_per_sm_kib", &Profile::shared_per_sm_kib, 48, 1024},
    NumberField{"shared_per_block_kib", &Profile::shared_per_block_kib, 48, 1024},
    NumberField{"power_idle_watts", &Profile::power_idle_watts, 0, 10'000},
    NumberField{"power_max_watts", &Profile::power_max_watts, 1, 10'000},
    NumberField{"temperature_idle_celsius", &Profile::temperature_idle_celsius, 0, 150},
    NumberField{"temperature_max_celsius", &Profile::temperature_max_celsius, 0, 150},
    NumberField{"context_mib", &Profile::context_mib, 0, 65'536},
    NumberField{"launch_overhead_us", &Profile::launch_overhead_us, 0, 1'000'000},
    NumberField{"time_slice_us", &Profile::time_slice_us, 1, 10'000'000, "2000"},
    NumberField{"page_fault_us", &Profile::page_fault_us, 0, 1'000'000, "20"},
    NumberField{"pci_device_id", &Profile::pci_device_id, 0, 65'535, "0"},
};

Status set_compute_capability(Profile& profile, std::string_view text) {
  const auto dot = text.find('.');
  if (dot == std::string_view::npos) return failure("compute_capability is '" + std::string(text) + "': expected 8.0");
  const auto major = parse_number("compute_capability", text.substr(0, dot), 1, 99);
  const auto minor = parse_number("compute_capability", text.substr(dot + 1), 0, 9);
  if (!major) return failure(major.error());
  if (!minor) return failure(minor.error());
  profile.compute_major = static_cast<int>(*major);
  profile.compute_minor = static_cast<int>(*minor);
  return {};
}

}  // namespace

Result<Profile> parse_profile(std::string_view text) {
  auto values = parse_key_values(text);
  if (!values) return failure(values.error());
  const auto take = [&](std::string_view key) -> Result<std::string> {
    const auto found = values->find(key);
    if (found == values->end()) return failure(std::string(key) + " is missing");
    std::string value = std::move(found->second);
    values->erase(found);
    return value;
  };

  Profile profile;
  profile.text = text;
  auto name = take("name");
  if (!name || name->empty()) return failure("name is missing");
  profile.name = *name;
  const auto capability = take("compute_capability");
  if (!capability) return failure(capability.error());
  if (const auto set = set_compute_capability(profile, *capability); !set) return failure(set.error());
  for (const NumberField& field : kNumberFields) {
    auto value = take(field.key);
    if (!value && field.fallback != nullptr) value = field.fallback;
    if (!value) return failure(value.error());
    const auto number = parse_number(field.key, *value, field.low, field.high);
    if (!number) return failure(number.error());
    profile.*field.member = *number;
  }
  auto mig = take_mig_geometry(*values);
  if (!mig) return failure(mig.error());
  profile.mig = std::move(*mig);
  if (!values->empty()) return failure(values->begin()->first + " is not a profile key");
  return profile;
}

std::vector<std::string_view> builtin_profile_names() {
  std::vector<std::string_view> names;
  for (const Builtin& builtin : kBuiltins) names.push_back(builtin.name);
  return names;
}

Result<std::string> load_profile_text(const std::string& name) {
  if (name.find('/') != std::string::npos) {
    std::ifstream file(name);
    if (!file) return failure("cannot read the profile " + name);
    std::ostringstream text;
    text << file.rdbuf();
    return text.str();
  }
  std::string known;
  for (const Builtin& builtin : kBuiltins) {
    if (builtin.name == name) return std::string(builtin.text);
    known += (known.empty() ? "" : ", ") + std::string(builtin.name);
  }
  return failure("no profile is named '" + name + "'; there are " + known + ", or give the path of a file");
}

}  // namespace softgpu
