#include <gtest/gtest.h>

#include <string>

#include "decide/queueing/policy.h"
#include "decide/queueing/policy_test_support.h"
#include "decide/queueing/window.h"

namespace fairlead {
namespace {

using namespace std::chrono_literals;
using testing::at_seconds;
using testing::FakePlaceable;

constexpr FlowId kA(1), kB(2), kC(3);

PolicyOptions with_over_run(Duration over_run) {
  return PolicyOptions().set(kOverRun, over_run);
}

// One slot unless a test says otherwise; invocations are numbered in order of arrival.
class Mqfq : public ::testing::Test {
 protected:
  void use(Duration over_run) { policy_.emplace(mqfq_sticky_policy, with_over_run(over_run)); }

  void add(FlowId flow, double weight = 1.0) { policy_->add_flow(flow, {.weight = weight}); }

  void arrive(FlowId flow, int count = 1, Instant now = Instant{}) {
    for (int i = 0; i < count; ++i) policy_->on_arrival(now, flow, InvocationId(next_++));
  }

  std::optional<FlowQueue::Choice> choose() { return policy_->choose(Instant{}, placeable_); }

  FlowQueue::Choice choose_only(FlowId flow) {
    const auto choice = choose();
    EXPECT_TRUE(choice && choice->flow == flow) << "flow " << flow.value() << " was not chosen";
    return *choice;
  }

  void serve(const FlowQueue::Choice& choice, Duration service) {
    policy_->on_completion(Instant{}, choice.flow, choice.invocation, service);
  }

  // The flows served one after the other, as letters.
  std::string serve_all(int count, Duration service) {
    std::string order;
    for (int i = 0; i < count; ++i) {
      const auto choice = choose();
      if (!choice) break;
      order += static_cast<char>('A' + choice->flow.value() - 1);
      serve(*choice, service);
    }
    return order;
  }

  Duration vt(FlowId flow) { return policy_->view(flow).virtual_time; }
  Duration global() { return policy_->global_virtual_time(); }
  FlowState state(FlowId flow) { return policy_->view(flow).state; }

  std::optional<FlowQueue> policy_{std::in_place, mqfq_sticky_policy, with_over_run(10s)};
  FakePlaceable placeable_;
  std::uint64_t next_ = 1;
};

// The table at the head of mqfq_sticky.h.
// The table at the head of mqfq_sticky.h.
TEST_F(Mqfq, WorkedExampleServesInRunsWithinTheWindow) {
  add(kA);
  add(kB);
  arrive(kA, 6);
  arrive(kB, 2);
  EXPECT_EQ(serve_all(3, 4s), "AAA");
  EXPECT_EQ(vt(kA), 12s);
  EXPECT_EQ(global(), 0s);
  EXPECT_EQ(state(kA), FlowState::kThrottled);
  EXPECT_EQ(serve_all(1, 4s), "B");
  EXPECT_EQ(global(), 4s);
  EXPECT_EQ(state(kA), FlowState::kActive);
  EXPECT_EQ(serve_all(2, 4s), "AB");
  EXPECT_EQ(global(), 16s);
  EXPECT_EQ(serve_all(9, 4s), "AA");
}

TEST_F(Mqfq, ZeroOverRunAlternates) {
  use(0s);
  add(kA);
  add(kB);
  arrive(kA, 4);
  arrive(kB, 4);
  EXPECT_EQ(serve_all(8, 1s), "ABABABAB");
}

TEST_F(Mqfq, PrefersFewestInFlightThenLongestQueueThenLeastServedThenLowestId) {
  add(kA);
  add(kB);
  add(kC);
  arrive(kA, 1);
  arrive(kB, 3);
  arrive(kC, 1);
  EXPECT_EQ(choose()->flow, kB);  // longest queue
  EXPECT_EQ(choose()->flow, kA);  // B has one in flight; A and C are equal, A has the lower id
  const auto c = choose();
  EXPECT_EQ(c->flow, kC);  // fewest in flight, though B's queue is longer
  serve(*c, 3s);
  arrive(kC, 2);
  arrive(kA, 2);
  EXPECT_EQ(choose()->flow, kC);  // none in flight; A and B have one each
}

TEST_F(Mqfq, ChargesTheEstimateAtDispatchAndTheMeasuredServiceAtCompletion) {
  add(kA);
  arrive(kA, 2);
  const auto first = choose_only(kA);
  EXPECT_EQ(vt(kA), 1s);  // unknown: T / 10
  serve(first, 4s);
  EXPECT_EQ(vt(kA), 4s);
  const auto second = choose_only(kA);
  EXPECT_EQ(vt(kA), 8s);  // known now
  serve(second, 2s);
  EXPECT_EQ(vt(kA), 6s);
  EXPECT_EQ(policy_->view(kA).service_estimate, 3800ms);  // 0.9 * 4 + 0.1 * 2
}

TEST_F(Mqfq, ZeroOverRunStillChargesAnUnknownFlow) {
  use(0s);
  add(kA);
  arrive(kA);
  choose_only(kA);
  EXPECT_EQ(vt(kA), 1ms);
}

TEST_F(Mqfq, WeightDividesTheCharge) {
  use(0s);
  add(kA, 2.0);
  add(kB, 1.0);
  arrive(kA, 6);
  arrive(kB, 3);
  EXPECT_EQ(serve_all(9, 1s), "ABAABAABA");
}

TEST_F(Mqfq, IdleFlowReturnsWithoutCredit) {
  use(0s);
  add(kA);
  add(kB);
  arrive(kA, 10);
  EXPECT_EQ(serve_all(8, 1s), "AAAAAAAA");
  arrive(kB, 4);
  EXPECT_EQ(vt(kB), global());
  EXPECT_EQ(serve_all(4, 1s), "BABA") << "B owes nothing, and is owed nothing for its idle time";
}

TEST_F(Mqfq, EmptyFlowKeepsItsDebt) {
  add(kA);
  add(kB);
  arrive(kB);
  arrive(kA);
  const auto a = choose_only(kA);
  serve(a, 30s);
  arrive(kA);
  EXPECT_EQ(vt(kA), 30s);
  EXPECT_EQ(state(kA), FlowState::kThrottled);
}

TEST_F(Mqfq, GlobalNeverFallsWhenACorrectionPullsAFlowBelowIt) {
  add(kA);
  arrive(kA, 3);
  const auto first = choose_only(kA);
  EXPECT_EQ(global(), 1s);
  serve(first, 10ms);
  EXPECT_EQ(vt(kA), 10ms);
  EXPECT_EQ(global(), 1s);
  EXPECT_EQ(state(kA), FlowState::kActive);
  EXPECT_EQ(choose()->flow, kA);
}

TEST_F(Mqfq, RequeueTakesTheChargeBackAndKeepsTheOrder) {
  add(kA);
  add(kB);
  arrive(kB);
  arrive(kA, 2);
  const auto first = choose_only(kA);
  policy_->on_requeue(Instant{}, kA, first.invocation);
  EXPECT_EQ(vt(kA), 0s);
  EXPECT_EQ(policy_->view(kA).queued, 2u);
  EXPECT_EQ(policy_->view(kA).in_flight, 0u);
  EXPECT_EQ(choose_only(kA).invocation, first.invocation);
}

TEST_F(Mqfq, FailedStartIsChargedTheTimeItHeldItsSlot) {
  add(kA);
  add(kB);
  arrive(kB);
  arrive(kA, 2);
  const auto first = choose_only(kA);
  policy_->on_failed_start(Instant{}, kA, first.invocation, 250ms);
  EXPECT_EQ(vt(kA), 250ms);
  EXPECT_EQ(policy_->view(kA).in_flight, 0u);
  EXPECT_EQ(policy_->view(kA).service_estimate, 0s) << "a failed start says nothing of service";
}

TEST_F(Mqfq, UnplaceableFlowIsPassedOverAndKeepsItsPlace) {
  add(kA);
  add(kB);
  arrive(kA, 3);
  arrive(kB, 1);
  placeable_.blocked = {kA};
  EXPECT_EQ(choose()->flow, kB);
  EXPECT_FALSE(choose());
  placeable_.blocked = {};
  EXPECT_EQ(choose()->flow, kA);
}

TEST_F(Mqfq, FlowAtItsOwnConcurrencyHoldsNobodyBack) {
  use(1s);
  add(kA);
  add(kB);
  policy_->set_max_concurrency(kA, 1);
  arrive(kA, 5);
  arrive(kB, 4);
  choose_only(kA);  // runs on and on
  for (int i = 0; i < 4; ++i) serve(choose_only(kB), 100s);
  EXPECT_FALSE(choose()) << "A is at its limit";
}

TEST_F(Mqfq, FlowThatWaitedForItselfJoinsAtGlobal) {
  use(1s);
  add(kA);
  add(kB);
  policy_->set_max_concurrency(kA, 1);
  arrive(kA, 5);
  arrive(kB, 4);
  const auto a = choose_only(kA);
  serve(choose_only(kB), 100s);
  serve(a, 1s);
  EXPECT_EQ(vt(kA), 100s);
}

TEST_F(Mqfq, RaisedConcurrencyLetsTheFlowRunAgain) {
  add(kA);
  policy_->set_max_concurrency(kA, 0);
  arrive(kA);
  EXPECT_FALSE(choose());
  policy_->set_max_concurrency(kA, std::nullopt);
  EXPECT_TRUE(choose());
}

TEST_F(Mqfq, CancelledInvocationIsNotChosen) {
  add(kA);
  arrive(kA, 2);
  EXPECT_TRUE(policy_->cancel(Instant{}, kA, InvocationId(1)));
  EXPECT_FALSE(policy_->cancel(Instant{}, kA, InvocationId(1)));
  EXPECT_EQ(choose_only(kA).invocation, InvocationId(2));
  EXPECT_EQ(policy_->queued(), 0u);
}

TEST_F(Mqfq, RemovedFlowNoLongerHoldsGlobal) {
  use(1s);
  add(kA);
  add(kB);
  arrive(kA, 1);
  arrive(kB, 3);
  serve(choose_only(kB), 5s);
  EXPECT_EQ(global(), 0s);
  policy_->remove_flow(kA);
  EXPECT_EQ(global(), 5s);
  EXPECT_EQ(policy_->queued(), 2u);
}

// ---- TTL (anticipation)

TEST_F(Mqfq, EmptyFlowTurnsInactiveAfterItsTtl) {
  add(kA);
  EXPECT_EQ(state(kA), FlowState::kInactive);
  arrive(kA, 1, at_seconds(0));
  EXPECT_EQ(state(kA), FlowState::kActive);
  const auto first = choose_only(kA);
  EXPECT_FALSE(policy_->next_expiry()) << "in flight";
  policy_->on_completion(at_seconds(5), kA, first.invocation, 5s);
  EXPECT_EQ(policy_->next_expiry(), at_seconds(7)) << "2 s before the second arrival";

  arrive(kA, 1, at_seconds(6));
  EXPECT_FALSE(policy_->next_expiry());
  policy_->on_completion(at_seconds(10), kA, choose_only(kA).invocation, 4s);
  EXPECT_EQ(policy_->next_expiry(), at_seconds(22)) << "alpha = 2 times 6 s between arrivals";
  policy_->expire(at_seconds(21));
  EXPECT_EQ(state(kA), FlowState::kActive);
  policy_->expire(at_seconds(22));
  EXPECT_EQ(state(kA), FlowState::kInactive);
  EXPECT_FALSE(policy_->next_expiry());
}

TEST_F(Mqfq, TtlStaysWithinItsFloorAndCeiling) {
  PolicyOptions options;
  options.min_ttl = 3s;
  options.max_ttl = 100s;
  policy_.emplace(mqfq_sticky_policy, options);
  for (const auto& [gap, ttl] : {std::pair(1, 3), {1000, 100}}) {
    const FlowId flow(static_cast<std::uint64_t>(gap));
    add(flow);
    arrive(flow, 1, at_seconds(0));
    arrive(flow, 1, at_seconds(gap));
    const auto first = choose_only(flow), second = choose_only(flow);
    policy_->on_completion(at_seconds(gap), flow, first.invocation, 1s);
    policy_->on_completion(at_seconds(gap), flow, second.invocation, 1s);
    EXPECT_EQ(policy_->next_expiry(), at_seconds(gap + ttl));
    policy_->remove_flow(flow);
    EXPECT_FALSE(policy_->next_expiry());
  }
}

}  // namespace
}  // namespace fairlead
