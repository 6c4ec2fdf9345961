// Predictors of load on steps, ramps, silence and rare calls.
#include "decide/scaling/load_predictor.h"

#include <gtest/gtest.h>

#include <functional>

namespace fairlead {
namespace {

using namespace std::chrono_literals;

std::unique_ptr<LoadPredictor> made(std::string_view name) {
  return std::move(*make_load_predictor(name));
}

// Every 100 ms until `end`, with rate(seconds) requests per second.
Instant feed(LoadPredictor& predictor, Instant from, Duration length, const std::function<double(double)>& rate) {
  double owed = 0;
  Instant now = from;
  for (; now < from + length; now += 100ms) {
    owed += rate(to_seconds(now.time_since_epoch())) / 10;
    const auto arrived = static_cast<std::uint64_t>(owed);
    owed -= static_cast<double>(arrived);
    predictor.observe(now, arrived);
  }
  return now;
}

TEST(LoadPredictor, AllSayNothingBeforeAnythingCame) {
  for (const std::string_view name : load_predictors()) EXPECT_EQ(made(name)->rate(Instant(5s), 1s), 0) << name;
}

TEST(LoadPredictor, ASteadyRateIsFound) {
  for (const char* name : {"last-window", "ewma", "holt"}) {
    const auto predictor = made(name);
    const Instant now = feed(*predictor, Instant(), 30s, [](double) { return 100; });
    EXPECT_NEAR(predictor->rate(now, 1s), 100, 5) << name;
  }
}

TEST(LoadPredictor, OnARampHoltIsAheadOfTheAverage) {
  const auto ramp = [](double t) { return t < 10 ? 100 : 100 + 20 * (t - 10); };
  const auto holt = made("holt"), ewma = made("ewma");
  feed(*ewma, Instant(), 20s, ramp);
  const Instant now = feed(*holt, Instant(), 20s, ramp);
  EXPECT_NEAR(holt->rate(now, 1s), 320, 15);
  EXPECT_LT(ewma->rate(now, 1s), 295);
}

TEST(LoadPredictor, FallsWhenNothingComes) {
  for (const char* name : {"last-window", "ewma", "holt"}) {
    const auto predictor = made(name);
    const Instant then = feed(*predictor, Instant(), 10s, [](double) { return 100; });
    const Instant now = feed(*predictor, then, 10s, [](double) { return 0; });
    EXPECT_LT(predictor->rate(now, 1s), 1) << name;
    EXPECT_GE(predictor->rate(now, 1s), 0) << name;
  }
}

TEST(LoadPredictor, TheLastWindowIsAWholeSecond) {
  const auto predictor = made("last-window");
  predictor->observe(Instant(), 0);
  predictor->observe(Instant(500ms), 50);
  EXPECT_EQ(predictor->rate(Instant(500ms), 1s), 0);
  predictor->observe(Instant(1s), 10);
  EXPECT_EQ(predictor->rate(Instant(1s), 1s), 60);
}

// Called every 5 minutes: silence of one minute says that nothing is near, of 4.6 minutes that a call is.
TEST(LoadPredictor, TheHistogramKnowsWhenARareCallIsDue) {
  const auto predictor = made("histogram");
  Instant now;
  for (int call = 0; call < 20; ++call) predictor->observe(now = Instant(call * 300s), 1);
  EXPECT_EQ(predictor->rate(now + 60s, 10s), 0);
  EXPECT_GT(predictor->rate(now + 280s, 60s), 0.001);
  EXPECT_EQ(predictor->rate(now + 2000s, 10s), 0);  // never silent for as long
}

TEST(LoadPredictor, WhatIsNotKnownIsNamed) {
  EXPECT_EQ(make_load_predictor("oracle").error().message,
            "load predictor is \"oracle\", it must be one of last-window, ewma, holt, histogram");
}

}  // namespace
}  // namespace fairlead
