// The core: state + event + now -> actions. It owns every scheduling decision of a node: which invocation is next
// (queueing), on which GPU and instance (placement), whose memory is on the device (residency), when an instance starts
// or goes. The node carries the actions out with real processes; a simulator carries them out in virtual time; a test
// compares lists.
//
//   arrival of f ──> queue of f ──> policy picks f ──> warm instance idle?  yes: Deliver
//                         │                                                 no:  StartInstance, Deliver once it is ready
//                         └──> starts ahead: StartInstance, and f is picked once it is ready and a slot is free
//   answer      ──> Complete; work goes on on the device? yes: slot and charge stay open until it has ended
//   end of work ──> slot back, charge f, instance idle again ──> next choice
//
// Time: every event carries `now`; the core holds no clock. It asks for a wake-up with next_wakeup().
// Threads: not thread-safe; owned by the core thread.
// Determinism: the same events in the same order give the same actions, byte for byte.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "base/units.h"
#include "decide/core/idle_slots.h"
#include "decide/placement/task_room.h"
#include "decide/queueing/policy.h"
#include "decide/residency/memory_decisions.h"
#include "decide/sharing/gpu_health.h"
#include "model/invocation.h"

namespace fairlead {

// ---- what the core is told about

// Which idle instance, and whose idle memory, goes first when room is needed.
enum class EvictionKind {
  kLru,
  kInactiveFirst,  // the paper's: instances of throttled and inactive flows, LRU among them; memory as kLru
  kCost,
};
std::optional<EvictionKind> eviction_named(
    std::string_view name);                         // as eviction_name() gives them; empty for any other
std::string_view eviction_name(EvictionKind kind);  // "lru", "inactive-first", "cost"

// REQUIRES: 1 <= slots_per_gpu <= instances_per_gpu; Core checks it, so validate what people wrote first.
struct CoreOptions {
  std::size_t slots_per_gpu = 2;                       // D (paper section 4.2)
  std::size_t instances_per_gpu = 32;                  // warm pool and cap of live instances per GPU
  std::size_t queue_limit = 10'000;                    // queued invocations on the node
  std::size_t queue_limit_per_flow = 1'000;            // and of one function
  Duration start_deadline = std::chrono::seconds(60);  // from StartInstance to ready
  // From an answer to the question for the next invocation; an instance that takes longer is stopped.
  Duration return_deadline = std::chrono::seconds(5);
  MemoryPolicy memory_policy = MemoryPolicy::kPrefetchSwap;
  EvictionKind eviction = EvictionKind::kLru;
  // Instances that may start at the same time per GPU without holding a slot of it, ahead of the choice of what they
  // will run. 0: a cold start holds the slot of the invocation it is for (the paper).
  std::size_t starts_per_gpu = 0;
  // Calls of kernel tasks that run on a GPU at the same time, while no program runs there or waits; 0: as many as slots. What
  // is above the slots counts only where starts hold none (starts_per_gpu): a start that holds one must find it.
  std::size_t task_lanes = 0;
  // Not 0: task_lanes is measured, from the slots up to so many (sharing/measured_lanes.h).
  std::size_t most_task_lanes = 0;
  // Calls of kernel tasks that bring constants to a GPU without holding a lane (placement/task_lanes.h); 0: they hold one.
  std::size_t task_loads_per_gpu = 0;
  bool no_cold_duplicates = false;  // wait for a busy instance where that is expected to be sooner than a second start
  // From SwapOutMemory, SwapInMemory to memory_moved; and a second for each GB that moves on the same GPU.
  Duration move_deadline = std::chrono::seconds(5);
  Duration room_deadline = std::chrono::seconds(30);  // from needs_room to GrantRoom
};

// kInvalidArgument names the field, its value and the bound.
Status validate(const CoreOptions& options);

// The scheduling view of a function.
struct FlowSpec {
  FlowId flow;
  double weight = 1.0;
  Duration timeout = std::chrono::seconds(60);                // from delivery to answer
  std::optional<std::size_t> max_concurrency = std::nullopt;  // reserved concurrency; 0 refuses every invocation
  Bytes expected_memory{0};                          // device memory of one instance, until it is learnt; 0: not known
  TenantId tenant;                                   // for policies with tenants; 0: none named
  std::optional<Duration> objective = std::nullopt;  // for policies with deadlines
  bool is_kernel_task = false;                       // its instances are sessions of a device server
  FlowId family = {};                                // FlowShare's: a version of that function; 0: its own

  // Where instances of it are kept, one entry for each: they start before anybody calls, nobody evicts them, and they start again when
  // they went. REQUIRES: admitted, so that on each GPU all seats and D fit into instances_per_gpu. No effect under policies that keep
  // no instances, or one function on a GPU.
  std::vector<GpuId> seats = {};
  std::optional<std::size_t> most_instances = std::nullopt;  // at a time; those in seats count. Empty: no limit
  // An instance that loses its seat and runs nothing stays without it: it parks, and goes as any idle one, memory first. Whoever is there
  // takes a free seat on its GPU before another starts.
  bool parks = false;
  // Of the time: what an instance in a seat is entitled to. Above 0: it takes no slot, and what it uses within costs no virtual time.
  int request_percent = 0;
  int width_percent = 100;  // of the SMs, that an instance takes while it runs; its GPU time is charged times this
  // Slices that its instances run on (is_of_profile() of GpuSpec::mig_profile). "": any device.
  std::string mig_profile = {};
};

struct GpuSpec {
  GpuId gpu;
  Bytes memory{0};
  std::size_t slots = 0;         // D; 0: CoreOptions::slots_per_gpu
  bool is_dynamic = false;       // D follows the load, from 1 to `slots` (sharing/dynamic_slots.h)
  bool has_daemon = false;       // shared through MPS: a fault of one client ends them all (sharing/gpu_health.h)
  bool has_task_lanes = true;    // false: kernel tasks take slots there, as everything does
  bool only_seats = false;       // no slots: nobody runs there but instances in seats with a request (FlowSpec::seats)
  std::string mig_profile = {};  // "3g.40gb"; "": it is no slice
};

// ---- what is said of devices

// It may have work from now on, as after Core::add_gpu().
struct DeviceAppeared {
  GpuSpec gpu;
};
// It gets no more work, ever; its instances go as in Core::drain_gpu(). DeviceChange::kGone follows, at once or with the last of
// them. From then on its id means nothing, and is not used again.
struct DeviceWent {
  GpuId gpu;
};
// What a monitor sees of one device, once each period.
struct DeviceSample {
  GpuId gpu;
  std::string failure = {};  // why it does not answer; "": it does
  double utilisation = 0;    // 0-1 over the period
  Bytes memory_used{0};
};
struct DeviceFault {
  GpuId gpu;
  unsigned xid = 0;
};
// The last instance's process there has gone, or none is there.
struct DeviceEmptied {
  GpuId gpu;
};
struct DaemonSeen {
  GpuId gpu;
  MpsDaemonState state;
};
// After DeviceChange::kRestartDaemon.
struct DaemonStarted {
  GpuId gpu;
  bool ok = false;
};
using DeviceEvent =
    std::variant<DeviceAppeared, DeviceWent, DeviceSample, DeviceFault, DeviceEmptied, DaemonSeen, DaemonStarted>;

// ---- what the core decides

enum class StopReason {
  kEvicted,
  kTimeout,
  kFunctionChanged,
  kStartFailed,
  kShutdown,
  kGpuDrained,
  kNoRoom,          // it started, and others held the memory it asked for; it is started again
  kKeptLongEnough,  // HoldDesk
};
std::string_view stop_reason_name(StopReason reason);

struct StartInstance {
  InstanceId instance;
  FlowId flow;
  GpuId gpu;
  bool entitled = false;  // it sits in a seat and has its function's request; else it is best effort
  bool operator==(const StartInstance&) const = default;
};
// It has its function's request from now on, or is best effort (FlowSpec::parks).
struct SeatChange {
  InstanceId instance;
  FlowId flow;
  GpuId gpu;
  bool entitled = false;
  bool operator==(const SeatChange&) const = default;
};
struct StopInstance {  // kill now; the core has already forgotten it
  InstanceId instance;
  StopReason reason;
  bool operator==(const StopInstance&) const = default;
};
struct Deliver {
  InvocationId invocation;
  InstanceId instance;
  GpuId gpu;
  StartKind start;
  Instant deadline;
  bool operator==(const Deliver&) const = default;
};
// The invocation is over; exactly one per accepted invocation. kSuccess and kFunctionError follow the function's own
// answer, which the node already holds.
struct Complete {
  InvocationId invocation;
  FlowId flow;
  OutcomeKind outcome;
  StartKind start;
  Duration queue_time;         // arrival to dispatch; a start ahead lies in it
  Duration start_time;         // dispatch to delivery
  Duration service;            // GPU time charged; so far, where its work goes on (Charge)
  Duration instance_start{0};  // of a cold one that was delivered: how long its instance took to be ready
  Duration owed{0};            // part of `service` that is not of this invocation (Core::owes)
  bool operator==(const Complete&) const = default;
};

// What an invocation was charged that had answered before its work on the device ended; exactly one, after its Complete.
struct Charge {
  InvocationId invocation;
  FlowId flow;
  Duration service;       // GPU time charged, in all
  Duration after_answer;  // part of it that its Complete did not state
  Duration owed{0};       // part of it that is not of this invocation (Core::owes)
  bool operator==(const Charge&) const = default;
};

// Moves of an instance's device memory; each is answered by one memory_moved. An instance gets none before it has
// reported, and one at a time.
struct SwapOutMemory {  // it holds no invocation
  InstanceId instance;
  GpuId gpu;
  Bytes bytes;  // at least so much, and no more than is needed
  bool operator==(const SwapOutMemory&) const = default;
};
struct SwapInMemory {  // all of it
  InstanceId instance;
  GpuId gpu;
  bool operator==(const SwapInMemory&) const = default;
};
struct GrantRoom {  // the answer to needs_room
  InstanceId instance;
  std::uint64_t request;
  bool granted;  // false: nothing more can be moved
  bool operator==(const GrantRoom&) const = default;
};
// What became of a device. All but kRestartDaemon is done already, and told to those who log it.
struct DeviceChange {
  enum class Kind {
    kDrained,        // no new work; GpuView says why. Its last process gone: DeviceEmptied
    kRestartDaemon,  // of MPS: answered by DaemonStarted
    kServes,         // new work
    kSlots,          // D is another
    kGone,           // after DeviceWent: nothing is left on it, and it is forgotten
  };
  GpuId gpu;
  Kind kind;
  bool operator==(const DeviceChange&) const = default;
};
using Action = std::variant<StartInstance, StopInstance, Deliver, Complete, SwapOutMemory, SwapInMemory, GrantRoom,
                            Charge, DeviceChange, SeatChange>;
using Actions = std::vector<Action>;

// One line for traces and test failures: "start instance=3 flow=1 gpu=2". Equal actions give equal lines.
std::string to_string(const Action& action);

// ---- what people see

enum class InstanceState { kStarting, kIdle, kBusy };
struct InstanceView {
  InstanceId instance;
  FlowId flow;
  GpuId gpu;
  InstanceState state;
  Instant last_used;
  std::optional<MemoryUse> memory = std::nullopt;  // empty: it never reported
  bool seated = false, entitled = false;           // FlowSpec::seats; StartInstance::entitled
};
struct GpuView {
  GpuId gpu;
  std::size_t slots_in_use = 0;
  std::size_t instances = 0;
  Bytes memory_admitted{0};             // what the invocations that run are expected to need
  std::size_t slots = 0;                // D
  bool serves = true;                   // false: drained
  std::size_t starting_ahead = 0;       // instances that start without a slot
  std::size_t answered_early = 0;       // slots held by work that goes on after its answer
  Bytes memory_unreported{0};           // on the device, and in no instance's report: contexts, other programs
  GpuState state = GpuState::kServing;  // as its health has it
  std::string reason = {};              // why it does not serve; "" while it does
  unsigned daemon_restarts = 0;
  std::size_t task_lanes = 0;       // calls of kernel tasks that may run at once now
  std::size_t task_loads = 0;       // of the slots in use: calls that bring constants, and hold no lane
  std::size_t entitled_in_use = 0;  // invocations in seats, beside the slots
};

// Of a function, on slices of one profile; 0: not known.
struct OnSlices {
  Duration cold_start{0}, run{0};
};

// What was learnt of a function.
struct Learnt {
  unsigned failed = 0;                                // in a row, in its seats, since an instance there was ready
  std::optional<Duration> cold_start = std::nullopt;  // from start to ready, as learnt; empty: not known
  std::map<std::string, OnSlices> on_slices = {};     // by profile; empty: it ran on whole GPUs alone
};

// What may change while the core runs. Empty: it stays.
struct Tuning {
  std::optional<std::size_t> queue_limit = std::nullopt;  // CoreOptions
  std::vector<std::pair<GpuId, std::size_t>> slots =
      {};  // D, of those that are there. REQUIRES: 1 <= D <= instances_per_gpu
  std::vector<std::pair<TenantId, TenantShare>> tenants = {};    // those not named keep what they have
  std::vector<std::pair<TenantId, double>> tenant_factors = {};  // times their weights (FlowQueue); likewise
  std::vector<std::pair<FlowId, std::vector<GpuId>>> seats =
      {};                                       // FlowSpec's, of functions that are there; no other instance is touched
  std::vector<InstanceId> parked_to_stop = {};  // those among them that have no seat and run nothing go
};

// arrived = completed + failed + what is queued or dispatched now.
struct CoreCounters {
  std::uint64_t arrived = 0;                                   // accepted
  std::uint64_t rejected = 0;                                  // refused by arrive()
  std::uint64_t completed = 0;                                 // the function answered, with a result or an error
  std::uint64_t failed = 0;                                    // any other outcome
  std::uint64_t cold_starts = 0;                               // instances started
  std::uint64_t device_warm_starts = 0, host_warm_starts = 0;  // deliveries to an instance that was there
  std::uint64_t evictions = 0;
  std::uint64_t loads_given_up =
      0;  // of kernel tasks' calls: they lasted so long that others did not wait for them any more
  MemoryCounters memory;
  IdleSeconds idle_slots{};  // slot time beside queued work, up to the last event, by reason
};

class Core {
 public:
  Core(CoreOptions options, std::unique_ptr<FlowQueue> policy);
  ~Core();

  // Devices and functions. Configuration, not events: no `now`, except where work must be answered. Seats are taken with the next event.
  // REQUIRES: slots <= CoreOptions::instances_per_gpu.
  void add_gpu(const GpuSpec& gpu);
  void add_function(const FlowSpec& spec);
  // An instance of it starts ahead of any invocation, as soon as one may start without taking anybody's place; so the first
  // call of a kernel task finds its session. Begins with the next event. No effect where cold starts hold slots.
  void prepare(FlowId flow);
  // New code or settings. kReplaced: idle instances are stopped, those that hold an invocation go after its answer; new ones start
  // as they are needed. kKept: they are what the new settings make, so they stay, and there is a SeatChange of each; free seats are
  // theirs first. REQUIRES: for kKept the width is as before. No effect when the function is not there.
  enum class Instances { kReplaced, kKept };
  void update_function(Instant now, const FlowSpec& spec, Actions& out, Instances instances = Instances::kReplaced);
  // Reserved concurrency alone: no instance is touched. 0 also completes what is queued, as kCancelled.
  void set_max_concurrency(Instant now, FlowId flow, std::optional<std::size_t> limit, Actions& out);
  // What was not delivered yet completes as kRemoved; what runs is answered, then its instance goes. The id is not
  // used again.
  void remove_function(Instant now, FlowId flow, Actions& out);

  // Events. Each appends the actions that follow from it, dispatches included. What comes late, twice or about something
  // the core has forgotten (it stopped the instance, the invocation timed out) is ignored.
  //
  // arrive: kResourceExhausted when a queue is full or the function's reserved concurrency is 0; kNotFound; kUnavailable
  // once draining. Nothing is appended then. `deadline`: of its caller, for waiting and running together. What was not delivered
  // by then completes as kExpired at once and never is; what runs is ended as by its function's timeout, whichever is sooner.
  // REQUIRES: the id was never used before.
  Status arrive(Instant now, InvocationId invocation, FlowId flow, Actions& out, Instant deadline = Instant::max());
  void cancel(Instant now, InvocationId invocation, Actions& out);      // queued: kCancelled; dispatched: no effect
  void instance_ready(Instant now, InstanceId instance, Actions& out);  // its first `next`
  void instance_gone(Instant now, InstanceId instance, Actions& out);   // it exited, or could not be started
  // The function answered, and nothing of its work is left on the device. `gpu_time`: measured GPU time; empty: charge the
  // time held, from delivery to now. At least a tenth of the time held is charged: the slot was held, and a flow that is
  // charged nothing would hold Global_VT still. At most all of it is: no work of an invocation takes longer.
  void answered(Instant now, InvocationId invocation, bool is_error, std::optional<Duration> gpu_time, Actions& out);
  // The function answered, and its work on the device goes on: Complete follows, while the slot and the charge stay open
  // until work_ended(), at most to the invocation's deadline; then the instance is stopped. `gpu_time`: so far.
  void answered_early(Instant now, InvocationId invocation, bool is_error, Duration gpu_time, Actions& out);
  // The work of an invocation that answered early has ended; `gpu_time` of all of it, bounded as above. Charge follows.
  void work_ended(Instant now, InstanceId instance, std::optional<Duration> gpu_time, Actions& out);
  // The device worked for the flow, and no charge has counted it: outside its invocations, or behind a report that was too
  // small. Its next charge is larger by so much, beyond the bound above; or, whichever is next, that of another version of its function.
  void owes(FlowId flow, Duration gpu_time);
  // What the invocation had to load is on the device (set_reload was above 0 when it began): from now on it computes.
  void loaded(Instant now, InvocationId invocation, Actions& out);
  // After an answer the instance is busy until it asks for the next invocation.
  void instance_idle(Instant now, InstanceId instance, Actions& out);

  // From now on an invocation in this instance first brings constants back to the device for so long (kernel tasks). It counts
  // as set-up of its flow while no other spare instance is quicker; nothing is dispatched.
  void set_reload(InstanceId instance, Duration reload);
  // The same, with what is known of device memory: policies that choose the GPU by what is there are told, and what evicts
  // others' constants counts as such.
  void set_residence(InstanceId instance, const SessionResidence& residence);
  // Device memory that its calls need: they are admitted where that fits beside what runs.
  void set_session_memory(InstanceId instance, const SessionMemory& memory);

  // Device memory. An instance may never say anything of it; it is then counted as its function is expected to need.
  // Reports: after each answer, after each move, and at most every monitor period otherwise.
  void memory_report(Instant now, InstanceId instance, const MemoryUse& use, Actions& out);
  // One for each SwapOutMemory and SwapInMemory. Without it: move_deadline.
  void memory_moved(Instant now, InstanceId instance, MoveDirection direction, MoveOutcome outcome, Actions& out);
  // An allocation of `bytes`, or memory that must return, found the device full. Exactly one GrantRoom follows, at once
  // or within room_deadline, unless the instance goes first; a repeated number is the same request.
  void needs_room(Instant now, InstanceId instance, std::uint64_t request, Bytes bytes, Actions& out);
  // What the device itself says is used, every monitor period. Optional: without it contexts are not counted.
  void device_memory_used(Instant now, GpuId gpu, Bytes used, Actions& out);
  // A thread waits for memory that is away. It comes back as soon as there is room that nothing else has a claim on.
  void wants_memory(Instant now, InstanceId instance, Actions& out);

  // What a monitor, the driver and the MPS daemons say of a device, in any order and any state. Of one that has gone, or goes:
  // no effect.
  void device(Instant now, const DeviceEvent& event, Actions& out);

  // From now on; what runs, runs on, and what is queued stays queued.
  void retune(Instant now, const Tuning& tuning, Actions& out);
  // The GPU gets no more work until restore_gpu(). Its instances go: those that run an invocation after the answer, the
  // others at once; what waited for one that was not ready is queued again, uncharged. Its health may have drained it as well: then both restore it.
  void drain_gpu(Instant now, GpuId gpu, Actions& out);
  void restore_gpu(Instant now, GpuId gpu, Actions& out);

  void drain(Instant now, Actions& out);      // no new arrivals; what was accepted still runs
  bool drained() const;                       // nothing queued, nothing running
  void shut_down(Instant now, Actions& out);  // completes what is left as kShutdown, stops all instances

  // Deadlines, TTLs. The caller calls wake() at next_wakeup(), or later.
  std::optional<Instant> next_wakeup() const;
  void wake(Instant now, Actions& out);

  // Views. Ordered by id. An instance that has answered and not asked yet shows as busy.
  FlowView flow(FlowId flow) const;  // REQUIRES: the function is there
  std::vector<InstanceView> instances() const;
  Bytes expected_memory(FlowId flow) const;  // of the next invocation; 0: not known
  std::vector<GpuView> gpus() const;
  CoreCounters counters() const;
  const FlowQueue& policy() const;
  IdleReason idle_reason() const;    // now. REQUIRES: a slot is free and something is queued
  Learnt learnt(FlowId flow) const;  // REQUIRES: the function is there
  // What keeps the head of the flow from running right now or, where none of its instances has started, one from starting;
  // kNothing also where it is only not its turn. REQUIRES: the function is there.
  Obstacle obstacle(FlowId flow) const;

 private:
  friend class HoldDesk;  // how idle instances are held: hold_desk.h
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace fairlead
