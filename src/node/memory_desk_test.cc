#include "node/memory_desk.h"

#include <gmock/gmock.h>

#include "node/testing/node_without_processes.h"

namespace fairlead {
namespace {

using testing::ElementsAre;

constexpr InstanceId kFirst{1};
constexpr InstanceId kSecond{2};

DeviceUse holding(Bytes bytes) {
  return {.memory = {.held = bytes, .resident = bytes}};
}

// Two instances that run, on a GPU of 16 GiB.
class MemoryDeskTest : public NodeWithoutProcesses {
 protected:
  MemoryDeskTest() {
    for (const char* name : {"f", "g"}) {
      add_function(name);
      invoke(name);
    }
    ready(kFirst);
    ready(kSecond);
  }
  std::optional<MemoryUse> known_of(InstanceId instance) {
    for (const InstanceView& view : driver.core().instances()) {
      if (view.instance == instance) return view.memory;
    }
    return std::nullopt;
  }
};

TEST_F(MemoryDeskTest, WhoHasNeverUsedADeviceIsNotReported) {
  Actions out;
  EXPECT_EQ(memory.report(kFirst, out), std::nullopt);
  EXPECT_EQ(memory.report(InstanceId(9), out), std::nullopt);
  EXPECT_EQ(known_of(kFirst), std::nullopt);
}

TEST_F(MemoryDeskTest, ARequestForRoomIsPrecededByALookAtAll) {
  runner.uses[kFirst] = holding(gib(9));
  runner.uses[kSecond] = holding(gib(6));
  memory.on_needs_room(kSecond, 7, gib(2));
  ASSERT_TRUE(known_of(kFirst));
  EXPECT_EQ(known_of(kFirst)->held, gib(9));
  EXPECT_EQ(known_of(kSecond)->held, gib(6));
}

TEST_F(MemoryDeskTest, RoomThatIsThereIsGrantedAndToldToTheRunner) {
  runner.uses[kFirst] = holding(gib(1));
  memory.on_needs_room(kFirst, 7, gib(2));
  EXPECT_EQ(runner.granted, (std::map<std::uint64_t, bool>{{7, true}}));
}

// Where models that nobody uses are enough, the core is not asked and nothing moves; where they are not, it is.
TEST_F(MemoryDeskTest, ModelsThatNobodyUsesMakeRoomFirst) {
  for (const Bytes freed : {gib(3), gib(2)}) {
    Bytes asked{0};
    std::function<void(Bytes)> done;
    MemoryDesk desk(io,
                    {.move_deadline = std::chrono::seconds(8),
                     .period = std::chrono::seconds(1),
                     .runs_anything = [] { return false; },
                     .drop_unused_models =
                         [&](GpuId, Bytes bytes, std::function<void(Bytes)> told) {
                           asked = bytes;
                           done = std::move(told);
                         }},
                    driver, instances, functions);
    runner.uses[kFirst] = holding(gib(1));
    runner.granted.clear();
    const std::optional<MemoryUse> before = known_of(kFirst);
    desk.on_needs_room(kFirst, 7, gib(3));
    EXPECT_EQ(asked, gib(3));
    EXPECT_TRUE(runner.granted.empty());  // not before the memory is free
    done(freed);
    EXPECT_EQ(runner.granted, (std::map<std::uint64_t, bool>{{7, true}}));
    EXPECT_EQ(known_of(kFirst) == before, freed >= gib(3));  // the core has looked at all where it was asked
  }
}

// An idle instance's memory makes room; the order is the runner's, with a quarter of the deadline for the process to stop.
TEST_F(MemoryDeskTest, WhatIsIdleMovesForWhoNeedsRoom) {
  runner.uses[kFirst] = holding(gib(9));
  runner.uses[kSecond] = holding(gib(6));
  answer("{}");  // the second's
  idle(kSecond);
  memory.on_needs_room(kFirst, 7, gib(3));
  ASSERT_EQ(runner.swapped_out.size(), 1U);
  EXPECT_EQ(runner.swapped_out[0].instance, kSecond);
  EXPECT_GE(runner.swapped_out[0].bytes, gib(2));
  EXPECT_EQ(runner.swapped_out[0].deadline, std::chrono::seconds(2));
  EXPECT_TRUE(runner.granted.empty());

  runner.uses[kSecond] = {.memory = {.held = gib(6), .resident = gib(3), .away = gib(3)}};
  memory.on_moved(kSecond, {.direction = MoveDirection::kOut,
                            .outcome = MoveOutcome::kDone,
                            .bytes = gib(3),
                            .total_time = std::chrono::seconds(1),
                            .copy_time = std::chrono::milliseconds(400)});
  EXPECT_EQ(runner.granted, (std::map<std::uint64_t, bool>{{7, true}}));
  EXPECT_EQ(memory.moves().out, std::chrono::milliseconds(400));
  EXPECT_EQ(memory.moves().in, Duration(0));
}

TEST_F(MemoryDeskTest, LaunchesAreCountedOnceForTheFunction) {
  runner.uses[kFirst].launches = {.launches = 10, .gate_waits = 2, .passed_through = 1, .unhooked_functions = 3};
  Actions out;
  memory.report(kFirst, out);
  runner.uses[kFirst].launches.launches = 15;
  memory.report(kFirst, out);
  const FunctionStats& stats = functions.find("f")->stats;
  EXPECT_EQ(stats.launches, 15U);
  EXPECT_EQ(stats.gate_waits, 2U);
  EXPECT_EQ(stats.passed_through, 1U);
  EXPECT_EQ(stats.unhooked_functions, 3U);
  EXPECT_EQ(functions.find("g")->stats.launches, 0U);
}

TEST_F(MemoryDeskTest, TheEventsOfRunnersReachTheCore) {
  const MemoryEvents events = memory.events();
  runner.uses[kFirst] = holding(gib(4));
  events.usage_changed(kFirst);
  EXPECT_EQ(known_of(kFirst)->held, gib(4));
  events.needs_room(kFirst, 3, gib(1));
  EXPECT_EQ(runner.granted, (std::map<std::uint64_t, bool>{{3, true}}));
  runner.uses[kSecond] = {.memory = {.held = gib(4), .away = gib(4)}};
  events.usage_changed(kSecond);
  events.wants_memory(kSecond);
  EXPECT_THAT(runner.swapped_in, ElementsAre(kSecond));
}

}  // namespace
}  // namespace fairlead
