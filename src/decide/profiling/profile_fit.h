// A profile from few trials: what is known of throughput (width, quota), how well, where to measure next, and when to stop.
//
// Idea. The model (throughput_model.h) has three numbers: execution time at saturation, the part of it that SMs do not shorten, and where it
// saturates. The last two are a grid of hypotheses; under each, the first is a mean of logarithms, since trials err by a factor. A hypothesis
// weighs what the trials make it worth (Bayes, all alike before), so an estimate is a mean over hypotheses, and its error has two parts:
// noise, and hypotheses that disagree. The next trial is the width that is expected to lower the error most at the rectangles of
// interest. It stops where the error there is small enough; the paper's grid would go on to its 35th.
//
// Throughput is proportional to the quota (the paper measured so), so trials are run with the whole of the time, and the last one at the
// chosen rectangle itself: where it is off by more than three of its errors, the model does not hold, and that is said.
//
// Example. ResNet, trials that err by 5 %: 100 %, 6 %, 12 % and 24 % of the SMs, then again where it matters: some six trials.
//
// Not thread-safe. Determinism: of the trials and their order.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "decide/profiling/throughput_model.h"

namespace fairlead {

struct ProfilePoint {
  int width_percent = 100;  // of the SMs, 1-100
  int quota_percent = 100;  // of the time, 1-100
  bool operator==(const ProfilePoint&) const = default;
};

struct ProfileTrial {
  ProfilePoint at;
  double rate_per_s = 0;  // measured, above 0
  double error = 0.05;    // of it, one standard deviation, as a part; above 0
};

struct RateEstimate {
  double rate_per_s = 0;
  double error = 1;  // one standard deviation, as a part
};

struct NextTrial {
  std::optional<ProfilePoint> at;  // none: it is enough
  std::string why;
};

class ProfileFit {
 public:
  // target_error: two standard deviations of what is of interest, as a part. expected_error: of a trial that was not run yet.
  // widths: at which it measures, 1-100; empty: the paper's.
  ProfileFit(double target_error, double expected_error, int most_trials, std::vector<int> widths = {});

  void add(const ProfileTrial& trial);
  RateEstimate estimate(const ProfilePoint& at) const;
  // The mean of each number over the hypotheses. REQUIRES: a trial.
  ThroughputModel model() const;
  // Where to measure next so that the rectangles of interest are known. REQUIRES: `of_interest` is not empty.
  NextTrial next(const std::vector<ProfilePoint>& of_interest) const;
  // By how many of its errors the worst trial is off what the model says. Above 3: the model does not hold.
  double worst_misfit() const;
  std::size_t trials() const { return trials_.size(); }

 private:
  struct Hypothesis {
    double fixed_part;  // of the execution time at saturation
    double saturation;
    double log_time = 0;  // at saturation, in ms: mean under this hypothesis
    double weight = 0;
    double stretch(double width) const;  // logarithm of execution over that at saturation
  };
  struct Moments {
    double mean_a = 0, variance_a = 0, variance_b = 0, covariance = 0;
  };
  void weigh();
  double noise() const;  // variance of log_time under any hypothesis
  Moments moments(double width_a, double width_b) const;

  const double target_error_, expected_error_;
  const int most_trials_;
  const std::vector<int> widths_;
  std::vector<ProfileTrial> trials_;
  std::vector<Hypothesis> hypotheses_;
};

}  // namespace fairlead
