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
// Of a neighbour, at most this part of the time in which a trial measures, or as many of the longest gaps between the trial's own answers.
constexpr int kSilentPart = 5, kSilentGaps = 3;

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

// Within what a kept profile may say. What a function answered may be in it, in UTF-8.
std::string shortened(std::string text) {
  constexpr std::size_t kMost = 500;
  if (text.size() <= kMost) return text;
  std::size_t end = kMost;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) --end;
  return text.substr(0, end) + "...";
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

std::vector<InstanceSize> sizes_on_node(const ThroughputModel& model, bool has_widths, int most_quota,
                                        double slowdown) {
  FL_CHECK(slowdown >= 1, "a slowdown of {}", slowdown);
  std::vector<InstanceSize> sizes;
  for (int width = has_widths ? 4 : 100; width <= 100; width += 4) {
    const double slower = width < 100 ? slowdown : 1;
    const auto add = [&](int quota) {
      sizes.push_back({width, quota, model.rate_per_s(width, quota) / slower,
                       from_seconds(model.execution_ms(width) * slower / 1000)});
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
           settings.has_widths ? std::vector<int>() : std::vector<int>{100}) {
  comparison_.why_not = settings_.why_alone;
  if (comparison_.why_not.empty() && !settings_.has_widths) comparison_.why_not = "an instance takes all of the SMs";
}

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

ProfilePoint ProfileExperiment::best() const {
  const auto sizes = sizes_on_node(fit_.model(), settings_.has_widths, settings_.most_quota);
  if (const auto best = best_size_of(sizes, settings_.terms)) return {best->width_percent, best->quota_percent};
  return {trials_.back().width_percent, trials_.back().quota_percent};
}

const MeasuredTrial* ProfileExperiment::alone_at(const ProfilePoint& at) const {
  const auto is_there = [&](const MeasuredTrial& one) {
    return one.width_percent == at.width_percent && one.quota_percent == at.quota_percent;
  };
  const auto found = std::find_if(trials_.rbegin(), trials_.rend(), is_there);
  return found == trials_.rend() ? nullptr : &*found;
}

NextTrial ProfileExperiment::choose_comparison() {
  if (comparison_.found) {
    return {std::nullopt, fmt::format("beside a copy of itself it is {:.2f} times as slow +- {:.1f} %",
                                      comparison_.found->slowdown, 100 * comparison_.found->error)};
  }
  if (!comparison_.why_not.empty()) return {std::nullopt, "not tried beside a copy of itself: " + comparison_.why_not};
  if (!comparison_.at) {
    comparison_.at = best();
    comparison_.at->width_percent = std::min(comparison_.at->width_percent, kWidestOfTwo);
  }
  if (alone_at(*comparison_.at) == nullptr)
    return {comparison_.at, "alone first, to compare with the same beside a copy"};
  return {comparison_.at, "beside a copy of itself"};
}

std::optional<ProfilePoint> ProfileExperiment::next_trial(Instant now) {
  if (state_ == State::kEnded) return std::nullopt;
  FL_CHECK(state_ == State::kIdle, "a trial goes on: {}", name_of(state_));
  NextTrial next;
  if (!is_known()) {
    next = choose();
    if (!next.at) ended_ = next.why;
  }
  if (is_known()) next = choose_comparison();
  if (!next.at) {
    doing_ = ended_ + "; " + next.why;
    state_ = State::kEnded;
    return std::nullopt;
  }
  trial_ = {.at = *next.at, .why = next.why, .is_beside = is_known() && alone_at(*next.at) != nullptr};
  comparison_.neighbour = {};
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
  if (!is_neighbour_ready()) return;
  state_ = State::kMeasuring;
  since_ = now;
  comparison_.neighbour.begin(now);
  trial_.latencies.clear();
  trial_.gpu_time_before = trial_.gpu_time;
}

void ProfileExperiment::neighbour_answered(Instant now) {
  if (!has_neighbour()) return;
  ++calls_;
  comparison_.neighbour.answered(now);
}

bool ProfileExperiment::is_neighbour_ready() const {
  return !trial_.is_beside || comparison_.neighbour.answers() >= kWarmAnswers;
}

// A neighbour that hangs answers no more: so what was measured ends with an answer of the neighbour.
bool ProfileExperiment::was_neighbour_there(Instant now) {
  if (!trial_.known) trial_.known = now;
  const Duration own = from_seconds(*std::max_element(trial_.gaps.begin(), trial_.gaps.end()));
  const Duration silence = comparison_.neighbour.silence(now);
  if (silence > std::max((now - since_) / kSilentPart, kSilentGaps * own)) {
    leave_out(
        fmt::format("the copy beside it did not answer for {:.2f} s, and the trial's own answers were {:.2f} s "
                    "apart at most",
                    to_seconds(silence), to_seconds(own)));
    return false;
  }
  return comparison_.neighbour.last() >= *trial_.known;
}

void ProfileExperiment::used(Bytes memory, Duration gpu_time) {
  trial_.memory = std::max(trial_.memory, memory);
  trial_.gpu_time = std::max(trial_.gpu_time, gpu_time);
  if (settings_.said_memory <= Bytes(0) || trial_.memory <= settings_.said_memory) return;
  give_trial_up(fmt::format("an instance uses {:.0f} MiB of device memory, and gpu:memory-mib is {:.0f}: raise the tag",
                            trial_.memory.mib(), settings_.said_memory.mib()));
}

void ProfileExperiment::fail(std::string why) {
  if (state_ == State::kEnded) return;
  state_ = State::kEnded;
  failed_ = std::move(why);
  doing_ = "ended: " + failed_;
}

void ProfileExperiment::give_trial_up(std::string why) {
  is_known() ? leave_out(std::move(why)) : fail(std::move(why));
}

void ProfileExperiment::leave_out(std::string why) {
  if (state_ == State::kEnded) return;
  state_ = State::kIdle;
  if (!comparison_.found) comparison_.why_not = shortened(std::move(why));
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
    return give_trial_up(
        fmt::format("it has lasted {:.0f} minutes, the most of an experiment, and {} of at most {} trials are "
                    "measured: send a sample that is answered sooner, or measure without --grid",
                    to_seconds(now - *began_) / 60, trials_.size(), most_trials()));
  }
  if (state_ == State::kStarting && now - since_ >= settings_.start_deadline) {
    return give_trial_up(fmt::format("no answer within {:.0f} s of the start of a trial at {} % x {} %",
                                     to_seconds(settings_.start_deadline), trial_.at.width_percent,
                                     trial_.at.quota_percent));
  }
  if (state_ == State::kWarming && !is_neighbour_ready() && now - since_ >= settings_.start_deadline) {
    return leave_out(
        fmt::format("the copy beside it did not answer within {:.0f} s", to_seconds(settings_.start_deadline)));
  }
  if (state_ != State::kMeasuring) return;
  const Duration passed = now - since_;
  if (trial_.gaps.size() < kLeastAnswers || passed < settings_.least) return;
  if (error() > kKnown && passed < settings_.most) return;
  if (trial_.is_beside && !was_neighbour_there(now)) return;
  measure(now);
}

MeasuredTrial ProfileExperiment::measured(Instant now) {
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
  return trial;
}

void ProfileExperiment::compare(MeasuredTrial beside) {
  const MeasuredTrial& alone = *alone_at(trial_.at);
  const double slowdown = std::clamp(alone.rate_per_s / beside.rate_per_s, kLeastSlowdown, kMostSlowdown);
  const double error = std::hypot(alone.error, beside.error);
  comparison_.found = TrialBeside{.trial = std::move(beside), .slowdown = slowdown, .error = error};
}

void ProfileExperiment::measure(Instant now) {
  MeasuredTrial trial = measured(now);
  state_ = State::kIdle;
  if (trial_.is_beside) return compare(std::move(trial));
  fit_.add({.at = trial_.at, .rate_per_s = trial.rate_per_s, .error = trial.error});
  trials_.push_back(std::move(trial));
}

FunctionProfile ProfileExperiment::profile() const {
  FL_CHECK(state_ == State::kEnded && failed_.empty() && !trials_.empty(), "there is no profile: {}", doing_);
  const ThroughputModel model = fit_.model();
  FunctionProfile profile{.trials = trials_,
                          .fixed_ms = model.fixed_ms,
                          .work_ms = model.work_ms,
                          .saturation_percent = std::clamp(model.saturation_percent, 1.0, 100.0)};
  profile.error = 2 * fit_.estimate(best()).error;
  profile.ended = ended_;
  profile.beside = comparison_.found;
  profile.alone = comparison_.found ? "" : comparison_.why_not;
  return profile;
}

}  // namespace fairlead
