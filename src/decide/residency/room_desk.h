// Requests for room: an instance found the device full in the middle of its work. The bytes it asks for are freed whatever
// the books say is free: the device has just said otherwise (contexts, other programs, fragments).
//
//   asked ──nothing can be moved, nobody is in the way──> refused
//     │ ├──it has become free meanwhile──────────────────> granted
//     │ ├──memory leaves for it──> awaits moves and stops ──one freed something──> granted
//     │ └──others that run or start hold the room──> waits for runs ──(again, whenever something has changed)
//     └──its deadline: granted if something was freed; else a start gives way, and anybody else is refused
//
// Nobody waits in a circle: when all that hold memory wait, the start that began last gives way, or the invocation that began last is
// refused. Example: two starts on 8 GiB hold 4 GiB each and ask for 2 more. The later one is stopped and tried again.
//
// A function that fits the device is never told that the device is full because others start.
//
// Threads: not thread-safe. Determinism: the oldest request is answered first.
#pragma once

#include <cstdint>

#include "decide/residency/memory_ledger.h"
#include "decide/residency/memory_victims.h"

namespace fairlead {

class RoomDesk {
 public:
  RoomDesk(MemoryLedger& ledger, MemoryVictims& victims) : ledger_(ledger), victims_(victims) {}

  // False: that number is asked for already. Exactly one RoomAnswer follows, unless the asker goes.
  bool ask(Instant deadline, MemoryRecord& asker, std::uint64_t number, Bytes bytes);
  // Its memory must return, and found the device full; nobody is told what becomes of it.
  void ask_to_return(MemoryRecord& record);

  void answer_all(Instant now, MemoryDevice& device, ResidencyDecisions& out);

 private:
  void plan(Instant now, MemoryDevice& device, const MemoryRecord& asker, RoomRequest& request,
            ResidencyDecisions& out);
  void answer(const RoomRequest& request, MemoryDevice& device, bool granted, ResidencyDecisions& out);
  void wait_for_runs(MemoryRecord& asker, RoomRequest& request, ResidencyDecisions& out);
  void end_standstill(Instant now, MemoryDevice& device, ResidencyDecisions& out);
  void give_way(Instant now, MemoryRecord& record, Bytes asked, ResidencyDecisions& out);

  MemoryLedger& ledger_;
  MemoryVictims& victims_;
};

}  // namespace fairlead
