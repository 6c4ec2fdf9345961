// A node without processes: carries the core's actions out in virtual time, with modelled instances. The simulator and
// the property tests run the production scheduler through it; 24 hours of a trace take seconds.
//
//   arrive ──> Core ──StartInstance──> model.start(): ready after 9.0 s ──> Core ──Deliver──> model.run(): answers after
//   2.2 s, asks for the next 1 ms later ──> Core ...
//
// A stopped instance is not silenced: what it was about to report still arrives, late, as from a real process, followed
// by its exit. The core has to cope.
//
// Device memory, for flows whose model says how much: an instance allocates all of it while it starts or in its first
// invocation and keeps it, moves take their time on the GPU's link, one after the other in each direction, and an invocation whose memory is
// away waits for it, as at the shim's gate. The device is as full as it is: an allocation that does not fit asks for room.
//
// Time: its own, starts at 0. Threads: not thread-safe. Determinism: events of one instant are handled in the order they
// were scheduled; the same calls and the same model give the same actions.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <utility>

#include "core/core.h"

namespace fairlead {

// How instances behave. Asked once per start and once per delivery; may hold state and seeded randomness.
class InstanceModel {
 public:
  enum class StartEnd { kReady, kExits, kHangs };
  struct Start {
    StartEnd end = StartEnd::kReady;
    Duration after{0};
    int allocations =
        0;  // in which it takes its memory while it starts, spread over `after`; 0: its first invocation does
  };
  enum class RunEnd { kAnswers, kReportsError, kExits, kHangs };
  struct Run {
    RunEnd end = RunEnd::kAnswers;
    Duration after{0};                                   // wall time from delivery
    std::optional<Duration> gpu_time;                    // as measured; empty: not measured
    Duration work_after{0};                              // from the answer to the end of its work on the device
    std::optional<Duration> return_after = Duration(0);  // from the answer to the next question; empty: it never asks
  };

  virtual ~InstanceModel() = default;
  virtual Start start(const StartInstance& action) = 0;
  virtual Run run(FlowId flow, const Deliver& action) = 0;

  // Device memory of one instance; empty: it has no shim, says nothing of memory and its memory is not modelled.
  virtual std::optional<Bytes> memory(FlowId) { return std::nullopt; }
  // How a move that takes `link_time` ends. `moves`: bytes move; `after`: when it is over; `is_answered`: the node is told.
  struct Transfer {
    bool moves = true;
    Duration after{0};
    bool is_answered = true;
    MoveOutcome outcome = MoveOutcome::kDone;
  };
  virtual Transfer transfer(InstanceId, MoveDirection, Duration link_time) { return {.after = link_time}; }
};

class VirtualNode {
 public:
  using Event = std::function<void()>;
  using Observer = std::function<void(const Action&)>;  // may read the node, not change it

  // `model` must outlive the node.
  VirtualNode(CoreOptions options, std::unique_ptr<QueuePolicy> policy, InstanceModel& model);

  Core& core() { return core_; }
  const Core& core() const { return core_; }
  Instant now() const { return now_; }

  // A GPU whose memory is modelled, with a link of so many bytes per second in each direction.
  void add_gpu(GpuId gpu, Bytes memory, std::int64_t link_bytes_per_second);
  // Device memory in use, of all instances. REQUIRES: the GPU was added here.
  Bytes memory_used(GpuId gpu) const { return devices_.at(gpu).used; }

  // Called for each action, in order, before it is carried out. An empty one observes nothing.
  void observe(Observer observer) { observer_ = std::move(observer); }

  // REQUIRES: at >= now().
  void schedule(Instant at, Event event);

  // An invocation of `flow`, now. Ids count up from 1; one that was refused keeps its id.
  Result<InvocationId> arrive(FlowId flow);

  // For the core's other entry points: node.apply([&](Actions& out) { node.core().cancel(node.now(), id, out); });
  template <typename Call>
  void apply(Call call) {
    Actions actions;
    call(actions);
    carry_out(actions);
  }

  // Moves to the next event or wake-up and handles it; false when there is none.
  bool step();
  void run();                   // until nothing is left to happen
  void run_until(Instant end);  // handles all that happens up to `end`, and stands there

 private:
  std::optional<Instant> next_instant() const;
  void carry_out(const Actions& actions);
  void perform(const StartInstance& action);
  void perform(const StopInstance& action);
  void perform(const Deliver& action);
  void perform(const Complete&) {}
  void perform(const Charge&) {}
  void perform(const DeviceChange&) {}
  void perform(const SwapOutMemory& action);
  void perform(const SwapInMemory& action);
  void perform(const GrantRoom& action);
  void finish_run(InstanceId instance, InvocationId invocation, const InstanceModel::Run& run);
  void instance_gone_after(Duration delay, InstanceId instance);

  // ---- virtual_memory.cc
  struct Device {
    Bytes memory{0}, used{0};
    std::int64_t link_bytes_per_second = 1;
    Instant link_free[2] = {};  // by MoveDirection
  };
  struct Holding {  // of one instance
    GpuId gpu;
    Bytes size{0};
    MemoryUse use;
    Bytes arriving{0};
    InstanceModel::Start start;  // that goes on: how many allocations are left, and how long after each
    std::optional<std::pair<InvocationId, InstanceModel::Run>> waiting;  // for its memory
  };
  void start_run(InstanceId instance, InvocationId invocation, const InstanceModel::Run& run);
  void allocate_next(InstanceId instance);
  void run_if_resident(InstanceId instance);
  void release_memory(InstanceId instance);
  void report(InstanceId instance);
  void move(InstanceId instance, MoveDirection direction, Bytes bytes);
  void end_move(InstanceId instance, MoveDirection direction, Bytes bytes, const InstanceModel::Transfer& transfer);

  Core core_;
  InstanceModel& model_;
  Observer observer_;
  Instant now_{};
  std::map<std::pair<Instant, std::uint64_t>, Event> events_;  // by time, then order of scheduling
  std::uint64_t next_event_ = 0;
  std::uint64_t next_invocation_ = 1;
  std::map<InstanceId, FlowId> flow_of_;
  std::map<GpuId, Device> devices_;
  std::map<InstanceId, Holding> holdings_;
  std::uint64_t next_request_ = 1;
};

}  // namespace fairlead
