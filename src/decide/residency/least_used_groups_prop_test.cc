// Which groups of SMs a call gets. Planted and caught: the first groups whoever is on them; one group too few.
#include "decide/residency/least_used_groups.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <set>

namespace fairlead {
namespace {

using Groups = std::vector<std::uint32_t>;

TEST(LeastUsedGroups, AreThoseThatNobodyIsOnAndTheFirstOfThem) {
  EXPECT_EQ(least_used_groups({1, 1, 1, 0, 0, 0, 1, 1}, 3), (Groups{3, 4, 5}));  // the header's example
  EXPECT_EQ(least_used_groups({0, 0, 0, 0}, 2), (Groups{0, 1}));
  EXPECT_EQ(least_used_groups({1, 0, 1, 0}, 2), (Groups{1, 3})) << "wherever they are";
  EXPECT_EQ(least_used_groups({2, 1, 2, 1}, 3), (Groups{0, 1, 3})) << "and where all are in use the least used";
  EXPECT_EQ(least_used_groups({5, 5}, 0), Groups{});
}

// Calls come and go, also more than there are groups for.
RC_GTEST_PROP(LeastUsedGroups, CallsMeetOnlyWhereThereIsNoRoomForAll, ()) {
  const auto count = *rc::gen::inRange<std::uint32_t>(1, 65);
  Groups calls(count, 0);
  std::vector<Groups> running;
  for (int event = *rc::gen::inRange(0, 60); event > 0; --event) {
    if (!running.empty() && *rc::gen::inRange(0, 3) == 0) {
      const auto ended = *rc::gen::inRange<std::size_t>(0, running.size());
      for (const std::uint32_t group : running[ended]) --calls[group];
      running.erase(running.begin() + static_cast<std::ptrdiff_t>(ended));
      continue;
    }
    const auto wanted = *rc::gen::inRange<std::uint32_t>(1, count + 1);
    const Groups given = least_used_groups(calls, wanted);
    RC_ASSERT(given.size() == wanted);
    RC_ASSERT((std::set<std::uint32_t>(given.begin(), given.end()).size() == wanted));
    RC_ASSERT(std::ranges::is_sorted(given) && given.back() < count);
    const auto free = static_cast<std::uint32_t>(std::ranges::count(calls, 0U));
    if (free >= wanted) {
      RC_ASSERT(std::ranges::all_of(given, [&](std::uint32_t group) { return calls[group] == 0; }));
    }
    // No other group would have been better than the worst of these.
    std::uint32_t worst = 0;
    for (const std::uint32_t group : given) worst = std::max(worst, calls[group]);
    const auto better = std::ranges::count_if(calls, [&](std::uint32_t on) { return on < worst; });
    RC_ASSERT(better < static_cast<std::ptrdiff_t>(wanted));
    for (const std::uint32_t group : given) ++calls[group];
    running.push_back(given);
  }
}

}  // namespace
}  // namespace fairlead
