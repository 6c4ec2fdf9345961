#include "base/tenant_turns.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <set>
#include <vector>

namespace fairlead {
namespace {

using testing::ElementsAre;
using testing::Optional;

// Runs one after the other until nothing waits.
std::vector<std::uint64_t> drain(TenantTurns& order) {
  std::vector<std::uint64_t> taken;
  while (const auto next = order.take_next()) {
    taken.push_back(*next);
    order.remove(*next);
  }
  return taken;
}

TEST(TenantTurns, ATenantWithManyTrialsKeepsOthersWaitingForOne) {
  TenantTurns order(1);
  order.add(1, "a");
  ASSERT_THAT(order.take_next(), Optional(1));
  order.add(2, "a");
  order.add(3, "a");
  order.add(4, "b");
  EXPECT_EQ(order.take_next(), std::nullopt);
  order.remove(1);
  EXPECT_THAT(drain(order), ElementsAre(4, 2, 3));
}

TEST(TenantTurns, ATenantHasOneAtATime) {
  TenantTurns order(4);
  order.add(1, "a");
  order.add(2, "a");
  order.add(3, "b");
  EXPECT_THAT(order.take_next(), Optional(1));
  EXPECT_THAT(order.take_next(), Optional(3));
  EXPECT_EQ(order.take_next(), std::nullopt);
  order.remove(3);
  EXPECT_EQ(order.take_next(), std::nullopt);
  order.remove(1);
  EXPECT_THAT(order.take_next(), Optional(2));
}

TEST(TenantTurns, ATenantThatRestsLeavesItsPlaceToOthersAlone) {
  TenantTurns order(1);
  order.add(1, "a");
  order.add(2, "a");
  order.add(3, "b");
  ASSERT_THAT(order.take_next(), Optional(1));
  order.rest(1);
  EXPECT_EQ(order.running(), 0U);
  ASSERT_THAT(order.take_next(), Optional(3));
  order.remove(3);
  EXPECT_EQ(order.take_next(), std::nullopt) << "a rests";
  order.remove(1);
  EXPECT_THAT(drain(order), ElementsAre(2));
  EXPECT_EQ(order.size(), 0U);
}

TEST(TenantTurns, WhatIsNotWantedAnyMoreIsNotNext) {
  TenantTurns order(1);
  order.add(1, "a");
  order.add(2, "b");
  order.remove(1);
  EXPECT_THAT(drain(order), ElementsAre(2));
  EXPECT_EQ(order.size(), 0U);
}

// Against the claims of the head: never more than may run at a time, one of each tenant, all have their turn, and a tenant
// that waits is passed by each other tenant once at most.
RC_GTEST_PROP(TenantTurns, TenantsTakeTurnsUnderAnyOrderOfEvents, ()) {
  const auto at_once = *rc::gen::inRange<std::size_t>(1, 4);
  TenantTurns order(at_once);
  std::map<std::uint64_t, std::string> waiting;
  std::map<std::uint64_t, std::string> running;
  std::set<std::uint64_t> resting;                              // of these
  std::map<std::string, std::map<std::string, int>> passed_by;  // of a tenant that waits: who ran meanwhile
  std::uint64_t last = 0;
  const auto has = [](const auto& trials, const std::string& tenant) {
    return std::any_of(trials.begin(), trials.end(), [&](const auto& trial) { return trial.second == tenant; });
  };
  for (const int event : *rc::gen::container<std::vector<int>>(rc::gen::inRange(0, 9))) {
    if (event < 4) {
      const std::string tenant(1, static_cast<char>('a' + event));
      order.add(++last, tenant);
      waiting[last] = tenant;
    } else if (event < 6) {
      const auto next = order.take_next();
      const bool could =
          running.size() - resting.size() < at_once &&
          std::any_of(waiting.begin(), waiting.end(), [&](const auto& trial) { return !has(running, trial.second); });
      RC_ASSERT(next.has_value() == could);
      if (!next) continue;
      const std::string tenant = waiting.at(*next);
      RC_ASSERT(!has(running, tenant));
      waiting.erase(*next);
      running[*next] = tenant;
      passed_by.erase(tenant);
      for (const auto& [id, other] : waiting) {
        if (!has(running, other)) passed_by[other].try_emplace(tenant, 0);
      }
      for (auto& [other, passers] : passed_by) {
        if (has(running, other) || !has(waiting, other)) continue;
        if (passers.contains(tenant)) RC_ASSERT(++passers[tenant] <= 1);
      }
    } else if (event == 8) {
      const auto active = std::find_if(running.begin(), running.end(),
                                       [&](const auto& trial) { return !resting.contains(trial.first); });
      if (active == running.end()) continue;
      order.rest(active->first);
      resting.insert(active->first);
    } else if (!running.empty()) {
      order.remove(running.begin()->first);
      resting.erase(running.begin()->first);
      running.erase(running.begin());
    }
    RC_ASSERT(order.size() == waiting.size() + running.size());
    RC_ASSERT(order.running() == running.size() - resting.size());
  }
}

}  // namespace
}  // namespace fairlead
