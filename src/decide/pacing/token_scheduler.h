// The schedulers of others, behind the same events and actions, to be compared with: tokens that each last as long as our shortest frame,
// from the moment they are granted.
//
// FaST-GShare, section 3.3.2. Per window (1 s) an instance has used Q_used; Q_miss = request - Q_used, Q_remain = limit - Q_used. Who has
// no Q_remain waits for the next window. The others queue by Q_miss, largest first, and are granted tokens from the head while the widths
// of the holders stay within 100 %:
//
//   kHeadFirst     the head that does not fit stops the grant: the paper's rule
//   kBackfill      it is passed over
//   kOneAtATime    one holder, whatever its width: KubeShare (Yeh et al. 2020), Gemini (Chen et al. 2021)
//
// Example: A (50, request 60 %), B (60, 40 %), C (30, 20 %), all busy, a new window. A is granted; B does not fit beside it. kHeadFirst
// stops there, kBackfill goes on to C.
//
// An instance without a request has Q_miss = -Q_used: those take turns, behind all that miss something. The paper does not say when tokens
// are asked for again: here as soon as one has drained.
//
// Threads: not thread-safe. Determinism: ties break by InstanceId.
#pragma once

#include "decide/pacing/place_account.h"
#include "decide/pacing/place_table.h"

namespace fairlead {

enum class TokenRule { kHeadFirst, kBackfill, kOneAtATime };

class TokenScheduler final : public PlaceScheduler {
 public:
  TokenScheduler(TokenRule rule, const PlaceOptions& options) : rule_(rule), options_(options) {}

  Status set_share(Instant now, InstanceId instance, const PacedShare& share, PlaceActions& actions) override;
  void asks(Instant now, InstanceId instance, std::optional<Instant> due, PlaceActions& actions) override;
  void idle(Instant now, InstanceId instance, PlaceActions& actions) override;
  void used(Instant now, InstanceId instance, Duration gpu_time) override;
  void drained(Instant now, InstanceId instance, PlaceActions& actions) override;
  void gone(Instant now, InstanceId instance, PlaceActions& actions) override;
  void tick(Instant now, PlaceActions& actions) override;
  std::optional<Instant> next_tick() const override;

  std::optional<PlaceState> state_of(InstanceId instance) const override;
  int width_held() const override { return places_.held(); }

 private:
  struct Holder : Place {
    PlaceAccount account;
    Duration used{0};  // in this window
  };
  Duration missing(const Holder& holder) const;
  bool may_ask(const Holder& holder) const;
  void settle(Instant now, Holder& holder, Duration reported);
  void grant(Instant now, PlaceActions& actions);

  const TokenRule rule_;
  const PlaceOptions options_;
  PlaceTable<Holder> places_;
  Instant window_{};  // its beginning
};

}  // namespace fairlead
