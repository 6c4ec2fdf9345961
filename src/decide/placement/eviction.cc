#include "decide/placement/eviction.h"

#include <algorithm>
#include <tuple>

#include "base/check.h"

namespace fairlead {

const Instance& LruEviction::victim(const std::vector<const Instance*>& candidates) const {
  FL_CHECK(!candidates.empty());
  const auto key = [](const Instance* i) { return std::tuple(i->returning(), i->last_used, i->id); };
  return **std::min_element(candidates.begin(), candidates.end(),
                            [&](const Instance* a, const Instance* b) { return key(a) < key(b); });
}

const Instance& InactiveFirstEviction::victim(const std::vector<const Instance*>& candidates) const {
  FL_CHECK(!candidates.empty());
  const auto key = [&](const Instance* i) {
    return std::tuple(i->returning(), activity_.is_active(i->flow), i->last_used, i->id);
  };
  const Instance* first = candidates.front();
  auto least = key(first);
  for (const Instance* candidate : candidates) {
    if (auto its = key(candidate); its < least) {
      least = its;
      first = candidate;
    }
  }
  return *first;
}

const Instance& CostAwareEviction::victim(const std::vector<const Instance*>& candidates) const {
  FL_CHECK(!candidates.empty());
  struct Loss {
    const Instance* of;
    __int128 cost, time;  // cost / time, kept apart: no rounding, no order of float operations

    bool operator<(const Loss& other) const {
      if (of->returning() != other.of->returning()) return other.of->returning();
      const __int128 left = cost * other.time, right = other.cost * time;
      if (left != right) return left < right;
      return std::tuple(of->last_used, of->id) < std::tuple(other.of->last_used, other.of->id);
    }
  };
  const auto loss = [&](const Instance* i) {
    const auto gap = static_cast<__int128>(costs_.expected_gap(i->flow).count());
    const auto duplicates = static_cast<__int128>(costs_.instances(i->flow));
    return Loss{i, costs_.cold_start(i->flow).count(), std::max<__int128>(1, gap * duplicates)};
  };
  Loss least = loss(candidates.front());
  for (const Instance* candidate : candidates) least = std::min(least, loss(candidate));
  return *least.of;
}

}  // namespace fairlead
