// The worked example of every worker pool's head, and what holds for all of them.
#include "placement/worker_pool.h"

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>

#include "placement/cfs_affinity.h"
#include "placement/exclusive_pools.h"
#include "placement/resident_window.h"

namespace fairlead {
namespace {

using namespace std::chrono_literals;
using Assignment = WorkerPool::Assignment;

constexpr FlowId kA(1), kB(2), kC(3), kD(4), kE(5);
constexpr GpuId kGpu1(1), kGpu2(2), kGpu3(3), kGpu4(4);

// Constants are on the GPUs that are named; elsewhere they take `load`.
class FakeReloadCost final : public ReloadCost {
 public:
  explicit FakeReloadCost(Duration load = Duration(0)) : load_(load) {}
  Duration reload(FlowId client, GpuId gpu) const override { return on_.contains({client, gpu}) ? Duration(0) : load_; }
  void put(FlowId client, GpuId gpu) { on_.insert({client, gpu}); }

 private:
  Duration load_;
  std::set<std::pair<FlowId, GpuId>> on_;
};

Instant at(Duration since_start) {
  return Instant(since_start);
}

// One request of the client alone, so that it has that run time, latency and GPU of its own.
void serve_one(WorkerPool& pool, FlowId client, Duration gpu_time, Duration latency) {
  const FakeReloadCost nothing;
  pool.on_arrival(at(0s), client);
  const auto assigned = pool.assign(at(0s), nothing);
  ASSERT_TRUE(assigned);
  ASSERT_EQ(assigned->client, client);
  pool.on_completion(at(0s), client, assigned->gpu, {.gpu_time = gpu_time, .latency = latency});
}

// A's own GPU is 1, B's own is 2; then GPU 2 is idle and both wait.
std::optional<Assignment> example_of_figure_6a(Duration latency_of_a) {
  CfsAffinity pool({.gpus = 2});
  const FakeReloadCost residency;
  pool.add_client(kA);
  pool.add_client(kB);
  pool.on_arrival(at(0s), kA);
  pool.on_arrival(at(0s), kB);
  EXPECT_EQ(pool.assign(at(0s), residency), (Assignment{kA, kGpu1}));
  EXPECT_EQ(pool.assign(at(0s), residency), (Assignment{kB, kGpu2}));
  pool.on_completion(at(0s), kA, kGpu1, {.gpu_time = 30ms, .latency = latency_of_a});
  pool.on_completion(at(0s), kB, kGpu2, {.gpu_time = 70ms, .latency = 1ms});
  pool.add_client(kC);  // keeps GPU 1 busy
  pool.on_arrival(at(0s), kC);
  EXPECT_EQ(pool.assign(at(0s), residency), (Assignment{kC, kGpu1}));
  pool.on_arrival(at(0s), kA);
  pool.on_arrival(at(0s), kB);
  return pool.assign(at(0s), residency);
}

TEST(CfsAffinity, AnotherGpuCostsTenMeanLatencies) {
  EXPECT_EQ(example_of_figure_6a(5ms), (Assignment{kB, kGpu2}));
  EXPECT_EQ(example_of_figure_6a(3ms), (Assignment{kA, kGpu2}));
}

TEST(CfsAffinity, AnIdleGpuTakesSomebodyHoweverFarFromHome) {
  CfsAffinity pool({.gpus = 2});
  const FakeReloadCost residency(10s);
  pool.add_client(kA);
  serve_one(pool, kA, 1s, 100s);
  pool.on_arrival(at(0s), kA);
  pool.on_arrival(at(0s), kA);
  EXPECT_EQ(pool.assign(at(0s), residency), (Assignment{kA, kGpu1}));
  EXPECT_EQ(pool.assign(at(0s), residency), (Assignment{kA, kGpu2}));
}

TEST(CfsAffinity, AClosedLoopKeepsItsDebt) {
  CfsAffinity pool({.gpus = 1});
  const FakeReloadCost residency;
  pool.add_client(kA);
  serve_one(pool, kA, 300ms, 300ms);  // idle now
  pool.add_client(kB);
  EXPECT_EQ(pool.runtime(kA), 300ms);
  pool.on_arrival(at(0s), kB);
  pool.on_arrival(at(0s), kA);
  EXPECT_EQ(pool.runtime(kA), 300ms) << "its idle instant erased what it was served";
  EXPECT_EQ(pool.assign(at(0s), residency)->client, kB);
}

TEST(CfsAffinity, IdlingSavesUpNothing) {
  CfsAffinity pool({.gpus = 1});
  pool.add_client(kA);
  pool.add_client(kB);
  for (int i = 0; i < 5; ++i) serve_one(pool, kB, 1s, 1s);
  pool.on_arrival(at(0s), kB);  // the minimum is what it has
  pool.on_arrival(at(0s), kA);
  EXPECT_EQ(pool.runtime(kA), 5s);
  pool.add_client(kC);
  EXPECT_EQ(pool.runtime(kC), 5s);
}

TEST(CfsAffinity, WhatWasMeasuredIsCharged) {
  CfsAffinity pool({.gpus = 1});
  pool.add_client(kA);
  serve_one(pool, kA, 40ms, 1s);
  serve_one(pool, kA, 10ms, 1s);  // charged 40 ms at first
  EXPECT_EQ(pool.runtime(kA), 50ms);
}

TEST(ResidentWindow, WithinTheWindowTheResidentGoesFirst) {
  ResidentWindow pool({.gpus = 1, .over_run = 500ms});
  FakeReloadCost residency(167ms);
  residency.put(kA, kGpu1);
  pool.add_client(kA);
  pool.add_client(kB);
  pool.on_arrival(at(0s), kB);
  int served = 0;
  for (;; ++served) {
    pool.on_arrival(at(0s), kA);
    const auto next = pool.assign(at(0s), residency);
    ASSERT_TRUE(next);
    if (next->client == kB) break;
    pool.on_completion(at(0s), kA, kGpu1, {.gpu_time = 39ms, .latency = 39ms});
    ASSERT_LT(served, 100) << "B starves";
  }
  EXPECT_EQ(served, 13);  // 12 x 39 ms are within 500 ms of B, 13 are not
  EXPECT_EQ(pool.runtime(kB), 167ms) << "the reload is charged to the client that causes it";
}

TEST(ResidentWindow, LeavesItsGpuOnlyWhenWaitingHasCostAReload) {
  ResidentWindow pool({.gpus = 2, .patience_reloads = 1});
  FakeReloadCost residency(167ms);
  residency.put(kA, kGpu1);
  residency.put(kB, kGpu1);
  pool.add_client(kA);
  pool.add_client(kB);
  pool.on_arrival(at(0s), kA);
  EXPECT_EQ(pool.assign(at(0s), residency), (Assignment{kA, kGpu1}));
  pool.on_arrival(at(10ms), kB);
  EXPECT_EQ(pool.assign(at(10ms), residency), std::nullopt);
  EXPECT_EQ(pool.next_chance(), at(177ms));
  EXPECT_EQ(pool.assign(at(177ms), residency), (Assignment{kB, kGpu2}));
  EXPECT_EQ(pool.assign(at(177ms), residency), std::nullopt);
  EXPECT_EQ(pool.next_chance(), std::nullopt);
}

TEST(ResidentWindow, WhatIsNowhereLoadsAtOnce) {
  ResidentWindow pool({.gpus = 2});
  const FakeReloadCost residency(167ms);
  pool.add_client(kA);
  pool.on_arrival(at(0s), kA);
  EXPECT_EQ(pool.assign(at(0s), residency), (Assignment{kA, kGpu1}));
}

TEST(ResidentWindow, AGpuDoesNotIdleForTheWindow) {
  ResidentWindow pool({.gpus = 1, .lanes = 2, .over_run = 0s});
  const FakeReloadCost residency;
  pool.add_client(kA);
  pool.add_client(kB);
  serve_one(pool, kA, 10s, 10s);
  pool.on_arrival(at(0s), kB);
  EXPECT_EQ(pool.assign(at(0s), residency)->client, kB);
  pool.on_arrival(at(0s), kA);  // 10 s ahead of B, which runs
  EXPECT_EQ(pool.assign(at(0s), residency)->client, kA);
}

// Four GPUs. Serves every request that can be at once and leaves them running.
class Exclusive : public ::testing::Test {
 protected:
  Exclusive() {
    for (const FlowId id : {kA, kB, kC, kD, kE}) pool_.add_client(id);
  }
  void arrive(FlowId client) { pool_.on_arrival(at(0s), client); }
  std::optional<Assignment> next() { return pool_.assign(at(0s), residency_); }
  void end(FlowId client, GpuId gpu) { pool_.on_completion(at(0s), client, gpu, {}); }

  ExclusivePools pool_{{.gpus = 4}};
  const FakeReloadCost residency_;
};

TEST_F(Exclusive, APoolGrowsWhileGpusAreFree) {
  arrive(kA);
  EXPECT_EQ(next(), (Assignment{kA, kGpu1, true}));
  arrive(kA);
  EXPECT_EQ(next(), (Assignment{kA, kGpu2, true}));
  end(kA, kGpu1);
  arrive(kA);
  EXPECT_EQ(next(), (Assignment{kA, kGpu1, false})) << "a warm one before a new one";
}

TEST_F(Exclusive, TheLargestPoolLosesAGpuAndTiesGoRound) {
  for (const FlowId id : {kA, kA, kB, kB}) {
    arrive(id);
    ASSERT_TRUE(next());
  }
  for (const GpuId gpu : {kGpu1, kGpu2}) end(kA, gpu);
  for (const GpuId gpu : {kGpu3, kGpu4}) end(kB, gpu);
  arrive(kC);
  EXPECT_EQ(next(), (Assignment{kC, kGpu1, true})) << "A, the first of the largest, loses an idle GPU at once";
  arrive(kD);
  EXPECT_EQ(next(), (Assignment{kD, kGpu3, true})) << "B has the largest pool now";
  EXPECT_EQ(pool_.pool(kA), std::vector{kGpu2});
  EXPECT_EQ(pool_.pool(kB), std::vector{kGpu4});
}

TEST_F(Exclusive, ABusyGpuChangesOverWhenItsRequestEnds) {
  for (const FlowId id : {kA, kB, kC, kD}) {
    arrive(id);
    ASSERT_TRUE(next());
  }
  arrive(kE);
  EXPECT_EQ(next(), std::nullopt);
  EXPECT_EQ(pool_.pool(kE), std::vector{kGpu1}) << "promised";
  arrive(kA);  // its GPU is gone: it is promised B's, not E's, which has not served E yet
  EXPECT_EQ(next(), std::nullopt);
  EXPECT_EQ(pool_.pool(kA), std::vector{kGpu2});
  end(kA, kGpu1);
  EXPECT_EQ(next(), (Assignment{kE, kGpu1, true}));
  end(kB, kGpu2);
  EXPECT_EQ(next(), (Assignment{kA, kGpu2, true}));
}

TEST_F(Exclusive, OneOfTheLargestWaitsForItsOwn) {
  for (const FlowId id : {kA, kB, kC, kD}) {
    arrive(id);
    ASSERT_TRUE(next());
  }
  end(kB, kGpu2);
  arrive(kA);
  EXPECT_EQ(next(), std::nullopt) << "B's idle GPU is not for a pool that is as large";
  end(kA, kGpu1);
  EXPECT_EQ(next(), (Assignment{kA, kGpu1, false}));
}

TEST(WorkerPools, AreMadeByName) {
  for (const std::string_view name : worker_pool_names()) {
    const auto pool = make_worker_pool(name, {});
    ASSERT_TRUE(pool);
    EXPECT_EQ((*pool)->name(), name);
  }
  const auto unknown = make_worker_pool("fcfs", {});
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().message,
            "worker pool \"fcfs\" is unknown; known are resident-window, cfs-affinity, exclusive");
  EXPECT_FALSE(make_worker_pool("exclusive", {.gpus = 0}));
  EXPECT_FALSE(make_worker_pool("cfs-affinity", {.penalty_latencies = -1}));
}

}  // namespace
}  // namespace fairlead
