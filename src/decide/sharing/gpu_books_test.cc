#include "decide/sharing/gpu_books.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "base/rng.h"

namespace fairlead {
namespace {

using namespace std::chrono_literals;

constexpr InstanceId kOne(1);
constexpr FlowId kFlow(7);

Instant at(Duration time) {
  return Instant(time);
}

// 100 ms, reported and charged.
void run_one_call(GpuBooks& books) {
  books.delivered(at(0s), kOne, kFlow, 0s);
  books.used(at(100ms), kOne, 100ms);
  books.charged(kOne, 100ms);
}

TEST(GpuBooks, UseIsWhatIsReportedBetweenDeliveryAndEnd) {
  GpuBooks books;
  EXPECT_EQ(books.delivered(at(1s), kOne, kFlow, /*reported=*/3s), 0s) << "of its start";
  EXPECT_EQ(books.used(at(1500ms), kOne, 3500ms), 500ms);
  books.charged(kOne, 500ms);
  EXPECT_EQ(books.delivered(at(9s), kOne, kFlow, 3500ms), 0s);
  EXPECT_EQ(books.used(at(9s), kOne, 3500ms), std::nullopt) << "nothing was measured";
}

TEST(GpuBooks, WorkBetweenTwoInvocationsIsOwedByTheNext) {
  GpuBooks books;
  books.delivered(at(1s), kOne, kFlow, 0s);
  books.used(at(1500ms), kOne, 500ms);
  books.charged(kOne, 500ms);
  EXPECT_EQ(books.delivered(at(9s), kOne, kFlow, 2500ms), 2s);
  EXPECT_EQ(books.used(at(9100ms), kOne, 2600ms), 100ms);
}

TEST(GpuBooks, ReportThatIsTooSmallIsReplacedByWhatTheDeviceSays) {
  GpuBooks books;
  Duration corrected{0};
  for (int i = 0; i < 20; ++i) {
    const Instant begin = at(i * 1s);
    books.delivered(begin, kOne, kFlow, i * 1us);
    books.used(begin + 50ms, kOne, (i + 1) * 1us);
    books.charged(kOne, 50ms);
    books.device_worked(kOne, begin, begin + 500ms, 500ms);
    books.device_worked(kOne, begin + 500ms, begin + 1s, 0ms);
    const auto finding = books.compare(begin + 1s, kOne, (i + 1) * 1us, /*is_busy=*/false);
    ASSERT_TRUE(finding) << i;
    EXPECT_EQ(finding->flow, kFlow);
    EXPECT_EQ(finding->is_first, i == 0);
    corrected += finding->missing;
  }
  EXPECT_EQ(corrected + 20 * 50ms, 20 * 500ms) << "nothing is lost, nothing is charged twice";
}

TEST(GpuBooks, WhatAnOpenInvocationMayBeChargedIsNotMissingYet) {
  GpuBooks books;
  books.delivered(at(0s), kOne, kFlow, 0s);
  for (int i = 0; i < 10; ++i) books.device_worked(kOne, at(i * 1s), at((i + 1) * 1s), 1s);
  EXPECT_FALSE(books.compare(at(10s), kOne, 0s, /*is_busy=*/false));
  books.used(at(10s), kOne, 1us);
  books.charged(kOne, 1s);
  EXPECT_EQ(books.compare(at(10s), kOne, 1us, /*is_busy=*/false)->missing, 9s);
}

TEST(GpuBooks, StartIsNobodysCharge) {
  GpuBooks books;
  books.device_worked(kOne, at(0s), at(5s), 5s);
  books.delivered(at(5s), kOne, kFlow, 0s);
  books.device_worked(kOne, at(4s), at(6s), 2s);  // reaches back before the first invocation
  books.used(at(5s), kOne, 1us);
  books.charged(kOne, 1us);
  EXPECT_FALSE(books.compare(at(6s), kOne, 1us, /*is_busy=*/false));
}

TEST(GpuBooks, WorkAfterAForgedEndIsMissing) {
  GpuBooks books;
  books.delivered(at(0s), kOne, kFlow, 0s);
  books.used(at(1ms), kOne, 1us);
  books.charged(kOne, 1ms);  // it said that nothing was under way
  for (int i = 0; i < 5; ++i) books.device_worked(kOne, at(i * 200ms), at((i + 1) * 200ms), 200ms);
  EXPECT_EQ(books.compare(at(1s), kOne, 1us, /*is_busy=*/false)->missing, 999ms);
}

TEST(GpuBooks, ASuspectMayStillWorkUntilTheDeviceIsSeenWithoutItsWork) {
  GpuBooks books;
  constexpr InstanceId kOther(2);
  const auto observe = [&](Instant until, Duration busy) {
    if (busy > 0s) books.device_worked(kOne, until - 200ms, until, busy);
    books.observed(until);
  };
  books.delivered(at(1s), kOne, kFlow, 0s);
  books.delivered(at(1s), kOther, FlowId(8), 0s);
  books.used(at(1001ms), kOne, 1us);
  EXPECT_FALSE(books.may_still_work(kOne)) << "nobody has found it out";
  books.charged(kOne, 1ms);
  for (int i = 6; i <= 10; ++i) observe(at(i * 200ms), 200ms);
  ASSERT_TRUE(books.compare(at(2s), kOne, 1us, /*is_busy=*/false));
  EXPECT_TRUE(books.is_suspect(kOne));
  EXPECT_FALSE(books.is_suspect(kOther));

  books.delivered(at(2050ms), kOne, kFlow, 1us);
  books.used(at(2100ms), kOne, 2us);
  observe(at(2200ms), 0s);
  EXPECT_TRUE(books.may_still_work(kOne)) << "the sample began before the answer";
  observe(at(2400ms), 200ms);
  EXPECT_TRUE(books.may_still_work(kOne));
  observe(at(2600ms), 0s);
  EXPECT_FALSE(books.may_still_work(kOne));
  books.delivered(at(3s), kOne, kFlow, 2us);
  books.used(at(3001ms), kOne, 3us);
  EXPECT_TRUE(books.may_still_work(kOne)) << "each answer anew";
}

// 3 s that begin when nobody calls: said to be busy, and reported at their end.
TEST(GpuBooks, WhatIsUnderWayBetweenInvocationsIsNotMissingYet) {
  GpuBooks books;
  run_one_call(books);
  for (int i = 1; i <= 3; ++i) {
    books.device_worked(kOne, at(i * 1s), at((i + 1) * 1s), 1s);
    EXPECT_FALSE(books.compare(at((i + 1) * 1s), kOne, 100ms, /*is_busy=*/true)) << i;
  }
  EXPECT_FALSE(books.compare(at(4s), kOne, 3100ms, /*is_busy=*/false));
  EXPECT_EQ(books.delivered(at(5s), kOne, kFlow, 3100ms), 3s) << "owed once";
  EXPECT_FALSE(books.is_suspect(kOne));
}

TEST(GpuBooks, WhatWasUnderWayAndIsNotReportedIsMissing) {
  for (const bool is_called : {false, true}) {
    GpuBooks books;
    run_one_call(books);
    for (int i = 1; i <= 3; ++i) books.device_worked(kOne, at(i * 1s), at((i + 1) * 1s), 1s);
    EXPECT_FALSE(books.compare(at(4s), kOne, 100ms, /*is_busy=*/true));
    if (is_called) {  // and says that it is busy for ever
      books.delivered(at(4s), kOne, kFlow, 100ms);
      EXPECT_FALSE(books.compare(at(4s), kOne, 100ms, /*is_busy=*/true));
      books.used(at(4s), kOne, 101ms);
      books.charged(kOne, 1ms);
    }
    const auto finding = books.compare(at(5s), kOne, is_called ? 101ms : 100ms, /*is_busy=*/is_called);
    ASSERT_TRUE(finding) << is_called;
    EXPECT_NEAR(to_seconds(finding->missing), 2.9, 0.11);
  }
}

// Once it was found out its word is not asked for.
TEST(GpuBooks, ASuspectThatSaysItIsBusyIsComparedAllTheSame) {
  GpuBooks books;
  books.delivered(at(0s), kOne, kFlow, 0s);
  books.used(at(1s), kOne, 1us);
  books.charged(kOne, 1us);
  books.device_worked(kOne, at(0s), at(1s), 1s);
  ASSERT_TRUE(books.compare(at(1s), kOne, 1us, /*is_busy=*/false));
  books.device_worked(kOne, at(1s), at(2s), 1s);
  const auto finding = books.compare(at(2s), kOne, 1us, /*is_busy=*/true);
  ASSERT_TRUE(finding);
  EXPECT_EQ(finding->missing, 1s);
}

// A kernel of 170 ms that began 140 ms before the call: its report comes with that call, which held its slot for 30 ms.
TEST(GpuBooks, WhatBeganBeforeACallIsOwedAndNotMissing) {
  GpuBooks books;
  books.delivered(at(0s), kOne, kFlow, 0s);
  books.used(at(1ms), kOne, 1ms);
  books.charged(kOne, 1ms);
  for (int i = 1; i <= 20; ++i) {
    const Instant begin = at(i * 1s);
    const Duration reported = 1ms + (i - 1) * 170ms;
    EXPECT_EQ(books.delivered(begin + 140ms, kOne, kFlow, reported), 0s);
    EXPECT_EQ(books.used(begin + 170ms, kOne, reported + 170ms), 170ms);
    const GpuBooks::Debt debt = books.charged(kOne, 30ms);
    EXPECT_EQ(debt.flow, kFlow);
    EXPECT_EQ(debt.owed, 140ms);
    books.device_worked(kOne, begin, begin + 1s, 170ms);
    EXPECT_FALSE(books.compare(begin + 1s, kOne, reported + 170ms, /*is_busy=*/false)) << i;
  }
}

TEST(GpuBooks, AReportCannotCoverMoreThanTheTimeThatPassed) {
  GpuBooks books;
  books.opened(at(1s), kOne, kFlow, 0s);
  books.delivered(at(3s), kOne, kFlow, 0s);
  books.used(at(4s), kOne, 1000s);
  EXPECT_EQ(books.charged(kOne, 1s).owed, 2s) << "since it was ready";
}

TEST(GpuBooks, WhatIsReadyAndNeverCalledOwesWhatItDoes) {
  GpuBooks books;
  books.opened(at(1s), kOne, kFlow, 3s);
  EXPECT_EQ(books.delivered(at(9s), kOne, kFlow, 5s), 2s);
  books.opened(at(9s), kOne, kFlow, 9s);  // it is known
  EXPECT_EQ(books.used(at(9100ms), kOne, 5100ms), 100ms);
}

TEST(GpuBooks, WhoGoesOwesWhatItDidBetween) {
  GpuBooks books;
  books.opened(at(0s), kOne, kFlow, 0s);
  run_one_call(books);
  for (int i = 1; i <= 5; ++i) books.device_worked(kOne, at(i * 1s), at((i + 1) * 1s), 1s);
  EXPECT_FALSE(books.compare(at(6s), kOne, 100ms, /*is_busy=*/true));
  const GpuBooks::Leftover under_way = books.gone(at(6s), kOne, 100ms);
  EXPECT_FALSE(under_way.finding) << "nobody can report what has not ended";
  EXPECT_NEAR(to_seconds(under_way.debt.owed), 4.9, 0.11);
  EXPECT_EQ(books.gone(at(6s), kOne, 100ms).debt.owed, 0s) << "it is gone";

  books.opened(at(10s), kOne, kFlow, 0s);
  EXPECT_EQ(books.gone(at(12s), kOne, 1500ms).debt.owed, 1500ms) << "reported, and no call came";

  books.opened(at(20s), kOne, kFlow, 0s);
  books.device_worked(kOne, at(20s), at(25s), 5s);
  EXPECT_FALSE(books.compare(at(25s), kOne, 5s, /*is_busy=*/false));
  const GpuBooks::Leftover unreadable = books.gone(at(25s), kOne, 0s);
  EXPECT_FALSE(unreadable.finding);
  EXPECT_EQ(unreadable.debt.owed, 5s);
}

// It computes for 4 s in its call, reports nothing, and ends right after its answer.
TEST(GpuBooks, AForgerThatEndsIsFound) {
  GpuBooks books;
  books.opened(at(0s), kOne, kFlow, 0s);
  books.delivered(at(0s), kOne, kFlow, 0s);
  for (int i = 0; i < 4; ++i) books.device_worked(kOne, at(i * 1s), at((i + 1) * 1s), 1s);
  EXPECT_FALSE(books.compare(at(4s), kOne, 0s, /*is_busy=*/false));
  books.used(at(4s), kOne, 1us);
  books.charged(kOne, 400ms);
  const GpuBooks::Leftover left = books.gone(at(4s), kOne, 1us);
  ASSERT_TRUE(left.finding);
  EXPECT_TRUE(left.finding->is_first);
  EXPECT_EQ(left.finding->missing, 3600ms);
}

TEST(GpuBooks, WhoGoesInACallIsChargedTheTimeHeld) {
  GpuBooks books;
  books.opened(at(0s), kOne, kFlow, 0s);
  books.delivered(at(0s), kOne, kFlow, 0s);
  for (int i = 0; i < 4; ++i) books.device_worked(kOne, at(i * 1s), at((i + 1) * 1s), 1s);
  const GpuBooks::Leftover left = books.gone(at(4s), kOne, 0s);
  EXPECT_FALSE(left.finding);
  EXPECT_EQ(left.debt.owed, 0s);
}

// An honest program of any length of call and pause, with work between its calls and work that begins there and ends in the next call:
// charged what it used; samples of 200 ms in whole percents, rounded to the nearest, that come up to a sample late.
TEST(GpuBooks, HonestProgramIsNeverFound) {
  EXPECT_TRUE(rc::check("no finding", [] {
    Rng rng(*rc::gen::arbitrary<std::uint64_t>());
    GpuBooks books;
    const auto most_busy = Duration(1 + rng.below(2'000'000'000) / (1 + rng.below(1000)));
    const auto most_idle = Duration(1 + rng.below(2'000'000'000) / (1 + rng.below(1000)));
    const bool works_between = rng.below(2) == 0;
    const auto some = [&](Duration most) { return Duration(1 + rng.below(static_cast<std::uint64_t>(most.count()))); };
    constexpr Duration kSample = 200ms;
    Instant now{}, next_sample = Instant(Duration(rng.below(200'000'000)));
    Duration reported{0}, in_sample{0};
    const auto pass = [&](Duration time, bool busy) {
      for (const Instant end = now + time; now < end;) {
        const Instant until = std::min(end, next_sample);
        if (busy) in_sample += until - now;
        now = until;
        if (now < next_sample) continue;
        const auto percent = (in_sample * 100 + kSample / 2) / kSample;
        books.device_worked(kOne, now - kSample, now, percent * kSample / 100);
        in_sample = Duration(0);
        next_sample = now + kSample;
        if (busy && now == end) continue;  // its end is reported at this instant
        RC_ASSERT(!books.compare(now, kOne, reported, busy));
      }
    };
    Duration charged{0};
    for (int i = 0; i < 300 && now < Instant(200s); ++i) {
      charged += books.delivered(now, kOne, kFlow, reported);
      Duration under_way{0};
      if (works_between && rng.below(3) == 0) under_way = some(most_busy);  // it began before the call
      if (under_way > Duration(0)) {
        books.used(now, kOne, reported);
        books.charged(kOne, Duration(0));  // a call that did nothing
        pass(under_way, true);
        charged += books.delivered(now, kOne, kFlow, reported);
      }
      const Duration busy = some(most_busy);
      pass(busy, true);
      reported += under_way + busy;
      const auto used = books.used(now, kOne, reported);
      RC_ASSERT(used == under_way + busy);
      const Duration service = std::min(*used, busy);  // no call is charged more than the time held
      const GpuBooks::Debt debt = books.charged(kOne, service);
      RC_ASSERT(debt.owed == under_way);
      charged += service + debt.owed;
      pass(some(most_idle), false);
      if (!works_between || rng.below(2) == 0) continue;
      const Duration between = some(most_busy);
      pass(between, true);
      reported += between;
      pass(some(most_idle), false);
    }
    const GpuBooks::Leftover left = books.gone(now, kOne, reported);
    RC_ASSERT(!left.finding);
    RC_ASSERT(charged + left.debt.owed == reported);
  }));
}

}  // namespace
}  // namespace fairlead
