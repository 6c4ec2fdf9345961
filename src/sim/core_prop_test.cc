// Random workloads over several functions and GPUs, with instances that fail in every way a process can, checked after
// every event for what must always hold.
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <map>
#include <set>
#include <string>
#include <utility>

#include "base/rng.h"
#include "decide/queueing/policy_test_support.h"
#include "decide/queueing/window.h"
#include "sim/virtual_node_test_support.h"

namespace fairlead::sim {
namespace {

using namespace std::chrono_literals;
using testing::make_core;

// Starts and runs of random length, a share of which fails.
class RandomModel final : public InstanceModel {
 public:
  RandomModel(std::uint64_t seed, int failure_percent) : rng_(seed), failure_percent_(failure_percent) {}

  Start start(const StartInstance&) override {
    Start start{.after = up_to(8s)};
    if (fails()) start.end = rng_.below(2) == 0 ? StartEnd::kExits : StartEnd::kHangs;
    return start;
  }

  // Whether it answers before its work has ended, if it answers.
  bool works_on(InvocationId invocation) const { return works_on_.contains(invocation); }

  void run(FlowId, InvocationId invocation, Run& run) override {
    run = {.after = up_to(4s), .gpu_time = {}, .return_after = up_to(10ms)};
    if (rng_.below(4) == 0) {
      run.work_after = up_to(3s);
      works_on_.insert(invocation);
    }
    if (rng_.below(2) == 0) run.gpu_time = reported(run.after + run.work_after);
    if (rng_.below(10) == 0) run.end = RunEnd::kReportsError;
    if (fails()) run.end = rng_.below(2) == 0 ? RunEnd::kExits : RunEnd::kHangs;
    if (fails()) run.return_after = std::nullopt;
  }

 private:
  Duration up_to(Duration most) { return Duration(1 + rng_.below(static_cast<std::uint64_t>(most.count()))); }
  // What a program may say of a run: the truth, nothing, next to nothing, more than there was time for, anything.
  Duration reported(Duration held) {
    switch (rng_.below(5)) {
      case 0: return held;
      case 1: return Duration(0);
      case 2: return Duration(1000);
      case 3: return held * (1 + rng_.below(1000)) + 1ns;
      default: return up_to(held);
    }
  }
  bool fails() { return rng_.below(100) < static_cast<std::uint64_t>(failure_percent_); }

  Rng rng_;
  const int failure_percent_;
  std::set<InvocationId> works_on_;
};

// `tasks`: some functions are kernel tasks, which load data, and have lanes of their own. `seats`: some have seats, whose
// memory nobody admitted, on GPUs that are not there too; instances of some of them park.
struct With {
  bool tasks = false, seats = false;
};

// One random node and the invariants over its actions.
class Scenario {
 public:
  Scenario(std::uint64_t seed, std::string_view policy, int failure_percent, With with = {})
      : rng_(seed),
        has_tasks_(with.tasks),
        has_seats_(with.seats),
        options_{.slots_per_gpu = 1 + rng_.below(4),
                 .instances_per_gpu = 4 + rng_.below(6),
                 .queue_limit = 60,
                 .queue_limit_per_flow = 20,
                 .start_deadline = 6s,
                 .return_deadline = 1s,
                 .starts_per_gpu = rng_.below(2) == 0 ? 0 : 1 + rng_.below(4),
                 .task_lanes = with.tasks ? rng_.below(5) : 0,
                 .most_task_lanes = with.tasks && rng_.below(2) == 0 ? 1 + rng_.below(4) : 0,
                 .task_loads_per_gpu = with.tasks ? rng_.below(3) : 0},
        model_(rng_.next(), failure_percent),
        node_(clock_, make_core(options_, policy, PolicyOptions().set(kOverRun, Duration(rng_.below(10'000'000'000)))),
              model_) {
    const std::uint64_t gpus = 1 + rng_.below(3);
    for (std::uint64_t i = 1; i <= gpus; ++i) {
      node_.core().add_gpu({.gpu = GpuId(i), .memory = rng_.below(2) == 0 ? Bytes(0) : gib(16)});
      most_slots_[GpuId(i)] = options_.slots_per_gpu;
    }
    const std::uint64_t functions = 1 + rng_.below(8);
    for (std::uint64_t i = 1; i <= functions; ++i) add_function();
    node_.observe([this](const Action& action) {
      trace_ += to_string(action) + '\n';
      std::visit([this](const auto& a) { on(a); }, action);
    });
  }

  void run(int events) {
    for (int i = 0; i < events; ++i) {
      clock_.run_until(node_.now() + Duration(rng_.below(1'000'000'000)));
      random_event();
      check();
    }
  }

  // Nothing more is sent: everything that was accepted is answered, once all GPUs serve again.
  void finish() {
    for (const auto& [gpu, slots] : most_slots_) {
      node_.apply([&](Actions& out) { node_.core().restore_gpu(node_.now(), gpu, out); });
    }
    node_.apply([&](Actions& out) { node_.core().drain(node_.now(), out); });
    clock_.run();
    check();
    RC_ASSERT(node_.core().drained());
    RC_ASSERT(completed_ == accepted_);
    RC_ASSERT(stated_.empty());
  }

  void shut_down() {
    node_.apply([&](Actions& out) { node_.core().shut_down(node_.now(), out); });
    clock_.run();
    RC_ASSERT(node_.core().instances().empty());
    RC_ASSERT(completed_ == accepted_);
    RC_ASSERT(stated_.empty());
  }

  const std::string& trace() const { return trace_; }

 private:
  FlowId random_function() { return FlowId(1 + rng_.below(next_flow_ - 1)); }

  FlowSpec random_spec(FlowId flow) {
    FlowSpec spec{.flow = flow, .weight = 0.25 * static_cast<double>(1 + rng_.below(16)), .timeout = 5s};
    if (rng_.below(4) == 0) spec.max_concurrency = 1 + rng_.below(3);
    if (rng_.below(2) == 0) spec.expected_memory = gib(static_cast<std::int64_t>(rng_.below(20)));
    spec.is_kernel_task = has_tasks_ && rng_.below(3) > 0;
    if (!has_seats_ || rng_.below(2) == 0) return spec;
    spec.seats = random_seats(flow);
    spec.request_percent = rng_.below(3) == 0 ? 0 : static_cast<int>(1 + rng_.below(100));
    spec.width_percent = static_cast<int>(1 + rng_.below(100));
    if (rng_.below(2) == 0) spec.most_instances = 1 + rng_.below(4);
    spec.parks = !spec.is_kernel_task && rng_.below(2) == 0;
    return spec;
  }

  // One place of each GPU stays for everybody else.
  std::vector<GpuId> random_seats(FlowId flow) {
    std::map<GpuId, std::size_t> taken;
    for (const auto& [other, spec] : specs_) {
      for (const GpuId gpu : spec.seats) taken[gpu] += other == flow ? 0 : 1;
    }
    std::vector<GpuId> seats;
    for (std::uint64_t i = rng_.below(4); i > 0; --i) {
      const GpuId gpu(1 + rng_.below(most_slots_.size() + 1));
      if (++taken[gpu] < options_.instances_per_gpu) seats.push_back(gpu);
    }
    return seats;
  }

  void move_seats() {
    const FlowId flow = random_function();
    if (!specs_.contains(flow)) return;
    specs_[flow].seats = random_seats(flow);
    Tuning tuning{.seats = {{flow, specs_[flow].seats}}};
    if (rng_.below(2) == 0) tuning.parked_to_stop = {InstanceId(1 + rng_.below(started_ + 1))};
    node_.apply([&](Actions& out) { node_.core().retune(node_.now(), tuning, out); });
  }

  void add_function() {
    const FlowSpec spec = random_spec(FlowId(next_flow_++));
    specs_[spec.flow] = spec;
    node_.core().add_function(spec);
  }

  // What a device server says: how long an instance's next call would load, and that a call's data is there.
  void load() {
    const InstanceId instance(1 + rng_.below(started_ + 1));
    node_.core().set_reload(instance, rng_.below(2) == 0 ? 0s : Duration(1 + rng_.below(500'000'000)));
    const InvocationId invocation(1 + rng_.below(accepted_.size() + 1));
    node_.apply([&](Actions& out) { node_.core().loaded(node_.now(), invocation, out); });
  }

  void random_event() {
    if (has_seats_ && rng_.below(20) == 0) move_seats();
    for (std::uint64_t i = has_tasks_ ? rng_.below(6) : 0; i > 0; --i) load();
    const std::uint64_t event = rng_.below(110);
    if (event < 80) return arrive();
    if (event >= 105) return owe(random_function(), Duration(rng_.below(2'000'000'000)));
    const FlowId flow = random_function();
    const Instant now = node_.now();
    Core& core = node_.core();
    node_.apply([&](Actions& out) {
      if (event < 88) {
        core.cancel(now, InvocationId(1 + rng_.below(accepted_.size() + 1)), out);
      } else if (event < 92 && specs_.contains(flow)) {
        specs_[flow] = random_spec(flow);
        core.update_function(now, specs_[flow], out);
      } else if (event < 94 && specs_.contains(flow)) {
        specs_[flow].max_concurrency = rng_.below(3);
        core.set_max_concurrency(now, flow, specs_[flow].max_concurrency, out);
      } else if (event < 95) {
        specs_.erase(flow);
        owed_.erase(flow);
        core.remove_function(now, flow, out);
      } else if (event < 97) {
        add_function();
      } else if (event < 100) {
        repeat_a_late_event(out);
      } else {
        change_a_gpu(out);
      }
    });
  }

  void change_a_gpu(Actions& out) {
    const GpuId gpu(1 + rng_.below(most_slots_.size()));
    Core& core = node_.core();
    switch (rng_.below(4)) {
      case 0: core.drain_gpu(node_.now(), gpu, out); break;
      case 1: core.restore_gpu(node_.now(), gpu, out); break;
      default:
        const std::size_t slots = 1 + rng_.below(options_.instances_per_gpu);
        most_slots_[gpu] = std::max(most_slots_[gpu], slots);
        core.retune(node_.now(), {.slots = {{gpu, slots}}}, out);
    }
  }

  // What a confused or killed process could report.
  void repeat_a_late_event(Actions& out) {
    const InstanceId instance(1 + rng_.below(started_ + 1));
    const InvocationId invocation(1 + rng_.below(accepted_.size() + 1));
    Core& core = node_.core();
    switch (rng_.below(4)) {
      case 3: core.work_ended(node_.now(), instance, Duration(rng_.below(10'000'000'000)), out); break;
      case 0: core.instance_ready(node_.now(), instance, out); break;
      case 1: core.instance_idle(node_.now(), instance, out); break;
      default:
        if (completed_.contains(invocation)) core.answered(node_.now(), invocation, false, std::nullopt, out);
    }
  }

  void owe(FlowId flow, Duration gpu_time) {
    node_.core().owes(flow, gpu_time);
    if (specs_.contains(flow)) owed_[flow] += gpu_time;
  }

  void arrive() {
    const auto invocation = node_.arrive(random_function());
    if (invocation) accepted_.insert(*invocation);
  }

  // ---- over actions
  void on(const StartInstance& a) {
    RC_ASSERT(live_.insert(a.instance).second);
    if (a.entitled) entitled_.insert(a.instance);
    ++started_;
  }
  void on(const StopInstance& a) {
    RC_ASSERT(live_.erase(a.instance) <= 1u);
    RC_ASSERT(a.reason != StopReason::kEvicted || !entitled_.contains(a.instance));
  }
  void on(const Deliver& a) {
    RC_ASSERT(delivered_.emplace(a.invocation, node_.now()).second);
    RC_ASSERT(a.deadline > node_.now());
  }
  void on(const Complete& a) {
    RC_ASSERT(completed_.insert(a.invocation).second);
    const bool ran = a.outcome == OutcomeKind::kSuccess || a.outcome == OutcomeKind::kFunctionError ||
                     a.outcome == OutcomeKind::kTimeout || a.outcome == OutcomeKind::kCrashed;
    RC_ASSERT(!ran || delivered_.contains(a.invocation));
    RC_ASSERT(a.queue_time >= 0s && a.start_time >= 0s && a.service >= 0s);
    if (!delivered_.contains(a.invocation)) return;
    const bool answered = a.outcome == OutcomeKind::kSuccess || a.outcome == OutcomeKind::kFunctionError;
    if (answered && model_.works_on(a.invocation)) {
      stated_[a.invocation] = a.service;
    } else {
      check_charge(a.invocation, a.flow, a.service);
    }
  }
  void on(const Charge& a) {
    RC_ASSERT(stated_.contains(a.invocation));
    RC_ASSERT(a.service == stated_[a.invocation] + a.after_answer);
    stated_.erase(a.invocation);
    check_charge(a.invocation, a.flow, a.service);
  }

  // Whatever was reported.
  void check_charge(InvocationId invocation, FlowId flow, Duration service) {
    const Duration held = node_.now() - delivered_.at(invocation);
    const Duration owed = std::exchange(owed_[flow], Duration(0));
    RC_ASSERT(service >= held / 10 + owed);
    RC_ASSERT(service <= held + owed);
  }

  // No instance here reports memory, so none is moved.
  void on(const SwapOutMemory&) { RC_FAIL("nothing reported"); }
  void on(const SwapInMemory&) { RC_FAIL("nothing reported"); }
  void on(const GrantRoom&) { RC_FAIL("nothing was asked"); }
  void on(const SeatChange& a) {
    RC_ASSERT(live_.contains(a.instance));
    if (a.entitled) {
      RC_ASSERT(entitled_.insert(a.instance).second);
    } else {
      entitled_.erase(a.instance);
    }
  }
  void on(const DeviceChange&) { RC_FAIL("no device changed"); }

  // ---- over the state
  void check() {
    const Core& core = node_.core();
    check_slots(core);
    const CoreCounters& c = core.counters();
    std::size_t in_flight = 0;
    for (const GpuView& gpu : core.gpus()) in_flight += gpu.slots_in_use + gpu.entitled_in_use - gpu.answered_early;
    RC_ASSERT(c.arrived == c.completed + c.failed + core.policy().queued() + in_flight);
    std::size_t requeued = 0;  // what a drained GPU gives back was accepted before, and is not refused now
    for (const auto& [gpu, slots] : most_slots_) requeued += has_seats_ ? options_.instances_per_gpu : slots;
    RC_ASSERT(core.policy().queued() <= options_.queue_limit + requeued);
    RC_ASSERT(core.policy().global_virtual_time() >= last_global_);
    last_global_ = core.policy().global_virtual_time();
    RC_ASSERT(core.counters().idle_slots[static_cast<std::size_t>(IdleReason::kUnnamed)] == 0s);
    if (has_seats_) check_seats(core);
    if (!has_tasks_) check_work_conservation(core);  // who has its data elsewhere waits, though it could run
  }

  // An instance that runs holds a slot of its GPU, and one that starts, unless it starts ahead; one that returns may; an
  // idle one does not.
  void check_slots(const Core& core) const {
    std::map<GpuId, std::size_t> starting, busy;
    for (const InstanceView& i : core.instances()) {
      if (i.state == InstanceState::kStarting) ++starting[i.gpu];
      if (i.state == InstanceState::kBusy) ++busy[i.gpu];
    }
    for (const GpuView& gpu : core.gpus()) {
      const std::size_t lanes =
          options_.starts_per_gpu == 0 ? 0 : std::max(options_.task_lanes, options_.most_task_lanes);
      RC_ASSERT(gpu.task_loads <= options_.task_loads_per_gpu);
      RC_ASSERT(gpu.slots_in_use - gpu.task_loads <=
                std::max(most_slots_.at(gpu.gpu), lanes) + options_.task_loads_per_gpu);
      RC_ASSERT(gpu.starting_ahead <= std::max<std::size_t>(options_.starts_per_gpu, has_seats_ ? 1 : 0));
      if (options_.starts_per_gpu > 0) RC_ASSERT(gpu.starting_ahead == starting[gpu.gpu]);
      if (options_.starts_per_gpu == 0 && !has_seats_) RC_ASSERT(gpu.starting_ahead == 0u);
      const std::size_t holding = starting[gpu.gpu] - gpu.starting_ahead;
      RC_ASSERT(gpu.slots_in_use + gpu.entitled_in_use >= holding);  // a seat may be taken in the middle of a start
      RC_ASSERT(gpu.slots_in_use <= holding + busy[gpu.gpu]);
      RC_ASSERT(gpu.instances <= options_.instances_per_gpu);
    }
  }

  // Nobody has more instances in seats on a GPU than it ever had seats there; none of them idles beside work of its function that may
  // run and needs no memory.
  void check_seats(const Core& core) {
    std::set<GpuId> serving;
    for (const GpuView& gpu : core.gpus()) {
      if (gpu.serves) serving.insert(gpu.gpu);
    }
    for (const InstanceView& i : core.instances()) {
      RC_ASSERT(!i.entitled || i.seated);
      const auto spec = specs_.find(i.flow);
      if (spec == specs_.end() || !i.entitled || i.state != InstanceState::kIdle || !serving.contains(i.gpu)) continue;
      const FlowView view = core.flow(i.flow);
      const bool limited = spec->second.max_concurrency && view.in_flight >= *spec->second.max_concurrency;
      RC_ASSERT(view.queued == 0 || limited || spec->second.expected_memory > Bytes(0));
    }
  }

  // No slot idles beside work that could run, or whose first instance could start, unless one that comes before it waits
  // for memory. Where starts hold the slot: nor beside eligible work that needs no device memory.
  void check_work_conservation(const Core& core) const {
    bool free_slot = false;
    for (const GpuView& gpu : core.gpus()) free_slot |= gpu.serves && gpu.slots_in_use - gpu.task_loads < gpu.slots;
    if (!free_slot || core.policy().queued() == 0) return;
    const bool ahead = options_.starts_per_gpu > 0;
    const IdleReason reason = core.idle_reason();
    const bool waits_for_memory = ahead && (reason == IdleReason::kMemory || reason == IdleReason::kStartMemory);
    for (const auto& [flow, spec] : specs_) {
      const FlowView view = core.flow(flow);
      const bool limited = spec.max_concurrency && view.in_flight >= *spec.max_concurrency;
      if (view.queued == 0 || limited || waits_for_memory) continue;
      const bool eligible = ahead || (view.state != FlowState::kThrottled && spec.expected_memory == Bytes(0));
      RC_ASSERT(!eligible || core.obstacle(flow) != Obstacle::kNothing);
    }
  }

  Rng rng_;
  const bool has_tasks_, has_seats_;
  const CoreOptions options_;
  RandomModel model_;
  VirtualClock clock_;
  VirtualNode node_;
  std::map<FlowId, FlowSpec> specs_;
  std::map<GpuId, std::size_t> most_slots_;  // that each GPU had at any time
  std::uint64_t next_flow_ = 1;
  std::uint64_t started_ = 0;
  std::set<InvocationId> accepted_, completed_;
  std::map<InvocationId, Instant> delivered_;
  std::map<InvocationId, Duration> stated_;  // of those that are not charged yet
  std::map<FlowId, Duration> owed_;
  std::set<InstanceId> live_, entitled_;
  Duration last_global_{0};
  std::string trace_;
};

void check_scenarios(std::string_view policy, With with = {}) {
  EXPECT_TRUE(rc::check("exactly one completion, slots conserved, work-conserving, Global_VT monotone", [&] {
    const auto seed = *rc::gen::arbitrary<std::uint64_t>();
    Scenario scenario(seed, policy, *rc::gen::element(0, 5, 30, 100), with);
    scenario.run(200);
    scenario.finish();
    scenario.shut_down();
  }));
}

TEST(CoreProperty, HoldsUnderRandomFaultsWithMqfqSticky) {
  check_scenarios("mqfq-sticky");
}
TEST(CoreProperty, HoldsUnderRandomFaultsWithFcfs) {
  check_scenarios("fcfs");
}

TEST(CoreProperty, HoldsWithKernelTasksUnderTheDefault) {
  check_scenarios("mqfq-setup", {.tasks = true});
}
TEST(CoreProperty, HoldsWithKernelTasksUnderAPolicyThatChoosesTheGpu) {
  check_scenarios("resident-window", {.tasks = true});
}

TEST(CoreProperty, HoldsWithSeatsUnderMqfqSticky) {
  check_scenarios("mqfq-sticky", {.seats = true});
}
TEST(CoreProperty, HoldsWithSeatsAndKernelTasksUnderTheDefault) {
  check_scenarios("mqfq-setup", {.tasks = true, .seats = true});
}
TEST(CoreProperty, HoldsWithSeatsUnderOtherPolicies) {
  for (const char* policy : {"fcfs", "batch", "sfq", "resident-window", "cfs-affinity"}) {
    SCOPED_TRACE(policy);
    check_scenarios(policy, {.seats = true});
  }
}

TEST(CoreProperty, ShutdownInTheMiddleAnswersEverything) {
  EXPECT_TRUE(rc::check("every accepted invocation completes", [] {
    Scenario scenario(*rc::gen::arbitrary<std::uint64_t>(), "mqfq-sticky", 10);
    scenario.run(60);
    scenario.shut_down();
  }));
}

TEST(CoreProperty, SameSeedGivesTheSameActions) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    Scenario first(seed, "mqfq-sticky", 10), second(seed, "mqfq-sticky", 10), other(seed + 100, "mqfq-sticky", 10);
    for (Scenario* scenario : {&first, &second, &other}) {
      scenario->run(100);
      scenario->finish();
    }
    EXPECT_EQ(first.trace(), second.trace());
    EXPECT_NE(first.trace(), other.trace());
  }
}

}  // namespace
}  // namespace fairlead::sim
