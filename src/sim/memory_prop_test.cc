// Device memory under random workloads, sizes and links, with moves that fail, are lost or come late, checked after every
// event for what must always hold.
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <map>
#include <set>
#include <string>

#include "base/rng.h"
#include "decide/queueing/window.h"
#include "sim/virtual_node_test_support.h"

namespace fairlead::sim {
namespace {

using namespace std::chrono_literals;
using testing::make_core;
using testing::plain_device;

constexpr Bytes kDevice = gib(8);

// Each function needs what it declares. Some instances have no shim; a share of moves goes wrong.
class Model final : public InstanceModel, public Mishaps {
 public:
  Model(std::uint64_t seed, int failure_percent) : rng_(seed), failure_percent_(failure_percent) {}

  Bytes size(FlowId flow) const { return mib(512 * static_cast<std::int64_t>(1 + flow.value() * 5 % 16)); }
  bool has_shim(FlowId flow) const { return flow.value() % 5 != 0; }

  Start start(const StartInstance&) override { return {.after = up_to(4s)}; }
  void run(FlowId, InvocationId, Run& run) override {
    run = {.after = up_to(2s), .gpu_time = {}, .return_after = up_to(10ms)};
  }
  std::optional<Bytes> memory(FlowId flow) override {
    return has_shim(flow) ? std::optional(size(flow)) : std::nullopt;
  }
  std::optional<Duration> move_time(MoveDirection, Duration link_time) override {
    if (fails() && rng_.below(4) == 0) link_time += 8s;  // past every deadline
    return link_time;
  }
  MoveEnd move_end(MoveDirection) override {
    if (!fails() || rng_.below(2) == 0) return {};
    const MoveOutcome unmoved[] = {MoveOutcome::kBusy, MoveOutcome::kNoRoom, MoveOutcome::kNothing,
                                   MoveOutcome::kFailed};
    return {.moves = false, .outcome = unmoved[rng_.below(std::size(unmoved))]};
  }
  bool loses(Report report) override { return report == Report::kMoved && fails() && rng_.below(2) == 0; }

 private:
  Duration up_to(Duration most) { return Duration(1 + rng_.below(static_cast<std::uint64_t>(most.count()))); }
  bool fails() { return rng_.below(100) < static_cast<std::uint64_t>(failure_percent_); }

  Rng rng_;
  const int failure_percent_;
};

// Functions that take their memory while they start, in parts, and of which the node knows nothing or too little. Each fits the
// device alone.
class Growing final : public InstanceModel {
 public:
  explicit Growing(std::uint64_t seed) : rng_(seed) {}

  static Bytes size(FlowId flow) { return mib(512 * static_cast<std::int64_t>(1 + flow.value() * 5 % 16)); }
  Start start(const StartInstance&) override {
    return {.after = Duration(1 + rng_.below(4'000'000'000)), .allocations = static_cast<int>(1 + rng_.below(4))};
  }
  void run(FlowId, InvocationId, Run& run) override {
    run = {.after = Duration(1 + rng_.below(2'000'000'000)), .gpu_time = {}, .return_after = 1ms};
  }
  std::optional<Bytes> memory(FlowId flow) override { return size(flow); }

 private:
  Rng rng_;
};

struct GrowingRun {
  CoreCounters counters;
  std::string trace;

  explicit GrowingRun(std::uint64_t seed) {
    Rng rng(seed);
    Growing model(rng.next());
    const CoreOptions options{.slots_per_gpu = 1 + rng.below(4),
                              .instances_per_gpu = 4 + rng.below(8),
                              .eviction = rng.below(2) == 0 ? EvictionKind::kLru : EvictionKind::kCost,
                              .starts_per_gpu = rng.below(5)};
    const DeviceModel device = plain_device(kDevice, 10e9);
    VirtualClock clock;
    VirtualNode node(clock, make_core(options, "mqfq-sticky"), model);
    node.add_gpu(GpuId(1), device);
    const std::uint64_t functions = 1 + rng.below(10);
    for (std::uint64_t i = 1; i <= functions; ++i) {
      const std::int64_t parts_known = static_cast<std::int64_t>(rng.below(3));  // of two
      node.core().add_function(
          {.flow = FlowId(i), .expected_memory = Bytes(Growing::size(FlowId(i)).count() * parts_known / 2)});
    }
    node.observe([this](const Action& action) { trace += to_string(action) + '\n'; });
    for (int i = 0; i < 150; ++i) {
      clock.run_until(node.now() + Duration(rng.below(1'000'000'000)));
      RC_ASSERT(node.arrive(FlowId(1 + rng.below(functions))));
    }
    clock.run();
    RC_ASSERT(node.core().drained());
    counters = node.core().counters();
  }
};

class Scenario {
 public:
  Scenario(std::uint64_t seed, MemoryPolicy memory_policy, int failure_percent)
      : rng_(seed),
        faults_(failure_percent > 0),
        options_{.slots_per_gpu = 1 + rng_.below(4),
                 .instances_per_gpu = 4 + rng_.below(8),
                 .memory_policy = memory_policy,
                 .eviction = rng_.below(2) == 0 ? EvictionKind::kLru : EvictionKind::kCost,
                 .starts_per_gpu = rng_.below(2) == 0 ? 0 : 1 + rng_.below(4)},
        model_(rng_.next(), failure_percent),
        node_(clock_,
              make_core(options_, "mqfq-sticky", PolicyOptions().set(kOverRun, Duration(rng_.below(10'000'000'000)))),
              model_, failure_percent > 0 ? &model_ : nullptr) {
    gpus_ = 1 + rng_.below(2);
    device_.link_bytes_per_second = static_cast<double>(1 + rng_.below(20)) * 1e9;
    for (std::uint64_t i = 1; i <= gpus_; ++i) node_.add_gpu(GpuId(i), device_);
    functions_ = 1 + rng_.below(10);
    for (std::uint64_t i = 1; i <= functions_; ++i) {
      node_.core().add_function({.flow = FlowId(i), .timeout = 20s, .expected_memory = model_.size(FlowId(i))});
    }
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

  void finish() {
    node_.apply([&](Actions& out) { node_.core().drain(node_.now(), out); });
    clock_.run();
    check();
    RC_ASSERT(node_.core().drained());
    RC_ASSERT(completed_ == accepted_);
    for (const auto& [instance, request] : asked_) RC_ASSERT(!live_.contains(instance));
  }

  const std::string& trace() const { return trace_; }
  CoreCounters counters() const { return node_.core().counters(); }

 private:
  void random_event() {
    const std::uint64_t event = rng_.below(100);
    if (event < 85 || live_.empty()) {
      const auto invocation = node_.arrive(FlowId(1 + rng_.below(functions_)));
      if (invocation) ++accepted_;
      return;
    }
    auto instance = live_.begin();
    std::advance(instance, static_cast<std::ptrdiff_t>(rng_.below(live_.size())));
    const InstanceId id = instance->first;
    node_.apply([&](Actions& out) {
      Core& core = node_.core();
      if (event < 92) return core.wants_memory(node_.now(), id, out);
      if (!faults_) return;  // what follows is not the truth
      if (event < 94) return core.memory_moved(node_.now(), id, MoveDirection::kOut, MoveOutcome::kDone, out);
      if (event < 95)
        return core.device_memory_used(node_.now(), GpuId(1), mib(static_cast<std::int64_t>(rng_.below(40'000))), out);
      if (event < 96) return core.memory_report(node_.now(), InstanceId(id.value() + 1000), {}, out);
      const std::uint64_t request = 1'000'000 + next_request_++;
      asked_.emplace(id, request);
      core.needs_room(node_.now(), id, request, mib(static_cast<std::int64_t>(rng_.below(12'000))), out);
    });
  }

  // ---- over actions
  void on(const StartInstance& a) { live_[a.instance] = a.flow; }
  void on(const StopInstance& a) {
    live_.erase(a.instance);
    running_.erase(a.instance);
  }
  void on(const Deliver& a) {
    running_.insert(a.instance);
    instance_of_[a.invocation] = a.instance;
  }
  void on(const Complete& a) {
    ++completed_;
    running_.erase(instance_of_[a.invocation]);
    RC_ASSERT(faults_ || a.outcome == OutcomeKind::kSuccess);
  }
  void on(const SwapOutMemory& a) {
    RC_ASSERT(live_.contains(a.instance));
    RC_ASSERT(!running_.contains(a.instance));
    RC_ASSERT(model_.has_shim(live_[a.instance]));
    RC_ASSERT(a.bytes > Bytes(0));
    RC_ASSERT(options_.memory_policy != MemoryPolicy::kNone);
  }
  void on(const SwapInMemory& a) { RC_ASSERT(live_.contains(a.instance)); }
  void on(const Charge&) { RC_FAIL("all work ends with its answer"); }
  void on(const SeatChange&) { RC_FAIL("nobody has a seat"); }
  void on(const DeviceChange&) { RC_FAIL("no device changed"); }
  void on(const GrantRoom& a) {
    RC_ASSERT(live_.contains(a.instance));
    if (a.request >= 1'000'000) RC_ASSERT(asked_.erase({a.instance, a.request}) == 1u);
  }

  // ---- over the state
  void check() const {
    const Core& core = node_.core();
    bool free_slot = false;
    for (const GpuView& gpu : core.gpus()) {
      RC_ASSERT(node_.memory_used(gpu.gpu) <= kDevice);
      RC_ASSERT(faults_ || gpu.memory_admitted <= kDevice);
      free_slot |= gpu.slots_in_use < options_.slots_per_gpu;
    }
    // With faults, more than declared may be expected.
    if (free_slot && !faults_ && core.policy().queued() > 0) check_idle_slot(core);
  }

  // No slot idles while an eligible invocation waits that would fit beside what runs and starts. Where instances start
  // ahead: nor while any could run or start, unless what comes before it waits for memory.
  void check_idle_slot(const Core& core) const {
    RC_ASSERT(core.idle_reason() != IdleReason::kUnnamed);
    const bool ahead = options_.starts_per_gpu > 0;
    const bool waits_for_memory =
        core.idle_reason() == IdleReason::kMemory || core.idle_reason() == IdleReason::kStartMemory;
    for (std::uint64_t i = 1; i <= functions_; ++i) {
      const FlowView view = core.flow(FlowId(i));
      const bool eligible = view.queued > 0 && (ahead ? !waits_for_memory : view.state != FlowState::kThrottled);
      if (!eligible) continue;
      RC_ASSERT(core.obstacle(FlowId(i)) != Obstacle::kNothing);
      if (!ahead) check_it_does_not_fit(core, FlowId(i));
    }
  }

  void check_it_does_not_fit(const Core& core, FlowId flow) const {
    const Bytes needed = std::min(kDevice, model_.size(flow));
    for (const GpuView& gpu : core.gpus()) {
      RC_ASSERT(gpu.slots_in_use == options_.slots_per_gpu || gpu.memory_admitted + needed > kDevice);
    }
  }

  Rng rng_;
  const bool faults_;
  const CoreOptions options_;
  Model model_;
  DeviceModel device_ = plain_device(kDevice, 1e9);
  VirtualClock clock_;
  VirtualNode node_;
  std::uint64_t gpus_ = 0, functions_ = 0;
  std::uint64_t accepted_ = 0, completed_ = 0;
  std::uint64_t next_request_ = 1;
  std::map<InstanceId, FlowId> live_;
  std::set<InstanceId> running_;
  std::map<InvocationId, InstanceId> instance_of_;
  std::set<std::pair<InstanceId, std::uint64_t>> asked_;
  std::string trace_;
};

MemoryPolicy any_policy() {
  return *rc::gen::element(MemoryPolicy::kNone, MemoryPolicy::kPrefetch, MemoryPolicy::kPrefetchSwap);
}

TEST(MemoryProperty, TruthfulReportsNeverOvercommitAndNoSlotIdlesForMemoryThatCouldMove) {
  EXPECT_TRUE(rc::check("admitted <= capacity, work-conserving, nothing that runs is moved, all succeed", [] {
    Scenario scenario(*rc::gen::arbitrary<std::uint64_t>(), any_policy(), /*failure_percent=*/0);
    scenario.run(150);
    scenario.finish();
  }));
}

TEST(MemoryProperty, EverythingEndsWhenMovesFailAndAnswersAreLost) {
  EXPECT_TRUE(rc::check("every invocation completes, every request for room is answered", [] {
    Scenario scenario(*rc::gen::arbitrary<std::uint64_t>(), any_policy(), *rc::gen::element(5, 30, 100));
    scenario.run(150);
    scenario.finish();
  }));
}

TEST(MemoryProperty, StartsThatGrowBesideOthersFailNothing) {
  std::uint64_t gave_way = 0, waited = 0;
  EXPECT_TRUE(rc::check("a function that fits the device alone is never told that it is full", [&](std::uint64_t seed) {
    const GrowingRun run(seed);
    RC_ASSERT(run.counters.failed == 0u);
    RC_ASSERT(run.counters.completed == 150u);
    RC_ASSERT(run.counters.memory.room_refused == 0u);
    RC_ASSERT(run.trace == GrowingRun(seed).trace);
    gave_way += run.counters.memory.starts_gave_way;
    waited += run.counters.memory.room_granted;
  }));
  EXPECT_GT(gave_way, 10u);
  EXPECT_GT(waited, 100u);
}

TEST(MemoryProperty, SameSeedGivesTheSameActions) {
  std::uint64_t moves = 0;
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    Scenario first(seed, MemoryPolicy::kPrefetchSwap, 20), second(seed, MemoryPolicy::kPrefetchSwap, 20);
    for (Scenario* scenario : {&first, &second}) {
      scenario->run(100);
      scenario->finish();
    }
    EXPECT_EQ(first.trace(), second.trace());
    moves += first.counters().memory.swap_outs;
  }
  EXPECT_GT(moves, 10u) << "the scenarios do move memory";
}

}  // namespace
}  // namespace fairlead::sim
