// Whether a set fits one device. Bugs that were planted and what saw each are listed in docs/explanation/pacer.md.
#include "decide/pacing/admission.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

namespace fairlead {
namespace {

using testing::HasSubstr;

PacedShare share(int width, int request) {
  return {.width_percent = width, .request_percent = request};
}

// FaST-GShare section 5: ResNet, RNNT, BERT.
std::vector<PacedShare> papers_eight() {
  std::vector<PacedShare> shares(4, share(12, 40));
  shares.insert(shares.end(), 2, share(24, 40));
  shares.insert(shares.end(), 2, share(50, 60));
  return shares;
}

TEST(Admission, ThePapersEightInstancesFitInEveryOrderOfArrival) {
  Admission admission({.reserve_percent = 0});
  std::vector<int> order = {0, 0, 0, 0, 1, 1, 2, 2};
  const PacedShare kinds[] = {share(12, 40), share(24, 40), share(50, 60)};
  int orders = 0;
  do {
    std::vector<PacedShare> there;
    for (const int kind : order) {
      there.push_back(kinds[kind]);
      const AdmissionAnswer answer = admission.ask(there);
      ASSERT_TRUE(answer.fits()) << answer.lacking->message;
    }
    ++orders;
  } while (std::next_permutation(order.begin(), order.end()));
  EXPECT_EQ(orders, 420);
  EXPECT_LE(admission.counters().questions - admission.counters().from_cache,
            44u);  // 5 x 3 x 3 sets, without the empty one
}

TEST(Admission, ThePapersEightInstancesNeedAllOfTheTime) {
  const AdmissionAnswer answer = Admission({.reserve_percent = 2}).ask(papers_eight());
  ASSERT_FALSE(answer.fits());
  EXPECT_EQ(answer.lacking->field, "gpu:quota-request");
  EXPECT_NEAR(answer.lacking->value, 100, 1e-6);
  EXPECT_EQ(answer.lacking->bound, 98);
  EXPECT_EQ(answer.lacking->message, "gpu:quota-request is 100.0 % of the device's time at best, 98.0 % is the most");
}

TEST(Admission, AreaThatFitsIsNotEnoughWhereNoTwoFitSideBySide) {
  Admission admission({.reserve_percent = 0});
  EXPECT_TRUE(admission.ask({share(51, 50), share(51, 50)}).fits());
  const AdmissionAnswer answer = admission.ask({share(51, 60), share(51, 60)});  // 61 % of the area
  ASSERT_FALSE(answer.fits());
  EXPECT_NEAR(answer.lacking->value, 120, 1e-6);
}

// Three of width 50, any two at once: 150 % of the time is 75 % of two at a time. A schedule of whole turns would need 80 %.
TEST(Admission, InstancesTakeTurnsInPairs) {
  const LeastTime least = least_time({{50, 50, 3}}, 0);
  EXPECT_NEAR(least.percent, 75, 1e-6);
  EXPECT_TRUE(least.is_least);
}

TEST(Admission, BestEffortTakesNoTimeButMemoryAndAClient) {
  Admission admission({.memory = mib(1000), .clients = 3, .reserve_percent = 3});
  PacedShare best_effort = share(100, 0);
  best_effort.memory = mib(400);
  EXPECT_TRUE(admission.ask({share(100, 97), best_effort, best_effort}).fits());
  EXPECT_EQ(admission.ask({best_effort, best_effort, best_effort}).lacking->message,
            "gpu:memory-mib is 1200 together, the device has 1000");
  EXPECT_EQ(admission.ask({share(1, 1), share(1, 1), share(1, 1), share(1, 1)}).lacking->field, "mps-clients");
}

TEST(Admission, TheReserveIsKeptBack) {
  Admission admission({.reserve_percent = 3});
  EXPECT_TRUE(admission.ask({share(100, 97)}).fits());
  EXPECT_FALSE(admission.ask({share(100, 98)}).fits());
  EXPECT_TRUE(admission.ask({}).fits());
}

TEST(Admission, AShareThatIsNotValidIsNamedWithValueAndBound) {
  Admission admission({});
  const auto message = [&](PacedShare one) { return admission.ask({one}).lacking->message; };
  EXPECT_EQ(message(share(0, 10)), "gpu:compute-percent is 0, it must be 1 to 100");
  EXPECT_EQ(message(share(101, 10)), "gpu:compute-percent is 101, it must be 1 to 100");
  EXPECT_EQ(message({.request_percent = 50, .limit_percent = 40}),
            "gpu:quota-request is 50, it must be at most gpu:quota-limit, 40");
  EXPECT_THAT(message({.limit_percent = 0}), HasSubstr("gpu:quota-limit is 0"));
  EXPECT_THAT(message({.limit_percent = 101}), HasSubstr("gpu:quota-limit is 101"));
  EXPECT_THAT(message({.memory = mib(-1)}), HasSubstr("gpu:memory-mib is -1"));
}

TEST(PacedShare, IsWhatTheAuthorSaidAndAsWideAsItsModeMakesIt) {
  const Share share{.width_percent = 24, .request_percent = 34, .limit_percent = 50, .memory = mib(700)};
  const PacedShare narrow = paced_share(FlowId(3), share, 2.5, Widths::kByAuthor);
  EXPECT_EQ(narrow, (PacedShare{.flow = FlowId(3),
                                .width_percent = 24,
                                .request_percent = 34,
                                .limit_percent = 50,
                                .weight = 25,
                                .memory = mib(700)}));
  EXPECT_EQ(paced_share(FlowId(3), share, 2.5, Widths::kWhole).width_percent, kWholeDevice);
  const PacedShare best_effort = paced_share(FlowId(4), {}, 1, Widths::kByAuthor);
  EXPECT_EQ(best_effort, (PacedShare{.flow = FlowId(4), .weight = 10}));
  for (const double weight : {0.01, 100.0}) EXPECT_TRUE(check(paced_share(FlowId(4), {}, weight, Widths::kWhole)));
}

TEST(Admission, OfManySetsTheOldestAreForgotten) {
  Admission admission({});
  for (int round = 0; round < 2; ++round) {
    for (int width = 1; width <= 50; ++width) {
      for (int request = 1; request <= 30; ++request) EXPECT_TRUE(admission.ask({share(width, request)}).fits());
    }
  }
  EXPECT_EQ(admission.counters().from_cache, 0u);  // 1,500 sets, of which 1,024 are kept: the oldest go first
  admission.ask({share(50, 30)});
  EXPECT_EQ(admission.counters().from_cache, 1u);
}

}  // namespace
}  // namespace fairlead
