// Sizes and what they cost: the filter, the paper's choice with its errors of print mended, ours against all combinations.
#include "decide/scaling/sizes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "base/rng.h"

namespace fairlead {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

constexpr ThroughputModel kResnet = {.fixed_ms = 1.06, .work_ms = 310.7, .saturation_percent = 24};
FunctionTerms terms(Duration objective, Bytes memory = mib(1525)) {
  return {.objective = objective, .memory = memory, .device_memory = gib(16)};
}
InstanceSize size(int width, int quota, double rate, Duration execution = 10ms) {
  return {width, quota, rate, execution};
}

TEST(Sizes, AQuotaThatRunsOutMustStillMeetTheObjective) {
  const InstanceSize whole = {24, 100, 71, 14ms}, most = {24, 90, 64, 14ms};
  EXPECT_THAT(why_unusable(whole, terms(69ms)), IsEmpty());
  EXPECT_EQ(why_unusable(most, terms(69ms)),
            "24 % of the SMs x 90 % of the time: 14 ms to run and up to 100 ms to wait, the objective is 69 ms");
  EXPECT_THAT(why_unusable(most, terms(Duration(0))), IsEmpty());
  EXPECT_THAT(why_unusable({24, 95, 67, 19ms}, terms(69ms)), IsEmpty());  // 19 + 50: just
}

TEST(Sizes, CostIsTheDimensionThatFillsMost) {
  EXPECT_DOUBLE_EQ(devices_of({{size(50, 100, 1), 1}}, terms(1s, gib(4))), 0.5);
  EXPECT_DOUBLE_EQ(devices_of({{size(6, 20, 1), 2}}, terms(1s, gib(4))), 0.5);
  FunctionTerms clients = terms(1s, Bytes(0));
  clients.device_memory = Bytes(0);
  EXPECT_DOUBLE_EQ(devices_of({{size(1, 5, 1), 24}}, clients), 0.5);  // 24 of 48 MPS clients
}

TEST(Sizes, ThePrintedChoiceIsTheMostEfficientAndARest) {
  const std::vector<InstanceSize> sizes = {size(10, 100, 10), size(20, 100, 30), size(40, 100, 35)};
  const SizeChoice choice = printed_choice(sizes, 68, terms(Duration(0)));
  ASSERT_THAT(choice.sizes, SizeIs(2));
  EXPECT_EQ(choice.sizes[0].size.width_percent, 20);
  EXPECT_EQ(choice.sizes[0].instances, 2);
  EXPECT_EQ(choice.sizes[1].size.width_percent, 10);  // 8 are left: the smallest that covers them
}

TEST(Sizes, AGapThatIsMetExactlyGetsNoRest) {
  EXPECT_THAT(printed_choice({size(20, 100, 30)}, 60, terms(Duration(0))).sizes, SizeIs(1));
  EXPECT_THAT(printed_choice({size(20, 100, 30)}, 0, terms(Duration(0))).sizes, IsEmpty());
}

// Throughput is proportional to the quota, so all quotas are as efficient: printed takes the smallest, filtered the largest.
TEST(Sizes, TheFilteredChoiceTakesTheLargerQuota) {
  const auto grid = coarse_grid(kResnet);
  EXPECT_EQ(printed_choice(grid, 500, terms(500ms)).sizes[0].size.quota_percent, 20);
  EXPECT_EQ(filtered_choice(grid, 500, terms(500ms)).sizes[0].size.quota_percent, 100);
}

TEST(Sizes, WhereNothingIsUsableItIsSaidWhy) {
  const SizeChoice choice = cheapest_choice(fine_grid(kResnet), 100, terms(10ms));
  EXPECT_THAT(choice.sizes, IsEmpty());
  ASSERT_FALSE(choice.rejected.empty());
  EXPECT_THAT(choice.rejected.front(), HasSubstr("the objective is 10 ms"));
}

TEST(Sizes, OursCoversTheRateAndMeetsTheObjective) {
  for (double rate = 1; rate < 3000; rate *= 1.7) {
    const SizeChoice choice = cheapest_choice(fine_grid(kResnet), rate, terms(69ms));
    EXPECT_GE(choice.rate_per_s, rate * (1 - 1e-6));
    for (const SizedCount& one : choice.sizes) EXPECT_THAT(why_unusable(one.size, terms(69ms)), IsEmpty());
    EXPECT_LE(choice.devices, filtered_choice(coarse_grid(kResnet), rate, terms(69ms)).devices + 1e-9);
  }
}

// Every multiset of a few sizes.
double best_of_all(const std::vector<InstanceSize>& sizes, double rate, const FunctionTerms& given) {
  double best = 1e300;
  const std::function<void(std::size_t, double, double, int)> go = [&](std::size_t from, double area, double left,
                                                                       int n) {
    const double devices = std::max(area, n * given.memory_part());
    if (devices >= best) return;
    if (left <= 1e-9 * rate) {
      best = devices;
      return;
    }
    for (std::size_t i = from; i < sizes.size(); ++i) go(i, area + sizes[i].area(), left - sizes[i].rate_per_s, n + 1);
  };
  go(0, 0, rate, 0);
  return best;
}

TEST(Sizes, OursIsCloseToTheBestOfAllOnSmallGrids) {
  Rng rng(4);
  double ratio = 0;
  constexpr int kRounds = 60;
  for (int round = 0; round < kRounds; ++round) {
    const ThroughputModel model = {.fixed_ms = 10 * rng.uniform(),
                                   .work_ms = 200 + 800 * rng.uniform(),
                                   .saturation_percent = 20 + 60 * rng.uniform()};
    std::vector<InstanceSize> sizes;
    for (const int width : {12, 24, 50, 80}) {
      for (const int quota : {80, 100})
        sizes.push_back({width, quota, model.rate_per_s(width, quota), model.execution(width)});
    }
    const FunctionTerms given = terms(Duration(0), mib(400 + static_cast<std::int64_t>(rng.below(3000))));
    const double rate = model.rate_per_s(100, 100) * (0.3 + 3 * rng.uniform());
    const double best = best_of_all(sizes, rate, given), ours = cheapest_choice(sizes, rate, given).devices;
    ASSERT_GE(ours, best * (1 - 1e-9));
    ASSERT_LE(ours, best * 1.25);
    ratio += ours / best / kRounds;
  }
  EXPECT_LE(ratio, 1.03);
}

}  // namespace
}  // namespace fairlead
