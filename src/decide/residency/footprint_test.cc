#include "decide/residency/footprint.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <string>

#include "base/rng.h"

namespace fairlead {
namespace {

TEST(Footprint, IsTheMostOfTheLastSixteen) {
  Footprint footprint(gib(8));
  footprint.raise(gib(9));
  EXPECT_EQ(footprint.estimate(), gib(9)) << "a run that is going on";
  for (int i = 0; i < 15; ++i) footprint.sample(gib(1));
  EXPECT_EQ(footprint.estimate(), gib(8)) << "what the author said counts as one";
  footprint.sample(gib(2));
  EXPECT_EQ(footprint.estimate(), gib(2));
}

TEST(Footprint, UnknownUntilTheFirstReport) {
  Footprint footprint(Bytes(0));
  EXPECT_EQ(footprint.estimate(), Bytes(0));
  footprint.raise(gib(1));
  footprint.sample(gib(2));
  EXPECT_EQ(footprint.estimate(), gib(2));
}

// ---- the choice, against a moving average and a maximum that decays: how often is the estimate too low, and how far is
// it off?

struct Error {
  double too_low = 0;  // share of calls that need more than was expected
  double missing = 0;  // need beyond what was expected, as a share of all need
  double excess = 0;   // expected beyond need, as a share of all need
};

using Need = std::function<Bytes(Rng&, int)>;
using Estimator = std::function<Bytes(Bytes sample)>;  // the next estimate

Error error_of(Bytes expected, const Estimator& next, const Need& need) {
  constexpr int kCalls = 20'000;
  Rng rng(1);
  Error error;
  double needed = 0;
  for (int i = 0; i < kCalls; ++i) {
    const Bytes sample = need(rng, i);
    if (sample > expected) error.too_low += 1.0 / kCalls;
    (sample > expected ? error.missing : error.excess) += std::abs((sample - expected).mib());
    needed += sample.mib();
    expected = next(sample);
  }
  error.missing /= needed;
  error.excess /= needed;
  return error;
}

Error error_of_window(const Need& need) {
  Footprint footprint(gib(1));
  return error_of(
      gib(1), [&](Bytes sample) { return footprint.sample(sample), footprint.estimate(); }, need);
}
Error error_of_average(const Need& need) {
  Bytes mean = gib(1);
  return error_of(
      gib(1), [&](Bytes sample) { return mean += Bytes((sample - mean).count() / 10); }, need);
}
Error error_of_decaying_maximum(const Need& need) {
  Bytes most = gib(1);
  return error_of(
      gib(1), [&](Bytes sample) { return most = std::max(sample, most - Bytes((most - sample).count() / 8)); }, need);
}

struct Workload {
  std::string name;
  Need need;
};

TEST(Footprint, WindowIsTooLowLeastOftenAndByLeast) {
  const Workload workloads[] = {
      {"one_in_ten_is_large", [](Rng& rng, int) { return rng.below(10) == 0 ? gib(4) : gib(1); }},
      {"by_input_size", [](Rng& rng, int) { return mib(512 + static_cast<std::int64_t>(rng.below(1024))); }},
      {"steady", [](Rng&, int) { return gib(1); }},
      {"changes_every_500", [](Rng&, int i) { return i / 500 % 2 == 0 ? gib(1) : gib(3); }},
  };
  for (const auto& [name, need] : workloads) {
    const Error window = error_of_window(need), average = error_of_average(need);
    const Error decaying = error_of_decaying_maximum(need);
    for (const auto& [estimator, error] : {std::pair("window", window), {"average", average}, {"decaying", decaying}}) {
      const std::string key = name + "_" + estimator;
      RecordProperty(key + "_too_low_permille", static_cast<int>(error.too_low * 1000));
      RecordProperty(key + "_missing_permille", static_cast<int>(error.missing * 1000));
      RecordProperty(key + "_excess_permille", static_cast<int>(error.excess * 1000));
    }
    EXPECT_LE(window.too_low, std::min(average.too_low, decaying.too_low)) << name;
    EXPECT_LE(window.missing, std::min(average.missing, decaying.missing) + 1e-9) << name;
    EXPECT_LE(window.too_low, 0.07) << name;
  }
}

}  // namespace
}  // namespace fairlead
