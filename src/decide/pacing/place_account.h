// What one instance has been promised, and what it has had.
//
//   credit   grows by request x time, also while the instance is idle, up to one window of it. Service that was granted for credit is taken
//            off; so is every over-run past the grant, which may make a debt, of one window at most. Service that idle time gives beyond the request costs none.
//   limit    what the instance used in the last window is less than the limit's part of it. A spent nanosecond comes back one window later
//            (mClock's limit, Gulati et al. 2010, with a window in the place of its spacing, so that bursts within it pass).
//
// Time that the place was held is counted as spent until the instance has told what it used. A report is then charged between a tenth of
// that time and all of it, as the core charges invocations.
//
// Example: request 40 %. Idle for a second, the credit is 400 ms. Ten frames of 2 ms granted for credit, each over-run by 0.1 ms, take off
// 21 ms and earn 8.4 ms meanwhile.
//
// Time: handed in. Determinism: integers. Threads: not thread-safe.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "base/units.h"

namespace fairlead {

// What was used in the last window, exact to a part of it.
class RecentUse {
 public:
  static constexpr std::int64_t kParts = 64;

  void add(Instant now, Duration window, Duration used) {
    advance(now, window);
    parts_[static_cast<std::size_t>(part_ % kParts)] += used;
    sum_ += used;
  }
  // Of the part that is about to leave the window, as much as is still in it.
  Duration in_window(Instant now, Duration window) {
    advance(now, window);
    const Duration part = window / kParts;
    const Duration oldest = parts_[static_cast<std::size_t>((part_ + 1) % kParts)];
    const Duration into = now.time_since_epoch() % part;
    return sum_ -
           Duration(static_cast<Duration::rep>(static_cast<__int128>(oldest.count()) * into.count() / part.count()));
  }

 private:
  void advance(Instant now, Duration window) {
    const std::int64_t part = now.time_since_epoch() / (window / kParts);
    for (std::int64_t next = std::max(part_, part - kParts) + 1; next <= part; ++next) {
      Duration& leaves = parts_[static_cast<std::size_t>(next % kParts)];
      sum_ -= leaves;
      leaves = Duration(0);
    }
    part_ = std::max(part_, part);
  }

  std::array<Duration, kParts> parts_{};
  Duration sum_{0};
  std::int64_t part_ = 0;  // the present one
};

// What a place was held for.
enum class Grant : std::uint8_t {
  kEntitled,  // credit
  kExtra,     // the flow's turn
};

class PlaceAccount {
 public:
  struct Terms {
    Duration window{0};
    int request_percent = 0;
    int limit_percent = 100;
  };
  // From `now` on; what was saved above the new request is lost.
  void set_terms(Instant now, const Terms& terms) {
    earn(now);
    terms_ = terms;
    cap();
  }

  // Less what is held and not reported yet. Negative: a debt.
  Duration credit(Instant now) {
    earn(now);
    count(now);
    return Duration(credit_ / 100) - held_entitled_ - held_over_;
  }
  bool is_below_limit(Instant now) {
    if (terms_.limit_percent >= 100) return true;
    return recent_.in_window(now, terms_.window) + held() < terms_.window / 100 * terms_.limit_percent;
  }

  // The place is held from `now` on for `grant`, until `until`; held again: the time up to now is counted first.
  void hold(Instant now, Grant grant, Instant until) {
    count(now);
    is_held_ = true;
    since_ = now;
    grant_ = grant;
    until_ = until;
  }
  void shorten(Instant until) { until_ = std::min(until_, until); }
  void release(Instant now) {
    count(now);
    is_held_ = false;
  }
  // Time that counts as held and was not reported.
  Duration held() const { return held_entitled_ + held_extra_ + held_over_; }
  Duration held(Instant now) {
    count(now);
    return held();
  }
  // Of it, what its flow's virtual time would be charged if all of it was used.
  Duration held_extra(Instant now) {
    count(now);
    return held_extra_ + (grant_ == Grant::kExtra ? held_over_ : Duration(0));
  }

  // The instance's report for all the time held so far. Returns what is charged to the flow's virtual time.
  Duration settle(Instant now, Duration reported) {
    count(now);
    const Duration all = held();
    if (all <= Duration(0)) return Duration(0);
    const Duration charged = std::clamp(reported, all / 10, all);
    const auto part = [&](Duration held) {
      return static_cast<std::int64_t>(static_cast<__int128>(held.count()) * charged.count() / all.count());
    };
    earn(now);
    credit_ -= 100 * part(held_entitled_ + (terms_.request_percent > 0 ? held_over_ : Duration(0)));
    const Duration extra(part(held_extra(now)));
    credit_ = std::max(credit_, -100 * terms_.window.count());
    if (terms_.limit_percent < 100) recent_.add(now, terms_.window, charged);
    entitled_ += Duration(part(held_entitled_));
    held_entitled_ = held_extra_ = held_over_ = Duration(0);
    return extra;
  }

  Grant grant() const { return grant_; }
  Duration entitled() const { return entitled_; }  // service that was granted for credit, since the beginning

 private:
  void earn(Instant now) {
    if (now <= earned_) return;
    credit_ += (now - earned_).count() * terms_.request_percent;
    earned_ = now;
    cap();
  }
  void cap() { credit_ = std::min(credit_, terms_.window.count() * terms_.request_percent); }
  void count(Instant now) {
    if (!is_held_ || now <= since_) return;
    const Instant in_time = std::clamp(until_, since_, now);
    (grant_ == Grant::kEntitled ? held_entitled_ : held_extra_) += in_time - since_;
    held_over_ += now - in_time;
    since_ = now;
  }

  Terms terms_;
  std::int64_t credit_ = 0;  // nanoseconds x 100
  Instant earned_{};
  bool is_held_ = false;
  Grant grant_ = Grant::kExtra;
  Instant since_{}, until_{};
  Duration held_entitled_{0}, held_extra_{0}, held_over_{0};  // not reported yet
  Duration entitled_{0};
  RecentUse recent_;
};

}  // namespace fairlead
