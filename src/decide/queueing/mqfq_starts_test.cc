// MQFQ-Sticky where instances start ahead of the choice: who waits on itself, who waits for whom.
#include <gtest/gtest.h>

#include "decide/queueing/policy.h"
#include "decide/queueing/policy_test_support.h"
#include "decide/queueing/window.h"

namespace fairlead {
namespace {

using namespace std::chrono_literals;
using testing::FakePlaceable;

constexpr FlowId kA(1), kB(2), kC(3);

// T = 10 s. Flows have no instance until a test says so.
class MqfqStarts : public ::testing::Test {
 protected:
  void SetUp() override {
    for (const FlowId flow : {kA, kB, kC}) {
      policy_.add_flow(flow, {});
      policy_.set_supply(flow, Supply::kNone);
    }
  }

  void arrive(FlowId flow, int count = 1) {
    for (int i = 0; i < count; ++i) policy_.on_arrival(now_, flow, InvocationId(next_++));
  }
  std::optional<FlowQueue::Choice> choose() { return policy_.choose(now_, placeable_); }
  std::optional<FlowId> next_start() { return policy_.next_start(now_, placeable_); }

  // Serves the flow so often, for so long each; fails where another flow, or none, is chosen.
  void serve(FlowId flow, int count, Duration service) {
    for (int i = 0; i < count; ++i) {
      const auto choice = choose();
      ASSERT_TRUE(choice && choice->flow == flow) << "after " << i;
      now_ += service;
      policy_.on_completion(now_, flow, choice->invocation, service);
    }
  }

  FlowView view(FlowId flow) { return policy_.view(flow); }

  static PolicyOptions options() { return PolicyOptions().set(kOverRun, 10s); }

  FlowQueue policy_{mqfq_sticky_policy, options()};
  FakePlaceable placeable_;
  Instant now_{};
  std::uint64_t next_ = 1;
};

TEST_F(MqfqStarts, AStartHoldsNobodyBack) {
  policy_.set_supply(kB, Supply::kReady);
  arrive(kB, 30);
  arrive(kA);
  EXPECT_EQ(next_start(), kA);
  policy_.set_supply(kA, Supply::kStarting);
  serve(kB, 30, 4s);
  EXPECT_EQ(view(kB).virtual_time, 120s);
  EXPECT_FALSE(view(kA).contends);
}

TEST_F(MqfqStarts, AStartEarnsNoCredit) {
  policy_.set_supply(kB, Supply::kReady);
  arrive(kB, 40);
  arrive(kA, 40);
  policy_.set_supply(kA, Supply::kStarting);
  serve(kB, 30, 4s);
  policy_.set_supply(kA, Supply::kReady);
  EXPECT_EQ(view(kA).virtual_time, policy_.global_virtual_time());
  EXPECT_GE(view(kA).virtual_time, 110s);
  EXPECT_TRUE(view(kA).contends);
}

TEST_F(MqfqStarts, AStartIsChargedWhatItTookFromOthersAtMostT) {
  arrive(kA);
  policy_.set_supply(kA, Supply::kReady);
  policy_.on_started(kA, 3s);
  EXPECT_EQ(view(kA).virtual_time, 3s);
  policy_.on_started(kA, 300s);
  EXPECT_EQ(view(kA).virtual_time, 13s);
}

TEST_F(MqfqStarts, WhoHasWaitedForTGoesBeforeWhomThePolicyPrefers) {
  arrive(kA);
  now_ += 1s;
  arrive(kB, 5);  // the longer queue
  EXPECT_EQ(next_start(), kB);
  EXPECT_EQ(policy_.next_chance(), Instant(10s) + Duration(1));
  now_ = Instant(10s) + Duration(1);
  EXPECT_EQ(next_start(), kA);
}

// A flood of old invocations does not make its flow the oldest for ever.
TEST_F(MqfqStarts, OneThatWasGivenAStartWaitsAnew) {
  arrive(kA, 100);
  now_ += 1s;
  arrive(kB);
  now_ += 20s;
  EXPECT_EQ(next_start(), kA);
  EXPECT_EQ(next_start(), kB);
}

TEST_F(MqfqStarts, NothingStartsWhereNothingMay) {
  arrive(kA);
  placeable_.starts_allowed = false;
  EXPECT_FALSE(next_start());
}

TEST_F(MqfqStarts, WorkThatFitsPassesWorkThatDoesNot) {
  arrive(kA);
  now_ += 1s;
  arrive(kB);
  now_ += 20s;
  placeable_.short_of_memory = {kA};
  EXPECT_EQ(next_start(), kB);
  EXPECT_FALSE(policy_.claimant());
}

TEST_F(MqfqStarts, WhoHasWaitedEightWindowsForMemoryClaimsItUntilAllThatItQueuedIsChosen) {
  arrive(kA, 2);
  placeable_.short_of_memory = {kA};
  now_ = Instant(80s);
  next_start();
  EXPECT_FALSE(policy_.claimant());
  now_ += Duration(1);
  next_start();
  EXPECT_EQ(policy_.claimant(), kA);
  placeable_.short_of_memory.clear();
  EXPECT_EQ(next_start(), kA);
  policy_.set_supply(kA, Supply::kStarting);
  EXPECT_EQ(policy_.claimant(), kA) << "it waited for a turn, not for an instance";
  policy_.set_supply(kA, Supply::kReady);
  ASSERT_TRUE(choose());
  EXPECT_EQ(policy_.claimant(), kA) << "the GPU is empty for it: its second call goes too";
  ASSERT_TRUE(choose());
  EXPECT_FALSE(policy_.claimant());
}

TEST_F(MqfqStarts, AClaimEndsWhereItsFlowIsAheadByMoreThanTheWindow) {
  for (const FlowId flow : {kA, kB}) policy_.set_supply(flow, Supply::kReady);
  arrive(kA, 20);
  arrive(kB);
  placeable_.short_of_memory = {kA, kB};
  now_ = Instant(81s);
  EXPECT_FALSE(choose());
  EXPECT_EQ(policy_.claimant(), kA);
  placeable_.short_of_memory = {kB};
  int served = 0;
  while (policy_.claimant() == kA) {
    ASSERT_TRUE(choose());
    ASSERT_LE(++served, 11) << "a first charge is a tenth of T";
  }
  EXPECT_EQ(served, 11);
}

TEST_F(MqfqStarts, AClaimOfWorkThatWasCancelledEnds) {
  arrive(kA);
  arrive(kB);
  placeable_.short_of_memory = {kA};
  now_ = Instant(81s);
  next_start();
  EXPECT_EQ(policy_.claimant(), kA);
  ASSERT_TRUE(policy_.cancel(now_, kA, InvocationId(1)));
  next_start();
  EXPECT_FALSE(policy_.claimant());
}

TEST_F(MqfqStarts, ASlotDoesNotIdleForTheWindow) {
  for (const FlowId flow : {kA, kB}) policy_.set_supply(flow, Supply::kReady);
  arrive(kA, 2);
  const auto a = choose();
  ASSERT_TRUE(a && a->flow == kA);
  placeable_.blocked = {kA};  // its instance is busy
  arrive(kB, 30);
  serve(kB, 20, 4s);
  EXPECT_GE(view(kB).virtual_time, 80s);
  EXPECT_GE(view(kA).passed, 60s) << "what others received in a slot that A could not use";
  EXPECT_EQ(view(kA).virtual_time, policy_.global_virtual_time());
}

TEST_F(MqfqStarts, WhoIsReadyOnAnotherGpuKeepsItsPlaceInTheWindow) {
  for (const FlowId flow : {kA, kB}) policy_.set_supply(flow, Supply::kReady);
  arrive(kA, 2);
  arrive(kB, 30);
  placeable_.elsewhere = {kA};
  serve(kB, 20, 4s);
  EXPECT_EQ(view(kA).passed, 0s);
  EXPECT_EQ(policy_.global_virtual_time(), 0s);
  EXPECT_FALSE(view(kB).contends) << "it has borrowed";
  placeable_.elsewhere.clear();
  serve(kA, 2, 1s);
}

TEST_F(MqfqStarts, WhoWaitsForMemoryOfAStartHoldsNobodyBack) {
  for (const FlowId flow : {kA, kB}) policy_.set_supply(flow, Supply::kReady);
  arrive(kA, 2);
  arrive(kB, 30);
  placeable_.behind_starts = {kA};
  serve(kB, 20, 4s);
  EXPECT_FALSE(view(kA).contends);
  EXPECT_GE(policy_.global_virtual_time(), 70s);
  placeable_.behind_starts.clear();
  placeable_.blocked = {kB};
  serve(kA, 1, 1s);
  EXPECT_GE(view(kA).virtual_time, 70s) << "no credit";
}

}  // namespace
}  // namespace fairlead
