#include "runtime/device_server/launch_plan.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <set>

namespace fairlead {
namespace {

using Before = std::vector<std::vector<std::uint32_t>>;

TEST(LaunchPlan, AChainStaysOnOneStreamWithoutEvents) {
  const LaunchPlan plan = make_launch_plan(Before{{}, {0}, {1}}, 4);
  EXPECT_EQ(plan.streams, 1u);
  EXPECT_EQ(plan.events, 0u);
}

TEST(LaunchPlan, AJoinWaitsForTheOtherBranch) {
  const LaunchPlan plan = make_launch_plan(Before{{}, {}, {0, 1}}, 4);
  ASSERT_EQ(plan.streams, 2u);
  EXPECT_EQ(plan.steps[0], (LaunchPlan::Step{.stream = 0, .waits = {}, .records = -1}));
  EXPECT_EQ(plan.steps[1], (LaunchPlan::Step{.stream = 1, .waits = {}, .records = 0}));
  EXPECT_EQ(plan.steps[2], (LaunchPlan::Step{.stream = 0, .waits = {0}, .records = -1}));
}

TEST(LaunchPlan, MoreBranchesThanStreamsShareThem) {
  const LaunchPlan plan = make_launch_plan(Before{{}, {}, {}}, 2);
  EXPECT_EQ(plan.streams, 2u);
  EXPECT_EQ(plan.steps[2].stream, 0u);
}

// Followed as streams and events order them, every kernel comes after all that it must follow.
RC_GTEST_PROP(LaunchPlan, OrdersWhatMustBeOrdered, ()) {
  const auto choices = *rc::gen::container<std::vector<std::uint16_t>>(rc::gen::arbitrary<std::uint16_t>());
  Before before;
  for (std::uint32_t k = 0; k < choices.size(); ++k) {
    std::vector<std::uint32_t> earlier;
    for (std::uint32_t bit = 0; bit < 16 && bit < k; ++bit) {
      if ((choices[k] >> bit & 1) != 0) earlier.push_back(k - 1 - bit);
    }
    before.push_back(earlier);
  }
  const LaunchPlan plan = make_launch_plan(before, 3);
  std::vector<std::set<std::uint32_t>> after(before.size());  // what each kernel is known to follow
  std::vector<std::set<std::uint32_t>> of_event(plan.events);
  std::vector<std::set<std::uint32_t>> of_stream(plan.streams);
  for (std::uint32_t k = 0; k < before.size(); ++k) {
    const LaunchPlan::Step& step = plan.steps[k];
    after[k] = of_stream[step.stream];
    for (const std::uint32_t event : step.waits) after[k].insert(of_event[event].begin(), of_event[event].end());
    for (const std::uint32_t earlier : before[k]) RC_ASSERT(after[k].contains(earlier));
    of_stream[step.stream] = after[k];
    of_stream[step.stream].insert(k);
    if (step.records >= 0) of_event[static_cast<std::size_t>(step.records)] = of_stream[step.stream];
  }
}

}  // namespace
}  // namespace fairlead
