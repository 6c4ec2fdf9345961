#include "placement/eviction.h"

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

const Instance& CostAwareEviction::victim(const std::vector<const Instance*>& candidates) const {
  FL_CHECK(!candidates.empty());
  struct Loss {
    __int128 cost, time;  // cost / time, kept apart: no rounding, no order of float operations
  };
  const auto loss = [&](const Instance* i) {
    const auto gap = static_cast<__int128>(costs_.expected_gap(i->flow).count());
    const auto duplicates = static_cast<__int128>(costs_.instances(i->flow));
    return Loss{costs_.cold_start(i->flow).count(), std::max<__int128>(1, gap * duplicates)};
  };
  const auto less = [&](const Instance* a, const Instance* b) {
    if (a->returning() != b->returning()) return b->returning();
    const Loss of_a = loss(a), of_b = loss(b);
    const __int128 left = of_a.cost * of_b.time, right = of_b.cost * of_a.time;
    if (left != right) return left < right;
    return std::tuple(a->last_used, a->id) < std::tuple(b->last_used, b->id);
  };
  return **std::min_element(candidates.begin(), candidates.end(), less);
}

}  // namespace fairlead
