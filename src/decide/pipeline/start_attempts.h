// Whether what did not start may be tried again: after a wait that doubles up to a bound, and after `failures` in a row not until somebody asks.
//
//   tried ──fails──> backs off ──the wait is over──> tried ... ──`failures` in a row──> broken ──asked for, `asked` later──> tried
//                                                                                        └──reset(): deployed again──> tried
//
// While it backs off it takes nothing from anybody: who waits tries nothing.
//
// Example, by the defaults: waits of 1, 2, 4, 8 and 10 s; broken at the sixth failure, some 25 s and six starts after the first.
//
// Pure. Time: handed in. Not thread-safe.
#pragma once

#include <algorithm>
#include <string>
#include <utility>

#include "base/units.h"

namespace fairlead {

struct StartTerms {
  Duration first_wait = std::chrono::seconds(1), most_wait = std::chrono::seconds(10);
  unsigned failures = 6;                     // in a row: it is broken; at least 1
  Duration asked = std::chrono::minutes(1);  // after the last failure of what is broken, until it is tried for who asks
};

class StartAttempts {
 public:
  explicit StartAttempts(const StartTerms& terms = {}) : terms_(terms) {}

  bool may(Instant now) const { return now >= not_before_ && (!is_broken() || is_asked_); }
  void failed(Instant now, std::string why) {
    ++failures_;
    why_ = std::move(why);
    is_asked_ = false;
    wait_ = wait_ == Duration(0) ? terms_.first_wait : std::min(terms_.most_wait, 2 * wait_);
    not_before_ = now + (is_broken() ? terms_.asked : wait_);
  }
  // Not a failure: there was nothing to start it on.
  void put_off(Instant until) { not_before_ = std::max(not_before_, until); }
  // Somebody wants it: what is broken is tried once, if its wait is over.
  void ask(Instant now) { is_asked_ = is_asked_ || (is_broken() && now >= not_before_); }
  // It started, or is another.
  void reset() { *this = StartAttempts(terms_); }

  bool is_broken() const { return failures_ >= terms_.failures; }
  unsigned failures() const { return failures_; }  // in a row
  const std::string& why() const { return why_; }  // of the last one; "": there is none
  Instant not_before() const { return not_before_; }

 private:
  StartTerms terms_;
  unsigned failures_ = 0;
  bool is_asked_ = false;
  std::string why_;
  Duration wait_{0};
  Instant not_before_;
};

}  // namespace fairlead
