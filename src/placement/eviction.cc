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

}  // namespace fairlead
