#include "store/postgres/steadiness.h"

#include <gtest/gtest.h>

namespace fairlead::postgres {
namespace {

struct SteadinessTest : testing::Test {
  // A renewal each second, for so many; the server's clock is `store_ahead` ahead, an answer takes `takes`.
  void renew(int times, Duration every = std::chrono::seconds(1)) {
    for (int i = 0; i < times; ++i) {
      now += every;
      const Instant asked = now;
      now += takes;
      steadiness.renewed({.asked = asked,
                          .answered = now,
                          .store_ms = (now.time_since_epoch() + store_ahead) / std::chrono::milliseconds(1)});
    }
  }
  Steadiness steadiness;
  Instant now{std::chrono::hours(1)};
  Duration takes = std::chrono::milliseconds(1), store_ahead = std::chrono::hours(5);
};

TEST_F(SteadinessTest, RenewalsForTheTimeOfALeaseMakeItSteady) {
  EXPECT_FALSE(steadiness.holds(now));
  renew(5);
  EXPECT_FALSE(steadiness.holds(now)) << "since the first of them it is four seconds";
  renew(1);
  EXPECT_TRUE(steadiness.holds(now));
}

TEST_F(SteadinessTest, AGapOrALostConnectionBeginsAnew) {
  renew(10);
  renew(1, std::chrono::milliseconds(2400));
  EXPECT_TRUE(steadiness.holds(now));
  renew(1, std::chrono::milliseconds(2600));
  EXPECT_FALSE(steadiness.holds(now));
  renew(10);
  EXPECT_TRUE(steadiness.holds(now));
  steadiness.interrupted();
  EXPECT_FALSE(steadiness.holds(now));
  renew(1);
  EXPECT_FALSE(steadiness.holds(now));
}

// The question was sent in time, and lay in the server while nobody could renew.
TEST_F(SteadinessTest, AnAnswerThatComesLateBeginsAnew) {
  renew(10);
  takes = std::chrono::seconds(6);
  renew(1);
  EXPECT_FALSE(steadiness.holds(now));
  takes = std::chrono::milliseconds(1);
  renew(4);
  EXPECT_FALSE(steadiness.holds(now)) << "until everybody had the time of a lease";
  renew(1);
  EXPECT_TRUE(steadiness.holds(now));
}

TEST_F(SteadinessTest, AServerWhoseClockIsSetBeginsAnew) {
  for (const Duration by : {std::chrono::seconds(4), std::chrono::seconds(-4)}) {
    renew(10);
    ASSERT_TRUE(steadiness.holds(now));
    store_ahead += by;
    renew(1);
    EXPECT_FALSE(steadiness.holds(now));
    renew(4);
    EXPECT_FALSE(steadiness.holds(now)) << "until everybody had the time of a lease";
    renew(1);
    EXPECT_TRUE(steadiness.holds(now));
  }
}

TEST_F(SteadinessTest, ASlowAnswerAndASmallDifferenceAreNoJump) {
  renew(10);
  takes = std::chrono::milliseconds(1500);
  renew(1);
  EXPECT_TRUE(steadiness.holds(now));
  store_ahead += std::chrono::milliseconds(300);
  renew(1);
  EXPECT_TRUE(steadiness.holds(now));
}

}  // namespace
}  // namespace fairlead::postgres
