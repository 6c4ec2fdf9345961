#include "shim/leash_book.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>

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
    if (strand_.wait_ns(now_) > 0) {
      if (strand_.oldest() < 0) tie_off();
      return false;
    }
    if (strand_.add(times_, key, now_)) begin_ = std::max(now_, device_);
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
  std::uint64_t time_of(std::uint64_t key) const { return times_.estimate(key); }
  std::uint64_t device_ends() const { return device_; }
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

TEST(PieceKey, TellsFunctionsAndGridsApart) {
  const int a = 0, b = 0;
  EXPECT_NE(piece_key(&a, 1, 1), piece_key(&b, 1, 1));
  EXPECT_NE(piece_key(&a, 80, 1), piece_key(&a, 1, 80));
  EXPECT_NE(piece_key(nullptr, 0, 0), 0U);
}

}  // namespace
}  // namespace fairlead::shim
