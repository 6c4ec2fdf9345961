// What an instance does, as the core knows it: what has happened makes the next state of it, or means nothing there and is refused.
// Pure: no clock, no process, no ids.
//
//   nothing bound (holds no slot)           something bound (holds one)
//
//   starting ahead ──kBound (at once)─────> starting ───────────────────────────────────────┐
//    │    └──kPrepares──> preparing                                                         │
//    │ kReady              │      │ kReadyUnawaited                                         │ kDelivered
//    v                     │      v                                                         v
//   unused <──kReady───────┘    idle ──kBound──> chosen ──────────────kDelivered──────────> running
//     └─────────────────────────────────kBound──^                                           │  │ kAnswered
//                                                                                           │  v
//   idle <──kAsked── returning <───────────────────kEnded───────────────────────────────────┤ working ──kAsked──┐
//                     │    ^                                                                │  │ kEnded         v
//                     │    └────────────────────────kEnded──────────────────────────────────┴──┴─────── working, asked
//                     └──kBound──> returning, chosen ──kDelivered──> running
//
// kEnded also leads from starting and from "returning, chosen" to returning: nobody waits any more for what was bound.
//
// Whatever has something bound may load or retire meanwhile, which is apart because it goes on through all of the right side:
// - loads: what is bound brings constants to the device first, and takes no lane until kLoaded (task_lanes.h). From kBoundToLoad.
// - retires: the instance goes when what is bound is over, and is never spare again. From kRetired.
//
// An instance may be stopped, or be gone, in every state: what is over has none.
//
// Example: A's first call comes while the GPU is busy. Its instance starts ahead; kReady: unused, and anybody's memory before a
// slot is free. kBound: chosen; kDelivered: running. It answers after 2 s and its kernels go on, kAnswered: working. It asks for
// the next, kAsked: working, asked. The kernels end, kEnded: returning, and its slot is free; what it asked for counts now,
// kAsked: idle.
//
// 25 of the 44 combinations are legal (is_legal). step() alone makes states, so there are no others.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace fairlead {

enum class InstanceEvent : std::uint8_t {
  kPrepares,        // it was started for no invocation (Core::prepare)
  kReady,           // its start, without a slot, is over
  kReadyUnawaited,  // the same, and nobody has called its function yet
  kBound,           // an invocation
  kBoundToLoad,     // one that brings constants first
  kDelivered,       // the instance has what is bound to it
  kLoaded,          // the constants are there, or nobody waits for them
  kAnswered,        // and its work on the device goes on
  kAsked,           // for the next
  kEnded,           // what is bound is over, or nobody waits for it any more
  kRetired,         // it is to go: its function changed, or its GPU is drained
};
inline constexpr int kInstanceEvents = 11;

class InstanceLife {
 public:
  // Those without a slot, then those with one.
  enum class Phase : std::uint8_t {
    kStartingAhead,
    kPreparing,  // starts ahead for no invocation
    kUnused,     // ready, and nothing was bound to it, ever
    kIdle,
    kReturning,  // answered, and has not asked for the next yet
    kStarting,
    kChosen,           // was idle
    kReturningChosen,  // gets what is bound to it when it asks
    kRunning,
    kWorking,       // answered, and its work on the device goes on
    kWorkingAsked,  // and it has asked for the next
  };
  static constexpr int kPhases = 11;

  constexpr InstanceLife() = default;  // of an instance that was just added: it starts ahead

  constexpr Phase phase() const { return phase_; }
  constexpr bool loads() const { return loads_; }
  constexpr bool retires() const { return retires_; }

  constexpr bool holds_slot() const { return phase_ >= Phase::kStarting; }
  // Not ready, and nothing is bound to it.
  constexpr bool starts_ahead() const { return phase_ <= Phase::kPreparing; }
  constexpr bool starts() const { return starts_ahead() || phase_ == Phase::kStarting; }
  // May go at any time, and its memory leave.
  constexpr bool spare() const { return phase_ >= Phase::kUnused && phase_ <= Phase::kReturning; }
  constexpr bool unused() const { return phase_ == Phase::kUnused; }
  constexpr bool returning() const { return phase_ == Phase::kReturning || phase_ == Phase::kReturningChosen; }
  constexpr bool runs() const { return phase_ >= Phase::kRunning; }   // what is bound to it was delivered
  constexpr bool works() const { return phase_ >= Phase::kWorking; }  // and is answered
  constexpr bool has_asked() const { return phase_ == Phase::kWorkingAsked; }

  bool is_legal() const;
  std::string text() const;  // "running, loads, retires"
  bool operator==(const InstanceLife&) const = default;

 private:
  friend constexpr std::optional<InstanceLife> step(InstanceLife life, InstanceEvent event);

  // False: refused, and nothing has changed.
  constexpr bool take(InstanceEvent event);
  constexpr bool move(bool allowed, Phase to) {
    if (allowed) phase_ = to;
    return allowed;
  }
  constexpr bool bind(bool to_load);
  constexpr bool end();

  Phase phase_ = Phase::kStartingAhead;
  bool loads_ = false;
  bool retires_ = false;
};

// Empty: the event means nothing in that state.
constexpr std::optional<InstanceLife> step(InstanceLife life, InstanceEvent event);

std::string_view name_of(InstanceLife::Phase phase);
std::string_view name_of(InstanceEvent event);

// ---- here, because every invocation takes four of these steps, with events that are known where they are taken

constexpr bool InstanceLife::bind(bool to_load) {
  if (phase_ == Phase::kStartingAhead && !to_load) return move(true, Phase::kStarting);
  loads_ = spare() && to_load;
  return move(spare(), phase_ == Phase::kReturning ? Phase::kReturningChosen : Phase::kChosen);
}

// What retires is stopped instead, and what is chosen is delivered at once.
constexpr bool InstanceLife::end() {
  if (!holds_slot() || phase_ == Phase::kChosen || retires_) return false;
  loads_ = false;
  return move(true, Phase::kReturning);
}

constexpr bool InstanceLife::take(InstanceEvent event) {
  switch (event) {
    case InstanceEvent::kPrepares: return move(phase_ == Phase::kStartingAhead, Phase::kPreparing);
    case InstanceEvent::kReady: return move(starts_ahead(), Phase::kUnused);
    case InstanceEvent::kReadyUnawaited: return move(phase_ == Phase::kPreparing, Phase::kIdle);
    case InstanceEvent::kBound: return bind(false);
    case InstanceEvent::kBoundToLoad: return bind(true);
    case InstanceEvent::kDelivered: return move(holds_slot() && !runs(), Phase::kRunning);
    case InstanceEvent::kLoaded:
      if (!runs() || !loads_) return false;
      loads_ = false;
      return true;
    case InstanceEvent::kAnswered: return move(phase_ == Phase::kRunning, Phase::kWorking);
    case InstanceEvent::kAsked:
      if (phase_ == Phase::kWorking) return move(true, Phase::kWorkingAsked);
      return move(phase_ == Phase::kReturning, Phase::kIdle);
    case InstanceEvent::kEnded: return end();
    case InstanceEvent::kRetired:
      if (!holds_slot() || phase_ == Phase::kChosen) return false;
      retires_ = true;
      return true;
  }
  return false;
}

constexpr std::optional<InstanceLife> step(InstanceLife life, InstanceEvent event) {
  if (!life.take(event)) return std::nullopt;
  return life;
}

}  // namespace fairlead
