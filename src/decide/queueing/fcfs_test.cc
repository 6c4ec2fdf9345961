#include <gtest/gtest.h>

#include "decide/queueing/policy.h"
#include "decide/queueing/policy_test_support.h"

namespace fairlead {
namespace {

using namespace std::chrono_literals;
using testing::FakePlaceable;

constexpr FlowId kA(1), kB(2);

class FcfsPolicy : public ::testing::Test {
 protected:
  FcfsPolicy() {
    policy_.add_flow(kA, {.weight = 1.0});
    policy_.add_flow(kB, {.weight = 1.0});
  }

  void arrive(FlowId flow) { policy_.on_arrival(Instant{}, flow, InvocationId(next_++)); }

  std::uint64_t choose() {
    const auto choice = policy_.choose(Instant{}, placeable_);
    return choice ? choice->invocation.value() : 0;
  }

  FlowQueue policy_{fcfs_policy, {}};
  FakePlaceable placeable_;
  std::uint64_t next_ = 1;
};

TEST_F(FcfsPolicy, ServesInOrderOfArrivalOverAllFlows) {
  for (const FlowId flow : {kA, kB, kB, kA}) arrive(flow);
  for (std::uint64_t i = 1; i <= 4; ++i) EXPECT_EQ(choose(), i);
  EXPECT_EQ(choose(), 0u);
}

TEST_F(FcfsPolicy, UnplaceableHeadIsOvertakenAndStaysTheOldest) {
  for (const FlowId flow : {kA, kB, kB}) arrive(flow);
  placeable_.blocked = {kA};
  EXPECT_EQ(choose(), 2u);
  placeable_.blocked = {};
  EXPECT_EQ(choose(), 1u);
}

TEST_F(FcfsPolicy, RequeuedInvocationIsTheOldestAgain) {
  for (const FlowId flow : {kA, kB, kA}) arrive(flow);
  EXPECT_EQ(choose(), 1u);
  policy_.on_requeue(Instant{}, kA, InvocationId(1));
  EXPECT_EQ(choose(), 1u);
}

TEST_F(FcfsPolicy, CancelledHeadIsSkipped) {
  for (const FlowId flow : {kA, kA, kB}) arrive(flow);
  EXPECT_TRUE(policy_.cancel(Instant{}, kA, InvocationId(1)));
  EXPECT_EQ(choose(), 2u);
}

TEST_F(FcfsPolicy, FlowAtItsConcurrencyIsOvertaken) {
  policy_.set_max_concurrency(kA, 1);
  for (const FlowId flow : {kA, kA, kB}) arrive(flow);
  EXPECT_EQ(choose(), 1u);
  EXPECT_EQ(choose(), 3u);
  policy_.on_completion(Instant{}, kA, InvocationId(1), 1s);
  EXPECT_EQ(choose(), 2u);
}

}  // namespace
}  // namespace fairlead
