// Where do the bytes live? Device memory follows the queues (MQFQ-Sticky sections 4.3 and 5): what runs has its memory on
// the device, what is about to run gets it back ahead of time, and what neither runs nor soon will makes room, but only
// as far as room is needed. Decides moves between device and host; carries none out.
//
//            chosen, or its flow is active again                 all there
//   host ────────────────SwapIn──────────────────> returning ───────────────> device
//   host <────────────────────────────── leaving <──────SwapOut────────────── device
//                                                    room is needed, and it does not run
//
// Example: 8 GiB, D = 2, A, B and C of 4 GiB each; A and B have run. C is chosen: A was used least recently, so "SwapOut
// A 4 GiB"; C's start goes on meanwhile. A is chosen while C runs: "SwapOut B 4 GiB", the invocation is delivered at
// once and its first kernel waits at the gate; B's move is done: "SwapIn A". Three functions on memory for two, and no
// instance was stopped.
//
// The books count, per device: what reports say is there; for what runs at least what its function is expected to need;
// for an instance that never reports, the expectation. An instance that never reports is never moved. What the device has
// given beyond that is not in the books, but leaves less room for what is (unreported.h).
//
// What an instance's memory can be in at a time, and what each event makes of it, is in record_state.h.
//
// Nothing waits for ever. Every move has a deadline; one that passes it, and one that failed, makes its instance
// unmovable until it runs again, and if a running invocation waits for that room, idle instances are stopped instead.
// Every request for room is answered, at its deadline at the latest, or its instance goes.
//
// A function that fits the device is never told that the device is full because others start: what it asks for waits until
// they are done, and a start that would wait for ever gives way, to be tried again (GiveWay, room_desk.h).
//
// The parts: memory_record.h what is known of one instance, memory_ledger.h the records of all, with the books; memory_returns.h what
// returns and for whom others leave, memory_victims.h who leaves, room_desk.h requests for room. Here events reach them.
//
// Cost: what the records of a device add up to is kept as they change (memory_books.h), and what waits for its memory is listed, so
// settling looks at no record while nothing is short, nothing that is away may return and nobody asks for room: the usual
// event is O(devices). Deciding who leaves is O(instances of the device).
//
// Time: every event carries `now`. Threads: not thread-safe; owned by the core thread. Determinism: ordered containers
// only where they are walked.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "base/id_map.h"
#include "base/ids.h"
#include "base/units.h"
#include "decide/residency/memory_decisions.h"
#include "decide/residency/memory_ledger.h"
#include "decide/residency/memory_returns.h"
#include "decide/residency/memory_use.h"
#include "decide/residency/memory_victims.h"
#include "decide/residency/room_desk.h"
#include "decide/residency/swap_policy.h"
#include "model/arrival_pace.h"

namespace fairlead {

struct ResidencyOptions {
  MemoryPolicy policy = MemoryPolicy::kPrefetchSwap;
  Duration move_deadline = std::chrono::seconds(5);  // and a second for each GB that moves on the same GPU
  Duration room_deadline = std::chrono::seconds(30);
};

class Residency {
 public:
  Residency(const ResidencyOptions& options, std::unique_ptr<SwapPolicy> swap, const ResidencyContext& context);

  // Configuration. REQUIRES: known where it is used, added once. `memory` 0: not known, nothing moves out ahead of need.
  void add_gpu(GpuId gpu, Bytes memory);
  bool remove_gpu(GpuId gpu);  // false: it has instances, maybe such as are being killed, and stays
  void add_function(FlowId flow, Bytes seed);
  void update_function(FlowId flow, Bytes seed);  // what was learnt stays unless the seed changed
  void remove_function(FlowId flow);

  // One more invocation of the function is queued, which is called at this pace.
  void called(FlowId flow, const ArrivalPace& pace);

  // Device memory the next invocation of the function is expected to need; 0: not known.
  Bytes expected(FlowId flow) const;

  // Instances. Each add is ended by one gone, or by stopping and then gone or its deadline.
  void add(Instant now, InstanceId instance, FlowId flow, GpuId gpu, Bytes demand);  // running: it starts for someone
  void ready(InstanceId instance);                 // its start is over; an invocation may be bound to it
  void started(Instant now, InstanceId instance);  // ready, and nothing is bound to it yet
  // Chosen. True: all its memory is on the device. REQUIRES: it is there and idle.
  bool run(Instant now, InstanceId instance, Bytes demand);
  void rest(Instant now, InstanceId instance);      // nothing is bound to it any more
  void stopping(Instant now, InstanceId instance);  // being killed: its memory is there until it is gone
  void gone(InstanceId instance);                   // not there: no effect

  // Events. Unknown instances are ignored. False: so was this event.
  bool report(InstanceId instance, const MemoryUse& use);
  bool moved(Instant now, InstanceId instance, MoveDirection direction, MoveOutcome outcome);
  bool needs_room(Instant now, InstanceId instance, std::uint64_t request, Bytes bytes);
  bool wants_memory(InstanceId instance);
  // As the device says. What of it is in nobody's report now; empty: as before.
  std::optional<Bytes> device_used(GpuId gpu, Bytes used);
  std::vector<InstanceId> expire(Instant now);  // whose moves were given up: they count otherwise now
  std::optional<Instant> next_deadline() const;

  // What follows from all the events since the last call.
  void settle(Instant now, ResidencyDecisions& out);

  // What is known of an instance's memory. REQUIRES: it was added and is not gone.
  struct Standing {
    Bytes pinned{0};  // stays on the device while it does not run
    Bytes needed{0};  // when it runs, as far as its own reports and requests for room that wait say
    // How long bringing back what is away takes: the time that the link takes for it, twice, since what lies in its place
    // leaves first. 0: all is there. Empty: it never reported.
    std::optional<Duration> reload;
  };
  Standing standing(InstanceId instance) const;
  const MemoryUse* use(InstanceId instance) const;      // null: it has never reported
  const RecordState* state(InstanceId instance) const;  // null: it is not there
  const MemoryCounters& counters() const { return ledger_.counters(); }

  // Aborts unless the books are what the records add up to. For tests.
  void check_books() const { ledger_.check(); }

 private:
  void end_run(Instant now, InstanceId instance, RecordEvent event);
  void settle(Instant now, MemoryDevice& device, ResidencyDecisions& out);

  const ResidencyOptions options_;
  IdMap<FlowId, MemoryFunction> functions_;
  MemoryLedger ledger_;
  MemoryVictims victims_;
  MemoryReturns returns_;
  RoomDesk room_;
};

}  // namespace fairlead
