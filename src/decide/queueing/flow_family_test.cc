// Flows of one family, the versions of a function: one virtual time and one reserved concurrency, however many they are.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "decide/queueing/policy.h"
#include "decide/queueing/policy_test_support.h"
#include "decide/queueing/window.h"

namespace fairlead {
namespace {

using namespace std::chrono_literals;
using testing::FakePlaceable;

constexpr FlowId kOther(1), kFunction(2);

PolicyOptions with_window() {
  return PolicyOptions().set(kOverRun, 2s);
}

// Two functions with work for ever: `kOther`, and one that is called through several flows. By each policy that is fair by service.
class FlowFamily : public ::testing::TestWithParam<const char*> {
 protected:
  FlowFamily() { policy_->add_flow(kOther, {}); }

  static FlowId version(std::uint64_t i) { return FlowId(10 + i); }
  static FlowShare share(FlowId family) {
    FlowShare share;
    share.family = family;
    return share;
  }
  void add_versions(std::uint64_t versions, FlowId family) {
    policy_->add_flow(kFunction, {});
    for (std::uint64_t i = 0; i < versions; ++i) policy_->add_flow(version(i), share(family));
  }
  void arrive(FlowId flow, int count = 1) {
    for (int i = 0; i < count; ++i) policy_->on_arrival(Instant{}, flow, InvocationId(++last_));
  }
  std::optional<FlowQueue::Choice> choose() { return policy_->choose(Instant{}, placeable_); }

  // Of `turns` of a second each, those of the other function.
  int others_turns(int turns) {
    int others = 0;
    for (int i = 0; i < turns; ++i) {
      const auto choice = choose();
      if (!choice) return -1;
      others += choice->flow == kOther ? 1 : 0;
      policy_->on_completion(Instant{}, choice->flow, choice->invocation, 1s);
    }
    return others;
  }

  std::unique_ptr<FlowQueue> policy_ = *make_policy(GetParam(), with_window());
  FakePlaceable placeable_;
  std::uint64_t last_ = 0;
};

TEST_P(FlowFamily, ManyVersionsGetWhatOneFunctionGets) {
  add_versions(9, kFunction);
  arrive(kOther, 300);
  arrive(kFunction, 300);
  for (std::uint64_t i = 0; i < 9; ++i) arrive(version(i), 300);
  const int others = others_turns(200);
  EXPECT_GE(others, 95);
  EXPECT_LE(others, 105);
}

// What the family is for: without it, the same calls through ten flows leave the other function a tenth of the turns.
TEST_P(FlowFamily, WithoutAFamilyTheyGetMore) {
  add_versions(9, FlowId());
  arrive(kOther, 300);
  arrive(kFunction, 300);
  for (std::uint64_t i = 0; i < 9; ++i) arrive(version(i), 300);
  EXPECT_LE(others_turns(200), 40);
}

// A version that was never called before has no credit: its function has run.
TEST_P(FlowFamily, AFreshVersionHasNoCredit) {
  add_versions(0, kFunction);
  arrive(kOther, 500);
  arrive(kFunction, 500);
  ASSERT_GE(others_turns(100), 45);
  int others = 0;
  for (std::uint64_t i = 0; i < 50; ++i) {
    policy_->add_flow(version(i), share(kFunction));
    arrive(version(i), 20);
    others += others_turns(4);
  }
  EXPECT_GE(others, 90);
}

TEST_P(FlowFamily, ReservedConcurrencyIsOfAll) {
  add_versions(3, kFunction);
  for (const FlowId flow : {kFunction, version(0), version(1), version(2)}) {
    policy_->set_max_concurrency(flow, 2);
    arrive(flow, 5);
  }
  std::vector<FlowQueue::Choice> running;
  while (const auto choice = choose()) running.push_back(*choice);
  EXPECT_EQ(running.size(), 2u);
  policy_->on_completion(Instant{}, running[0].flow, running[0].invocation, 1s);
  EXPECT_TRUE(choose()) << "a place is free, whichever of them has it";
  EXPECT_FALSE(choose());
  policy_->on_requeue(Instant{}, running[1].flow, running[1].invocation);
  EXPECT_TRUE(choose());
  EXPECT_FALSE(choose());
}

TEST_P(FlowFamily, WhoGoesTakesNoPlaceWithHim) {
  add_versions(2, kFunction);
  for (const FlowId flow : {kFunction, version(0), version(1)}) policy_->set_max_concurrency(flow, 1);
  arrive(version(0));
  ASSERT_TRUE(choose());
  arrive(kFunction);
  EXPECT_FALSE(choose());
  policy_->remove_flow(version(0));  // with what it runs
  const auto choice = choose();
  ASSERT_TRUE(choice);
  EXPECT_EQ(choice->flow, kFunction);
  policy_->remove_flow(version(1));
  policy_->on_completion(Instant{}, kFunction, choice->invocation, 1s);  // alone again
  policy_->add_flow(version(5), share(kFunction));
  policy_->set_max_concurrency(version(5), 1);
  arrive(version(5));
  EXPECT_TRUE(choose());
}

// Within a tenant, where the tenants are fair first.
TEST_P(FlowFamily, IsOneWithinItsTenant) {
  PolicyOptions options = with_window();
  options.by_tenant = true;
  policy_ = *make_policy(GetParam(), options);
  FlowShare share;
  share.tenant = TenantId(7);
  policy_->add_flow(kOther, share);
  policy_->add_flow(kFunction, share);
  share.family = kFunction;
  for (std::uint64_t i = 0; i < 9; ++i) policy_->add_flow(version(i), share);
  arrive(kOther, 300);
  for (std::uint64_t i = 0; i < 9; ++i) arrive(version(i), 300);
  const int others = others_turns(200);
  EXPECT_GE(others, 95);
  EXPECT_LE(others, 105);
}

INSTANTIATE_TEST_SUITE_P(ByService, FlowFamily,
                         ::testing::Values("mqfq-setup", "mqfq-sticky", "mqfq-warm", "mqfq", "sfq", "cfs-affinity"),
                         [](const auto& policy) {
                           std::string name = policy.param;
                           std::erase(name, '-');
                           return name;
                         });

}  // namespace
}  // namespace fairlead
