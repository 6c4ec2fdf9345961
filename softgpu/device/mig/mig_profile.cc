#include "softgpu/device/mig/mig_profile.h"

#include <algorithm>
#include <array>
#include <bit>
#include <functional>
#include <sstream>
#include <tuple>

namespace softgpu {
namespace {

constexpr std::string_view kPrefix = "mig_";
constexpr std::string_view kSlicesKey = "mig_memory_slices";
constexpr unsigned kMaxSlices = 16;

struct Column {
  std::string_view name;
  std::uint64_t low;
  std::uint64_t high;
};

// The numbers before the starts.
constexpr std::array kColumns = {
    Column{"id", 0, 65'535},
    Column{"compute slices", 1, kMaxSlices},
    Column{"memory slices", 1, kMaxSlices},
    Column{"SMs", 1, 1024},
    Column{"MiB", 1, 4'194'304},
    Column{"copy engines", 0, 64},
    Column{"decoders", 0, 64},
};
constexpr Column kStart = {"start", 0, kMaxSlices};

Result<std::vector<unsigned>> parse_numbers(const std::string& key, const std::string& text) {
  std::vector<unsigned> numbers;
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    const Column& column = numbers.size() < kColumns.size() ? kColumns[numbers.size()] : kStart;
    const auto number = parse_number(column.name, word, column.low, column.high);
    if (!number) return failure(key + ": " + number.error());
    numbers.push_back(static_cast<unsigned>(*number));
  }
  if (numbers.size() < kColumns.size()) {
    return failure(key + " is '" + text + "': expected seven numbers, then the starts");
  }
  return numbers;
}

// "19 1 1 14 4864 1 0 0 1 2": the columns, then the starts.
Result<MigProfile> parse_line(const std::string& key, const std::string& text, unsigned slices) {
  const auto numbers = parse_numbers(key, text);
  if (!numbers) return failure(numbers.error());
  const std::vector<unsigned>& n = *numbers;
  const MigProfile profile = {
      key.substr(kPrefix.size()), n[0], n[1], n[2], n[3], n[4], n[5], n[6], {n.begin() + kColumns.size(), n.end()}};
  const bool ascending =
      std::adjacent_find(profile.starts.begin(), profile.starts.end(), std::greater_equal<>()) == profile.starts.end();
  if (profile.starts.empty() || !ascending) return failure(key + ": expected the starts in ascending order");
  if (profile.starts.back() + profile.memory_slices > slices) {
    return failure(key + ": an instance must end within mig_memory_slices = " + std::to_string(slices));
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
