#include "decide/residency/least_used_groups.h"

#include <algorithm>
#include <numeric>

namespace fairlead {

std::vector<std::uint32_t> least_used_groups(const std::vector<std::uint32_t>& calls, std::uint32_t wanted) {
  std::vector<std::uint32_t> groups(calls.size());
  std::iota(groups.begin(), groups.end(), 0U);
  std::ranges::stable_sort(groups, {}, [&](std::uint32_t group) { return calls[group]; });
  groups.resize(wanted);
  std::ranges::sort(groups);
  return groups;
}

}  // namespace fairlead
