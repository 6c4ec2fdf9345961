// The one loop of all that happens in virtual time: policies, kernel tasks, chaos, one node or several.
//
// What is going to happen lies in two places. Events are plain records in a binary heap: a simulated invocation may cost
// several of them, so they must not allocate. What changes again and again before it happens (the next end on a GPU, the
// next deadline of a core, the next arrival) is no event: each party states the earliest of these, and states it anew when
// it changes.
//
// Example: two nodes on one clock. Node A expects a deadline at 5 s, node B has an event at 3 s and one at 5 s:
//
//   step() ──> now is 3 s, B.happen()     step() ──> now is 5 s, A.due()     step() ──> now is 5 s, B.happen()
//
// Order: by time; at one instant first the deadlines (kBeforeEvents), then what was scheduled earlier, last the arrivals
// (kAfterEvents). Parties do not see each other, so each does what it does when it is alone on a clock.
//
// Threads: not thread-safe. Determinism: the same calls give the same order.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "base/units.h"

namespace fairlead::sim {

struct Moment {
  Instant at;
  std::uint64_t order = 0;  // among what happens at that instant
  bool operator<(const Moment& other) const { return at != other.at ? at < other.at : order < other.order; }
};
inline constexpr std::uint64_t kBeforeEvents = 0;
inline constexpr std::uint64_t kAfterEvents = std::numeric_limits<std::uint64_t>::max();
inline constexpr Moment kNothing{Instant::max(), kAfterEvents};  // never comes

struct Event {
  Moment moment;
  std::uint32_t party = 0;
  std::uint8_t kind = 0;  // each party has its own
  std::uint64_t subject = 0;
  std::uint64_t detail = 0;
};

// Who schedules on a clock. Must stay where it is while the clock runs.
class ClockParty {
 public:
  virtual ~ClockParty() = default;
  virtual void happen(const Event& event) = 0;
  virtual void due(const Moment& /*expected*/) {}  // what it stated last
};

class VirtualClock {
 public:
  VirtualClock() = default;
  VirtualClock(const VirtualClock&) = delete;
  VirtualClock& operator=(const VirtualClock&) = delete;

  Instant now() const { return now_; }
  // All of it happens late: a clock that jumps.
  void pass(Duration time) { now_ += time; }

  // Moves to what is next, calls `before`, and lets it happen; false when nothing is left.
  template <typename Before>
  bool step(Before before) {
    const std::size_t first = first_to_expect();
    const Moment expected = expected_[first];
    if (heap_.empty() || expected < heap_.front().moment) {
      if (expected.at == kNothing.at) return false;
      now_ = std::max(now_, expected.at);
      before();
      parties_[first]->due(expected);
      return true;
    }
    const Event event = take();
    now_ = std::max(now_, event.moment.at);
    before();
    parties_[event.party]->happen(event);
    return true;
  }
  // REQUIRES: somebody has joined.
  bool step() {
    return step([] {});
  }
  void run() {  // until nothing is left to happen
    while (step()) {
    }
  }
  // All that happens up to `end`, and stands there.
  void run_until(Instant end) {
    for (auto at = next(); at && *at <= end; at = next()) step();
    now_ = std::max(now_, end);
  }

  // ---- for parties: who joined is known by the number that is returned
  std::uint32_t join(ClockParty& party) {
    parties_.push_back(&party);
    expected_.push_back(kNothing);
    return static_cast<std::uint32_t>(parties_.size() - 1);
  }
  void add(std::uint32_t party, Instant at, std::uint8_t kind, std::uint64_t subject, std::uint64_t detail) {
    heap_.push_back({{at, next_++}, party, kind, subject, detail});
    std::push_heap(heap_.begin(), heap_.end(), Later());
  }
  // The place, among what is scheduled here, of what is scheduled now and kept elsewhere.
  std::uint64_t take_order() { return next_++; }
  // The earliest of what the party expects beside its events; kNothing: nothing.
  void expect(std::uint32_t party, const Moment& moment) { expected_[party] = moment; }
  bool has_event_now() const { return !heap_.empty() && heap_.front().moment.at <= now_; }

 private:
  struct Later {  // a type, so that the library's loops compare in place
    bool operator()(const Event& a, const Event& b) const { return b.moment < a.moment; }
  };

  // Parties are few, and state anew what they expect with nearly every event: looking through them costs less than
  // keeping them in order.
  std::size_t first_to_expect() const {
    std::size_t first = 0;
    for (std::size_t i = 1; i < expected_.size(); ++i) {
      if (expected_[i] < expected_[first]) first = i;
    }
    return first;
  }
  std::optional<Instant> next() const {
    Instant at = expected_[first_to_expect()].at;
    if (!heap_.empty()) at = std::min(at, heap_.front().moment.at);
    if (at == kNothing.at) return std::nullopt;
    return at;
  }
  Event take() {
    std::pop_heap(heap_.begin(), heap_.end(), Later());
    const Event event = heap_.back();
    heap_.pop_back();
    return event;
  }

  Instant now_{};
  std::vector<Event> heap_;
  std::uint64_t next_ = kBeforeEvents + 1;
  std::vector<ClockParty*> parties_;
  std::vector<Moment> expected_;  // by party
};

// A party's own events, of its own kinds.
template <typename Kind>
class EventsOf {
 public:
  EventsOf(VirtualClock& clock, ClockParty& party) : clock_(clock), party_(clock.join(party)) {}

  void add(Instant at, Kind kind, std::uint64_t subject, std::uint64_t detail = 0) {
    clock_.add(party_, at, static_cast<std::uint8_t>(kind), subject, detail);
  }
  void expect(const Moment& moment) { clock_.expect(party_, moment); }
  static Kind kind_of(const Event& event) { return static_cast<Kind>(event.kind); }

 private:
  VirtualClock& clock_;
  const std::uint32_t party_;
};

}  // namespace fairlead::sim
