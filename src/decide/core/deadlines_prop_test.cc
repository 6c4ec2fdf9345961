// Deadlines against an ordered set of (time, instance).
#include "decide/core/deadlines.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <map>
#include <set>

#include "base/rng.h"

namespace fairlead {
namespace {

TEST(DeadlinesProperties, FirstIsTheLeastOfThoseSetAndNotCleared) {
  EXPECT_TRUE(rc::check("the first of a heap is the first of an ordered set", [](std::uint64_t seed) {
    Rng rng(seed);
    Deadlines deadlines;
    std::map<InstanceId, Instant> naive;
    for (int i = 0; i < 500; ++i) {
      const InstanceId id(1 + rng.below(12));
      switch (rng.below(4)) {
        case 0: deadlines.clear(id), naive.erase(id); break;
        case 1: deadlines.forget(id), naive.erase(id); break;
        default: naive[id] = Instant(Duration(rng.below(20))); deadlines.set(id, naive[id]);
      }
      RC_ASSERT(deadlines.empty() == naive.empty());
      if (naive.empty()) continue;
      std::set<std::pair<Instant, InstanceId>> ordered;
      for (const auto& [instance, at] : naive) ordered.emplace(at, instance);
      RC_ASSERT(deadlines.next() == ordered.begin()->first);
      RC_ASSERT(deadlines.first() == ordered.begin()->second);
    }
  }));
}

}  // namespace
}  // namespace fairlead
