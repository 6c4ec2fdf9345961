// How long a function starts and runs on slices of each profile, learnt as LearntTime is: a program that takes 40 ms on a whole GPU takes 40
// on 7g.80gb and 200 on 1g.10gb, and one number for both would be wrong for each.
//
// Example: it ran for 200 ms on 1g.10gb and for 60 on 3g.40gb. While its only instance, on the 3g, runs since 50 ms, a second is not started for
// one more call: 10 + 60 ms are less than its start takes. By the mean of 130 ms it would have been.
//
// Not of whole GPUs: their numbers are the function's (CoreFunction::cold_start, the queue's tau), as on a node without slices.
// Bounded by the profiles that a node's slices have. Threads: the core's.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "base/units.h"

namespace fairlead {

// What takes so long, learnt: 0.9 old + 0.1 new.
// Example: starts of 10 s, then one of 20 s: 11 s are expected of the next.
class LearntTime {
 public:
  void learn(Duration took) {
    const Duration mean = known_.value_or(took);
    known_ = mean + (took - mean) / 10;
  }
  std::optional<Duration> known() const { return known_; }
  Duration or_nothing() const { return known_.value_or(Duration(0)); }

 private:
  std::optional<Duration> known_;
};

class SliceTimes {
 public:
  struct Times {
    LearntTime start;  // to ready
    LearntTime run;    // GPU time of an invocation
  };

  // `profile`: "" of a whole GPU, of which nothing is learnt here.
  void learn_start(const std::string& profile, Duration took) {
    if (!profile.empty()) times_[profile].start.learn(took);
  }
  void learn_run(const std::string& profile, Duration took) {
    if (!profile.empty()) times_[profile].run.learn(took);
  }
  std::optional<Duration> start_on(const std::string& profile) const { return on(profile).start.known(); }
  std::optional<Duration> run_on(const std::string& profile) const { return on(profile).run.known(); }
  const std::map<std::string, Times>& all() const { return times_; }

 private:
  Times on(const std::string& profile) const {
    const auto known = times_.find(profile);
    return known == times_.end() ? Times() : known->second;
  }
  std::map<std::string, Times> times_;
};

}  // namespace fairlead
