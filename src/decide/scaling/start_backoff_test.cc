#include "decide/scaling/start_backoff.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace fairlead {
namespace {

using namespace std::chrono_literals;

TEST(StartBackoff, AfterThreeFailuresNothingIsAskedForAndThenOneSeat) {
  StartBackoff backoff;
  EXPECT_FALSE(backoff.note(Instant(1s), 1));
  EXPECT_FALSE(backoff.note(Instant(2s), 2));
  EXPECT_EQ(backoff.allowed(Instant(2s), 4), 4u);
  EXPECT_EQ(backoff.why(), "");
  EXPECT_TRUE(backoff.note(Instant(3s), 3));
  EXPECT_FALSE(backoff.note(Instant(4s), 3)) << "said once";
  EXPECT_TRUE(backoff.holds(Instant(32s)));
  EXPECT_EQ(backoff.allowed(Instant(32s), 4), 0u);
  EXPECT_FALSE(backoff.holds(Instant(33s)));
  EXPECT_EQ(backoff.allowed(Instant(33s), 4), 1u);
  EXPECT_THAT(backoff.why(), testing::HasSubstr("3 starts in a row failed"));
}

TEST(StartBackoff, PausesDoubleToTenMinutesAndAStartThatSucceedsEndsThem) {
  StartBackoff backoff;
  Instant now{};
  for (unsigned failed = 3; failed < 12; ++failed) EXPECT_TRUE(backoff.note(now += 600s, failed));
  EXPECT_TRUE(backoff.holds(now + 599s));
  EXPECT_FALSE(backoff.holds(now + 600s)) << "10 minutes at most";
  EXPECT_FALSE(backoff.note(now, 0));
  EXPECT_EQ(backoff.allowed(now, 4), 4u);
  EXPECT_EQ(backoff.why(), "");
  EXPECT_TRUE(backoff.note(now, 3));
  EXPECT_FALSE(backoff.holds(now + 30s)) << "from the beginning";
}

}  // namespace
}  // namespace fairlead
