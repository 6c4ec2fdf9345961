// The parts of the simulator that can be checked against a calculation by hand.
#include <gtest/gtest.h>

#include <cmath>

#include "sim/arrivals.h"
#include "sim/gpu_model.h"
#include "sim/histogram.h"
#include "sim/service_gaps.h"

namespace fairlead::sim {
namespace {

using namespace std::chrono_literals;

Instant at(double seconds) {
  return Instant(from_seconds(seconds));
}

// ---- histogram

TEST(Histogram, PercentilesAreRightToWithinABucket) {
  Histogram histogram;
  for (int ms = 1; ms <= 1000; ++ms) histogram.add(std::chrono::milliseconds(ms));
  EXPECT_EQ(histogram.count(), 1000u);
  EXPECT_NEAR(histogram.mean_seconds(), 0.5005, 1e-9);
  EXPECT_NEAR(to_seconds(histogram.percentile(0.5)), 0.5, 0.5 / 60);
  EXPECT_NEAR(to_seconds(histogram.percentile(0.99)), 0.99, 0.99 / 60);
  EXPECT_EQ(histogram.percentile(1.0), 1000ms);
}

TEST(Histogram, TheDeviationIsRightToWithinABucket) {
  Histogram histogram;
  EXPECT_EQ(histogram.deviation_seconds(), 0);
  for (int ms = 1; ms <= 1000; ++ms) histogram.add(std::chrono::milliseconds(ms));
  EXPECT_NEAR(histogram.deviation_seconds(), 1 / std::sqrt(12.0), 0.005);  // of what is spread evenly over a second
  Histogram alike;
  for (int i = 0; i < 10; ++i) alike.add(3s);
  EXPECT_LE(alike.deviation_seconds(), 3.0 / 60);
}

TEST(Histogram, MergingIsAddingAll) {
  Histogram one, other, both;
  for (int i = 0; i < 500; ++i) {
    const Duration value = std::chrono::microseconds(i * i);
    (i % 2 == 0 ? one : other).add(value);
    both.add(value);
  }
  one.merge(other);
  for (const double share : {0.0, 0.1, 0.5, 0.9, 1.0}) EXPECT_EQ(one.percentile(share), both.percentile(share));
  EXPECT_EQ(one.count(), both.count());
}

TEST(Histogram, HoldsMicrosecondsAndHours) {
  Histogram histogram;
  histogram.add(3us);
  histogram.add(2h);
  EXPECT_LE(histogram.percentile(0.5), 4us);
  EXPECT_GT(histogram.percentile(1.0), 30min);
}

// ---- arrivals

TEST(OpenLoop, RateAndVariationAreThoseAskedFor) {
  for (const double cv : {0.0, 0.4, 1.0, 3.0}) {
    OpenLoop source({{.function = 0, .rate = 5, .cv = cv}}, {}, 1);
    const int count = 200'000;
    double last = 0, sum = 0, squares = 0;
    for (int i = 0; i < count; ++i) {
      const double now = to_seconds(source.next()->at - Instant{});
      sum += now - last;
      squares += (now - last) * (now - last);
      last = now;
    }
    const double mean = sum / count, deviation = std::sqrt(std::max(0.0, squares / count - mean * mean));
    EXPECT_NEAR(mean, 0.2, 0.006) << cv;
    EXPECT_NEAR(deviation / mean, cv, 0.05 * cv + 0.01) << cv;
  }
}

// A stream has its rate from the first second on, however its gaps vary.
TEST(OpenLoop, BurstsDoNotCrowdTheBeginning) {
  for (const double cv : {0.4, 4.0}) {
    int early = 0;
    for (std::uint64_t seed = 1; seed <= 4000; ++seed) {
      OpenLoop source({{.function = 0, .rate = 0.1, .cv = cv, .end = 20s}}, {}, seed);
      while (source.next()) ++early;
    }
    EXPECT_NEAR(early / 4000.0, 2.0, cv > 1 ? 0.25 : 0.05) << cv;
  }
}

TEST(OpenLoop, WhatArrivesTogetherKeepsTheRate) {
  OpenLoop source({{.function = 0, .rate = 5, .cv = 0, .together = 10}}, {}, 1);
  std::vector<Instant> at;
  for (int i = 0; i < 100; ++i) at.push_back(source.next()->at);
  for (std::size_t i = 0; i < at.size(); ++i) EXPECT_EQ(at[i], at[i / 10 * 10]) << i;
  EXPECT_NEAR(to_seconds(at[90] - at[0]), 18, 1e-6);  // nine gaps of 10 / 5 s
}

TEST(OpenLoop, AStreamEndsAfterTheMostItMaySend) {
  OpenLoop source({{.function = 0, .rate = 1, .most = 3}, {.function = 1, .rate = 1, .together = 2, .most = 5}}, {}, 1);
  std::vector<int> sent(2);
  while (const auto arrival = source.next()) ++sent[arrival->function];
  EXPECT_EQ(sent, (std::vector<int>{3, 5}));
}

TEST(OpenLoop, StreamsComeInOrderOfTimeAndEnd) {
  OpenLoop source({{.function = 0, .rate = 3}, {.function = 1, .rate = 7, .begin = 10s, .end = 20s}}, {}, 1);
  Instant last{};
  int late = 0;
  for (int i = 0; i < 500; ++i) {
    const auto arrival = source.next();
    ASSERT_TRUE(arrival);
    EXPECT_GE(arrival->at, last);
    last = arrival->at;
    if (arrival->function == 1) {
      ++late;
      EXPECT_GE(arrival->at, at(10));
      EXPECT_LT(arrival->at, at(20));
    }
  }
  EXPECT_NEAR(late, 70, 30);
}

// 0 to 100 s at a factor of 1, then 3: 100 and 300 expected.
TEST(OpenLoop, TheLoadChangesOverTime) {
  OpenLoop source({{.function = 0, .rate = 10, .end = 200s}}, {{0s, 1}, {100s, 1}, {100s, 3}}, 1);
  int before = 0, after = 0;
  while (const auto arrival = source.next()) ++(arrival->at < at(100) ? before : after);
  EXPECT_NEAR(before, 1000, 100);
  EXPECT_NEAR(after, 3000, 200);
}

TEST(ClosedLoop, EachClientSendsItsNextAfterItsAnswer) {
  ClosedLoop source(2, 3, 5s, 1);
  std::size_t first = 0;
  while (const auto arrival = source.next()) first += arrival->function == 1 ? 1 : 0;
  EXPECT_EQ(first, 3u);
  double sum = 0;
  for (int i = 0; i < 10'000; ++i) sum += to_seconds(*source.after_answer(at(100), 1) - at(100));
  EXPECT_NEAR(sum / 10'000, 5, 0.2);
}

// ---- gpu_model

// The example of gpu_model.h.
TEST(GpuModel, InvocationsSlowEachOtherDown) {
  DeviceModel device;
  device.slowdown = {1.0, 1.3};
  GpuModel gpu(device);
  gpu.start(at(0), InvocationId(1), InstanceId(1), 2s);
  EXPECT_EQ(gpu.next_end(), at(2));
  gpu.start(at(1), InvocationId(2), InstanceId(2), 1s);
  EXPECT_NEAR(to_seconds(*gpu.next_end() - at(0)), 2.3, 1e-6);
  EXPECT_EQ(gpu.finish(*gpu.next_end()).invocation, InvocationId(1));
  EXPECT_NEAR(to_seconds(*gpu.next_end() - at(0)), 2.3, 1e-6);
  gpu.finish(*gpu.next_end());
  EXPECT_FALSE(gpu.next_end());
  EXPECT_NEAR(gpu.busy_seconds(), 2.3, 1e-6);
}

TEST(GpuModel, WhatIsStoppedFreesTheDeviceForTheOthers) {
  DeviceModel device;
  device.slowdown = {1.0, 2.0};
  GpuModel gpu(device);
  gpu.start(at(0), InvocationId(1), InstanceId(1), 10s);
  gpu.start(at(0), InvocationId(2), InstanceId(2), 10s);
  gpu.stop(at(4), InstanceId(2));
  gpu.stop(at(4), InstanceId(7));
  EXPECT_NEAR(to_seconds(*gpu.next_end() - at(0)), 12, 1e-6);
}

// 10 s of work beside a start of 5 s: both advance at 1 / 1.2, the start ends at 6 s with 5 s of work left.
TEST(GpuModel, AStartSlowsWhatRunsAndIsSlowed) {
  DeviceModel device;
  device.start_slowdown = 1.2;
  GpuModel gpu(device);
  gpu.start(at(0), InvocationId(1), InstanceId(1), 10s);
  gpu.begin_start(at(0), InstanceId(2), 5s);
  ASSERT_EQ(gpu.next_end(), at(6));
  const GpuModel::Finished start = gpu.finish(at(6));
  EXPECT_FALSE(start.invocation);
  EXPECT_EQ(start.instance, InstanceId(2));
  ASSERT_EQ(gpu.next_end(), at(11));
  EXPECT_EQ(gpu.finish(at(11)).invocation, InvocationId(1));
  EXPECT_EQ(gpu.busy_seconds(), 11);
}

TEST(GpuModel, AStartAloneTakesItsTimeAndLeavesTheGpuIdle) {
  const DeviceModel device;
  GpuModel gpu(device);
  gpu.begin_start(at(0), InstanceId(1), 5s);
  EXPECT_EQ(gpu.next_end(), at(5));
  EXPECT_TRUE(gpu.stop(at(4), InstanceId(1)));
  EXPECT_EQ(gpu.next_end(), std::nullopt);
  EXPECT_EQ(gpu.busy_seconds(), 0);
}

TEST(DeviceModel, BeyondItsListTimeIsSharedOut) {
  DeviceModel device;
  device.slowdown = {1, 1.5};
  EXPECT_DOUBLE_EQ(device.slowdown_at(1), 1);
  EXPECT_DOUBLE_EQ(device.slowdown_at(2), 1.5);
  EXPECT_DOUBLE_EQ(device.slowdown_at(4), 3);
}

// ---- service_gaps

// The example of service_gaps.h.
TEST(ServiceGaps, ComparesFlowsThatWereBackloggedAllTheTime) {
  ServiceGaps gaps({1, 1, 1});
  for (std::size_t flow = 0; flow < 3; ++flow) {
    gaps.queued(at(0), flow);
    gaps.queued(at(0), flow);
  }
  gaps.started(at(30), 0);
  gaps.unqueued(at(41), 2);
  gaps.unqueued(at(41), 2);
  gaps.ended(at(48), 0);
  gaps.started(at(48), 1);
  gaps.ended(at(59), 1);
  gaps.started(at(59), 2);
  gaps.advance(at(60));
  EXPECT_NEAR(gaps.worst(), 7, 1e-9);
  EXPECT_EQ(gaps.windows(), 1u);  // all were empty when the first began
  EXPECT_NEAR(gaps.mean(), 7, 1e-9);
}

TEST(ServiceGaps, WeightsDivideService) {
  ServiceGaps gaps({2, 1});
  gaps.queued(at(0), 0);
  gaps.queued(at(0), 1);
  gaps.started(at(30), 0);
  gaps.ended(at(50), 0);
  gaps.started(at(50), 1);
  gaps.ended(at(60), 1);
  gaps.advance(at(60));
  EXPECT_NEAR(gaps.worst(), 0, 1e-9);
}

}  // namespace
}  // namespace fairlead::sim
