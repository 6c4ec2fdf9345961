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
// Once enough is known, the best rectangle is tried beside a copy of itself, which has a closed loop of its own. A rectangle that is wider than half
// of the device is tried at the width of half of it, alone first where that was not measured. Whatever goes wrong from then on leaves the comparison
// out, with its reason, and the profile stays as it is.
//
// Pure: the caller has the clock, the instance and the function. Not thread-safe. Determinism: of the calls.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "decide/profiling/profile_fit.h"
#include "decide/scaling/neighbour_watch.h"
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
  std::string why_alone;                        // why nothing is tried beside a copy; "": the best rectangle is
};

// The widest of which two are on a device at the same time, in per cent of the SMs, as sizes_on_node() has them.
inline constexpr int kWidestOfTwo = 48;

// Sizes that a node can give: every 4 % of the SMs, or all of them, x every 5 % of the time up to `most_quota`, that included.
// `slowdown`, at least 1: of an instance beside a neighbour. Sizes with less than all of the SMs may have one at any moment, so their throughput
// and execution are those beside it. Who has all of the SMs takes turns with others, and is alone while it runs.
std::vector<InstanceSize> sizes_on_node(const ThroughputModel& model, bool has_widths, int most_quota,
                                        double slowdown = 1);
// Of usable sizes, that with most throughput for what it costs. Empty: none is usable.
std::optional<InstanceSize> best_size_of(const std::vector<InstanceSize>& sizes, const FunctionTerms& terms);

class ProfileExperiment {
 public:
  enum class State { kIdle, kStarting, kWarming, kMeasuring, kEnded };

  explicit ProfileExperiment(ExperimentSettings settings);

  // The rectangle of the next trial, which starts now. Empty: it has ended. REQUIRES: kIdle, or kEnded.
  std::optional<ProfilePoint> next_trial(Instant now);
  // The trial that goes on has a copy beside it, of the same rectangle on the same device.
  bool has_neighbour() const { return trial_.is_beside && state_ != State::kIdle && state_ != State::kEnded; }

  // A request was answered, `latency` after it was sent. No effect where no trial goes on.
  void answered(Instant now, Duration latency);
  // The copy beside it was. No effect where there is none.
  void neighbour_answered(Instant now);
  // What the instance has used: the most memory so far, and GPU time since it started.
  void used(Bytes memory, Duration gpu_time);
  // Ends it, without a profile. No effect where it has ended.
  void fail(std::string why);
  // The trial that goes on came to nothing: an error, no room. Ends it as fail() does, or leaves the comparison with a copy out and is kIdle again.
  void give_trial_up(std::string why);
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
  struct Trial {
    ProfilePoint at;
    std::string why;
    bool is_beside = false;
    Instant last_answer{};          // while it measures
    std::vector<double> gaps;       // seconds between answers
    std::vector<double> latencies;  // ms
    Bytes memory{0};
    Duration gpu_time{0}, gpu_time_before{0};  // now, and when measuring began
    std::optional<Instant> known{};            // beside a copy: well enough since then
  };
  // The comparison with a copy beside it.
  struct Comparison {
    std::optional<ProfilePoint> at;
    NeighbourWatch neighbour;
    std::optional<TrialBeside> found;
    std::string why_not;
  };

  NextTrial choose() const;
  NextTrial choose_comparison();                                // what is left to try once is_known()
  const MeasuredTrial* alone_at(const ProfilePoint& at) const;  // the last one; null: there is none
  ProfilePoint best() const;
  bool is_known() const { return !ended_.empty(); }  // all but the comparison
  bool is_neighbour_ready() const;
  bool was_neighbour_there(Instant now);
  void leave_out(std::string why);
  MeasuredTrial measured(Instant now);
  void measure(Instant now);
  void compare(MeasuredTrial beside);
  double rate() const;
  double error() const;  // of it

  const ExperimentSettings settings_;
  const std::vector<ProfilePoint> grid_;
  ProfileFit fit_;
  State state_ = State::kIdle;
  std::string doing_ = "nothing yet", failed_, ended_;
  std::vector<MeasuredTrial> trials_;
  std::uint64_t calls_ = 0;

  Instant since_{};               // of the state
  std::optional<Instant> began_;  // the first trial
  Trial trial_;                   // that goes on
  Comparison comparison_;
};

std::string_view name_of(ProfileExperiment::State state);

}  // namespace fairlead
