// The state of one instance's device memory, as residency sees it: what has happened makes the next state of it, or means
// nothing there and is refused. Pure: no clock, no amounts.
//
// Two things go on at once. The instance starts, runs or idles (Activity):
//
//   starting ──kReady──> running ──kRested──> answered ──kReported──> idle
//                         │   ^                   │                   ^ │
//                         │   └──────kChosen──────┴───────────────────┼─┘
//                         └──────────────────kUnused──────────────────┘
//   each of them ──kStopped──> stopping, until it is gone
//
// and its memory lies still or is on its way (Motion):
//
//   unreported ──kReported──> still
//
//            kLeaves, if it idles              kReturns, kReturnsAhead
//   leaving <───────────────────── still ─────────────────────────────────> returning
//           ─────────────────────>       <─────────────────────────────────
//               kLeft, kNotLeft             kReturned, kFull, kFailed, kCutShort
//
// Example: A has 4 GiB on a device of 8, has answered and reported: idle, still. C starts and needs the room: kLeaves, and A
// is idle, leaving. At 12 GB/s that takes 0.36 s. A is called after 0.1 s: kChosen, and A is running, leaving; those 4 GiB
// are not counted as C's any more. At 0.36 s kLeft: running, still, and kReturns as soon as there is room.
//
// The rest is apart, because it outlives both. A move that failed is remembered through runs and later moves, each way for
// itself (WayBack, unmovable). A thread may wait while an invocation is prepared for (Waiter, prefetched).
//
// How much is away is an amount and no state, because memory leaves in parts (memory_use.h). Who waits for room is in the
// device's list of requests, because one instance may wait with several (room.cc).
//
// 198 of the 1280 combinations are legal (is_legal). step() alone makes states, so there are no others.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace fairlead {

enum class RecordEvent : std::uint8_t {
  // What becomes of the instance.
  kReady,    // its start is over
  kChosen,   // an invocation is bound to it
  kRested,   // the invocation is over
  kUnused,   // it is ready and nothing was bound to it: what it holds says nothing of what an invocation needs
  kStopped,  // it is being killed
  // What it says.
  kReported,
  kWants,      // a thread of it waits for memory that is away or on its way
  kDoubts,     // a thread of it waits although all is there by the books
  kSatisfied,  // all is there by a report: no thread can wait any more
  // A move begins.
  kLeaves,
  kReturns,
  kReturnsAhead,  // for an invocation that was not dispatched yet
  // A move ends.
  kLeft,
  kNotLeft,   // whatever the reason; given up at its deadline, too
  kReturned,  // all is there
  kFull,      // the device had no room for all of it
  kFailed,    // it was busy, failed, or given up at its deadline
  kCutShort,  // the device had no room, but by a report in between nothing is away any more
};
inline constexpr int kRecordEvents = 18;

class RecordState {
 public:
  enum class Activity : std::uint8_t {
    kStarting,  // for somebody, and is not ready yet
    kRunning,   // an invocation is bound to it
    kAnswered,  // idles, and the next report says what its invocation needed
    kIdle,      // idles
    kStopping,  // is being killed; its memory is there until it is gone
  };
  enum class Motion : std::uint8_t { kUnreported, kStill, kLeaving, kReturning };

  // Whether what is away may be brought back.
  enum class WayBack : std::uint8_t {
    kOpen,
    kDoubted,  // and shall be, though all is there by the books: a thread waits, so they are wrong
    kFull,     // once something is freed: the device had no room for it
    kFailed,   // once it reports or asks
  };
  // What threads of an idle instance do: nothing was sent to it, and yet they use its memory.
  enum class Waiter : std::uint8_t {
    kNone,
    kWaits,       // for memory to return
    kServed,      // waited, and it returned: it does not leave for another waiter
    kWaitsAgain,  // was served, and waits for what has left since
  };

  RecordState() = default;  // of an instance that was just added: it starts, and has reported nothing

  Activity activity() const { return activity_; }
  bool starts() const { return activity_ == Activity::kStarting; }
  bool runs() const { return activity_ <= Activity::kRunning; }  // what starts counts as running
  bool idle() const { return activity_ == Activity::kAnswered || activity_ == Activity::kIdle; }
  bool sample_due() const { return activity_ == Activity::kAnswered; }
  bool stopping() const { return activity_ == Activity::kStopping; }

  Motion motion() const { return motion_; }
  bool reported() const { return motion_ != Motion::kUnreported; }
  bool moving() const { return motion_ >= Motion::kLeaving; }

  WayBack way_back() const { return way_back_; }
  Waiter waiter() const { return waiter_; }
  bool wants() const { return waiter_ == Waiter::kWaits || waiter_ == Waiter::kWaitsAgain; }
  bool was_served() const { return waiter_ >= Waiter::kServed; }
  bool unmovable() const { return unmovable_; }    // did not leave when it was asked; until it runs again
  bool prefetched() const { return prefetched_; }  // brought back, or on its way, for an invocation not yet dispatched

  bool is_legal() const;
  std::string text() const;  // "idle, leaving, full, waits again"
  bool operator==(const RecordState&) const = default;

 private:
  friend std::optional<RecordState> step(RecordState state, RecordEvent event);

  // False: refused, and nothing has changed.
  bool take(RecordEvent event);
  bool lives_on(RecordEvent event);
  bool stops();
  bool says(RecordEvent event);
  bool begins_move(RecordEvent event);
  bool ends_move(RecordEvent event);

  Activity activity_ = Activity::kStarting;
  Motion motion_ = Motion::kUnreported;
  WayBack way_back_ = WayBack::kOpen;
  Waiter waiter_ = Waiter::kNone;
  bool unmovable_ = false;
  bool prefetched_ = false;
};

// Empty: the event means nothing in that state.
std::optional<RecordState> step(RecordState state, RecordEvent event);

const char* record_event_name(RecordEvent event);

}  // namespace fairlead
