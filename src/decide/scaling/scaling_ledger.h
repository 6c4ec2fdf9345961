// What a scaled function held and what its callers got, second by second: the books that a report is made of.
//
// Idea. Three numbers say what scaling was worth: requests that were answered later than the objective, the part of a device that was promised
// times how long, and the fluid bound, that is the same for a scaler that knows everything: each request at the least area that meets its
// objective, with no queue and no rest of an instance. Held over bound is the price; 1.0 cannot be had.
//
// Example. A request needs 0.005 device-seconds at least. 200 per second for 10 s: the bound is 10 device-seconds. Two seats of half a device for
// these 10 s and 2 s more: 12 were held, 1.2 times the bound.
//
// A request that is late counts in the second in which it came, so that the first seconds of a burst show what they cost. One whose caller went
// before its answer was given is neither answered nor late.
//
// Pure. Time: given, milliseconds since 1970. Bounded: kMostSeconds seconds in which anything came or was held. Not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>

namespace fairlead {

struct LedgerSecond {
  std::int64_t at_s = 0;                              // since 1970
  std::uint32_t arrived = 0, answered = 0, late = 0;  // of the requests that came in it; late are answered
  std::uint32_t seats = 0, ready = 0, parked = 0;     // the most at any moment of it
  bool operator==(const LedgerSecond&) const = default;
};

// Since the function is scaled.
struct LedgerTotals {
  std::int64_t since_ms = 0;
  std::uint64_t arrived = 0, answered = 0, late = 0;
  double held_s = 0;   // device-seconds: the area (SMs x time) of each seat times how long it was held
  double bound_s = 0;  // device-seconds: the fluid bound of all that arrived
};

struct LedgerInstances {
  std::uint32_t seats = 0, ready = 0, parked = 0;
};

class ScalingLedger {
 public:
  static constexpr std::size_t kMostSeconds = 900;

  // What a seat holds of a device from now on, and what a request takes at least, in device-seconds.
  void set_terms(std::int64_t now_ms, double area, double least_s);
  void arrived(std::int64_t now_ms);
  // `late`: later than its objective, or it failed.
  void answered(std::int64_t arrived_ms, bool late);
  // From now on. REQUIRES: `now_ms` does not go back by more than the clock is set back.
  void has(std::int64_t now_ms, const LedgerInstances& instances);

  const std::deque<LedgerSecond>& seconds() const { return seconds_; }  // the oldest first
  LedgerTotals totals(std::int64_t now_ms) const;

 private:
  LedgerSecond& second(std::int64_t now_ms);
  double held_since(std::int64_t now_ms) const;

  double area_ = 0, least_s_ = 0;
  LedgerInstances there_;
  std::int64_t there_since_ms_ = 0;
  LedgerTotals totals_;
  std::deque<LedgerSecond> seconds_;
};

}  // namespace fairlead
