// A node without processes: carries the core's actions out in virtual time, with modelled instances and devices. The
// simulator, chaos and the property tests run the production scheduler through it; 24 hours of a trace take seconds.
//
//   arrive ──> Core ──StartInstance──> model.start(): ready after 9.0 s ──> Core ──Deliver──> model.run(): answers after
//   2.2 s, asks for the next at once ──> Core ...
//
// A GPU that is added here has a speed, a link and memory (virtual_memory.h), as its DeviceModel says: starts and runs slow
// each other down there. On a GPU that only the core knows, everything takes as long as the model says.
//
// A stopped instance is not silenced: what it was about to report still arrives, late, as from a real process. The core
// has to cope.
//
// Time: the clock's; several nodes may share one. Threads: not thread-safe. Determinism: the same calls, model and mishaps
// give the same actions, whoever else is on the clock.
#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <utility>

#include "base/id_map.h"
#include "decide/core/core.h"
#include "decide/queueing/flow_view.h"
#include "sim/gpu_watch.h"
#include "sim/instance_model.h"
#include "sim/virtual_clock.h"
#include "sim/virtual_gpus.h"
#include "sim/virtual_memory.h"

namespace fairlead::sim {

class VirtualNode final : private ClockParty {
 public:
  using Call = std::function<void()>;
  using Observer = std::function<void(const Action&)>;  // may read the node, not change it

  // `clock`, `model` and `mishaps`, if there are any, must outlive the node.
  VirtualNode(VirtualClock& clock, std::unique_ptr<Core> core, InstanceModel& model, Mishaps* mishaps = nullptr);

  // For configuration and views; events go through apply().
  Core& core() { return *core_; }
  const Core& core() const { return *core_; }
  Instant now() const { return clock_.now(); }

  // From now on the core hears of each modelled GPU once each period, as from a monitor, and D follows the load, up to the core's
  // slots_per_gpu. Before the first GPU is added.
  void watch_gpus(Duration period);
  // A modelled GPU, for the core too. `device` must outlive the node.
  void add_gpu(GpuId gpu, const DeviceModel& device);
  // The same while the node runs, and its end: it gets no more work, and is gone when nothing is left on it. Ids count up from 1
  // and are never used again.
  void plug_in(const DeviceModel& device);
  void pull_out(GpuId gpu);
  Bytes memory_used(GpuId gpu) const { return memory_.used(gpu); }
  double busy_seconds() const { return gpus_.busy_seconds(); }

  // Called for each action, in order, before it is carried out. An empty one observes nothing.
  void observe(Observer observer) { observer_ = std::move(observer); }

  // REQUIRES: at >= now().
  void schedule(Instant at, Call call);

  // An invocation of `flow`, now. Ids count up from 1; one that was refused keeps its id.
  Result<InvocationId> arrive(FlowId flow);
  InvocationId next_invocation() const { return InvocationId(next_invocation_); }

  // For the core's other entry points: node.apply([&](Actions& out) { node.core().cancel(node.now(), id, out); });
  template <typename Event>
  void apply(const Event& event) {
    tell(event);
    expect_next();
  }

  // All instances on a GPU end at once.
  void lose_gpu(GpuId gpu);
  // The node's process is gone, and with it all instances; another core begins, on the same modelled GPUs. What the instances were
  // about to report still arrives.
  void restart(std::unique_ptr<Core> core);

 private:
  friend class VirtualMemory;
  enum class Kind : std::uint8_t {
    kStarted,
    kRunEnds,
    kWorkEnds,
    kOutOfMemory,
    kIdle,
    kGone,
    kSwappedIn,
    kSwappedOut,
    kAsksForRoom,
    kAsksAtGate,
    kCall
  };
  struct Live {
    FlowId flow;
    GpuId gpu;
    Duration start_part{0};  // what each part of its start takes
    InstanceModel::Run run;
  };

  void happen(const Event& event) override;
  void due(const Moment& expected) override;
  void expect_next();

  // Tells the core and carries out what follows. Carrying out may tell it again, so each level has a list of its own.
  template <typename Event>
  void tell(const Event& event) {
    if (lists_.size() == level_) lists_.emplace_back();
    Actions& actions = lists_[level_++];
    event(actions);
    carry_out(actions);
    actions.clear();
    --level_;
  }
  // What an instance or a device reports: mishaps may tell it twice.
  template <typename Event>
  void report(const Event& event) {
    tell(event);
    if (mishaps_ != nullptr && mishaps_->tells_again()) tell(event);
  }
  void carry_out(const Actions& actions);
  void perform(const StartInstance& action);
  void perform(const StopInstance& action);
  template <typename Other>
  void perform(const Other& action) {
    constexpr bool kMovesMemory =
        std::is_same_v<Other, SwapOutMemory> || std::is_same_v<Other, SwapInMemory> || std::is_same_v<Other, GrantRoom>;
    if constexpr (kMovesMemory) memory_.perform(action);
    if constexpr (std::is_same_v<Other, DeviceChange>) {
      if (action.kind == DeviceChange::Kind::kGone) gpus_.remove(action.gpu);
    }
    if constexpr (std::is_same_v<Other, Deliver>) {
      if (memory_.admits(action.instance, action.invocation)) begin_run(action.instance, action.invocation);
    }
  }

  void look_at_gpus();
  void go_on_starting(InstanceId instance);
  void begin_run(InstanceId instance, InvocationId invocation);
  void end_run(InstanceId instance, InvocationId invocation);
  bool is_quiet() const;
  void release(InstanceId instance);

  VirtualClock& clock_;
  EventsOf<Kind> events_;
  std::unique_ptr<Core> core_;  // never null
  InstanceModel& model_;
  Mishaps* const mishaps_;
  Observer observer_;
  VirtualGpus gpus_;
  GpuWatch watch_;  // off: D is fixed
  VirtualMemory memory_;
  IdMap<InstanceId, Live> instances_;
  const InstanceModel::Run plain_run_;  // what each begins as, and what one that was stopped still tells
  std::deque<Actions> lists_;           // for tell(), by level
  std::size_t level_ = 0;
  std::map<std::uint64_t, Call> calls_;  // that are scheduled
  std::uint64_t next_invocation_ = 1;
};

TenantUse tenant_use(const VirtualNode& node, TenantId tenant);

}  // namespace fairlead::sim
