#include "decide/cluster/own_tenants.h"

#include <gmock/gmock.h>

namespace fairlead {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;
using testing::SizeIs;

constexpr NodeId kHere(1);

LoadReport word(std::uint64_t incarnation, std::vector<TenantService> tenants) {
  return {.node = kHere, .incarnation = incarnation, .tokens = 2, .tenants = std::move(tenants)};
}

TEST(OwnTenants, SayWhoWaitsFirstThenWhoWasServedMost) {
  OwnTenants own;
  std::vector<OwnTenant> all;
  for (int i = 0; i < 10'000; ++i) all.push_back({.name = "t" + std::to_string(i), .served_s = 1.0 + i});
  all[3].is_waiting = true;
  all.push_back({.name = "never served"});
  const auto said = own.say(1, all);
  ASSERT_THAT(said, SizeIs(kMostTenantsSaid));
  EXPECT_TRUE(std::is_sorted(said.begin(), said.end(),
                             [](const TenantService& a, const TenantService& b) { return a.tenant < b.tenant; }));
  const auto says = [&](const std::string& name) {
    return std::any_of(said.begin(), said.end(), [&](const auto& one) { return one.tenant == tenant_key(name); });
  };
  EXPECT_TRUE(says("t3") && says("t9999"));
  EXPECT_FALSE(says("t4") || says("t9936"));
}

TEST(OwnTenants, SayOfManyThatWaitTheLeastServedAndTheMost) {
  OwnTenants own;
  std::vector<OwnTenant> all;
  for (int i = 0; i < 1000; ++i)
    all.push_back({.name = "t" + std::to_string(i), .served_s = 1.0 * i, .is_waiting = true});
  const auto said = own.say(1, all);
  ASSERT_THAT(said, SizeIs(kMostTenantsSaid));
  std::vector<double> served;
  for (const TenantService& one : said) served.push_back(one.seconds);
  std::sort(served.begin(), served.end());
  EXPECT_THAT(served, testing::AllOf(testing::Contains(0), testing::Contains(31), testing::Contains(968),
                                     testing::Contains(999)));
}

TEST(OwnTenants, SayUnderAHigherIncarnationWhatWasServedSince) {
  OwnTenants own;
  const std::uint64_t key = tenant_key("a");
  EXPECT_THAT(own.say(1, {{.name = "a", .served_s = 100}}), ElementsAre(TenantService{key, 100, false}));
  EXPECT_THAT(own.say(2, {{.name = "a", .served_s = 101}}), ElementsAre(TenantService{key, 1, false}));
  EXPECT_THAT(own.say(2, {{.name = "a", .served_s = 104}}), ElementsAre(TenantService{key, 4, false}));
}

class OwnFactors : public testing::Test {
 protected:
  // A second in which both waited and each was served so much.
  std::vector<std::pair<std::string, double>> pass(double a, double b, double weight_of_a = 1) {
    now_ += 1s;
    a_ += a;
    b_ += b;
    clocks_.report(now_, word(1, own_.say(1, {{"a", weight_of_a, a_, true}, {"b", 1, b_, true}})));
    clocks_.advance(now_);
    return own_.changed(clocks_);
  }
  TenantClocks clocks_{{.half_lead = 4s, .memory = 24h * 365, .hold = 0s}};
  OwnTenants own_;
  Instant now_{};
  double a_ = 0, b_ = 0;
};

TEST_F(OwnFactors, AreToldWhenTheyChangeAndNotForLess) {
  EXPECT_THAT(pass(0, 0), IsEmpty());
  EXPECT_THAT(pass(2, 0), ElementsAre(Pair("a", testing::DoubleNear(0.84, 0.01)), Pair("b", testing::_)));
  EXPECT_DOUBLE_EQ(own_.factor("a") * own_.factor("b"), 1);
  EXPECT_THAT(pass(1, 1), IsEmpty()) << "both go on, the lead is as it was";
  EXPECT_THAT(pass(0.51, 0.5), IsEmpty()) << "less than a hundredth";
  EXPECT_THAT(pass(0, 2), ElementsAre(Pair("a", testing::_), Pair("b", testing::_)));
  EXPECT_NEAR(own_.factor("a"), 1, 0.01);
  EXPECT_DOUBLE_EQ(own_.factor("nobody"), 1);
}

TEST_F(OwnFactors, WhoWeighsMoreMayBeServedMore) {
  pass(0, 0, 3);
  EXPECT_THAT(pass(1.5, 0.5, 3), IsEmpty());
}

}  // namespace
}  // namespace fairlead
