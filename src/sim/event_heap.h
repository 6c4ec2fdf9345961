// What is going to happen, in order of time and, at one instant, in the order it was scheduled. Plain records in a binary
// heap: a simulated invocation may cost some of them, so they must not allocate.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/units.h"

namespace fairlead::sim {

enum class EventKind : std::uint8_t { kArrival, kReady, kIdle, kGone, kSwappedIn, kSwappedOut };

template <typename Kind>
struct EventOf {
  Instant at;
  std::uint64_t order = 0;
  Kind kind{};
  std::uint64_t subject = 0;  // an instance; for kArrival a function
  std::uint64_t detail = 0;   // for a swap the bytes
};
using Event = EventOf<EventKind>;

// `Kind`: what can happen; each simulator has its own.
template <typename Kind>
class EventHeapOf {
 public:
  using Event = EventOf<Kind>;

  bool empty() const { return heap_.empty(); }
  const Event& first() const { return heap_.front(); }  // REQUIRES: not empty

  void add(Instant at, Kind kind, std::uint64_t subject, std::uint64_t detail = 0) {
    heap_.push_back({at, next_++, kind, subject, detail});
    std::push_heap(heap_.begin(), heap_.end(), Later());
  }

  // The place, among what is scheduled here, of what is scheduled now and kept elsewhere.
  std::uint64_t take_order() { return next_++; }

  Event take() {
    std::pop_heap(heap_.begin(), heap_.end(), Later());
    const Event event = heap_.back();
    heap_.pop_back();
    return event;
  }

 private:
  struct Later {  // a type, so that the library's loops compare in place
    bool operator()(const Event& a, const Event& b) const { return a.at != b.at ? a.at > b.at : a.order > b.order; }
  };

  std::vector<Event> heap_;
  std::uint64_t next_ = 0;
};

using EventHeap = EventHeapOf<EventKind>;

}  // namespace fairlead::sim
