// States of a function and shared slices: scripted events, the table of what may become what, random runs.
#include "decide/pipeline/keep_alive.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace fairlead {
namespace {

using namespace std::chrono_literals;
using enum KeepAliveState;

Instant at(Duration since) {
  return Instant(since);
}

TEST(KeepAlive, GoesThroughThePapersStates) {
  KeepAlive one;
  EXPECT_EQ(one.state(), kCold);
  EXPECT_FALSE(one.next_wakeup());
  EXPECT_EQ(one.on_request(at(0s)), kTimeSharing);
  EXPECT_EQ(one.on_utilisation(at(1s), 0.3), kTimeSharing);
  EXPECT_EQ(one.on_utilisation(at(2s), 0.31), kExclusiveHot);
  EXPECT_EQ(one.on_evicted(at(3s)), kExclusiveHot);  // never evicted
  EXPECT_EQ(one.on_utilisation(at(4s), 0.1), kExclusiveHot);
  EXPECT_EQ(one.on_utilisation(at(6s), 0.4), kExclusiveHot);  // a moment below is nothing
  EXPECT_EQ(one.on_utilisation(at(7s), 0.1), kExclusiveHot);
  EXPECT_EQ(one.on_utilisation(at(12s), 0.1), kTimeSharing);
  EXPECT_EQ(one.on_evicted(at(13s)), kWarm);
  EXPECT_EQ(one.on_request(at(14s)), kTimeSharing);
  EXPECT_EQ(one.on_evicted(at(15s)), kWarm);
  EXPECT_EQ(one.next_wakeup(), at(14s + 10min));
  EXPECT_EQ(one.wake(at(14s + 10min - 1ns)), kWarm);
  EXPECT_EQ(one.wake(at(14s + 10min)), kCold);
}

TEST(KeepAlive, TheTableOfWhatMayBecomeWhat) {
  EXPECT_FALSE(may_become(kCold, kExclusiveHot));
  EXPECT_FALSE(may_become(kCold, kWarm));
  EXPECT_FALSE(may_become(kWarm, kExclusiveHot));
  EXPECT_TRUE(may_become(kTimeSharing, kWarm));
  EXPECT_TRUE(may_become(kExclusiveHot, kTimeSharing));
}

RC_GTEST_PROP(KeepAlive, NoOrderOfEventsLeavesTheTable, ()) {
  KeepAlive one;
  Instant now{};
  for (int left = *rc::gen::inRange(0, 100); left > 0; --left) {
    now += Duration(1s) * *rc::gen::inRange(0, 400);
    const KeepAliveState before = one.state();
    switch (*rc::gen::inRange(0, 5)) {
      case 0: one.on_request(now); break;
      case 1: one.on_utilisation(now, *rc::gen::inRange(0, 100) / 100.0); break;
      case 2: one.on_evicted(now); break;
      case 3: one.on_lost(now, *rc::gen::inRange(0, 2) == 0); break;
      default: one.wake(now);
    }
    RC_ASSERT(may_become(before, one.state()));
  }
}

SharedSliceId slice(std::uint64_t id) {
  return SharedSliceId(id);
}

TEST(SharedSlices, TheResidentRunsAtOnceAndAnotherIsEvictedForOneThatIsNotThere) {
  SharedSlices slices({.rule = EvictionRule::kLru});
  slices.add(slice(1));
  const auto first = slices.place(at(0s), FlowId(1), 1s, {slice(1)});
  ASSERT_TRUE(first);
  EXPECT_TRUE(first->must_load);
  EXPECT_FALSE(slices.place(at(0s), FlowId(2), 1s, {slice(1)}));  // one instance at a time
  EXPECT_FALSE(slices.remove(slice(1)));
  slices.finished(at(1s), slice(1), 1s);
  EXPECT_FALSE(slices.place(at(1s), FlowId(1), 1s, {slice(1)})->must_load);
  slices.finished(at(2s), slice(1), 1s);
  const auto second = slices.place(at(2s), FlowId(2), 1s, {slice(1)});
  EXPECT_EQ(second->evicts, FlowId(1));
  EXPECT_EQ(slices.resident(slice(1)), FlowId(2));
}

TEST(SharedSlices, LruEvictsTheOneUsedLongestAgo) {
  SharedSlices slices({.rule = EvictionRule::kLru});
  for (const std::uint64_t id : {1, 2}) {
    slices.add(slice(id));
    slices.place(at(Duration(1s) * id), FlowId(id), 1s, {slice(id)});
    slices.finished(at(Duration(1s) * id), slice(id), 0s);
  }
  slices.place(at(3s), FlowId(1), 1s, {slice(1)});
  slices.finished(at(3s), slice(1), 0s);
  EXPECT_EQ(slices.place(at(4s), FlowId(3), 1s, {slice(1), slice(2)})->evicts, FlowId(2));
}

TEST(SharedSlices, ByCostTheOneThatIsCheapToMissLeavesAndNobodyBeforeItsLeastStay) {
  SharedSlices slices({.least_stay = 1s});
  slices.add(slice(1));
  slices.add(slice(2));
  // 1 comes back in 4 s, 2 in 0.1 s; both are used as often, 2 later.
  for (int round = 0; round < 4; ++round) {
    for (const std::uint64_t id : {1, 2}) {
      const Instant now = at(Duration(1s) * (2 * round) + Duration(100ms) * id);
      ASSERT_TRUE(slices.place(now, FlowId(id), id == 1 ? 4s : 100ms, {slice(id)}));
      slices.finished(now, slice(id), 0s);
    }
  }
  EXPECT_EQ(slices.place(at(7s), FlowId(3), 1s, {slice(1), slice(2)})->evicts, FlowId(2));
  slices.finished(at(7s), slice(2), 0s);
  EXPECT_EQ(slices.place(at(7500ms), FlowId(4), 1s, {slice(2)}), std::nullopt);  // 3 came half a second ago
  EXPECT_TRUE(slices.place(at(8s), FlowId(4), 1s, {slice(2)}));
}

// A cycle of three functions over two slices: LRU loads every time; with a least stay two of them stay.
TEST(SharedSlices, TheLeastStayStopsFunctionsThatPushEachOtherOut) {
  const auto loads = [](EvictionRule rule) {
    SharedSlices slices({.rule = rule, .least_stay = 2s});
    for (const std::uint64_t id : {1, 2}) slices.add(slice(id));
    int count = 0;
    for (int turn = 0; turn < 300; ++turn) {
      const Instant now = at(Duration(100ms) * turn);
      const auto placed = slices.place(now, FlowId(1 + turn % 3), 1s, {slice(1), slice(2)});
      if (!placed) continue;
      count += placed->must_load ? 1 : 0;
      slices.finished(now + 50ms, placed->slice, 50ms);
    }
    return count;
  };
  EXPECT_EQ(loads(EvictionRule::kLru), 300);
  EXPECT_LT(loads(EvictionRule::kCost), 60);
}

TEST(SharedSlices, MoreAreWantedWhereManyAreLateAndFewerWhereLittleIsDone) {
  SharedSlices slices;
  slices.add(slice(1));
  for (int i = 0; i < 9; ++i) slices.note_answer(true);
  slices.note_answer(false);
  EXPECT_EQ(slices.wanted_change(10s), 1);
  slices.note_answer(true);
  EXPECT_EQ(slices.wanted_change(10s), -1);
  slices.place(at(0s), FlowId(1), 1s, {slice(1)});
  slices.finished(at(4s), slice(1), 4s);
  EXPECT_EQ(slices.wanted_change(10s), 0);
}

RC_GTEST_PROP(SharedSlices, NoSliceHasTwoOwnersAndNoFunctionTwoSlices, ()) {
  SharedSlices slices(
      {.rule = *rc::gen::inRange(0, 2) == 0 ? EvictionRule::kLru : EvictionRule::kCost, .least_stay = 100ms});
  std::set<SharedSliceId> there;
  std::map<SharedSliceId, FlowId> busy;
  Instant now{};
  for (int left = *rc::gen::inRange(0, 200); left > 0; --left) {
    now += Duration(1ms) * *rc::gen::inRange(0, 100);
    const SharedSliceId id(*rc::gen::inRange<std::uint64_t>(1, 4));
    const int event = *rc::gen::inRange(0, 4);
    if (event == 0 && there.insert(id).second) slices.add(id);
    if (event == 1 && slices.remove(id)) {
      RC_ASSERT(!busy.contains(id));
      there.erase(id);
    }
    if (event == 2) {
      const FlowId function(*rc::gen::inRange<std::uint64_t>(1, 6));
      if (const auto placed = slices.place(now, function, 50ms, there)) {
        RC_ASSERT(there.contains(placed->slice));
        RC_ASSERT(busy.try_emplace(placed->slice, function).second);
      }
    }
    if (event == 3 && !busy.empty()) {
      slices.finished(now, busy.begin()->first, 1ms);
      busy.erase(busy.begin());
    }
    std::set<FlowId> residents;
    for (const SharedSliceId one : there) {
      if (const auto resident = slices.resident(one)) RC_ASSERT(residents.insert(*resident).second);
    }
  }
}

TEST(SharedSlices, WhatIsKnownOfFunctionsHasABoundAndIsForgottenWithThem) {
  SharedSlices slices;
  slices.add(SharedSliceId(1));
  Instant now(1s);
  for (std::uint64_t flow = 1; flow <= SharedSlices::kMostKnown + 10; ++flow, now += 2s) {
    ASSERT_TRUE(slices.place(now, FlowId(flow), 1s, {SharedSliceId(1)}));
    slices.finished(now, SharedSliceId(1), 1ms);
  }
  EXPECT_EQ(slices.known_functions(), SharedSlices::kMostKnown);
  const FlowId last(SharedSlices::kMostKnown + 10);
  EXPECT_EQ(slices.resident(SharedSliceId(1)), last);
  slices.forget(last);
  EXPECT_EQ(slices.known_functions(), SharedSlices::kMostKnown - 1);
  EXPECT_EQ(slices.resident(SharedSliceId(1)), std::nullopt);
}

}  // namespace
}  // namespace fairlead
