#include "decide/pacing/service_meter.h"

#include <gtest/gtest.h>

#include "decide/pacing/claim_check.h"

namespace fairlead {
namespace {

using namespace std::chrono_literals;

constexpr Instant at(Duration time) {
  return Instant() + 100s + time;
}

TEST(ServiceMeter, TheLastSecondIsOfTheLastSecond) {
  ServiceMeter meter;
  for (Duration time = 0ms; time <= 2s; time += 25ms) meter.note(at(time), time * 2 / 5);
  EXPECT_NEAR(to_ms(meter.in_last_second(at(2s))), 400, 11);
  EXPECT_EQ(meter.total(), 800ms);
}

TEST(ServiceMeter, NothingWasGivenInASecondThatNobodyNoted) {
  ServiceMeter meter;
  meter.note(at(0s), 300ms);
  meter.note(at(3s), 300ms);
  EXPECT_EQ(meter.in_last_second(at(3s)), 0ms);
  EXPECT_EQ(meter.in_last_minute(at(3s)), 300ms);
  EXPECT_EQ(meter.in_last_minute(at(90s)), 0ms);
}

TEST(ServiceMeter, ATotalThatFallsIsNoLessThanNothing) {
  ServiceMeter meter;
  meter.note(at(0s), 300ms);
  meter.note(at(2s), 200ms);
  EXPECT_EQ(meter.in_last_second(at(2s)), 0ms);
}

TEST(WaitHistogram, BucketsArePowersOfTwoOfAMicrosecond) {
  WaitHistogram waits;
  for (const Duration wait : {Duration(0), Duration(999), Duration(1us), Duration(3us), Duration(1h), Duration(-5us)}) {
    waits.add(wait);
  }
  EXPECT_EQ(waits.buckets()[0], 3u);
  EXPECT_EQ(waits.buckets()[1], 1u);
  EXPECT_EQ(waits.buckets()[2], 1u);
  EXPECT_EQ(waits.buckets()[WaitHistogram::kBuckets - 1], 1u);
  EXPECT_EQ(waits.count(), 6u);
}

TEST(ClaimCheck, OneSecondInWhichTheyAgreeBeginsAnew) {
  ClaimCheck check;
  using Verdict = ClaimCheck::Verdict;
  Duration device{0};
  const auto second = [&](int number, bool lies) {
    device += lies ? 400ms : 0ms;
    return check.compare(at(number * 1s), Duration(0), device);
  };
  EXPECT_EQ(second(0, false), Verdict::kAgrees);
  EXPECT_EQ(second(1, true), Verdict::kDisagrees);
  EXPECT_EQ(second(2, true), Verdict::kDisagrees);
  EXPECT_EQ(second(3, false), Verdict::kAgrees);
  EXPECT_EQ(second(4, true), Verdict::kDisagrees);
  EXPECT_EQ(second(5, true), Verdict::kDisagrees);
  EXPECT_EQ(second(6, true), Verdict::kNamed);
  for (const int number : {7, 8}) EXPECT_EQ(second(number, true), Verdict::kDisagrees);
  EXPECT_EQ(second(9, true), Verdict::kDisbelieved);
  EXPECT_EQ(second(10, true), Verdict::kDisagrees) << "said once";
}

}  // namespace
}  // namespace fairlead
