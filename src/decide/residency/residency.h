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
// they are done, and a start that would wait for ever gives way, to be tried again (GiveWay, room.cc).
//
// Cost: what the records of a device add up to is kept as they change (Books), and what waits for its memory is listed, so
// settling looks at no record while nothing is short, nothing that is away may return and nobody asks for room: the usual
// event is O(devices). Deciding who leaves is O(instances of the device).
//
// Time: every event carries `now`. Threads: not thread-safe; owned by the core thread. Determinism: ordered containers
// only where they are walked.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <utility>
#include <variant>
#include <vector>

#include "base/id_map.h"
#include "base/ids.h"
#include "base/units.h"
#include "decide/residency/footprint.h"
#include "decide/residency/link_speed.h"
#include "decide/residency/memory_use.h"
#include "decide/residency/record_state.h"
#include "decide/residency/swap_policy.h"
#include "decide/residency/unreported.h"
#include "model/arrival_pace.h"

namespace fairlead {

struct ResidencyOptions {
  MemoryPolicy policy = MemoryPolicy::kPrefetchSwap;
  Duration move_deadline = std::chrono::seconds(5);  // and a second for each GB that moves on the same GPU
  Duration room_deadline = std::chrono::seconds(30);
};

// ---- what it decides
struct Move {
  InstanceId instance;
  GpuId gpu;
  MoveDirection direction;
  Bytes bytes;  // out: at least so much; in: all
};
struct RoomAnswer {
  InstanceId instance;
  std::uint64_t request;
  bool granted;
};
struct StopIdle {  // its memory cannot leave without it
  InstanceId instance;
};
// It is not ready yet and finds no room beside others: it is stopped, and what it was started for waits for another start.
// Its function would fit alone; the node let too much in.
struct GiveWay {
  InstanceId instance;
};
struct NeedsMore {  // than it was let in with: nobody else may be let into what it waits for
  InstanceId instance;
};
using ResidencyDecision = std::variant<Move, RoomAnswer, StopIdle, GiveWay, NeedsMore>;
using ResidencyDecisions = std::vector<ResidencyDecision>;

// ---- what it asks of the layers beside it
struct FlowDemand {
  Claim claim = Claim::kLeaving;
  std::size_t queued = 0;
};
class ResidencyContext {
 public:
  virtual ~ResidencyContext() = default;
  virtual FlowDemand demand_of(FlowId flow) const = 0;
  // One of `idle`, which is not empty: the instance that is missed least.
  virtual InstanceId cheapest_to_stop(const std::vector<InstanceId>& idle) const = 0;
  virtual bool may_stop(InstanceId) const { return true; }  // an idle one, for its memory
};

struct MemoryCounters {
  std::uint64_t swap_ins = 0, swap_outs = 0;         // asked for
  std::uint64_t swap_failures = 0;                   // answered otherwise than done, or not at all
  std::uint64_t bytes_in = 0, bytes_out = 0;         // of moves that were done
  std::uint64_t bytes_asked_out = 0;                 // of those: more leaves where it lies in large pieces
  std::uint64_t prefetches_in_time = 0;              // back before the invocation was dispatched
  std::uint64_t prefetches_late = 0;                 // on the way when it was dispatched
  std::uint64_t room_granted = 0, room_refused = 0;  // requests of instances
  std::uint64_t starts_gave_way = 0;                 // stopped for want of room, and tried again
  std::uint64_t swap_outs_in_vain = 0;               // their instance was stopped before the move was over
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
  const MemoryCounters& counters() const { return counters_; }

  // Aborts unless the books are what the records add up to. For tests.
  void check_books() const;

 private:
  // What one record counts with, and what a device's records add up to.
  struct Books {
    Bytes occupied{0};     // on the device now, what is coming included
    Bytes reserved{0};     // and what it may grow to while it runs
    Bytes outgoing{0};     // leaves, for others to take
    Bytes on_the_link{0};  // moves either way
    int absent_runs = 0;   // records that run, whose memory must return or is waited for, and that do not move
    int absent_idle = 0;   // the same of those that do not run
    int movable = 0;       // records of which something could leave if it were asked now
    int wanted = 0;        // records of which a thread waits while they idle
    int may_grow = 0;      // records that run, of which nobody knows how much room they will take

    Books& operator+=(const Books& other);
    Books& operator-=(const Books& other);
    bool operator==(const Books&) const = default;
  };
  struct Device;
  struct Function;
  struct Record {
    InstanceId id;
    FlowId flow;
    Function* function = nullptr;  // null: it is not there any more
    Device* device = nullptr;
    Books counted;    // as the device's books have it; recount() after every change
    Bytes demand{0};  // reserved while it runs; all that is known while it never reports
    MemoryUse use;
    Instant last_used;
    RecordState state;

    // Of the move that is under way.
    Bytes moving_bytes{0};
    MemoryUse before_move;
    Instant move_began;
    Bytes on_the_link_then{0};

    Instant deadline = Instant::max();  // of the move, or of the stop
    std::uint64_t full_at = 0;          // Device::freed when the device was full for it (WayBack::kFull)
    std::uint64_t believed_at = 0;      // Device::freed when it was granted room that the books said was free
    Bytes granted{0};  // `use.resident` with room that it was given and no report shows yet; while it runs
    Bytes peak{0};     // of the run that is going on, or that is not sampled yet

    bool idle() const { return state.idle(); }
    bool absent() const;  // something shall return, and does not move
    Bytes occupied() const;
    Bytes returning() const;  // what its memory adds to `occupied` when all of it is back
    Bytes reserved() const;
    Bytes outgoing() const;
    Bytes movable() const;  // could leave if it were asked now
    Bytes pinned(MemoryPolicy policy) const;
    Bytes needed() const;
    Books books() const;
  };
  struct RoomRequest {
    InstanceId instance;
    std::optional<std::uint64_t> request;  // none: its swap-in found the device full
    Bytes bytes;
    Instant deadline;
    std::set<InstanceId> awaited;  // moves and stops it waits for
    bool freed = false;            // one of them made room
    bool waits_for_runs = false;   // nothing can be moved for it before something that runs or starts is done
  };
  struct Device {
    GpuId id;
    Bytes memory{0};
    Unreported unreported;
    LinkSpeed link;
    std::vector<Record*> records;                            // ordered by id, like every list of records
    std::vector<Record*> absent_runs, absent_idle, movable;  // of them, those that the books count so
    Books books;
    bool unsettled = false;             // something may follow from what it is like: it is in unsettled_
    bool some_called = false;           // one of absent_idle may have work that waits
    std::vector<RoomRequest> requests;  // oldest first
    std::size_t reporting = 0;          // records that have reported
    std::uint64_t freed = 1;            // counts up whenever memory may have come free
    std::uint64_t anticipated_at = 0;   // `freed` when it was last asked whose memory should return before any call

    Bytes room() const { return memory - unreported.bytes(); }  // for what is reported
  };
  struct Function {
    Bytes seed{0};
    Footprint footprint{Bytes(0)};
    int gave_way = 0;              // starts of it, since one was ready
    ArrivalPace pace;              // as told last
    bool may_have_queued = false;  // false: nothing is queued
    std::vector<Record*> records;  // of all devices, unordered
  };
  // Whose memory may leave for another's: that of idle instances, or only of those whose flows have no work that may run, or
  // are throttled or inactive.
  enum class Displace { kAnyIdle, kNotQueued, kLeaving, kLeavingUnlessServed, kNobody };
  struct Purpose {  // of bringing back what idles
    RecordEvent event;
    Displace displace;
  };

  // ---- residency.cc
  static void enter(std::vector<Record*>& list, Record& record);
  static void leave(std::vector<Record*>& list, const Record& record);
  void erase(Record& record);
  void recount(Record& record);
  void count_as(Record& record, const Books& books);
  void unsettle(Device& device);
  static bool take(Record& record, RecordEvent event);  // false: it is refused
  static void must_take(Record& record, RecordEvent event);
  void end_run(Instant now, InstanceId instance, RecordEvent event);
  void begin_stop(Instant now, Record& record);
  void learn(Record& record);
  void set_deadline(Record& record, Instant at);
  void clear_deadline(Record& record);
  void count_moved(Record& record, MoveDirection direction, MoveOutcome outcome);
  void tell_requests(Device& device, InstanceId instance, bool freed);

  // ---- moves.cc
  void settle(Instant now, Device& device, ResidencyDecisions& out);
  void make_room_for_runs(Instant now, Device& device, ResidencyDecisions& out);
  void bring_back_runs(Instant now, Device& device, ResidencyDecisions& out);
  void prefetch(Instant now, Device& device, ResidencyDecisions& out);
  void bring_back_wanted(Instant now, Device& device, ResidencyDecisions& out);
  void anticipate(Instant now, Device& device, ResidencyDecisions& out);
  void bring_back_idle(Instant now, Device& device, Record& record, const Purpose& purpose, Bytes& promised,
                       ResidencyDecisions& out);
  static bool is_latest(const Record& record);
  Record* expected_soonest(Instant now, const Device& device) const;
  std::size_t waiting(const Record& record) const {  // how many invocations of its flow wait, and may run
    return record.function != nullptr && record.function->may_have_queued ? ask_for_waiting(record) : 0;
  }
  std::size_t ask_for_waiting(const Record& record) const;
  Duration expected_gap(Instant now, const Record& record) const {  // as SwapCandidate
    return record.function == nullptr ? ArrivalPace::kNeverCalled : record.function->pace.gap(now, waiting(record));
  }
  bool may_return(const Device& device, const Record& record) const;
  Bytes collect_candidates(Instant now, const Device& device, Displace displace, InstanceId except,
                           Duration later_than = Duration(-1));
  Bytes swap_out(Instant now, Device& device, Bytes bytes, ResidencyDecisions& out,
                 std::set<InstanceId>* chosen = nullptr);
  Bytes stop_idle(Instant now, Device& device, Bytes bytes, InstanceId except, ResidencyDecisions& out,
                  std::set<InstanceId>* chosen = nullptr);
  void start_move(Instant now, Device& device, Record& record, RecordEvent event, Bytes bytes, ResidencyDecisions& out);

  // ---- room.cc
  void answer_requests(Instant now, Device& device, ResidencyDecisions& out);
  bool is_possible(const Device& device, const Record& asker, const RoomRequest& request) const;
  static bool became_free(const Device& device, Record& asker, const RoomRequest& request);
  void plan(Instant now, Device& device, const Record& asker, RoomRequest& request, ResidencyDecisions& out);
  void answer(const RoomRequest& request, Device& device, bool granted, ResidencyDecisions& out);
  static bool others_are_in_the_way(const Device& device, const Record& asker, const RoomRequest& request);
  void wait_for_runs(Record& asker, RoomRequest& request, ResidencyDecisions& out);
  void end_standstill(Instant now, Device& device, ResidencyDecisions& out);
  void give_way(Instant now, Record& record, Bytes asked, ResidencyDecisions& out);

  const ResidencyOptions options_;
  const std::unique_ptr<SwapPolicy> swap_;
  const ResidencyContext& context_;
  std::map<GpuId, Device> devices_;
  IdMap<InstanceId, Record> records_;  // of all devices
  IdMap<FlowId, Function> functions_;
  std::set<std::pair<Instant, InstanceId>> deadlines_;  // of moves and stops
  std::vector<Device*> unsettled_, settling_;           // unordered; scratch of settle()
  std::vector<SwapCandidate> candidates_;               // as collected last; swap_out() chooses among them
  MemoryCounters counters_;
};

}  // namespace fairlead
