#include "decide/core/memory_claim.h"

#include "decide/core/core_parts_test_support.h"

namespace fairlead {
namespace {

using namespace std::chrono_literals;
using namespace testing;

// The queue has a claimant once a flow has waited 8 T for memory.
class MemoryClaimTest : public CoreParts {
 protected:
  MemoryClaimTest() : CoreParts({.starts_per_gpu = 2}) {
    add_gpu(kGpu, 2, gib(16));
    add({.flow = kA, .expected_memory = gib(12)});
    add({.flow = kB, .expected_memory = gib(8)});
  }
  void wait_for_memory() {
    small_ = &idle(kB);
    arrive(++last_, kB);
    run(*small_);
    arrive(++last_, kA);
    for (int second = 0; second < 300 && !tables.queue->claimant(); ++second) ask(1s);
    ASSERT_EQ(tables.queue->claimant(), kA);
  }
  void ask(Duration after) {
    struct Starts final : Placeable {
      explicit Starts(const StartPlanner& of) : planner(of) {}
      bool can_run(FlowId flow) const override { return obstacle(flow) == Obstacle::kNothing; }
      Obstacle obstacle(FlowId flow) const override { return planner.obstacle(flow); }
      std::vector<Place> places(FlowId) const override { return {}; }
      const StartPlanner& planner;
    };
    pass(after);
    tables.queue->set_supply(kA, Supply::kNone);
    tables.queue->choose(now, dispatchable);
    tables.queue->next_start(now, Starts(planner));
  }
  Bytes claimed() const { return tables.pool.gpu(kGpu).claimed; }
  void keep() { claim_.keep(tables, residency, placer); }

  MemoryClaim claim_;
  Instance* small_ = nullptr;
  std::uint64_t last_ = 0;
};

TEST_F(MemoryClaimTest, NobodyClaimsNothing) {
  keep();
  EXPECT_EQ(claimed(), Bytes(0));
}

TEST_F(MemoryClaimTest, WhatTheClaimantNeedsIsKeptUntilItStarts) {
  wait_for_memory();
  keep();
  EXPECT_EQ(claimed(), gib(12));
  EXPECT_EQ(tables.pool.gpu(kGpu).claimant, kA);
  runs.end(now, small_->bound, OutcomeKind::kSuccess, std::nullopt, out);
  keeper.rest(now, *small_);
  keeper.evict(now, small_->id, out);
  start(kA);
  if (tables.queue->claimant() == kA) {
    keep();
    EXPECT_EQ(claimed(), Bytes(0)) << "the start itself has reserved it";
  }
}

TEST_F(MemoryClaimTest, AGpuThatGoesIsNobodysPlace) {
  wait_for_memory();
  keep();
  add_gpu(kOther, 2, gib(16));
  runs.end(now, small_->bound, OutcomeKind::kSuccess, std::nullopt, out);
  keeper.stop(now, small_->id, StopReason::kEvicted, out);
  claim_.leave(kGpu);
  tables.pool.remove_gpu(kGpu);
  keep();
  EXPECT_EQ(tables.pool.gpu(kOther).claimed, gib(12));
}

}  // namespace
}  // namespace fairlead
