// What is known of one instance's device memory, of its function's and of its device's: values, and what follows from one alone.
//
// What an instance's memory can be in is its state (record_state.h); how much of it lies where is its use, as last reported; and what
// both count with are the books of the device. Only MemoryLedger changes what counts, so the sums are right.
//
// Example: A has reported 3 GiB held, 2 on the device, 1 away. It runs with a demand of 4 GiB: it occupies 2, reserves 4, and is absent,
// because 1 GiB must return. The move begins: it occupies 3, reserves 4 and is absent no more.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <vector>

#include "base/ids.h"
#include "base/units.h"
#include "decide/residency/footprint.h"
#include "decide/residency/link_speed.h"
#include "decide/residency/memory_books.h"
#include "decide/residency/memory_use.h"
#include "decide/residency/record_state.h"
#include "decide/residency/unreported.h"
#include "model/arrival_pace.h"

namespace fairlead {

struct MemoryDevice;
struct MemoryRecord;

struct MemoryFunction {
  Bytes seed{0};
  Footprint footprint{Bytes(0)};
  int gave_way = 0;                    // starts of it, since one was ready
  ArrivalPace pace;                    // as told last
  bool may_have_queued = false;        // false: nothing is queued
  std::vector<MemoryRecord*> records;  // of all devices, unordered
};

struct MemoryMove {  // that is under way, or was last
  Bytes bytes{0};
  MemoryUse before;
  Instant began;
  Bytes on_the_link_then{0};
};

struct MemoryRecord {
  InstanceId id;
  FlowId flow;
  MemoryFunction* function = nullptr;  // null: it is not there any more
  MemoryDevice* device = nullptr;
  MemoryBooks counted;  // as the device's books have it
  Bytes demand{0};      // reserved while it runs; all that is known while it never reports
  MemoryUse use;
  Instant last_used;
  RecordState state;
  MemoryMove move;
  Instant deadline = Instant::max();  // of the move, or of the stop
  std::uint64_t full_at = 0;          // MemoryDevice::freed when the device was full for it (WayBack::kFull)
  std::uint64_t believed_at = 0;      // MemoryDevice::freed when it was granted room that the books said was free
  Bytes granted{0};  // `use.resident` with room that it was given and no report shows yet; while it runs
  Bytes peak{0};     // of the run that is going on, or that is not sampled yet

  bool idle() const { return state.idle(); }
  bool absent() const;      // something shall return, and does not move
  bool may_return() const;  // and nothing speaks against it
  Bytes occupied() const;
  Bytes returning() const;  // what its memory adds to `occupied` when all of it is back
  Bytes reserved() const;
  Bytes outgoing() const;
  Bytes movable() const;                   // could leave if it were asked now
  Bytes pinned(bool nothing_moves) const;  // stays on the device while it does not run
  MemoryBooks books() const;
};

// An instance found the device full in the middle of its work.
struct RoomRequest {
  InstanceId instance;
  std::optional<std::uint64_t> request;  // none: its swap-in found the device full
  Bytes bytes;
  Instant deadline;
  std::set<InstanceId> awaited;  // moves and stops it waits for
  bool freed = false;            // one of them made room
  bool waits_for_runs = false;   // nothing can be moved for it before something that runs or starts is done
};

struct MemoryDevice {
  GpuId id;
  Bytes memory{0};  // 0: not known
  Unreported unreported;
  LinkSpeed link;
  std::vector<MemoryRecord*> records;                            // ordered by id, like every list of records
  std::vector<MemoryRecord*> absent_runs, absent_idle, movable;  // of them, those that the books count so
  MemoryBooks books;
  bool unsettled = false;             // something may follow from what it is like
  bool some_called = false;           // one of absent_idle may have work that waits
  std::vector<RoomRequest> requests;  // oldest first
  std::size_t reporting = 0;          // records that have reported
  std::uint64_t freed = 1;            // counts up whenever memory may have come free
  std::uint64_t anticipated_at = 0;   // `freed` when it was last asked whose memory should return before any call

  Bytes room() const { return memory - unreported.bytes(); }  // for what is reported
};

// What the instance needs when it runs, as far as its own reports and requests for room that wait say.
Bytes needed_by(const MemoryRecord& record);

// Whether it is the most recently used of the idle instances of its flow on its device.
bool is_latest(const MemoryRecord& record);

}  // namespace fairlead
