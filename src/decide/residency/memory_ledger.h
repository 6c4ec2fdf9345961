// The records of all instances' device memory, and the books of each device: what the records add up to. Whatever changes a record goes
// through here, so the sums, the lists and the deadlines are right after each step; check() says so. Decides nothing.
//
// Example: A, idle with 4 GiB on GPU 1, is asked to leave (begin_move): its state steps, its books are taken out of the device's and
// put in again with 4 GiB outgoing, it leaves the list of what is movable, it has a deadline, and the device is unsettled, because
// something may follow from that. A's instance goes (erase): all of it is undone, and whoever waited for it is told that memory is free.
//
// A device on which nothing has changed since nothing followed is settled: nothing would follow now. take_unsettled() gives the others.
//
// Time: given. Threads: not thread-safe. Determinism: lists of records are ordered by id.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "base/id_map.h"
#include "decide/residency/memory_decisions.h"
#include "decide/residency/memory_record.h"

namespace fairlead {

class MemoryLedger {
 public:
  // `move_deadline`: for a move or a stop, and a second for each GB that moves on the same device.
  explicit MemoryLedger(Duration move_deadline) : move_deadline_(move_deadline) {}
  MemoryLedger(const MemoryLedger&) = delete;
  MemoryLedger& operator=(const MemoryLedger&) = delete;

  void add_device(GpuId gpu, Bytes memory);  // again: the memory changes
  bool remove_device(GpuId gpu);             // false: it has records, and stays. REQUIRES: it is there
  MemoryDevice& device(GpuId gpu) { return devices_.at(gpu); }

  MemoryRecord* find(InstanceId id) { return records_.find(id); }  // null: it is not there
  const MemoryRecord* find(InstanceId id) const { return records_.find(id); }
  MemoryRecord& at(InstanceId id) { return records_.at(id); }
  // It starts for someone. `function` may be null.
  MemoryRecord& add(Instant now, InstanceId id, FlowId flow, MemoryFunction* function, GpuId gpu, Bytes demand);
  void erase(MemoryRecord& record);

  // False: the event means nothing in its state, and nothing has changed. The second aborts instead: for what its caller has made
  // sure of. recount() follows, once all has changed that does.
  static bool take(MemoryRecord& record, RecordEvent event);
  static void must_take(MemoryRecord& record, RecordEvent event);
  // To be called whenever a record has changed; once more does no harm.
  void recount(MemoryRecord& record) { count_as(record, record.books()); }
  // Something may follow from what the device is like.
  void unsettle(MemoryDevice& device) {
    if (std::exchange(device.unsettled, true)) return;
    unsettled_.push_back(&device);
  }

  // It is being killed: its memory is there until it is gone, or its deadline.
  void begin_stop(Instant now, MemoryRecord& record);
  // All of it back, or `bytes` out (RecordEvent::kLeaves).
  void begin_move(Instant now, MemoryRecord& record, RecordEvent event, Bytes bytes, ResidencyDecisions& out);
  // A move has ended as it says, which is `event` in the record's state. False: that is refused.
  bool end_move(Instant now, MemoryRecord& record, RecordEvent event, MoveDirection direction, MoveOutcome outcome);
  // A move or a stop that requests for room may wait for is over.
  void tell_requests(MemoryDevice& device, InstanceId id, bool freed);

  // The first move or stop whose deadline has passed: its record. A stop's record is erased by its caller; a move is given up.
  MemoryRecord* overdue(Instant now);
  void give_up_move(MemoryRecord& record);
  Instant next_deadline() const;  // of requests for room, too; Instant::max(): none

  // Those that are unsettled, by id, and no longer are. Valid until the next call.
  const std::vector<MemoryDevice*>& take_unsettled();

  MemoryCounters& counters() { return counters_; }
  const MemoryCounters& counters() const { return counters_; }

  // Aborts unless the books are what the records add up to, and sound. For tests.
  void check() const;

 private:
  void count_as(MemoryRecord& record, const MemoryBooks& books);
  void count_moved(MemoryRecord& record, MoveDirection direction, MoveOutcome outcome);
  void set_deadline(MemoryRecord& record, Instant at);
  void clear_deadline(MemoryRecord& record);

  const Duration move_deadline_;
  std::map<GpuId, MemoryDevice> devices_;
  IdMap<InstanceId, MemoryRecord> records_;  // of all devices
  std::set<std::pair<Instant, InstanceId>> deadlines_;
  std::vector<MemoryDevice*> unsettled_, settling_;  // unordered; as take_unsettled() gave them last
  MemoryCounters counters_;
};

}  // namespace fairlead
