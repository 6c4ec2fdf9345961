// Whether an instance tells the truth about its GPU time: what it claims, held against what the device says of its processes.
//
// The device's account is coarse (whole percents of a sixth of a second on hardware), and a claim is late by a drain. So both are
// compared over whole seconds, and three in a row have to disagree.
//
//   claims 100 ms, the device says 420 ms, three seconds running   -> named
//   three more                                                     -> no longer believed
//   a second in which they agree                                   -> from the beginning
//
// Time: handed in. Threads: not thread-safe. Pure.
#pragma once

#include "base/units.h"

namespace fairlead {

class ClaimCheck {
 public:
  enum class Verdict { kAgrees, kDisagrees, kNamed, kDisbelieved };
  static constexpr int kToName = 3, kToDisbelieve = 6;

  // Of one whose kind was found out before: two seconds in which they disagree are enough.
  void expect_the_worst() { disagreements_ = kToDisbelieve - 2; }
  // Nothing can be said of the time since the last comparison.
  void skip(Instant now, Duration claimed, Duration by_device) {
    began_ = true;
    restart(now, claimed, by_device);
  }

  // Totals since the beginning. kNamed and kDisbelieved are said once each.
  Verdict compare(Instant now, Duration claimed, Duration by_device) {
    if (!began_) {
      began_ = true;
      restart(now, claimed, by_device);
      return Verdict::kAgrees;
    }
    if (now - since_ < kPeriod) return Verdict::kAgrees;
    const Duration claim = claimed - claimed_, device = by_device - by_device_;
    restart(now, claimed, by_device);
    if (device <= 2 * claim + kSlack) {
      disagreements_ = 0;
      return Verdict::kAgrees;
    }
    ++disagreements_;
    if (disagreements_ == kToName) return Verdict::kNamed;
    return disagreements_ == kToDisbelieve ? Verdict::kDisbelieved : Verdict::kDisagrees;
  }

 private:
  static constexpr Duration kPeriod = std::chrono::seconds(1);
  static constexpr Duration kSlack = std::chrono::milliseconds(50);

  void restart(Instant now, Duration claimed, Duration by_device) {
    since_ = now;
    claimed_ = claimed;
    by_device_ = by_device;
  }

  bool began_ = false;
  int disagreements_ = 0;
  Instant since_;
  Duration claimed_{0}, by_device_{0};
};

}  // namespace fairlead
