// 24 functions with device memory for 8, in virtual time: what share of invocations finds its instance warm?
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>
#include <string>

#include "base/rng.h"
#include "sim/virtual_node_test_support.h"

namespace fairlead::sim {
namespace {

using namespace std::chrono_literals;
using testing::make_core;
using testing::plain_device;

constexpr std::uint64_t kFunctions = 24;
constexpr Bytes kSize = gib(1);
constexpr Bytes kDevice = gib(8);
constexpr double kLink = 12e9;  // bytes per second: PCIe 3.0 x16, as the paper's V100
constexpr Duration kColdStart = 8s;
constexpr Duration kService = 200ms;  // times 1 to 4
constexpr double kCallsPerSecond = 1.0;
constexpr Duration kLength = 3600s;

// Table 1's shape: warm calls of tenths of seconds to seconds, cold starts of seconds.
class Model final : public InstanceModel {
 public:
  Start start(const StartInstance&) override { return {.after = kColdStart}; }
  void run(FlowId flow, InvocationId, Run& run) override {
    run.after = kService * static_cast<int>(1 + flow.value() % 4);
    run.return_after = 100us;
  }
  std::optional<Bytes> memory(FlowId) override { return kSize; }
};

struct Starts {
  std::uint64_t device_warm = 0, host_warm = 0, cold = 0;
  std::uint64_t cold_after_eviction = 0;  // neither a function's first nor a second one beside a busy first
  Duration latency{0};
  CoreCounters counters;

  std::uint64_t all() const { return device_warm + host_warm + cold; }
  double warm_share() const { return static_cast<double>(device_warm + host_warm) / static_cast<double>(all()); }
};

// Exponential inter-arrival times with rates Zipf(1.5), as the paper's section 6.
Starts run_zipf(CoreOptions options, std::optional<std::size_t> max_concurrency = std::nullopt) {
  Model model;
  options.queue_limit = options.queue_limit_per_flow = 1'000'000;
  const DeviceModel device = plain_device(kDevice, kLink);
  VirtualClock clock;
  VirtualNode node(clock, make_core(options, "mqfq-sticky"), model);
  node.add_gpu(GpuId(1), device);
  double all_rates = 0;
  for (std::uint64_t i = 1; i <= kFunctions; ++i) all_rates += std::pow(static_cast<double>(i), -1.5);
  for (std::uint64_t i = 1; i <= kFunctions; ++i) {
    node.core().add_function({.flow = FlowId(i), .max_concurrency = max_concurrency, .expected_memory = kSize});
    Rng rng(i);
    const double rate = kCallsPerSecond * std::pow(static_cast<double>(i), -1.5) / all_rates;
    for (double at = rng.exponential(1 / rate); at < to_seconds(kLength); at += rng.exponential(1 / rate)) {
      node.schedule(Instant(from_seconds(at)), [&node, i] { FL_CHECK(node.arrive(FlowId(i)).has_value()); });
    }
  }
  Starts starts;
  std::set<FlowId> started;
  node.observe([&](const Action& action) {
    EXPECT_LE(node.memory_used(GpuId(1)), kDevice);
    if (const auto* start = std::get_if<StartInstance>(&action)) {
      const bool is_first = started.insert(start->flow).second;
      const std::vector<InstanceView> instances = node.core().instances();
      const bool is_duplicate = std::any_of(instances.begin(), instances.end(), [&](const InstanceView& i) {
        return i.flow == start->flow && i.instance != start->instance;
      });
      if (!is_first && !is_duplicate) ++starts.cold_after_eviction;
    }
    const auto* done = std::get_if<Complete>(&action);
    if (done == nullptr) return;
    FL_CHECK(done->outcome == OutcomeKind::kSuccess);
    starts.latency += done->queue_time + done->start_time + done->service;
    ++(done->start == StartKind::kDeviceWarm ? starts.device_warm
       : done->start == StartKind::kHostWarm ? starts.host_warm
                                             : starts.cold);
  });
  clock.run();
  starts.counters = node.core().counters();
  return starts;
}

class MemoryScenario : public ::testing::Test {
 protected:
  // As properties of the test's report: quiet, and there for whoever asks (docs/explanation/residency.md).
  void record(const std::string& name, const Starts& starts) {
    const auto permille = [&](std::uint64_t part) { return static_cast<int>(part * 1000 / starts.all()); };
    RecordProperty(name + "_device_warm_permille", permille(starts.device_warm));
    RecordProperty(name + "_host_warm_permille", permille(starts.host_warm));
    RecordProperty(name + "_cold", static_cast<int>(starts.cold));
    RecordProperty(name + "_cold_after_eviction", static_cast<int>(starts.cold_after_eviction));
    RecordProperty(name + "_mean_latency_ms",
                   static_cast<int>(to_ms(starts.latency) / static_cast<double>(starts.all())));
    RecordProperty(name + "_swap_ins", static_cast<int>(starts.counters.memory.swap_ins));
    RecordProperty(name + "_prefetched_in_time", static_cast<int>(starts.counters.memory.prefetches_in_time));
    EXPECT_EQ(starts.counters.memory.room_refused, 0u) << name;
    EXPECT_EQ(starts.counters.memory.swap_failures, 0u) << name;
  }
};

TEST_F(MemoryScenario, TwentyFourFunctionsOnMemoryForEightStayWarm) {
  const Starts none = run_zipf({.memory_policy = MemoryPolicy::kNone});
  const Starts prefetch = run_zipf({.memory_policy = MemoryPolicy::kPrefetch});
  const Starts swap = run_zipf({});
  const Starts cost = run_zipf({.eviction = EvictionKind::kCost});
  record("none", none);
  record("prefetch", prefetch);
  record("prefetch_swap", swap);
  record("prefetch_swap_cost", cost);

  for (const Starts* moving : {&prefetch, &swap, &cost}) EXPECT_GT(moving->warm_share(), 0.95);
  EXPECT_LT(none.warm_share(), 0.85);
  EXPECT_LT(swap.latency * 10, none.latency);
  for (const Starts* ahead : {&swap, &cost}) {
    EXPECT_GT(ahead->device_warm, prefetch.device_warm) << "memory is back before the call";
    EXPECT_GT(ahead->counters.memory.prefetches_in_time, 100u);
  }
}

// With one instance per function the pool has room for all: each starts once.
TEST_F(MemoryScenario, NoColdStartAfterTheFirstOfEachFunctionWhileTheHostHasRoom) {
  const Starts swap = run_zipf({}, /*max_concurrency=*/1);
  record("one_instance_each", swap);
  EXPECT_EQ(swap.cold, kFunctions);
  EXPECT_EQ(swap.counters.evictions, 0u);
}

}  // namespace
}  // namespace fairlead::sim
