#include "edge/console/waiting.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace fairlead {
namespace {

using ::testing::HasSubstr;

class WaitingTest : public ::testing::Test {
 protected:
  WaitingTest() {
    GpuStatus gpu{.view = {.gpu = GpuId(1)}};
    gpu.view.slots = 2;
    node_.gpus = {gpu};
    function_.name = "f";
    function_.settings.tenant = "a";
    function_.flow.queued = 3;
    function_.instances_idle = 1;
  }
  std::string why(std::optional<int> reserved = std::nullopt) { return why_it_waits(node_, function_, reserved).text; }
  bool is_own() { return why_it_waits(node_, function_, std::nullopt).is_own; }

  NodeStatus node_;
  FunctionStatus function_;
};

TEST_F(WaitingTest, WhoseQueueIsEmptyWaitsForNothing) {
  function_.flow.queued = 0;
  node_.spawner_obstacle = "the spawner has died";
  EXPECT_EQ("", why());
}

TEST_F(WaitingTest, WhatStopsAllComesFirst) {
  node_.gpus[0].view.serves = false;
  function_.flow.state = FlowState::kThrottled;
  EXPECT_EQ("no GPU takes calls", why());
  node_.spawner_obstacle = "the spawner has died";
  EXPECT_EQ("the spawner has died", why());
  node_ = {};
  EXPECT_EQ("there is no GPU", why());
}

TEST_F(WaitingTest, LimitsAreNamedWithWhatTheyAre) {
  function_.flow.in_flight = 2;
  EXPECT_EQ("its reserved concurrency: 2 of 2 run", why(2));
  EXPECT_EQ("others are before it", why(3));
  node_.tenants = {{.name = "b", .share = {.max_concurrency = 1}, .in_flight = 1},
                   {.name = "a", .share = {.max_concurrency = 4}, .in_flight = 4}};
  EXPECT_EQ("its tenant's limit: 4 of 4 run", why());
  EXPECT_TRUE(is_own());
}

TEST_F(WaitingTest, AFunctionAheadOfItsShareIsToldByHowMuch) {
  node_.global_virtual_time = std::chrono::seconds(10);
  function_.flow.virtual_time = std::chrono::milliseconds(22'100);
  function_.flow.state = FlowState::kThrottled;
  EXPECT_EQ("12.1 s ahead of its fair share", why());
  EXPECT_FALSE(is_own()) << "it says how busy others are";
}

TEST_F(WaitingTest, AStartIsTheReasonWhereNoInstanceIsIdle) {
  function_.instances_starting = 1;
  EXPECT_EQ("others are before it", why());
  function_.instances_idle = 0;
  EXPECT_EQ("1 of its instances starts", why());
  function_.instances_starting = 2;
  EXPECT_EQ("2 of its instances start", why());
}

TEST_F(WaitingTest, SlotsOfGpusThatDoNotServeDoNotCount) {
  node_.gpus[0].view.slots_in_use = 2;
  EXPECT_EQ("no free slot: 2 of 2 are used", why());
  node_.gpus.push_back(node_.gpus[0]);
  node_.gpus[1].view.slots_in_use = 0;
  EXPECT_EQ("others are before it", why());
  node_.gpus[1].view.serves = false;
  EXPECT_EQ("no free slot: 2 of 2 are used", why());
}

TEST_F(WaitingTest, MemoryThatIsAwayIsTheLastReason) {
  function_.memory.away = mib(300);
  EXPECT_EQ("300 MiB of its memory return to the GPU", why());
}

}  // namespace
}  // namespace fairlead
