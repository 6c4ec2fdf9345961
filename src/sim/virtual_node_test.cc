// The clock's order, and nodes on one clock.
#include "sim/virtual_node.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/rng.h"
#include "sim/virtual_node_test_support.h"

namespace fairlead::sim {
namespace {

using namespace std::chrono_literals;
using testing::make_core;
using testing::plain_device;

Instant at(int seconds) {
  return Instant(std::chrono::seconds(seconds));
}

// ---- the clock

class Party final : public ClockParty {
 public:
  Party(VirtualClock& clock, std::string name, std::vector<std::string>& seen)
      : events(clock, *this), name_(std::move(name)), seen_(seen) {}

  void happen(const Event& event) override { seen_.push_back(name_ + std::to_string(event.subject)); }
  void due(const Moment& expected) override {
    seen_.push_back(name_ + (expected.order == kBeforeEvents ? " deadline" : " arrival"));
    events.expect(kNothing);
  }

  EventsOf<int> events;

 private:
  const std::string name_;
  std::vector<std::string>& seen_;
};

using Names = std::vector<std::string>;

TEST(VirtualClock, AtOneInstantDeadlinesComeFirstThenEventsAsTheyWereScheduledThenArrivals) {
  VirtualClock clock;
  Names seen;
  Party a(clock, "a", seen), b(clock, "b", seen);
  b.events.expect(Moment{at(5), kAfterEvents});
  b.events.add(at(5), 0, 1);
  a.events.add(at(5), 0, 2);
  b.events.add(at(3), 0, 3);
  a.events.expect(Moment{at(5), kBeforeEvents});
  clock.run();
  EXPECT_EQ(seen, (Names{"b3", "a deadline", "b1", "a2", "b arrival"}));
  EXPECT_EQ(clock.now(), at(5));
}

TEST(VirtualClock, WhatIsKeptElsewhereTakesItsPlaceAmongEvents) {
  VirtualClock clock;
  Names seen;
  Party a(clock, "a", seen);
  a.events.add(at(1), 0, 1);
  a.events.expect(Moment{at(1), clock.take_order()});
  a.events.add(at(1), 0, 2);
  clock.run();
  EXPECT_EQ(seen, (Names{"a1", "a arrival", "a2"}));
}

TEST(VirtualClock, WhatAPartyExpectsIsWhatItStatedLast) {
  VirtualClock clock;
  Names seen;
  Party a(clock, "a", seen);
  a.events.expect(Moment{at(1), kBeforeEvents});
  a.events.expect(Moment{at(4), kBeforeEvents});
  clock.run_until(at(2));
  EXPECT_EQ(seen, Names{});
  EXPECT_EQ(clock.now(), at(2));
  a.events.expect(kNothing);
  EXPECT_FALSE(clock.step());
}

TEST(VirtualClock, WhatAJumpPassedHappensLate) {
  VirtualClock clock;
  Names seen;
  Party a(clock, "a", seen);
  a.events.add(at(1), 0, 1);
  EXPECT_TRUE(clock.step([&] { clock.pass(60s); }));
  EXPECT_EQ(seen, Names{"a1"});
  EXPECT_EQ(clock.now(), at(61));
}

// ---- nodes

// Starts, runs and memory of random length, on a device that is full most of the time.
class RandomModel final : public InstanceModel {
 public:
  explicit RandomModel(std::uint64_t seed) : rng_(seed) {}

  Start start(const StartInstance&) override { return {.after = up_to(4s), .allocations = 1}; }
  void run(FlowId, InvocationId, Run& run) override { run.after = up_to(2s); }
  std::optional<Bytes> memory(FlowId flow) override { return gib(1 + static_cast<std::int64_t>(flow.value() % 3)); }

  // To the second, so that much happens on two nodes at one instant.
  Duration up_to(Duration most) { return std::chrono::seconds(1 + rng_.below(static_cast<std::uint64_t>(most / 1s))); }

 private:
  Rng rng_;
};

// A node with a workload of its own, and all that it does.
class BusyNode {
 public:
  BusyNode(VirtualClock& clock, std::uint64_t seed)
      : model_(seed), node_(clock, make_core({.starts_per_gpu = 2}, "mqfq-setup"), model_) {
    for (std::uint64_t gpu = 1; gpu <= 2; ++gpu) node_.add_gpu(GpuId(gpu), device_);
    for (std::uint64_t flow = 1; flow <= 6; ++flow) node_.core().add_function({.flow = FlowId(flow)});
    node_.observe([this](const Action& action) {
      did += std::to_string(node_.now().time_since_epoch().count()) + " " + to_string(action) + "\n";
    });
    Rng rng(seed);
    for (int i = 0; i < 300; ++i) {
      const FlowId flow(1 + rng.below(6));
      node_.schedule(at(static_cast<int>(rng.below(200))), [this, flow] { FL_CHECK(node_.arrive(flow).has_value()); });
    }
  }

  std::string did;

 private:
  const DeviceModel device_{.memory = gib(5), .slowdown = {1, 1.5}};
  RandomModel model_;
  VirtualNode node_;
};

std::string alone(std::uint64_t seed) {
  VirtualClock clock;
  BusyNode node(clock, seed);
  clock.run();
  return node.did;
}

TEST(VirtualNode, TwoOnOneClockDoWhatEachDoesAlone) {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    VirtualClock clock;
    BusyNode one(clock, seed), other(clock, seed + 1), twin(clock, seed);
    clock.run();
    EXPECT_EQ(one.did, alone(seed)) << seed;
    EXPECT_EQ(other.did, alone(seed + 1)) << seed;
    EXPECT_EQ(twin.did, one.did) << seed;
    EXPECT_NE(one.did, other.did) << seed;
  }
}

TEST(VirtualNode, ARunThatIsSlowedByAnotherEndsLater) {
  VirtualClock clock;
  class Second final : public InstanceModel {
   public:
    Start start(const StartInstance&) override { return {}; }
    void run(FlowId, InvocationId, Run& run) override { run.after = 1s; }
  } model;
  const DeviceModel device{.slowdown = {1, 1.5}, .start_slowdown = 1};
  VirtualNode node(clock, make_core({}, "fcfs"), model);
  node.add_gpu(GpuId(1), device);
  node.core().add_function({.flow = FlowId(1)});
  std::vector<double> ends;
  node.observe([&](const Action& action) {
    if (std::holds_alternative<Complete>(action)) ends.push_back(to_seconds(node.now() - Instant{}));
  });
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(node.arrive(FlowId(1)));
  clock.run();
  ASSERT_EQ(ends.size(), 2u);
  EXPECT_NEAR(ends[0], 1.5, 1e-6);
  EXPECT_NEAR(ends[1], 1.5, 1e-6);
  EXPECT_NEAR(node.busy_seconds(), 1.5, 1e-6);
}

// Killed at its deadline, it answers all the same; the core has forgotten it.
TEST(VirtualNode, AStoppedInstanceStillSaysWhatItWasAboutTo) {
  VirtualClock clock;
  class Slow final : public InstanceModel {
   public:
    Start start(const StartInstance&) override { return {}; }
    void run(FlowId, InvocationId, Run& run) override { run.after = 10s; }
  } model;
  VirtualNode node(clock, make_core({}, "fcfs"), model);
  node.core().add_gpu({.gpu = GpuId(1)});
  node.core().add_function({.flow = FlowId(1), .timeout = 1s});
  std::vector<OutcomeKind> outcomes;
  node.observe([&](const Action& action) {
    if (const auto* done = std::get_if<Complete>(&action)) outcomes.push_back(done->outcome);
  });
  ASSERT_TRUE(node.arrive(FlowId(1)));
  clock.run();
  EXPECT_EQ(outcomes, std::vector<OutcomeKind>{OutcomeKind::kTimeout});
  EXPECT_EQ(clock.now(), at(10)) << "the late answer was told";
  EXPECT_TRUE(node.core().instances().empty());
}

// ---- a monitor

// Starts take half a minute and hold their slot meanwhile; runs take a minute and fill the GPU.
class SlowStarts final : public InstanceModel {
 public:
  Start start(const StartInstance&) override { return {.after = 30s}; }
  void run(FlowId, InvocationId, Run& run) override { run.after = 60s; }
};

class WatchedGpu : public ::testing::Test {
 protected:
  WatchedGpu() {
    node.watch_gpus(200ms);
    node.add_gpu(GpuId(1), device);
    node.core().add_function({.flow = FlowId(1), .timeout = 1h});
    for (int i = 0; i < 4; ++i) EXPECT_TRUE(node.arrive(FlowId(1)));
  }
  std::size_t slots() { return node.core().gpus().front().slots; }

  VirtualClock clock;
  SlowStarts model;
  const DeviceModel device{.memory = gib(16), .link_bytes_per_second = 1e10, .slowdown = {1}, .start_slowdown = 1};
  VirtualNode node{clock, make_core({.slots_per_gpu = 3}, "fcfs"), model};
};

TEST_F(WatchedGpu, DGrowsWhileNothingRunsAndCallsWait) {
  EXPECT_EQ(slots(), 1u);
  clock.run_until(at(20));
  EXPECT_EQ(slots(), 3u) << "nothing but starts";
}

TEST_F(WatchedGpu, DFallsWhenWhatRunsFillsTheGpu) {
  clock.run_until(at(60));
  EXPECT_EQ(slots(), 1u);
}

}  // namespace
}  // namespace fairlead::sim
