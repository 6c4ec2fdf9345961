// The node's places, as this process keeps to them (wire/shim_page.h): it asks where a thread waits at the node's gate, ends a
// place whose time is over or that it has no use for, and says when nothing of it is in flight.
//
//   launch ── gate closed ── ask ─── place ── kernels ── until + grace: closed ── the last one ends ── drained
//                                             └─ nothing to do for 0.15 ms: closed ── drained: others may have the rest
//
// The launch path knows nothing of time: it reads the gate's word, as ever. The node closes the gate when a place is over;
// where the node is late, the watch (work_watch.h) does, which looks at the work in flight anyway.
//
// Threads: any.
#pragma once

#include <cstdint>

#include "shim/page.h"

namespace fairlead::shim {

inline bool has_places() {
  return (page().pace.load(std::memory_order_relaxed) & wire::kPacePlaces) != 0;
}

// A thread begins to wait for a place, and has one (or needs none any more). In pairs.
void ask_for_place();
void stop_asking();

// While it lives a launch waits for what is in flight (leash.h): its place is in use, though nothing may be in flight for a moment.
class LaunchAhead {
 public:
  LaunchAhead();
  ~LaunchAhead();
  LaunchAhead(const LaunchAhead&) = delete;
  LaunchAhead& operator=(const LaunchAhead&) = delete;
};

// Nothing is in flight, as far as is known: tells the node, if the place is over and that is true.
void place_may_have_drained();

// Called by the watch: ends a place that is over or not used, and says when it has drained. Returns how long until the next
// look; kNoPlace: there is nothing to look after.
inline constexpr std::uint64_t kNoPlace = UINT64_MAX;
std::uint64_t look_at_place(std::uint64_t now_ns);

// In the child of a fork: the threads that waited are not there.
void forget_launches_ahead();

}  // namespace fairlead::shim
