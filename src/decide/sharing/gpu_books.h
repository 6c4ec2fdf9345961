// What each instance used of its GPU: as its processes report it, as it was charged, and as the device says. A report is a
// word in memory that the program can write. The device's samples cannot be written, and are coarse; so reports are what is
// charged, and the device is what they are held against.
//
//   charged  ──┐
//   open now ──┼── less than the device says by more than an honest program ever is?  the rest is missing, and charged
//   device   ──┘
//
// Example: two calls of 500 ms on the device each, 50 ms charged for each (a tenth of the time held, for a report of 1 us).
// Once the device's samples say 1000 ms, 900 ms are missing.
//
// A function that was found out is a suspect until it is removed. Its word is not asked for again: it is charged the time it
// holds, and it holds its slot after an answer until the device has been seen without its work (may_still_work).
//
// What an instance does until it is ready is nobody's charge. Work between two invocations is owed, and charged with the next one. A report
// covers work that is under way only when it has ended, so that such work, where no invocation is open, is not missing while the instance
// says that it is busy. It is held against the report when the instance is seen idle, when its next invocation is charged, or when the
// instance has gone: by then all must have been reported. Who goes in the middle of such work owes what the device says, and is no suspect.
//
// Example: a program answers, is seen idle for a moment, and has the device compute for 3 s. Nothing of that is reported before its end,
// and nothing is missing: 3 s are owed, once. Where the next call comes after 2 s of them, that call is charged 1 s, and 2 s are owed.
//
// Time: every entry point takes `now`. Threads: not thread-safe. Determinism: ordered containers.
#pragma once

#include <map>
#include <optional>
#include <set>

#include "base/ids.h"
#include "base/units.h"

namespace fairlead {

class GpuBooks {
 public:
  // An honest report covers all of an instance's work, while what the device says is rounded to whole percents of each
  // sample: half a percent of the time observed, and what one sample covers beyond a start or an end.
  static constexpr Duration kSlack = std::chrono::milliseconds(200);
  static constexpr double kObservedMargin = 0.01;  // of the time in which there were samples
  static constexpr double kDeviceMargin = 0.02;    // of what the device says
  // Once a function was found out, the next correction does not wait for as much.
  static constexpr Duration kSuspectSlack = std::chrono::milliseconds(20);

  struct Debt {
    FlowId flow;
    Duration owed{0};
  };

  // The instance is ready for its first invocation; `reported` by its processes since they started. One that is known: no effect.
  void opened(Instant now, InstanceId instance, FlowId flow, Duration reported);
  // An invocation begins. Returns what was reported since its last charge, outside of any invocation.
  Duration delivered(Instant now, InstanceId instance, FlowId flow, Duration reported);
  // An invocation is answered, or its work ends: what was reported of it. Empty: nothing.
  std::optional<Duration> used(Instant now, InstanceId instance, Duration reported);
  // What it was charged for the invocation, without what was owed; from here on none is open. Gives what was reported of it beyond the time it
  // was held: it began before, outside of any invocation. Unknown instances: nothing.
  Debt charged(InstanceId instance, Duration service);
  void forget(FlowId flow) { suspects_.erase(flow); }

  // A sample of the device: how long it worked for the instance in [from, until). One that reaches back before the
  // instance's first invocation does not count.
  void device_worked(InstanceId instance, Instant from, Instant until, Duration busy);
  // The samples of all instances up to `now` have been told.
  void observed(Instant now);

  bool is_suspect(InstanceId instance) const;
  // Of a suspect that has answered: no observation that began after the answer was without its work yet.
  bool may_still_work(InstanceId instance) const;

  struct Finding {
    FlowId flow;
    Duration missing{0};    // of what the device says; counts as charged from here on
    bool is_first = false;  // of this function
  };
  // After new samples. `is_busy`: the instance says so, now.
  std::optional<Finding> compare(Instant now, InstanceId instance, Duration reported, bool is_busy);

  // It is forgotten; `reported`: 0 where nobody can ask it any more. What it did and was not charged is owed, or, where it has lied, missing.
  struct Leftover {
    Debt debt;
    std::optional<Finding> finding;
  };
  Leftover gone(Instant now, InstanceId instance, Duration reported);

 private:
  struct Account {
    FlowId flow;
    Instant opened;                   // it was ready
    Instant delivered;                // its last invocation began
    Instant settled;                  // and ended
    Duration before_delivery{0};      // in which nothing was open
    bool is_open = false;             // and has not been charged
    std::optional<Instant> answered;  // the last one was
    bool works = false;               // the device worked for it since the last observation
    bool is_quiet = false;            // and was seen without its work since the answer
    Duration at_delivery{0};          // reported then
    Duration counted{0};              // reported, and charged or nobody's
    Duration before_it{0};            // of what was reported of the open invocation
    Duration seen{0};                 // reported, when it was compared last
    Duration charged{0};
    Duration device{0};
    Duration device_between{0};  // of that, what began while no invocation was open, and may be under way still
    Duration observed{0};
  };
  Duration margin(const Account& account) const;

  Instant last_observed_{};
  std::map<InstanceId, Account> accounts_;
  std::set<FlowId> suspects_;
};

}  // namespace fairlead
