// An experiment: trials of one function, one after the other, until its throughput on the rectangle that it should have is known.
//
//   next_trial ──> starting ── first answer ──> warming ── enough answers ──> measuring ── known well enough ──> next_trial ...
//                     └──────────── an error, a deadline, more memory than was said: ended, and why ──> no profile
//
// Idea. A trial keeps one request running on one instance of the rectangle (closed loop). Answers of the first while do not count. Then times
// between answers are averaged until their mean is known to a part, and whole windows of the quota have passed. Which rectangle is next, and
// whether one is needed, says the fit (profiling/profile_fit.h); on the paper's grid all are measured.
//
// Example. ResNet at 100 % x 97 %: half a second to warm up, 140 answers in 2 s, 70 per second known to 1 %: the next is 6 % x 97 %.
//
// Pure: the caller has the clock, the instance and the function. Not thread-safe. Determinism: of the calls.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "decide/profiling/profile_fit.h"
#include "decide/scaling/sizes.h"
#include "model/function_profile.h"

namespace fairlead {

struct ExperimentSettings {
  FunctionTerms terms;  // objective 0: none is set, the rectangle with most throughput for its cost is of interest
  bool is_grid = false;
  bool has_widths = false;  // false: instances take all of the SMs
  int most_quota = 97;      // per cent of the time that can be given
  Bytes said_memory{0};     // of one instance, as its author says; 0: he does not
  double target_error = 0.05;
  int most_trials = 35;
  Duration start_deadline = std::chrono::seconds(60);  // to the first answer
  Duration warm_up = std::chrono::milliseconds(500);
  Duration least = std::chrono::seconds(2);     // of measuring: whole windows of a quota
  Duration most = std::chrono::seconds(10);     // unless fewer than three answers came
  Duration longest = std::chrono::minutes(30);  // of all trials together
};

// Sizes that a node can give: every 4 % of the SMs, or all of them, x every 5 % of the time up to `most_quota`, that included.
std::vector<InstanceSize> sizes_on_node(const ThroughputModel& model, bool has_widths, int most_quota);
// Of usable sizes, that with most throughput for what it costs. Empty: none is usable.
std::optional<InstanceSize> best_size_of(const std::vector<InstanceSize>& sizes, const FunctionTerms& terms);

class ProfileExperiment {
 public:
  enum class State { kIdle, kStarting, kWarming, kMeasuring, kEnded };

  explicit ProfileExperiment(ExperimentSettings settings);

  // The rectangle of the next trial, which starts now. Empty: it has ended. REQUIRES: kIdle, or kEnded.
  std::optional<ProfilePoint> next_trial(Instant now);

  // A request was answered, `latency` after it was sent. No effect where no trial goes on.
  void answered(Instant now, Duration latency);
  // What the instance has used: the most memory so far, and GPU time since it started.
  void used(Bytes memory, Duration gpu_time);
  // Ends it, without a profile. No effect where it has ended.
  void fail(std::string why);
  // The trial is over, kIdle again: or it has failed. Called after each event, and every so often.
  void look(Instant now);

  State state() const { return state_; }
  const std::string& doing() const { return doing_; }
  const std::string& failed() const { return failed_; }  // "": it did not
  const std::vector<MeasuredTrial>& trials() const { return trials_; }
  std::uint64_t calls() const { return calls_; }
  // How many requests a trial sends at most is not known; so many trials there may be.
  int most_trials() const;
  // But function, code, device and time. REQUIRES: ended, and not failed.
  FunctionProfile profile() const;

 private:
  NextTrial choose() const;
  void measure(Instant now);
  double rate() const;
  double error() const;  // of it

  const ExperimentSettings settings_;
  const std::vector<ProfilePoint> grid_;
  ProfileFit fit_;
  State state_ = State::kIdle;
  std::string doing_ = "nothing yet", failed_;
  std::vector<MeasuredTrial> trials_;
  std::uint64_t calls_ = 0;

  struct Trial {
    ProfilePoint at;
    std::string why;
    Instant last_answer{};          // while it measures
    std::vector<double> gaps;       // seconds between answers
    std::vector<double> latencies;  // ms
    Bytes memory{0};
    Duration gpu_time{0}, gpu_time_before{0};  // now, and when measuring began
  };
  Instant since_{};               // of the state
  std::optional<Instant> began_;  // the first trial
  Trial trial_;                   // that goes on
};

std::string_view name_of(ProfileExperiment::State state);

}  // namespace fairlead
