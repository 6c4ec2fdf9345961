#include "shim/leash_book.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <memory>
#include <random>

namespace fairlead::shim {
namespace {

constexpr std::uint64_t kUs = 1000;
constexpr std::uint64_t kKernel = 7, kOther = 8;

// A stream of a device whose kernels take what the test says, and a program that launches as fast as it may.
class Stream {
 public:
  // True: launched. False: it has to wait, and nothing has changed.
  bool launch(std::uint64_t key, std::uint64_t ns) {
    see_what_has_ended();
    if (!strand_.suits(times_, key)) tie_off();
    wait_ = strand_.wait_ns(times_, key, now_);
    if (wait_ > 0) {
      if (strand_.oldest() < 0) tie_off();
      return false;
    }
    if (strand_.add(times_, key, now_)) begin_ = std::max(now_, device_);
    idle_ += now_ - std::min(now_, device_);
    device_ = std::max(now_, device_) + ns;
    if (strand_.is_full()) tie_off();
    return true;
  }
  void pass(std::uint64_t ns) { now_ += ns; }
  // Launches, and waits where it has to; returns how much was in flight on the device at most.
  std::uint64_t launch_all(int count, std::uint64_t key, std::uint64_t ns) {
    std::uint64_t most = 0;
    for (int i = 0; i < count;) {
      if (launch(key, ns)) {
        ++i;
        most = std::max(most, device_ - now_);
      } else {
        pass(20 * kUs);
      }
    }
    return most;
  }
  // The same, of pieces that take what `ns_of` says of each, by a program that naps as leash.cc does, and wakes late. Returns how long the
  // device had nothing to do.
  template <typename Time>
  std::uint64_t idle_of(int count, std::uint64_t key, Time ns_of, std::uint64_t late_ns = 0) {
    constexpr std::uint64_t kShortestNap = 20 * kUs, kLongestNap = 200 * kUs;
    idle_ = 0;
    for (int i = 0; i < count;) {
      if (launch(key, ns_of(i))) {
        ++i;
      } else {
        pass(std::clamp(wait_, kShortestNap, kLongestNap) + late_ns);
      }
    }
    return idle_;
  }
  std::uint64_t time_of(std::uint64_t key) const { return times_.estimate(key); }
  std::uint64_t device_ends() const { return device_; }
  std::uint64_t in_flight() const { return device_ - std::min(device_, now_); }
  int events() const { return events_; }
  Strand& strand() { return strand_; }

 private:
  void tie_off() {
    const int number = strand_.tie_off();
    ends_[number] = device_;
    ++events_;
  }
  void see_what_has_ended() {
    while (strand_.oldest() >= 0 && ends_[strand_.oldest()] <= now_) {
      const std::uint64_t end = ends_[strand_.oldest()];
      switch (strand_.begin_of_oldest()) {
        case Strand::Begin::kUnknown: strand_.oldest_ended(times_, 0, now_); break;
        case Strand::Begin::kBeginEvent: strand_.oldest_ended(times_, end - begin_, now_); break;
        case Strand::Begin::kEventBefore:
          strand_.oldest_ended(times_, end - ends_[strand_.event_before_oldest()], now_);
          break;
      }
    }
  }

  Strand strand_;
  PieceTimes times_;
  std::uint64_t now_ = 1000 * kUs, device_ = 0, begin_ = 0;
  std::uint64_t ends_[Strand::kLinks] = {};
  std::uint64_t wait_ = 0, idle_ = 0;
  int events_ = 0;
};

class Leash : public ::testing::Test {
 protected:
  const std::unique_ptr<Stream> stream_ = std::make_unique<Stream>();
};

TEST_F(Leash, ThreeHundredLaunchesStayWithinTheLeashOnceOneWasMeasured) {
  stream_->launch_all(2, kKernel, 10 * kUs);
  stream_->pass(1000 * kUs);
  EXPECT_LE(stream_->launch_all(300, kKernel, 10 * kUs), kLeashNs + 10 * kUs);
  EXPECT_EQ(stream_->time_of(kKernel), 10 * kUs);
}

TEST_F(Leash, AnEventIsForManyShortKernels) {
  stream_->launch_all(2, kKernel, 10 * kUs);
  const int before = stream_->events();
  stream_->launch_all(1200, kKernel, 10 * kUs);
  EXPECT_LE(stream_->events() - before, 1200 / 12);
}

TEST_F(Leash, WorkThatWasNeverMeasuredIsTakenForLong) {
  int launched = 0;
  while (stream_->launch(kKernel + static_cast<std::uint64_t>(launched), 1 * kUs)) ++launched;
  EXPECT_EQ(launched, kLeashNs / kUnknownNs);
}

TEST_F(Leash, AKernelOfItsOwnIsMeasuredExactly) {
  ASSERT_TRUE(stream_->launch(kKernel, 37 * kUs));
  stream_->pass(1000 * kUs);
  ASSERT_TRUE(stream_->launch(kOther, 1 * kUs));
  EXPECT_EQ(stream_->time_of(kKernel), 37 * kUs);
}

TEST_F(Leash, ALongKernelHasAnotherBehindItOnlyAtItsEnd) {
  stream_->launch_all(2, kKernel, 5000 * kUs);
  stream_->pass(20000 * kUs);
  EXPECT_LE(stream_->launch_all(5, kKernel, 5000 * kUs), 5000 * kUs + kLeashNs);
}

TEST_F(Leash, AKernelThatBecomesLongerIsBelievedAtOnceAndOneThatBecomesShorterSlowly) {
  stream_->launch_all(100, kKernel, 10 * kUs);
  stream_->launch_all(60, kKernel, 100 * kUs);
  EXPECT_EQ(stream_->time_of(kKernel), 100 * kUs);
  EXPECT_LE(stream_->launch_all(20, kKernel, 100 * kUs), kLeashNs + 100 * kUs);
  stream_->launch_all(4, kKernel, 10 * kUs);
  EXPECT_GT(stream_->time_of(kKernel), 50 * kUs);
  stream_->launch_all(500, kKernel, 10 * kUs);
  EXPECT_LT(stream_->time_of(kKernel), 12 * kUs);
}

TEST_F(Leash, TimeBetweenLaunchesIsNobodysTime) {
  stream_->launch_all(2, kKernel, 10 * kUs);
  stream_->pass(1000 * kUs);
  for (int i = 0; i < 100; ++i) {
    ASSERT_TRUE(stream_->launch(kKernel, 10 * kUs));
    stream_->pass(3000 * kUs);
  }
  EXPECT_EQ(stream_->time_of(kKernel), 10 * kUs);
}

TEST_F(Leash, NothingIsInFlightAfterAWait) {
  stream_->launch_all(2, kKernel, 10 * kUs);
  stream_->pass(1000 * kUs);
  for (int i = 0; i < 30; ++i) stream_->launch(kKernel, 10 * kUs);
  EXPECT_GT(stream_->strand().in_flight_ns(), 0U);
  stream_->strand().clear();
  EXPECT_EQ(stream_->strand().in_flight_ns(), 0U);
  EXPECT_TRUE(stream_->launch(kKernel, 10 * kUs));
}

TEST_F(Leash, AProgramIsNotHeldBackByItsLeash) {
  stream_->launch_all(2, kKernel, 100 * kUs);
  stream_->pass(1000 * kUs);
  const std::uint64_t begin = stream_->device_ends() + 800 * kUs;
  stream_->launch_all(1000, kKernel, 100 * kUs);
  EXPECT_LE(stream_->device_ends() - begin, 1010 * 100 * kUs) << "the device has work whenever the program waits";
}

// Without the device for 0.9 ms, once in twenty kernels.
TEST_F(Leash, APieceThatTookLongerForOnceHoldsNothingBack) {
  for (const std::uint64_t kernel : {100 * kUs, 300 * kUs, 1000 * kUs}) {
    stream_->launch_all(10, kernel, kernel);
    const auto time = [kernel](int i) { return i % 20 == 7 ? kernel + 900 * kUs : kernel; };
    EXPECT_LE(stream_->idle_of(400, kernel, time), 400 * kernel / 100) << kernel / kUs << " us";
    EXPECT_LE(stream_->time_of(kernel), kernel * 5 / 4);
  }
}

TEST_F(Leash, APieceThatTookLongerTwiceTakesLonger) {
  stream_->launch_all(50, kKernel, 300 * kUs);
  stream_->launch_all(10, kKernel, 1500 * kUs);
  stream_->pass(20000 * kUs);
  stream_->launch_all(3, kKernel, 300 * kUs);
  EXPECT_GT(stream_->time_of(kKernel), 800 * kUs) << "one that takes less is no proof that the others did not";
}

// Where each runs alone since it was taken for long, nothing tells when it begins but an event of its own.
TEST_F(Leash, APieceThatBecameShorterIsMeasuredThoughEachRunsAlone) {
  stream_->launch_all(10, kKernel, 3000 * kUs);
  stream_->pass(10000 * kUs);
  for (int i = 0; i < 20; ++i) {
    ASSERT_TRUE(stream_->launch(kKernel, 100 * kUs));
    stream_->pass(4000 * kUs);
  }
  EXPECT_LT(stream_->time_of(kKernel), kLeashNs) << "so short that two are in flight, and tell";
}

TEST_F(Leash, WhatIsInFlightIsEstimatedAnewWhenItIsKnownToTakeLonger) {
  stream_->launch_all(100, kKernel, 10 * kUs);
  stream_->pass(5000 * kUs);
  while (stream_->time_of(kKernel) < 1000 * kUs) {
    while (stream_->launch(kKernel, 2000 * kUs)) {
    }
    stream_->pass(1000 * kUs);
  }
  EXPECT_FALSE(stream_->launch(kKernel, 2000 * kUs));
  EXPECT_GE(stream_->strand().in_flight_ns(), stream_->in_flight());
  stream_->pass(stream_->in_flight() - kLeashNs - 100 * kUs);
  EXPECT_FALSE(stream_->launch(kKernel, 2000 * kUs)) << "all that was let go for the time before has to end first";
}

TEST_F(Leash, WhoIsLateToLookKnowsWhenTheNextBegan) {
  stream_->launch_all(10, kKernel, 1000 * kUs);
  EXPECT_EQ(stream_->idle_of(
                100, kKernel, [](int) { return 1000 * kUs; }, 190 * kUs),
            0u);
}

TEST_F(Leash, ADoubtedPieceHasOneBehindItAndNotTwo) {
  stream_->launch_all(10, kKernel, 1000 * kUs);
  stream_->pass(10000 * kUs);
  ASSERT_TRUE(stream_->launch(kKernel, 2000 * kUs));
  stream_->pass(2500 * kUs);
  ASSERT_TRUE(stream_->launch(kKernel, 1000 * kUs));
  EXPECT_TRUE(stream_->launch(kKernel, 1000 * kUs));
  EXPECT_FALSE(stream_->launch(kKernel, 1000 * kUs));
  stream_->pass(2000 * kUs);
  ASSERT_TRUE(stream_->launch(kKernel, 1000 * kUs));
  EXPECT_FALSE(stream_->launch(kKernel, 1000 * kUs)) << "it took what it had taken before: there is no doubt any more";
}

// What is in flight when a place is revoked: 0.4 ms and a piece, of any mixture of pieces that take what they took.
TEST_F(Leash, KeepsItsBound) {
  std::mt19937_64 random(3);
  constexpr std::uint64_t kTimes[] = {5 * kUs, 40 * kUs, 130 * kUs, 700 * kUs, 2300 * kUs};
  for (int round = 0; round < 3; ++round) {
    for (const std::uint64_t time : kTimes) stream_->launch_all(3, time, time);
  }
  stream_->pass(20000 * kUs);
  std::uint64_t most_beyond = 0;
  for (int i = 0; i < 20000;) {
    const std::uint64_t time = kTimes[random() % std::size(kTimes)];
    if (!stream_->launch(time, time)) {
      stream_->pass(20 * kUs + random() % (200 * kUs));
      continue;
    }
    ++i;
    most_beyond = std::max(most_beyond, stream_->in_flight() - std::min(stream_->in_flight(), time));
  }
  EXPECT_LE(most_beyond, kLeashNs);
}

TEST(PieceKey, TellsFunctionsAndGridsApart) {
  const int a = 0, b = 0;
  EXPECT_NE(piece_key(&a, 1, 1), piece_key(&b, 1, 1));
  EXPECT_NE(piece_key(&a, 80, 1), piece_key(&a, 1, 80));
  EXPECT_NE(piece_key(nullptr, 0, 0), 0U);
}

}  // namespace
}  // namespace fairlead::shim
