// Bursts: the usual rate between them, 2 to 5 times it within, and the same arrivals from the same seed.
#include "sim/burst_load.h"

#include <gmock/gmock.h>

#include <algorithm>

namespace fairlead::sim {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

std::vector<Arrival> all(const std::vector<double>& rates, Duration length, std::uint64_t seed) {
  BurstSource source(rates, length, seed);
  std::vector<Arrival> arrivals;
  while (const auto one = source.next()) arrivals.push_back(*one);
  return arrivals;
}

TEST(BurstLoad, RatesAreUsualOrTwoToFiveTimesIt) {
  const BurstLoad load(LoadShape::kBursts, 10, 600s, 3);
  double least = 1e9, most = 0;
  for (Duration at{0}; at < 600s; at += 100ms) {
    least = std::min(least, load.rate(Instant(at)));
    most = std::max(most, load.rate(Instant(at)));
  }
  EXPECT_EQ(least, 10);
  EXPECT_GT(most, 20);
  EXPECT_LE(most, 50);
}

TEST(BurstSource, ArrivalsAreInOrderOfEachFunctionsRateAndTheSameEachTime) {
  const auto arrivals = all({2, 20}, 300s, 1);
  EXPECT_TRUE(
      std::is_sorted(arrivals.begin(), arrivals.end(), [](const auto& a, const auto& b) { return a.at < b.at; }));
  const auto of_first =
      std::count_if(arrivals.begin(), arrivals.end(), [](const auto& one) { return one.function == 0; });
  const double rest = static_cast<double>(arrivals.size()) - static_cast<double>(of_first);
  EXPECT_GT(of_first, 2 * 300 * 0.9) << "the usual rate, and more in bursts";
  EXPECT_GT(rest, 20 * 300);
  EXPECT_LT(rest, 20 * 300 * 3);
  EXPECT_LT(arrivals.back().at, Instant(300s));
  const auto again = all({2, 20}, 300s, 1), other = all({2, 20}, 300s, 2);
  ASSERT_EQ(again.size(), arrivals.size());
  EXPECT_EQ(again.back().at, arrivals.back().at);
  EXPECT_NE(other.front().at, arrivals.front().at);
}

TEST(BurstSource, OfNoFunctionNothingComes) {
  EXPECT_TRUE(all({}, 10s, 1).empty());
}

TEST(NamedRate, IsANameAndARate) {
  EXPECT_EQ(*named_rate("f=2.5"), (std::pair<std::string, double>("f", 2.5)));
  for (const char* wrong : {"f", "=2", "f=", "f=0", "f=-1", "f=x", "f=1x", "f=1e7", "f=nan", "f=inf", ""}) {
    const auto read = named_rate(wrong);
    ASSERT_FALSE(read) << wrong;
    EXPECT_THAT(read.error().message, HasSubstr("it must be NAME=RATE"));
  }
}

}  // namespace
}  // namespace fairlead::sim
