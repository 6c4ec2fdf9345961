// What one instance's memory counts with on its device; a device's books are the sum over its instances (memory_ledger.h).
//
// Example: 8 GiB. A has 3 GiB there, runs and may grow to 4; B has 2 GiB that leave for others. Occupied 5, reserved 6, outgoing 2: an
// invocation that needs 4 more finds 8 - 6 + 2 = 4 GiB, once B's move is over.
//
// Always: 0 <= occupied <= reserved, and nothing is below 0 (is_sound).
#pragma once

#include "base/units.h"

namespace fairlead {

struct MemoryBooks {
  Bytes occupied{0};     // on the device now, what is coming included
  Bytes reserved{0};     // and what it may grow to while it runs
  Bytes outgoing{0};     // leaves, for others to take
  Bytes on_the_link{0};  // moves either way
  int absent_runs = 0;   // records that run, whose memory must return or is waited for, and that do not move
  int absent_idle = 0;   // the same of those that do not run
  int movable = 0;       // records of which something could leave if it were asked now
  int wanted = 0;        // records of which a thread waits while they idle
  int may_grow = 0;      // records that run, of which nobody knows how much room they will take

  MemoryBooks& operator+=(const MemoryBooks& other) {
    occupied += other.occupied;
    reserved += other.reserved;
    outgoing += other.outgoing;
    on_the_link += other.on_the_link;
    absent_runs += other.absent_runs;
    absent_idle += other.absent_idle;
    movable += other.movable;
    wanted += other.wanted;
    may_grow += other.may_grow;
    return *this;
  }
  MemoryBooks& operator-=(const MemoryBooks& other) {
    occupied -= other.occupied;
    reserved -= other.reserved;
    outgoing -= other.outgoing;
    on_the_link -= other.on_the_link;
    absent_runs -= other.absent_runs;
    absent_idle -= other.absent_idle;
    movable -= other.movable;
    wanted -= other.wanted;
    may_grow -= other.may_grow;
    return *this;
  }
  // What is missing for all that is reserved, when what leaves has left. Not above 0: nothing is.
  Bytes short_of(Bytes room) const { return reserved - room - outgoing; }
  bool is_sound() const {
    const bool amounts =
        Bytes(0) <= occupied && occupied <= reserved && Bytes(0) <= outgoing && Bytes(0) <= on_the_link;
    return amounts && absent_runs >= 0 && absent_idle >= 0 && movable >= 0 && wanted >= 0 && may_grow >= 0;
  }
  bool operator==(const MemoryBooks&) const = default;
};

}  // namespace fairlead
