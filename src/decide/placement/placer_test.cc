#include "decide/placement/placer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

namespace fairlead {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr FlowId kA(1), kB(2), kC(3);
constexpr GpuId kGpu1(1), kGpu2(2);

Instant at(std::int64_t second) {
  return Instant(std::chrono::seconds(second));
}

// D = 2, four instances per GPU.
class ThoseThatMayGo final : public Yielding {
 public:
  using Rule = std::function<bool(const Instance&)>;

  explicit ThoseThatMayGo(const Rule& rule) : rule_(rule) {}
  bool may_go(const Gpu&) const override { return true; }
  bool may_go(const Instance& instance) const override { return rule_(instance); }

 private:
  const Rule& rule_;
};

class Placing : public ::testing::Test {
 protected:
  void add_gpu(GpuId gpu, Bytes memory = Bytes(0)) { pool_.add_gpu(gpu, {.slots = 2, .clients = 4, .memory = memory}); }

  Instance& busy(FlowId flow, GpuId gpu, Bytes memory = Bytes(0)) {
    Instance& instance = pool_.add(at(0), flow, gpu, memory, InvocationId(next_++));
    pool_.take(instance, InstanceEvent::kDelivered);
    return instance;
  }

  Instance& idle(FlowId flow, GpuId gpu, Instant last_used, Bytes memory = Bytes(0)) {
    Instance& instance = returning(flow, gpu, last_used, memory);
    pool_.take(instance, InstanceEvent::kAsked);
    return instance;
  }

  Instance& returning(FlowId flow, GpuId gpu, Instant last_used, Bytes memory = Bytes(0)) {
    Instance& instance = busy(flow, gpu, memory);
    pool_.release(instance);
    instance.last_used = last_used;
    return instance;
  }

  std::optional<Placement> place(FlowId flow, Bytes expected = Bytes(0)) const {
    EXPECT_EQ(placer_.can_place(pool_, flow, expected), placer_.place(pool_, flow, expected).has_value());
    return placer_.place(pool_, flow, expected);
  }

  // As many at once as there are places, and anything spare may go, unless said otherwise.
  std::optional<Placement> place_start(
      FlowId flow, Placer::StartAhead start = {.at_once = 4},
      const ThoseThatMayGo::Rule& may_go = [](const Instance&) { return true; }) {
    start.flow = flow;
    const auto placement = placer_.place_start(pool_, start, ThoseThatMayGo(may_go));
    EXPECT_EQ(placer_.can_start(pool_, start, ThoseThatMayGo(may_go)), placement.has_value());
    return placement;
  }

  InstancePool pool_;
  LruEviction eviction_;
  SliceProfiles slices_;
  Placer placer_{eviction_, slices_};
  std::uint64_t next_ = 1;
};

TEST_F(Placing, PrefersTheMostRecentlyUsedIdleInstance) {
  add_gpu(kGpu1);
  idle(kA, kGpu1, at(1));
  const Instance& newest = idle(kA, kGpu1, at(3));
  idle(kA, kGpu1, at(2));
  EXPECT_EQ(place(kA)->instance, &newest);
}

TEST_F(Placing, PrefersAnIdleInstanceToOneThatIsReturning) {
  add_gpu(kGpu1);
  returning(kA, kGpu1, at(9));
  const Instance& warm = idle(kA, kGpu1, at(1));
  EXPECT_EQ(place(kA)->instance, &warm);
}

TEST_F(Placing, BindsAReturningInstanceRatherThanStartingASecond) {
  add_gpu(kGpu1);
  add_gpu(kGpu2);
  const Instance& instance = returning(kA, kGpu1, at(1));
  EXPECT_EQ(place(kA)->instance, &instance);
  EXPECT_EQ(place(kB)->instance, nullptr);
}

TEST_F(Placing, NewInstanceGoesToTheLeastLoadedGpu) {
  add_gpu(kGpu1);
  add_gpu(kGpu2);
  EXPECT_EQ(place(kA)->gpu, kGpu1);
  idle(kB, kGpu1, at(0));
  EXPECT_EQ(place(kA)->gpu, kGpu2) << "fewer instances";
  busy(kB, kGpu2);
  EXPECT_EQ(place(kA)->gpu, kGpu1) << "fewer slots in use";
}

TEST_F(Placing, WarmInstanceWithoutASlotIsNotWaitedFor) {
  add_gpu(kGpu1);
  add_gpu(kGpu2);
  idle(kA, kGpu1, at(0));
  busy(kB, kGpu1);
  busy(kB, kGpu1);
  EXPECT_EQ(place(kA)->instance, nullptr);
  EXPECT_EQ(place(kA)->gpu, kGpu2);
  EXPECT_FALSE(placer_.has_warm(pool_, kA, Bytes(0)));
}

TEST_F(Placing, NothingWithoutAFreeSlot) {
  add_gpu(kGpu1);
  idle(kA, kGpu1, at(0));
  busy(kA, kGpu1);
  busy(kA, kGpu1);
  EXPECT_FALSE(place(kA));
}

TEST_F(Placing, EvictsTheLeastRecentlyUsedOnlyWhenFull) {
  add_gpu(kGpu1);
  busy(kA, kGpu1);
  idle(kA, kGpu1, at(5));
  const InstanceId oldest = idle(kA, kGpu1, at(2)).id;
  EXPECT_THAT(place(kB)->evict, IsEmpty());
  idle(kA, kGpu1, at(3));
  EXPECT_THAT(place(kB)->evict, ElementsAre(oldest));
}

TEST_F(Placing, EvictsAReturningInstanceOnlyWhenNothingIsIdle) {
  add_gpu(kGpu1);
  const InstanceId first = returning(kA, kGpu1, at(1)).id;
  returning(kA, kGpu1, at(2));
  returning(kA, kGpu1, at(3));
  const InstanceId idle_one = idle(kA, kGpu1, at(9)).id;
  EXPECT_THAT(place(kB)->evict, ElementsAre(idle_one));
  pool_.remove(idle_one);
  returning(kA, kGpu1, at(4));
  EXPECT_THAT(place(kB)->evict, ElementsAre(first));
}

TEST_F(Placing, EvictsAsManyAsMemoryNeeds) {
  add_gpu(kGpu1, gib(16));
  const InstanceId second = idle(kA, kGpu1, at(2), gib(6)).id;
  const InstanceId first = idle(kA, kGpu1, at(1), gib(6)).id;
  EXPECT_THAT(place(kB, gib(4))->evict, IsEmpty());
  EXPECT_THAT(place(kB, gib(5))->evict, ElementsAre(first));
  EXPECT_THAT(place(kB, gib(11))->evict, ElementsAre(first, second));
}

TEST_F(Placing, WaitsWhileMemoryIsHeldByWhatRuns) {
  add_gpu(kGpu1, gib(16));
  busy(kA, kGpu1, gib(10));
  EXPECT_TRUE(place(kB, gib(6)));
  EXPECT_FALSE(place(kB, gib(7)));
}

TEST_F(Placing, FunctionLargerThanTheGpuGetsItAlone) {
  add_gpu(kGpu1, gib(16));
  EXPECT_EQ(place(kA, gib(40))->memory, gib(16));
  busy(kB, kGpu1, gib(1));
  EXPECT_FALSE(place(kA, gib(40)));
}

TEST_F(Placing, RetiringInstanceGetsNoWork) {
  add_gpu(kGpu1);
  pool_.take(busy(kA, kGpu1), InstanceEvent::kRetired);
  EXPECT_EQ(place(kA)->instance, nullptr);
}

TEST(InstancePool, CountsSlotsWhileSomethingIsBound) {
  InstancePool pool;
  pool.add_gpu(kGpu1, {.slots = 1, .clients = 2, .memory = gib(8)});
  EXPECT_TRUE(pool.has_turn());
  Instance& instance = pool.add(at(0), kA, kGpu1, gib(3), InvocationId(1));
  EXPECT_FALSE(pool.has_turn());
  EXPECT_EQ(pool.gpu(kGpu1).memory_in_use, gib(3));
  pool.release(instance);
  pool.release(instance);  // nothing bound: no effect
  EXPECT_TRUE(pool.has_turn());
  EXPECT_EQ(pool.gpu(kGpu1).memory_in_use, gib(0));
  EXPECT_EQ(pool.gpu(kGpu1).memory_committed, gib(3));
  pool.bind(instance, InvocationId(2));
  pool.remove(instance.id);
  EXPECT_EQ(pool.slots_in_use(), 0u);
  EXPECT_EQ(pool.gpu(kGpu1).memory_committed, gib(0));
  EXPECT_THAT(pool.of_flow(kA), IsEmpty());
}

TEST(InstancePoolDeathTest, AnEventThatMeansNothingIsNamed) {
  InstancePool pool;
  pool.add_gpu(kGpu1, {.slots = 1, .clients = 2});
  Instance& instance = pool.add(at(0), kA, kGpu1, Bytes(0), InvocationId(1));
  pool.take(instance, InstanceEvent::kDelivered);
  pool.release(instance);
  EXPECT_DEATH(pool.take(instance, InstanceEvent::kDelivered), "instance 1: delivered while returning");
  EXPECT_DEATH(pool.take(instance, InstanceEvent::kReady), "instance 1: ready while returning");
}

TEST(InstancePool, EveryGpuHasSlotsOfItsOwn) {
  InstancePool pool;
  pool.add_gpu(kGpu1, {.slots = 1, .clients = 4});
  pool.add_gpu(kGpu2, {.slots = 2, .clients = 4});
  pool.add(at(0), kA, kGpu1, Bytes(0), InvocationId(1));
  pool.add(at(0), kA, kGpu2, Bytes(0), InvocationId(2));
  EXPECT_FALSE(pool.gpu(kGpu1).has_free_slot());
  EXPECT_TRUE(pool.gpu(kGpu2).has_free_slot());
  pool.set_serves(kGpu2, false);
  EXPECT_FALSE(pool.has_turn());
  pool.set_slots(kGpu1, 2);
  EXPECT_TRUE(pool.has_turn());
}

TEST(InstancePool, SlotsThatAreOutStayOut) {
  InstancePool pool;
  pool.add_gpu(kGpu1, {.slots = 2, .clients = 4});
  Instance& first = pool.add(at(0), kA, kGpu1, Bytes(0), InvocationId(1));
  pool.add(at(0), kA, kGpu1, Bytes(0), InvocationId(2));
  pool.set_slots(kGpu1, 1);
  EXPECT_EQ(pool.gpu(kGpu1).slots_in_use, 2u);
  pool.release(first);
  EXPECT_FALSE(pool.has_turn()) << "the other has the one that is left";
}

// ---- inactive first

class Activity final : public FlowActivity {
 public:
  bool is_active(FlowId flow) const override { return flow != kB; }
};

TEST_F(Placing, InactiveFirstIsLruAmongTheInactiveThenAmongTheActive) {
  add_gpu(kGpu1);
  const Instance* in_order[] = {&idle(kB, kGpu1, at(6)), &idle(kB, kGpu1, at(7)), &idle(kA, kGpu1, at(1)),
                                &returning(kB, kGpu1, at(0))};
  std::vector<const Instance*> candidates{in_order[3], in_order[2], in_order[1], in_order[0]};
  const Activity activity;
  const InactiveFirstEviction eviction(activity);
  for (const Instance* expected : in_order) {
    EXPECT_EQ(&eviction.victim(candidates), expected);
    std::erase(candidates, expected);
  }
}

// ---- starting ahead

TEST_F(Placing, StartsAheadWithoutAFreeSlot) {
  add_gpu(kGpu1);
  busy(kA, kGpu1);
  busy(kA, kGpu1);
  EXPECT_TRUE(place_start(kB));
  EXPECT_FALSE(place_start(kB, {.at_once = 4, .only_where_a_slot_idles = true}));
}

TEST_F(Placing, StartsAheadOnTheGpuWithTheLeastRunningAndStarting) {
  add_gpu(kGpu1);
  add_gpu(kGpu2);
  busy(kA, kGpu1);
  EXPECT_EQ(place_start(kB)->gpu, kGpu2);
  pool_.add(at(0), kB, kGpu2, Bytes(0), InvocationId());
  pool_.add(at(0), kC, kGpu2, Bytes(0), InvocationId());
  EXPECT_EQ(place_start(kB)->gpu, kGpu1);
  EXPECT_EQ(pool_.gpu(kGpu2).starting_ahead, 2u);
}

TEST_F(Placing, NoMoreStartAheadThanAllowedUntilOneIsReady) {
  add_gpu(kGpu1);
  Instance& starting = pool_.add(at(0), kA, kGpu1, Bytes(0), InvocationId());
  EXPECT_FALSE(place_start(kB, {.at_once = 1}));
  pool_.take(starting, InstanceEvent::kReady);
  EXPECT_TRUE(place_start(kB, {.at_once = 1}));
  EXPECT_EQ(pool_.slots_in_use(), 0u);
}

TEST_F(Placing, WhatStartsAheadIsNeitherWarmNorEvicted) {
  add_gpu(kGpu1);
  for (int i = 0; i < 4; ++i) pool_.add(at(0), kA, kGpu1, Bytes(0), InvocationId());
  EXPECT_FALSE(placer_.has_warm(pool_, kA, Bytes(0)));
  EXPECT_FALSE(place_start(kB, {.at_once = 9}));
}

TEST_F(Placing, WhatStartsAheadCountsItsMemoryAsIfItRan) {
  add_gpu(kGpu1, gib(8));
  Instance& starting = pool_.add(at(0), kA, kGpu1, gib(6), InvocationId());
  EXPECT_FALSE(place_start(kB, {.expected = gib(3), .at_once = 4}));
  pool_.take(starting, InstanceEvent::kReady);
  pool_.count_memory(starting, gib(6), Bytes(0));  // all of it can leave
  EXPECT_TRUE(place_start(kB, {.expected = gib(3), .at_once = 4}));
}

TEST_F(Placing, AStartTakesThePlaceOnlyOfThoseThatMayGoUnlessASlotIdles) {
  add_gpu(kGpu1);
  idle(kA, kGpu1, at(1));
  const Instance& spared = idle(kA, kGpu1, at(2));
  busy(kA, kGpu1);
  busy(kA, kGpu1);
  const auto only_second = [&](const Instance& i) { return i.id == spared.id; };
  const auto nobody = [](const Instance&) { return false; };
  EXPECT_THAT(place_start(kB, {.at_once = 4}, only_second)->evict, ElementsAre(spared.id));
  EXPECT_FALSE(place_start(kB, {.at_once = 4}, nobody));
  pool_.set_slots(kGpu1, 3);
  EXPECT_TRUE(place_start(kB, {.at_once = 4}, nobody));
}

TEST_F(Placing, AFlowThatAsksForSlicesOfAProfileRunsAndStartsOnThoseAlone) {
  add_gpu(kGpu1);
  add_gpu(kGpu2);
  slices_.set_profile(kGpu1, "1g.10gb");
  slices_.set_profile(kGpu2, "3g.40gb");
  slices_.set_wanted(kA, "3g.40gb");
  idle(kA, kGpu1, at(9));  // it asked for less when that started
  EXPECT_EQ(place(kA)->gpu, kGpu2);
  EXPECT_EQ(place(kA)->instance, nullptr);
  EXPECT_EQ(place_start(kA)->gpu, kGpu2);
  EXPECT_EQ(placer_.place_claim(pool_, kC, Bytes(0)).gpu, kGpu1);
  busy(kB, kGpu2);
  busy(kB, kGpu2);
  EXPECT_EQ(place(kB)->gpu, kGpu1) << "it asks for nothing";
  EXPECT_FALSE(place(kA)) << "the 1g is free, and is none of its slices";
  slices_.set_wanted(kA, "2g");
  EXPECT_FALSE(place(kA));
  EXPECT_FALSE(place_start(kA));
  EXPECT_EQ(placer_.obstacle(pool_, Placer::StartAhead{.flow = kA, .at_once = 4}), Obstacle::kItself);
  slices_.set_wanted(kA, "");
  EXPECT_EQ(place(kA)->gpu, kGpu1);
}

}  // namespace
}  // namespace fairlead
