// Whether a node may believe that others could renew their leases, and did not: it renewed its own without a gap for as long as a lease
// lasts, and the server's clock, by which leases end, ran as its own did meanwhile. A clock that is set forwards ends every lease at once,
// though nobody is dead.
//
//   unsteady ──renewals for 5 s, no gap, no jump of the server's clock──> steady ──a gap, or a jump──> unsteady
//
// Pure: every entry point is given the time. Threads: one at a time.
#pragma once

#include <cstdint>
#include <optional>

#include "base/units.h"
#include "store/shared_store.h"

namespace fairlead::postgres {

// A renewal: asked and answered by this node's clock, and what the server's clock said in between.
struct Renewal {
  Instant asked, answered;
  std::int64_t store_ms = 0;
};

class Steadiness {
 public:
  static constexpr Duration kLongestGap =
      std::chrono::milliseconds(2500);  // between two answers: a server that hangs is a gap, too
  static constexpr Duration kJump = std::chrono::milliseconds(500);  // less is what clocks do

  void renewed(const Renewal& renewal) {
    if (!last_ || renewal.answered - last_->answered > kLongestGap || jumped(*last_, renewal))
      since_ = renewal.answered;
    last_ = renewal;
  }
  void interrupted() { last_.reset(); }  // the connection was lost
  bool holds(Instant now) const { return last_ && now - since_ >= kEventLease; }

 private:
  // Between two readings of the server's clock at least the time from the first answer to the second question has passed, and at most that
  // from the first question to the second answer.
  static bool jumped(const Renewal& earlier, const Renewal& later) {
    const Duration passed = std::chrono::milliseconds(later.store_ms - earlier.store_ms);
    return passed < later.asked - earlier.answered - kJump || passed > later.answered - earlier.asked + kJump;
  }

  std::optional<Renewal> last_;
  Instant since_;
};

}  // namespace fairlead::postgres
