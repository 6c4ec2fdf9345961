#include "decide/sharing/measured_lanes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <deque>
#include <vector>

namespace fairlead {
namespace {

using namespace std::chrono_literals;

// A device whose kernels run at full speed until `at_once` of them run, beyond that all slow down alike; `callers` of one task
// each call again at once, where a lane is free.
class Device {
 public:
  explicit Device(double at_once, const MeasuredLanes::Options& options = {}) : at_once_(at_once), lanes_(options) {}

  // So many calls are over. Returns the lanes after that.
  std::size_t serve(std::size_t callers, int calls, Duration alone = 40ms, FlowId task = FlowId(1)) {
    for (int ended = 0; ended < calls;) {
      while (running_.size() < std::min(callers, lanes_.lanes())) begin(alone, task);
      ended += advance();
    }
    return lanes_.lanes();
  }
  void drain() {
    while (!running_.empty()) advance();
  }
  void wait(Duration time) { now_ += time; }
  void set_at_once(double at_once) { at_once_ = at_once; }
  std::size_t lanes() const { return lanes_.lanes(); }

 private:
  struct Running {
    InvocationId call;
    double left;
  };
  double slowdown() const { return std::max(1.0, static_cast<double>(running_.size()) / at_once_); }
  void begin(Duration alone, FlowId task) {
    running_.push_back({InvocationId(next_++), static_cast<double>(alone.count())});
    lanes_.begin(now_, running_.back().call, task);
  }
  // To the next end. Calls that began together end together.
  int advance() {
    const auto first = std::min_element(running_.begin(), running_.end(),
                                        [](const Running& a, const Running& b) { return a.left < b.left; });
    const double work = first->left;
    now_ += Duration(static_cast<Duration::rep>(std::ceil(work * slowdown())));
    std::vector<Running> left;
    int ended = 0;
    for (Running& one : running_) {
      one.left -= work;
      if (one.left > 1) left.push_back(one);
    }
    for (const Running& one : running_) {
      if (one.left > 1) continue;
      lanes_.end(now_, one.call);
      ++ended;
    }
    running_ = left;
    return ended;
  }

  double at_once_;
  MeasuredLanes lanes_;
  std::vector<Running> running_;
  Instant now_ = Instant(100s);
  std::uint64_t next_ = 1;
};

TEST(MeasuredLanes, AreAsManyAsRunForLessThanTheyAdd) {
  for (const auto& [at_once, lanes] : {std::pair(1.6, 2u), {2.6, 3u}, {4.3, 5u}, {1.0, 2u}, {6.0, 6u}}) {
    Device device(at_once);
    device.serve(1, 50);
    EXPECT_EQ(device.serve(16, 2000), lanes) << at_once << " at once";
  }
}

// Whoever can use the device more often than lanes are allowed gets the most.
TEST(MeasuredLanes, EndAtTheMostThatIsAllowed) {
  EXPECT_EQ(Device(100).serve(16, 2000), MeasuredLanes::kMost);
  EXPECT_EQ(Device(100, {.least = 1, .most = 3}).serve(16, 2000), 3u);
}

TEST(MeasuredLanes, NeverGoBelowTheLeast) {
  EXPECT_EQ(Device(0.5).serve(16, 2000), 2u);
  EXPECT_EQ(Device(0.5, {.least = 4, .most = 8}).serve(16, 2000), 4u);
}

TEST(MeasuredLanes, AreNotOpenedForNobody) {
  Device device(100);
  EXPECT_EQ(device.serve(1, 2000), 2u) << "the second was never in use";
  EXPECT_EQ(device.serve(2, 2000), 3u) << "nor was the third";
}

TEST(MeasuredLanes, OneThatDidNotPayIsTriedAgainAfterAMinute) {
  Device device(1.6);
  device.serve(16, 500);
  ASSERT_EQ(device.lanes(), 2u);
  device.set_at_once(4.3);  // other tasks
  device.drain();
  EXPECT_EQ(device.serve(16, 100), 2u);
  device.wait(MeasuredLanes::kRetry);
  EXPECT_EQ(device.serve(16, 2000), 5u);
}

// Each is compared with itself: that one takes ten times as long as the other says nothing.
TEST(MeasuredLanes, LongAndShortTasksTogether) {
  Device device(2.6);
  for (int turn = 0; turn < 40; ++turn) {
    device.serve(16, 50, 40ms, FlowId(1));
    device.drain();
    device.serve(16, 50, 4ms, FlowId(2));
    device.drain();
  }
  EXPECT_EQ(device.lanes(), 3u);
}

TEST(MeasuredLanes, WhatFailedSaysNothing) {
  MeasuredLanes lanes({});
  Instant now(0s);
  for (std::uint64_t id = 1; id < 1000; id += 2) {  // two at a time, each stopped after a second or a minute
    lanes.begin(now, InvocationId(id), FlowId(1));
    lanes.begin(now, InvocationId(id + 1), FlowId(1));
    now += id % 3 == 0 ? 1s : 60s;
    lanes.abandon(now, InvocationId(id));
    lanes.abandon(now, InvocationId(id + 1));
  }
  EXPECT_EQ(lanes.lanes(), 2u);
  EXPECT_EQ(lanes.running(), 0u);
}

TEST(MeasuredLanes, AnEndThatNobodyBeganIsIgnored) {
  MeasuredLanes lanes({});
  lanes.end(Instant(1s), InvocationId(7));
  lanes.abandon(Instant(2s), InvocationId(7));
  EXPECT_EQ(lanes.running(), 0u);
}

}  // namespace
}  // namespace fairlead
