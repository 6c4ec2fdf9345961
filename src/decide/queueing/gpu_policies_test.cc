// The worked example of the head of every policy that chooses the GPU too, and what holds for all of them.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "decide/queueing/exclusive.h"
#include "decide/queueing/policy.h"
#include "decide/queueing/policy_test_support.h"
#include "decide/queueing/window.h"

namespace fairlead {
namespace {

using namespace std::chrono_literals;

constexpr FlowId kA(1), kB(2), kC(3), kD(4), kE(5);
constexpr GpuId kGpu1(1), kGpu2(2), kGpu3(3), kGpu4(4);

// GPUs with so many slots each. Data is on the GPUs that are named; elsewhere it takes `load`.
class FakeGpus final : public Placeable {
 public:
  explicit FakeGpus(std::size_t gpus, std::size_t slots = 1, Duration load = Duration(0))
      : slots_(slots), load_(load), running_(gpus) {}

  bool can_run(FlowId flow) const override {
    for (const Place& place : places(flow)) {
      if (place.free) return true;
    }
    return false;
  }
  std::vector<Place> places(FlowId flow) const override {
    std::vector<Place> places;
    for (std::size_t i = 0; i < running_.size(); ++i) {
      const GpuId gpu(i + 1);
      if (drained_.contains(gpu)) continue;
      const bool there = on_.contains({flow, gpu});
      const bool evicts = full_.contains(gpu) && !there;
      places.push_back({gpu, there ? Duration(0) : load_, running_[i], running_[i] < slots_, evicts});
    }
    return places;
  }

  void put(FlowId flow, GpuId gpu) { on_.insert({flow, gpu}); }
  void fill(GpuId gpu) { full_.insert(gpu); }  // with data that nobody here has
  void drain(GpuId gpu) { drained_.insert(gpu); }
  void take(GpuId gpu) { ++running_[gpu.value() - 1]; }
  void give_back(GpuId gpu) { --running_[gpu.value() - 1]; }

 private:
  const std::size_t slots_;
  const Duration load_;
  std::vector<std::size_t> running_;
  std::set<std::pair<FlowId, GpuId>> on_;
  std::set<GpuId> drained_, full_;
};

struct Served {
  FlowId flow;
  GpuId gpu;
  bool operator==(const Served&) const = default;
};

// A policy beside its GPUs; what was chosen runs until end().
class Bench {
 public:
  Bench(const Policy& policy, FakeGpus gpus, PolicyOptions options = {}, std::initializer_list<FlowId> flows = {kA, kB})
      : policy_(policy, options), gpus_(std::move(gpus)) {
    for (const FlowId flow : flows) policy_.add_flow(flow, {});
  }

  FlowQueue& policy() { return policy_; }
  FakeGpus& gpus() { return gpus_; }
  Duration virtual_time(FlowId flow) const { return policy_.view(flow).virtual_time; }

  void arrive(FlowId flow, Duration at = 0s) { policy_.on_arrival(Instant(at), flow, InvocationId(next_++)); }
  std::optional<Served> next(Duration at = 0s) {
    const auto choice = policy_.choose(Instant(at), gpus_);
    if (!choice) return std::nullopt;
    gpus_.take(choice->gpu);
    running_.push_back(*choice);
    return Served{choice->flow, choice->gpu};
  }
  // The flow's oldest invocation on that GPU ends.
  void end(FlowId flow, GpuId gpu, Duration service = 0s, Duration at = 0s) {
    for (auto it = running_.begin(); it != running_.end(); ++it) {
      if (it->flow != flow || it->gpu != gpu) continue;
      policy_.on_completion(Instant(at), flow, it->invocation, service);
      gpus_.give_back(gpu);
      running_.erase(it);
      return;
    }
    ADD_FAILURE() << "flow " << flow.value() << " does not run on GPU " << gpu.value();
  }
  // One invocation of the flow alone.
  void serve_one(FlowId flow, Duration service, Duration latency) {
    arrive(flow);
    const auto served = next();
    ASSERT_TRUE(served);
    ASSERT_EQ(served->flow, flow);
    end(flow, served->gpu, service, latency);
  }

 private:
  FlowQueue policy_;
  FakeGpus gpus_;
  std::vector<FlowQueue::Choice> running_;
  std::uint64_t next_ = 1;
};

// ---- CFS-Affinity

// A's own GPU is 1, B's own is 2; then GPU 2 is idle and both wait.
std::optional<Served> example_of_figure_6a(Duration latency_of_a) {
  Bench bench(cfs_affinity_policy, FakeGpus(2), {}, {kA, kB, kC});
  bench.arrive(kA);
  bench.arrive(kB);
  EXPECT_EQ(bench.next(), (Served{kA, kGpu1}));
  EXPECT_EQ(bench.next(), (Served{kB, kGpu2}));
  bench.end(kA, kGpu1, 30ms, latency_of_a);
  bench.end(kB, kGpu2, 70ms, 1ms);
  bench.gpus().take(kGpu1);  // by others
  bench.arrive(kA);
  bench.arrive(kB);
  return bench.next();
}

TEST(CfsAffinity, AnotherGpuCostsTenMeanLatencies) {
  EXPECT_EQ(example_of_figure_6a(5ms), (Served{kB, kGpu2}));
  EXPECT_EQ(example_of_figure_6a(3ms), (Served{kA, kGpu2}));
}

TEST(CfsAffinity, AnIdleGpuTakesSomebodyHoweverFarFromHome) {
  Bench bench(cfs_affinity_policy, FakeGpus(2, 1, 10s));
  bench.serve_one(kA, 1s, 100s);
  bench.arrive(kA);
  bench.arrive(kA);
  EXPECT_EQ(bench.next(), (Served{kA, kGpu1}));
  EXPECT_EQ(bench.next(), (Served{kA, kGpu2}));
}

TEST(CfsAffinity, AClosedLoopKeepsItsDebt) {
  Bench bench(cfs_affinity_policy, FakeGpus(1));
  bench.serve_one(kA, 300ms, 300ms);  // idle now
  EXPECT_EQ(bench.virtual_time(kA), 300ms);
  bench.arrive(kB);
  bench.arrive(kA);
  EXPECT_EQ(bench.virtual_time(kA), 300ms) << "its idle instant erased what it was served";
  EXPECT_EQ(bench.next()->flow, kB);
}

TEST(CfsAffinity, IdlingSavesUpNothing) {
  Bench bench(cfs_affinity_policy, FakeGpus(1));
  for (int i = 0; i < 5; ++i) bench.serve_one(kB, 1s, 1s);
  bench.arrive(kB);  // the minimum is what it has
  bench.arrive(kA);
  EXPECT_EQ(bench.virtual_time(kA), 5s);
  bench.policy().add_flow(kC, {});
  EXPECT_EQ(bench.virtual_time(kC), 5s);
}

TEST(CfsAffinity, WhatWasMeasuredIsCharged) {
  Bench bench(cfs_affinity_policy, FakeGpus(1));
  bench.serve_one(kA, 40ms, 1s);
  bench.serve_one(kA, 10ms, 1s);  // charged 40 ms at first
  EXPECT_EQ(bench.virtual_time(kA), 50ms);
}

TEST(CfsAffinity, AWeightOfTwoIsChargedHalf) {
  Bench bench(cfs_affinity_policy, FakeGpus(1), {}, {});
  bench.policy().add_flow(kA, {.weight = 2});
  bench.serve_one(kA, 40ms, 1s);
  EXPECT_EQ(bench.virtual_time(kA), 20ms);
}

// ---- resident-window

TEST(ResidentWindow, WithinTheWindowTheResidentGoesFirst) {
  Bench bench(resident_window_policy, FakeGpus(1, 1, 167ms), PolicyOptions().set(kOverRun, 500ms));
  bench.gpus().put(kA, kGpu1);
  bench.arrive(kB);
  int served = 0;
  for (;; ++served) {
    bench.arrive(kA);
    const auto next = bench.next();
    ASSERT_TRUE(next);
    if (next->flow == kB) break;
    bench.end(kA, kGpu1, 39ms);
    ASSERT_LT(served, 100) << "B starves";
  }
  EXPECT_EQ(served, 13);  // 12 x 39 ms are within 500 ms of B, 13 are not
  EXPECT_EQ(bench.virtual_time(kB), 167ms) << "the reload is charged to the flow that causes it";
}

TEST(ResidentWindow, LeavesItsGpuForAFullOneOnlyWhenWaitingHasCostAReload) {
  Bench bench(resident_window_policy, FakeGpus(2, 1, 167ms), PolicyOptions().set(kPatienceReloads, 1));
  bench.gpus().fill(kGpu2);
  bench.gpus().put(kA, kGpu1);
  bench.gpus().put(kB, kGpu1);
  bench.arrive(kA);
  EXPECT_EQ(bench.next(), (Served{kA, kGpu1}));
  bench.arrive(kB, 10ms);
  EXPECT_EQ(bench.next(10ms), std::nullopt);
  EXPECT_EQ(bench.policy().next_chance(), Instant(177ms));
  EXPECT_EQ(bench.next(177ms), (Served{kB, kGpu2}));
  EXPECT_EQ(bench.next(177ms), std::nullopt);
  EXPECT_EQ(bench.policy().next_chance(), std::nullopt);
}

TEST(ResidentWindow, ACopyThatEvictsNothingIsMadeAtOnce) {
  Bench bench(resident_window_policy, FakeGpus(2, 1, 167ms));
  bench.gpus().put(kA, kGpu1);
  bench.gpus().put(kB, kGpu1);
  bench.arrive(kA);
  EXPECT_EQ(bench.next(), (Served{kA, kGpu1}));
  bench.arrive(kB, 10ms);
  EXPECT_EQ(bench.next(10ms), (Served{kB, kGpu2}));
}

TEST(ResidentWindow, UnderTenantsTheNextChanceIsTheSoonestOfAll) {
  const auto policy = *make_policy("resident-window", PolicyOptions{.by_tenant = true}.set(kPatienceReloads, 1));
  FakeGpus gpus(2, 1, 100ms);
  gpus.fill(kGpu2);
  gpus.take(kGpu1);
  for (const FlowId flow : {kA, kB}) {
    policy->add_flow(flow, {.tenant = TenantId(flow.value())});
    gpus.put(flow, kGpu1);
  }
  policy->on_arrival(Instant(20ms), kA, InvocationId(1));
  policy->on_arrival(Instant(10ms), kB, InvocationId(2));
  EXPECT_FALSE(policy->choose(Instant(20ms), gpus));
  EXPECT_EQ(policy->next_chance(), Instant(110ms));
}

TEST(ResidentWindow, WhatIsNowhereLoadsAtOnce) {
  Bench bench(resident_window_policy, FakeGpus(2, 1, 167ms));
  bench.arrive(kA);
  EXPECT_EQ(bench.next(), (Served{kA, kGpu1}));
}

TEST(ResidentWindow, AGpuDoesNotIdleForTheWindow) {
  Bench bench(resident_window_policy, FakeGpus(1, 2), PolicyOptions().set(kOverRun, 0s));
  bench.serve_one(kA, 10s, 10s);
  bench.arrive(kB);
  EXPECT_EQ(bench.next()->flow, kB);
  bench.arrive(kA);  // 10 s ahead of B, which runs
  EXPECT_EQ(bench.next()->flow, kA);
}

// ---- exclusive

// Four GPUs with two slots each: a GPU serves one all the same.
class ExclusiveTest : public ::testing::Test {
 protected:
  void expect_all_served(std::initializer_list<FlowId> flows) {
    for (const FlowId flow : flows) {
      bench_.arrive(flow);
      ASSERT_TRUE(bench_.next());
    }
  }

  std::vector<GpuId> pool(FlowId flow) { return dynamic_cast<const Exclusive&>(bench_.policy().order()).pool(flow); }

  Bench bench_{exclusive_policy, FakeGpus(4, 2), {}, {kA, kB, kC, kD, kE}};
};

TEST_F(ExclusiveTest, APoolGrowsWhileGpusAreFree) {
  bench_.arrive(kA);
  EXPECT_EQ(bench_.next(), (Served{kA, kGpu1}));
  bench_.arrive(kA);
  EXPECT_EQ(bench_.next(), (Served{kA, kGpu2}));
  bench_.end(kA, kGpu1);
  bench_.arrive(kA);
  EXPECT_EQ(bench_.next(), (Served{kA, kGpu1})) << "a warm one before a new one";
}

TEST_F(ExclusiveTest, TheLargestPoolLosesAGpuAndTiesGoRound) {
  expect_all_served({kA, kA, kB, kB});
  for (const GpuId gpu : {kGpu1, kGpu2}) bench_.end(kA, gpu);
  for (const GpuId gpu : {kGpu3, kGpu4}) bench_.end(kB, gpu);
  bench_.arrive(kC);
  EXPECT_EQ(bench_.next(), (Served{kC, kGpu1})) << "A, the first of the largest, loses an idle GPU at once";
  bench_.arrive(kD);
  EXPECT_EQ(bench_.next(), (Served{kD, kGpu3})) << "B has the largest pool now";
  EXPECT_EQ(pool(kA), std::vector{kGpu2});
  EXPECT_EQ(pool(kB), std::vector{kGpu4});
}

TEST_F(ExclusiveTest, ABusyGpuChangesOverWhenItsInvocationEnds) {
  expect_all_served({kA, kB, kC, kD});
  bench_.arrive(kE);
  EXPECT_EQ(bench_.next(), std::nullopt);
  EXPECT_EQ(pool(kE), std::vector{kGpu1}) << "promised";
  bench_.arrive(kA);  // its GPU is gone: it is promised B's, not E's, which has not served E yet
  EXPECT_EQ(bench_.next(), std::nullopt);
  EXPECT_EQ(pool(kA), std::vector{kGpu2});
  bench_.end(kA, kGpu1);
  EXPECT_EQ(bench_.next(), (Served{kE, kGpu1}));
  bench_.end(kB, kGpu2);
  EXPECT_EQ(bench_.next(), (Served{kA, kGpu2}));
}

TEST_F(ExclusiveTest, OneOfTheLargestWaitsForItsOwn) {
  expect_all_served({kA, kB, kC, kD});
  bench_.end(kB, kGpu2);
  bench_.arrive(kA);
  EXPECT_EQ(bench_.next(), std::nullopt) << "B's idle GPU is not for a pool that is as large";
  bench_.end(kA, kGpu1);
  EXPECT_EQ(bench_.next(), (Served{kA, kGpu1}));
}

TEST_F(ExclusiveTest, AGpuThatServesNoMoreIsInNobodysPool) {
  expect_all_served({kA});
  bench_.end(kA, kGpu1);
  bench_.gpus().drain(kGpu1);
  bench_.arrive(kA);
  EXPECT_EQ(bench_.next(), (Served{kA, kGpu2}));
  EXPECT_EQ(pool(kA), std::vector{kGpu2});
}

TEST_F(ExclusiveTest, TheGpusOfAFunctionThatIsRemovedAreFree) {
  expect_all_served({kA, kA, kA, kA});
  for (const GpuId gpu : {kGpu1, kGpu2, kGpu3, kGpu4}) bench_.end(kA, gpu);
  bench_.policy().remove_flow(kA);
  expect_all_served({kB, kB, kB, kB});
}

// ---- what holds for all of them, whatever comes: nothing is lost or made up, none waits for ever, slots are kept

// Some data is somewhere, other nowhere; does not change.
FakeGpus scattered(std::size_t gpus, std::size_t slots) {
  FakeGpus scattered(gpus, slots, 50ms);
  for (std::uint64_t flow = 1; flow < 9; ++flow) {
    for (std::uint64_t gpu = 1; gpu <= gpus; ++gpu) {
      if ((flow + gpu) % 3 == 0) scattered.put(FlowId(flow), GpuId(gpu));
    }
  }
  return scattered;
}

class Load {
 public:
  Load(std::string_view name, const PolicyOptions& options, std::size_t flows, std::size_t gpus, std::size_t slots)
      : slots_(name == "exclusive" ? 1 : slots), policy_(*make_policy(name, options)), gpus_(scattered(gpus, slots)) {
    for (std::size_t i = 1; i <= flows; ++i) policy_->add_flow(FlowId(i), {.tenant = TenantId(i % 2)});
  }

  void arrive(FlowId flow) {
    policy_->on_arrival(now_, flow, InvocationId(next_++));
    choose_all();
  }

  void end_one(std::size_t which, Duration took) {
    if (running_.empty()) return;
    now_ += took;
    const auto chosen = running_.begin() + static_cast<std::ptrdiff_t>(which % running_.size());
    const FlowQueue::Choice ended = *chosen;
    running_.erase(chosen);
    gpus_.give_back(ended.gpu);
    --on_[ended.gpu];
    if (which % 7 == 0) {
      policy_->on_requeue(now_, ended.flow, ended.invocation);
    } else {
      policy_->on_completion(now_, ended.flow, ended.invocation, took);
    }
    choose_all();
  }

  // Ends whatever runs until nothing waits. True: that came to pass.
  bool drain() {
    for (int i = 0; i < 10'000; ++i) {
      if (running_.empty()) {
        const auto chance = policy_->next_chance();
        if (!chance || policy_->queued() == 0) break;
        now_ = *chance;
        choose_all();
      }
      end_one(1, 10ms);
    }
    return running_.empty() && policy_->queued() == 0;
  }

 private:
  void choose_all() {
    while (const auto next = policy_->choose(now_, gpus_)) {
      RC_ASSERT(next->gpu);
      RC_ASSERT(++on_[next->gpu] <= slots_);
      gpus_.take(next->gpu);
      running_.push_back(*next);
    }
    if (const auto chance = policy_->next_chance()) RC_ASSERT(*chance > now_);
  }

  const std::size_t slots_;
  std::unique_ptr<FlowQueue> policy_;
  FakeGpus gpus_;
  Instant now_{};
  std::map<GpuId, std::size_t> on_;
  std::vector<FlowQueue::Choice> running_;
  std::uint64_t next_ = 1;
};

RC_GTEST_PROP(GpuPolicies, SlotsAreKeptAndNothingWaitsForEver, ()) {
  const auto name = *rc::gen::element<std::string>("resident-window", "cfs-affinity", "exclusive");
  const auto flows = *rc::gen::inRange<std::size_t>(1, 9);
  PolicyOptions options{.by_tenant = *rc::gen::arbitrary<bool>()};
  options.set(kOverRun, std::chrono::milliseconds(*rc::gen::inRange(0, 100)));
  Load load(name, options, flows, *rc::gen::inRange<std::size_t>(1, 5), *rc::gen::inRange<std::size_t>(1, 4));
  for (const auto step : *rc::gen::container<std::vector<std::size_t>>(rc::gen::inRange<std::size_t>(0, 1000))) {
    if (step % 2 == 0) {
      load.arrive(FlowId(1 + step % flows));
    } else {
      load.end_one(step, std::chrono::milliseconds(step % 40));
    }
  }
  RC_ASSERT(load.drain());
}

}  // namespace
}  // namespace fairlead
