#include "softgpu/device/mig/mig_profile.h"

#include <algorithm>
#include <bit>
#include <sstream>
#include <tuple>

namespace softgpu {
namespace {

constexpr std::string_view kPrefix = "mig_";
constexpr std::string_view kSlicesKey = "mig_memory_slices";
constexpr unsigned kMaxSlices = 16;

// "19 1 1 14 4864 1 0 0 1 2": id, compute slices, memory slices, SMs, MiB, copy engines, decoders, starts.
Result<MigProfile> parse_line(const std::string& key, const std::string& text, unsigned slices) {
  MigProfile profile;
  profile.name = key.substr(kPrefix.size());
  std::istringstream words(text);
  unsigned start = 0;
  words >> profile.id >> profile.compute_slices >> profile.memory_slices >> profile.sm_count >> profile.memory_mib >>
      profile.copy_engines >> profile.decoders;
  if (!words) return failure(key + " is '" + text + "': expected seven numbers, then the starts");
  while (words >> start) profile.starts.push_back(start);
  if (!words.eof()) return failure(key + " is '" + text + "': expected numbers");
  const bool sorted = std::is_sorted(profile.starts.begin(), profile.starts.end());
  if (profile.starts.empty() || !sorted) return failure(key + ": expected the starts in ascending order");
  if (profile.memory_slices == 0 || profile.compute_slices == 0 || profile.sm_count == 0 || profile.memory_mib == 0 ||
      profile.starts.back() + profile.memory_slices > slices) {
    return failure(key + ": an instance must have slices, SMs and memory, and end within mig_memory_slices = " +
                   std::to_string(slices));
  }
  const bool aligned = std::all_of(profile.starts.begin(), profile.starts.end(),
                                   [&](unsigned at) { return at % profile.memory_slices == 0; });
  if (!std::has_single_bit(profile.memory_slices) || !aligned) {
    return failure(key + ": the memory slices must be a power of two, and the starts multiples of it");
  }
  return profile;
}

auto order(const MigProfile& profile) {
  return std::tuple(profile.compute_slices, profile.memory_slices, profile.name);
}

}  // namespace

const MigProfile* MigGeometry::find(std::string_view name) const {
  const auto found = std::find_if(profiles.begin(), profiles.end(), [&](const auto& p) { return p.name == name; });
  return found == profiles.end() ? nullptr : &*found;
}

const MigProfile* MigGeometry::find_id(unsigned id) const {
  const auto found = std::find_if(profiles.begin(), profiles.end(), [&](const auto& p) { return p.id == id; });
  return found == profiles.end() ? nullptr : &*found;
}

unsigned MigGeometry::compute_sm_count(const MigProfile& profile, unsigned slices) const {
  if (slices >= profile.compute_slices || profiles.empty()) return profile.sm_count;
  return std::min(profile.sm_count, slices * profiles.front().sm_count);
}

Result<MigGeometry> take_mig_geometry(KeyValues& values) {
  MigGeometry geometry;
  const auto slices = values.find(kSlicesKey);
  if (slices == values.end()) return geometry;
  const auto number = parse_number(kSlicesKey, slices->second, 1, kMaxSlices);
  if (!number) return failure(number.error());
  if (!std::has_single_bit(*number)) return failure(std::string(kSlicesKey) + " must be a power of two");
  geometry.memory_slices = static_cast<unsigned>(*number);
  values.erase(slices);
  for (auto at = values.lower_bound(kPrefix); at != values.end() && at->first.starts_with(kPrefix);) {
    auto profile = parse_line(at->first, at->second, geometry.memory_slices);
    if (!profile) return failure(profile.error());
    if (geometry.find_id(profile->id) != nullptr) return failure(at->first + ": its id is taken by another");
    geometry.profiles.push_back(std::move(*profile));
    at = values.erase(at);
  }
  if (geometry.profiles.empty()) return failure(std::string(kSlicesKey) + " is given, but no mig_ profile");
  std::sort(geometry.profiles.begin(), geometry.profiles.end(),
            [](const auto& a, const auto& b) { return order(a) < order(b); });
  return geometry;
}

}  // namespace softgpu
