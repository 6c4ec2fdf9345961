// A policy that is no product, made as docs/reference/policies.md says: one file, and one line that makes it known. The properties of
// policies_test.cc run over it as over any other.
//
// Longest queue first: the flow with most queued is next, of equals the one with the oldest invocation.
#include <gtest/gtest.h>

#include <string>

#include "decide/queueing/keyed_order.h"
#include "decide/queueing/policy.h"
#include "decide/queueing/policy_test_support.h"

namespace fairlead {
namespace {

constexpr Parameter<double> kStep{"queue_step", "queues count as equal that differ by less, in invocations", 1, 1e6, 1};

struct ByLength {
  std::int64_t steps;  // negative: the longest is the least
  std::uint64_t oldest;
  auto operator<=>(const ByLength&) const = default;
};

class LongestQueue final : public KeyedOrder<LongestQueue, ByLength> {
 public:
  LongestQueue(FlowTable& flows, const PolicyOptions& options) : KeyedOrder(flows), step_(options.get(kStep)) {}

  Key key(const Flow& flow) const {
    const double steps = static_cast<double>(flow.queue.size()) / step_;
    return {-static_cast<std::int64_t>(steps), flow.queue.front().sequence};
  }

 private:
  const double step_;
};

constinit const Policy longest_queue_policy{.name = "longest-queue",
                                            .next_is = "the flow with most queued",
                                            .make = make_order<LongestQueue>,
                                            .parameters = {&kStep}};

const RegisteredPolicy known(longest_queue_policy);

// The order of service of A with one queued and then B with two.
std::string order_of(const PolicyOptions& options) {
  const auto queue = *make_policy("longest-queue", options);
  queue->add_flow(FlowId(1), {});
  queue->add_flow(FlowId(2), {});
  for (const std::uint64_t flow : {1, 2, 2}) queue->on_arrival(Instant{}, FlowId(flow), InvocationId(flow * 10));
  std::string order;
  while (const auto choice = queue->choose(Instant{}, testing::FakePlaceable())) {
    order += static_cast<char>('A' + choice->flow.value() - 1);
    queue->on_completion(Instant{}, choice->flow, choice->invocation, Duration(1));
  }
  return order;
}

TEST(LongestQueue, GoesFirst) {
  EXPECT_EQ(order_of({}), "BAB");
}

TEST(LongestQueue, QueuesThatDifferByLessThanAStepGoByAge) {
  EXPECT_EQ(order_of(PolicyOptions().set(kStep, 4)), "ABB");
}

TEST(RegisteredPolicy, IsKnownWithItsParametersAfterAllOthers) {
  EXPECT_EQ(policy_names().back(), "longest-queue");
  EXPECT_EQ(policy_parameter("queue_step"), &kStep);
  const auto refused = make_policy("longest-queue", PolicyOptions().set(kStep, 0));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message, "policy parameter queue_step is 0, it must be a number from 1 to 1000000");
}

}  // namespace
}  // namespace fairlead
