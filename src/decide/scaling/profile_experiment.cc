#include "decide/scaling/profile_experiment.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace fairlead {
namespace {

constexpr double kExpectedError = 0.02;  // of a trial that was not run yet
constexpr double kLeastError = 0.01;     // a trial is not believed more than that
constexpr double kKnown = 0.02;          // a trial that is known so well is long enough
constexpr std::size_t kWarmAnswers = 2, kLeastAnswers = 3;
constexpr std::size_t kMostKept = 200'000;  // answers of one trial

std::vector<ProfilePoint> paper_grid(const ExperimentSettings& settings) {
  std::vector<ProfilePoint> grid;
  if (!settings.is_grid) return grid;
  for (const int width : {100, 80, 60, 50, 24, 12, 6}) {
    if (!settings.has_widths && width < 100) continue;
    for (const int quota : {100, 80, 60, 40, 20}) {
      const ProfilePoint point{width, std::min(quota, settings.most_quota)};
      if (grid.empty() || grid.back() != point) grid.push_back(point);
    }
  }
  return grid;
}

double percentile(std::vector<double>& values, double part) {
  if (values.empty()) return 0;
  const auto at = values.begin() + static_cast<std::ptrdiff_t>(part * static_cast<double>(values.size() - 1));
  std::nth_element(values.begin(), at, values.end());
  return *at;
}

}  // namespace

std::string_view name_of(ProfileExperiment::State state) {
  switch (state) {
    case ProfileExperiment::State::kIdle: return "between trials";
    case ProfileExperiment::State::kStarting: return "starts";
    case ProfileExperiment::State::kWarming: return "warms up";
    case ProfileExperiment::State::kMeasuring: return "measures";
    case ProfileExperiment::State::kEnded: return "ended";
  }
  return "unknown";
}

std::vector<InstanceSize> sizes_on_node(const ThroughputModel& model, bool has_widths, int most_quota) {
  std::vector<InstanceSize> sizes;
  for (int width = has_widths ? 4 : 100; width <= 100; width += 4) {
    const auto add = [&](int quota) {
      sizes.push_back({width, quota, model.rate_per_s(width, quota), model.execution(width)});
    };
    for (int quota = 5; quota < most_quota; quota += 5) add(quota);
    add(most_quota);
  }
  return sizes;
}

std::optional<InstanceSize> best_size_of(const std::vector<InstanceSize>& sizes, const FunctionTerms& terms) {
  std::optional<InstanceSize> best;
  const auto worth = [&](const InstanceSize& size) { return size.rate_per_s / terms.cost(size); };
  for (const InstanceSize& size : sizes) {
    if (!why_unusable(size, terms).empty()) continue;
    const bool is_tie = best && std::abs(worth(size) - worth(*best)) <= 1e-9 * worth(*best);
    if (!best || (is_tie ? size.quota_percent > best->quota_percent : worth(size) > worth(*best))) best = size;
  }
  return best;
}

ProfileExperiment::ProfileExperiment(ExperimentSettings settings)
    : settings_(settings),
      grid_(paper_grid(settings)),
      fit_(settings.target_error, kExpectedError, settings.most_trials,
           settings.has_widths ? std::vector<int>() : std::vector<int>{100}) {}

int ProfileExperiment::most_trials() const {
  return settings_.is_grid ? static_cast<int>(grid_.size()) : settings_.most_trials;
}

NextTrial ProfileExperiment::choose() const {
  if (settings_.is_grid) {
    if (trials_.size() < grid_.size()) {
      return {grid_[trials_.size()], fmt::format("{} of the grid's {}", trials_.size() + 1, grid_.size())};
    }
    return {std::nullopt, fmt::format("all {} of the grid are measured", grid_.size())};
  }
  ProfilePoint wanted{100, settings_.most_quota};
  if (fit_.trials() > 0) {
    const auto sizes = sizes_on_node(fit_.model(), settings_.has_widths, settings_.most_quota);
    if (const auto best = best_size_of(sizes, settings_.terms)) wanted = {best->width_percent, best->quota_percent};
  }
  NextTrial next = fit_.next({wanted});
  if (next.at) next.at->quota_percent = std::min(next.at->quota_percent, settings_.most_quota);
  return next;
}

std::optional<ProfilePoint> ProfileExperiment::next_trial(Instant now) {
  if (state_ == State::kEnded) return std::nullopt;
  FL_CHECK(state_ == State::kIdle, "a trial goes on: {}", name_of(state_));
  const NextTrial next = choose();
  doing_ = next.why;
  if (!next.at) {
    state_ = State::kEnded;
    return std::nullopt;
  }
  trial_ = {.at = *next.at, .why = next.why};
  doing_ = fmt::format("{} % of the SMs x {} % of the time: {}", trial_.at.width_percent, trial_.at.quota_percent,
                       trial_.why);
  state_ = State::kStarting;
  since_ = now;
  if (!began_) began_ = now;
  return trial_.at;
}

void ProfileExperiment::answered(Instant now, Duration latency) {
  if (state_ == State::kIdle || state_ == State::kEnded) return;
  ++calls_;
  if (state_ == State::kStarting) {
    state_ = State::kWarming;
    since_ = now;
    return;
  }
  if (state_ == State::kMeasuring && trial_.gaps.size() < kMostKept)
    trial_.gaps.push_back(to_seconds(now - trial_.last_answer));
  if (trial_.latencies.size() < kMostKept) trial_.latencies.push_back(to_ms(latency));
  trial_.last_answer = now;
  if (state_ != State::kWarming || trial_.latencies.size() < kWarmAnswers || now - since_ < settings_.warm_up) return;
  state_ = State::kMeasuring;
  since_ = now;
  trial_.latencies.clear();
  trial_.gpu_time_before = trial_.gpu_time;
}

void ProfileExperiment::used(Bytes memory, Duration gpu_time) {
  trial_.memory = std::max(trial_.memory, memory);
  trial_.gpu_time = std::max(trial_.gpu_time, gpu_time);
  if (settings_.said_memory <= Bytes(0) || trial_.memory <= settings_.said_memory) return;
  fail(fmt::format("an instance uses {:.0f} MiB of device memory, and gpu:memory-mib is {:.0f}: raise the tag",
                   trial_.memory.mib(), settings_.said_memory.mib()));
}

void ProfileExperiment::fail(std::string why) {
  if (state_ == State::kEnded) return;
  state_ = State::kEnded;
  failed_ = std::move(why);
  doing_ = "ended: " + failed_;
}

double ProfileExperiment::rate() const {
  double sum = 0;
  for (const double gap : trial_.gaps) sum += gap;
  return static_cast<double>(trial_.gaps.size()) / std::max(sum, 1e-9);
}

// Of the mean of the gaps. Answers that wait for their quota come in groups, so that the gaps are not independent: means of ten groups are.
double ProfileExperiment::error() const {
  constexpr std::size_t kGroups = 10;
  const std::size_t groups = std::min(kGroups, trial_.gaps.size());
  if (groups < kLeastAnswers) return 1;
  const std::size_t each = trial_.gaps.size() / groups;
  double sum = 0, squares = 0;
  for (std::size_t i = 0; i < groups; ++i) {
    double mean = 0;
    for (std::size_t k = 0; k < each; ++k) mean += trial_.gaps[i * each + k] / static_cast<double>(each);
    sum += mean;
    squares += mean * mean;
  }
  const double count = static_cast<double>(groups), mean = sum / count;
  const double variance = std::max(0.0, squares / count - mean * mean) * count / (count - 1);
  return std::max(kLeastError, std::sqrt(variance / count) / mean);
}

void ProfileExperiment::look(Instant now) {
  if (state_ != State::kEnded && began_ && now - *began_ >= settings_.longest) {
    return fail(
        fmt::format("it has lasted {:.0f} minutes, the most of an experiment, and {} of at most {} trials are "
                    "measured: send a sample that is answered sooner, or measure without --grid",
                    to_seconds(now - *began_) / 60, trials_.size(), most_trials()));
  }
  if (state_ == State::kStarting && now - since_ >= settings_.start_deadline) {
    return fail(fmt::format("no answer within {:.0f} s of the start of a trial at {} % x {} %",
                            to_seconds(settings_.start_deadline), trial_.at.width_percent, trial_.at.quota_percent));
  }
  if (state_ != State::kMeasuring) return;
  const Duration passed = now - since_;
  if (trial_.gaps.size() < kLeastAnswers || passed < settings_.least) return;
  if (error() > kKnown && passed < settings_.most) return;
  measure(now);
}

void ProfileExperiment::measure(Instant now) {
  const double seconds = std::max(1e-9, to_seconds(now - since_));
  MeasuredTrial trial{
      .width_percent = trial_.at.width_percent,
      .quota_percent = trial_.at.quota_percent,
      .rate_per_s = rate(),
      .error = error(),
      .p50_ms = percentile(trial_.latencies, 0.5),
      .p99_ms = percentile(trial_.latencies, 0.99),
      .utilisation = std::clamp(to_seconds(trial_.gpu_time - trial_.gpu_time_before) / seconds, 0.0, 1.0),
      .memory = trial_.memory,
      .requests = trial_.gaps.size()};
  trial.why = trial_.why;
  fit_.add({.at = trial_.at, .rate_per_s = trial.rate_per_s, .error = trial.error});
  trials_.push_back(std::move(trial));
  state_ = State::kIdle;
}

FunctionProfile ProfileExperiment::profile() const {
  FL_CHECK(state_ == State::kEnded && failed_.empty() && !trials_.empty(), "there is no profile: {}", doing_);
  const ThroughputModel model = fit_.model();
  FunctionProfile profile{.trials = trials_,
                          .fixed_ms = model.fixed_ms,
                          .work_ms = model.work_ms,
                          .saturation_percent = std::clamp(model.saturation_percent, 1.0, 100.0)};
  const auto best = best_size_of(sizes_on_node(model, settings_.has_widths, settings_.most_quota), settings_.terms);
  const ProfilePoint at = best ? ProfilePoint{best->width_percent, best->quota_percent} : trial_.at;
  profile.error = 2 * fit_.estimate(at).error;
  profile.ended = doing_;
  return profile;
}

}  // namespace fairlead
