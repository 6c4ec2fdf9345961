// Who may put kernels on one device now. One interface for our own frames (pacer.h) and for the schedulers of others that it is compared
// with (token_scheduler.h): events in, actions out.
//
//            ┌────────────────── idle ──────────────────┐
//            v                                          │
//   idle ──asks──> asks ──chosen for the frame──> chosen ──room──> open ──until is over──> draining ──drained──> idle
//                   │ <──────next frame without──────┘               ^                        │   └──asks──> draining, asks ──drained──> asks
//                   └────────────────── room ────────────────────────┘                        └──past its deadline──> revoked ──drained──> idle
//
//   revoked ──asks──> revoked, asks ──drained, or 1 s since it was revoked──> asks            draining, asks ──past its deadline──> revoked, asks
//   revoked ──1 s since it was revoked──> idle                                                any ──gone──> forgotten
//
// Who is open, draining or "draining, asks" holds its width of the SMs; nobody else holds anything. The widths that are held add up to
// 100 % at most. A place that was revoked holds nothing: its kernels may still run, and the caller has to see to that.
//
// Who was revoked may be honest: what it has in flight may wait for what it has not been let in to launch. So it is let in again, after
// `again_after`. It is charged all of the time until then; and until it has drained once, a place of its that does not drain is revoked
// after `second_drain_limit`. Who is stopped for ever keeps others waiting for 12 ms in 1012 then, not for 202 in 1202.
//
// Example: `asks` of an instance on an idle device is answered by Open until 2 ms later. Nobody else asks, so each tick opens it for
// another frame; `idle` closes the gate and frees the place.
//
// The caller tells what happened, in order:
//   used before drained, idle and tick, so that what is decided next knows of it. Who never tells is charged the time held.
//   drained when the gate is closed (its `until` is over, or Close) and nothing is in flight.
//   idle when nothing is in flight and nothing waits at the gate, whatever was granted.
// What comes late, twice or from an unknown instance changes nothing.
//
// Time: every entry point takes `now`, which does not go back. Threads: not thread-safe; one per device. Determinism: the same events in
// the same order give the same actions; ties break by InstanceId.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "decide/pacing/paced_share.h"

namespace fairlead {

enum class PlaceState : std::uint8_t { kIdle, kAsks, kChosen, kOpen, kDraining, kDrainingAsks, kRevoked, kRevokedAsks };
// "idle", "asks", "chosen", "open", "draining", "draining, asks", "revoked", "revoked, asks"
std::string_view place_state_name(PlaceState state);
bool holds_width(PlaceState state);
bool is_revoked(PlaceState state);

struct PlaceAction {
  enum class Kind : std::uint8_t {
    kOpen,    // may launch until `until`; if it is open already, longer than was said
    kClose,   // may not launch from now on
    kRevoke,  // did not drain in time: counts as if it held nothing
  };
  Kind kind = Kind::kOpen;
  InstanceId instance;
  Instant until;
  bool operator==(const PlaceAction&) const = default;
};
using PlaceActions = std::vector<PlaceAction>;

struct PlaceOptions {
  Duration window = std::chrono::seconds(1);  // over which requests and limits hold; credit is saved for so long
  Duration shortest_frame = std::chrono::milliseconds(2);  // a token's length in the schedulers of others
  Duration longest_frame = std::chrono::milliseconds(10);
  Duration over_run =
      std::chrono::milliseconds(10);  // T: of the whole device, by which one flow's service may be ahead of another's
  Duration patience = std::chrono::milliseconds(50);  // that a flow too wide for the rest waits, though nobody is ahead
  Duration drain_limit = std::chrono::milliseconds(200);  // past its `until`; then the place is revoked
  Duration again_after = std::chrono::seconds(1);  // 5 drain limits since it was revoked, an instance may ask again
  Duration second_drain_limit = std::chrono::milliseconds(10);  // of who was revoked and has not drained since
};

// Instances that one device can have: what an MPS daemon serves, 60 from CUDA 13.1 on, with some to spare.
inline constexpr std::size_t kMostPlaces = 64;

class PlaceScheduler {
 public:
  virtual ~PlaceScheduler() = default;

  // A new instance, which is idle, or other terms for a known one. A change of the width closes an open place, which holds its old width
  // until it has drained. kInvalidArgument: check(share); kResourceExhausted: kMostPlaces instances are there. Nothing changes then.
  virtual Status set_share(Instant now, InstanceId instance, const PacedShare& share, PlaceActions& actions) = 0;
  // It has work for the device. `due`: the latest instant at which it must be let in to be in time; none: no objective. Asked again:
  // the new `due` counts.
  virtual void asks(Instant now, InstanceId instance, std::optional<Instant> due, PlaceActions& actions) = 0;
  virtual void idle(Instant now, InstanceId instance, PlaceActions& actions) = 0;
  // GPU time since the last report. Charged at least a tenth of the time in which the place was held, at most all of it.
  virtual void used(Instant now, InstanceId instance, Duration gpu_time) = 0;
  virtual void drained(Instant now, InstanceId instance, PlaceActions& actions) = 0;
  virtual void gone(Instant now, InstanceId instance, PlaceActions& actions) = 0;
  virtual void tick(Instant now, PlaceActions& actions) = 0;  // due at next_tick(); earlier or later does no harm
  virtual std::optional<Instant> next_tick() const = 0;

  // None: not known.
  virtual std::optional<PlaceState> state_of(InstanceId instance) const = 0;
  virtual int width_held() const = 0;  // per cent of the SMs
};

// "pacer" (ours), "paper" (FaST-GShare's multi-token scheduler), "backfill" (the same, past a head that does not fit), "one" (one token at
// a time: KubeShare, Gemini).
std::vector<std::string_view> place_scheduler_names();
// kInvalidArgument lists the names, or says which option is out of its bounds.
Result<std::unique_ptr<PlaceScheduler>> make_place_scheduler(std::string_view name, const PlaceOptions& options);

}  // namespace fairlead
