#include "decide/profiling/profile_fit.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace fairlead {
namespace {

// The paper's widths: where trials are run.
constexpr int kWidths[] = {6, 12, 24, 50, 60, 80, 100};
constexpr double kTooFarOff = 3;  // standard deviations

double log_execution(const ProfileTrial& trial) {
  return std::log(trial.at.quota_percent / 100.0 * 1000 / trial.rate_per_s);
}

}  // namespace

ProfileFit::ProfileFit(double target_error, double expected_error, int most_trials, std::vector<int> widths)
    : target_error_(target_error),
      expected_error_(expected_error),
      most_trials_(most_trials),
      widths_(widths.empty() ? std::vector<int>(std::begin(kWidths), std::end(kWidths)) : std::move(widths)) {
  for (int fixed = 0; fixed < 20; ++fixed) {
    for (int saturation = 4; saturation <= 100; saturation += 4)
      hypotheses_.push_back({fixed / 20.0, saturation * 1.0});
  }
  weigh();
}

double ProfileFit::Hypothesis::stretch(double width) const {
  return std::log(fixed_part + (1 - fixed_part) * saturation / std::min(width, saturation));
}

void ProfileFit::add(const ProfileTrial& trial) {
  FL_CHECK(trial.rate_per_s > 0 && trial.error > 0, "a trial of {} requests/s with an error of {}", trial.rate_per_s,
           trial.error);
  trials_.push_back(trial);
  weigh();
}

double ProfileFit::noise() const {
  double precision = 0;
  for (const ProfileTrial& one : trials_) precision += 1 / (one.error * one.error);
  return precision > 0 ? 1 / precision : 1;
}

void ProfileFit::weigh() {
  double sum = 0, best = -1e300;
  std::vector<double> logs;
  for (Hypothesis& one : hypotheses_) {
    double mean = 0, squares = 0;
    for (const ProfileTrial& trial : trials_) {
      const double value = log_execution(trial) - one.stretch(trial.at.width_percent);
      mean += value / (trial.error * trial.error);
      squares += value * value / (trial.error * trial.error);
    }
    one.log_time = mean * noise();
    logs.push_back(-(squares - mean * mean * noise()) / 2);
    best = std::max(best, logs.back());
  }
  for (std::size_t i = 0; i < hypotheses_.size(); ++i) sum += hypotheses_[i].weight = std::exp(logs[i] - best);
  for (Hypothesis& one : hypotheses_) one.weight /= sum;
}

// Of the logarithm of the execution time at two widths, over hypotheses and noise.
ProfileFit::Moments ProfileFit::moments(double width_a, double width_b) const {
  Moments found;
  double mean_b = 0;
  for (const Hypothesis& one : hypotheses_) {
    found.mean_a += one.weight * (one.log_time + one.stretch(width_a));
    mean_b += one.weight * (one.log_time + one.stretch(width_b));
  }
  found.variance_a = found.variance_b = found.covariance = noise();
  for (const Hypothesis& one : hypotheses_) {
    const double a = one.log_time + one.stretch(width_a) - found.mean_a;
    const double b = one.log_time + one.stretch(width_b) - mean_b;
    found.variance_a += one.weight * a * a;
    found.variance_b += one.weight * b * b;
    found.covariance += one.weight * a * b;
  }
  return found;
}

RateEstimate ProfileFit::estimate(const ProfilePoint& at) const {
  if (trials_.empty()) return {};
  const Moments found = moments(at.width_percent, at.width_percent);
  return {at.quota_percent / 100.0 * 1000 / std::exp(found.mean_a), std::sqrt(found.variance_a)};
}

ThroughputModel ProfileFit::model() const {
  FL_CHECK(!trials_.empty(), "a model of no trials is asked for");
  ThroughputModel mean{.fixed_ms = 0, .work_ms = 0, .saturation_percent = 0};
  for (const Hypothesis& one : hypotheses_) {
    const double time = std::exp(one.log_time);
    mean.fixed_ms += one.weight * one.fixed_part * time;
    mean.work_ms += one.weight * (1 - one.fixed_part) * time * one.saturation;
    mean.saturation_percent += one.weight * one.saturation;
  }
  return mean;
}

double ProfileFit::worst_misfit() const {
  double worst = 0;
  for (const ProfileTrial& one : trials_) {
    const double expected = moments(one.at.width_percent, one.at.width_percent).mean_a;
    worst = std::max(worst, std::abs(log_execution(one) - expected) / one.error);
  }
  return worst;
}

NextTrial ProfileFit::next(const std::vector<ProfilePoint>& of_interest) const {
  FL_CHECK(!of_interest.empty(), "no rectangle is of interest");
  if (trials_.empty()) return {ProfilePoint{}, "nothing is known yet: the whole device first"};
  if (static_cast<int>(trials_.size()) >= most_trials_) {
    return {std::nullopt, fmt::format("{} trials were run, {} is the most", trials_.size(), most_trials_)};
  }
  const ProfilePoint* worst = &of_interest.front();
  for (const ProfilePoint& one : of_interest) {
    if (estimate(one).error > estimate(*worst).error) worst = &one;
  }
  const double error = 2 * estimate(*worst).error;
  const auto is_tried = [&](const ProfileTrial& one) { return one.at == *worst; };
  if (error <= target_error_) {
    if (std::none_of(trials_.begin(), trials_.end(), is_tried)) {
      return {*worst, fmt::format("{} x {} is known to {:.1f} %; it is tried once by itself", worst->width_percent,
                                  worst->quota_percent, 100 * error)};
    }
    if (worst_misfit() > kTooFarOff) {
      return {std::nullopt,
              fmt::format("a trial is off by {:.1f} of its errors: the model does not hold, measure the grid",
                          worst_misfit())};
    }
    return {std::nullopt, fmt::format("{} x {} is known to {:.1f} %, {:.1f} % is enough", worst->width_percent,
                                      worst->quota_percent, 100 * error, 100 * target_error_)};
  }
  ProfilePoint best;
  double most = -1;
  for (const int width : widths_) {
    const Moments found = moments(worst->width_percent, width);
    const double lowers = found.covariance * found.covariance / (found.variance_b + expected_error_ * expected_error_);
    if (lowers <= most) continue;
    best = {.width_percent = width, .quota_percent = 100};
    most = lowers;
  }
  return {best, fmt::format("{} x {} is known to {:.1f} %; a trial at {} % of the SMs tells most", worst->width_percent,
                            worst->quota_percent, 100 * error, best.width_percent)};
}

}  // namespace fairlead
