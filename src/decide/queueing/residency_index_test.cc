// mqfq-setup where flows have data on GPUs: who goes where, by the rules at the head of residency_index.h.
#include "decide/queueing/residency_index.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <map>
#include <set>

#include "decide/queueing/policy.h"
#include "decide/queueing/policy_test_support.h"

namespace fairlead {
namespace {

using namespace std::chrono_literals;

constexpr FlowId kA(1), kB(2), kC(3);
constexpr GpuId kGpu1(1), kGpu2(2);

// GPUs of so many slots with room for so many flows' data. Loading takes `load` anywhere.
class Node final : public Placeable {
 public:
  Node(std::size_t gpus, std::size_t slots, std::size_t room) : slots_(slots), room_(room), running_(gpus), on_(gpus) {}

  bool can_run(FlowId flow) const override {
    for (const Place& place : places(flow)) {
      if (place.free) return true;
    }
    return false;
  }
  std::vector<Place> places(FlowId flow) const override {
    std::vector<Place> places;
    for (std::size_t i = 0; i < on_.size(); ++i) places.push_back(*place(flow, GpuId(i + 1)));
    return places;
  }
  std::optional<Place> place(FlowId flow, GpuId gpu) const override {
    ++looks;
    const std::size_t i = gpu.value() - 1;
    const bool there = on_[i].contains(flow);
    return Place{gpu, there ? 0s : load, running_[i].size(), running_[i].size() < slots_,
                 !there && on_[i].size() >= room_};
  }
  std::vector<GpuId> free_gpus() const override {
    std::vector<GpuId> free;
    for (std::size_t i = 0; i < on_.size(); ++i) {
      if (running_[i].size() < slots_) free.emplace_back(i + 1);
    }
    return free;
  }

  // The flow runs there; its data comes, and somebody's that does not run goes.
  void run(FlowId flow, GpuId gpu) {
    const std::size_t i = gpu.value() - 1;
    for (auto it = on_[i].begin(); !on_[i].contains(flow) && on_[i].size() >= room_; ++it) {
      if (running_[i].contains(*it)) continue;
      on_[i].erase(it);
      break;
    }
    on_[i].insert(flow);
    running_[i].insert(flow);
  }
  void end(FlowId flow, GpuId gpu) { running_[gpu.value() - 1].erase(running_[gpu.value() - 1].find(flow)); }
  void put(FlowId flow, GpuId gpu) { on_[gpu.value() - 1].insert(flow); }
  void take(GpuId gpu) { running_[gpu.value() - 1].insert(FlowId(99)); }
  std::size_t gpus() const { return on_.size(); }

  Duration load = 1s;
  mutable std::size_t looks = 0;

 private:
  const std::size_t slots_, room_;
  std::vector<std::multiset<FlowId>> running_;
  std::vector<std::set<FlowId>> on_;
};

class MqfqSetupOnGpus : public ::testing::Test {
 protected:
  void use(Node& node, std::initializer_list<FlowId> flows) {
    node_ = &node;
    for (const FlowId flow : flows) policy_.add_flow(flow, {});
    tell(flows);
  }
  void tell(std::initializer_list<FlowId> flows) {
    for (const FlowId flow : flows) {
      for (const auto& place : node_->places(flow)) policy_.set_setup_on(flow, place.gpu, place.setup);
    }
  }
  void arrive(FlowId flow, Duration at = 0s) { policy_.on_arrival(Instant(at), flow, InvocationId(next_++)); }
  std::optional<FlowQueue::Choice> next(Duration at = 0s) { return policy_.choose(Instant(at), *node_); }

  FlowQueue policy_{mqfq_setup_policy, {}};
  Node* node_ = nullptr;
  std::uint64_t next_ = 1;
};

TEST_F(MqfqSetupOnGpus, AFlowGoesWhereItsDataIs) {
  Node node(2, 1, 4);
  node.put(kA, kGpu2);
  node.put(kB, kGpu1);
  use(node, {kA, kB});
  arrive(kA);
  arrive(kB);
  EXPECT_EQ(next()->gpu, kGpu2);
  node.take(kGpu2);
  EXPECT_EQ(next()->gpu, kGpu1);
}

TEST_F(MqfqSetupOnGpus, ACopyThatEvictsNothingIsMadeAtOnce) {
  Node node(2, 1, 4);
  node.put(kA, kGpu1);
  node.take(kGpu1);
  use(node, {kA});
  arrive(kA);
  EXPECT_EQ(next()->gpu, kGpu2);
}

TEST_F(MqfqSetupOnGpus, OneThatEvictsWaitsAsLongAsFourLoadsTake) {
  Node node(2, 1, 1);
  node.put(kA, kGpu1);
  node.put(kB, kGpu2);
  node.take(kGpu1);
  use(node, {kA, kB});
  arrive(kA, 1s);
  EXPECT_FALSE(next(1s));
  EXPECT_EQ(policy_.next_chance(), Instant(5s));
  EXPECT_FALSE(next(5s - 1ns));
  EXPECT_EQ(next(5s)->gpu, kGpu2);
}

// Loads are given up to nobody while those who are there work; then each pays for four times its time.
TEST_F(MqfqSetupOnGpus, ALoadWaitsUntilWhoIsThereWasServedForFourLoads) {
  Node node(1, 2, 1);
  node.put(kA, kGpu1);
  use(node, {kA, kB});
  arrive(kA);
  arrive(kB);
  auto first = next();
  EXPECT_EQ(first->flow, kA);
  node.run(kA, kGpu1);
  EXPECT_FALSE(next()) << "B would push A out, which runs";
  Duration now = 0s;
  int served = 0;
  for (; served < 100; ++served) {
    now += 1s;
    node.end(kA, kGpu1);
    policy_.on_completion(Instant(now), kA, first->invocation, 1s);
    arrive(kA, now);
    first = next(now);
    if (first->flow == kB) break;
    node.run(kA, kGpu1);
  }
  EXPECT_GE(served, 3);
  EXPECT_LE(served, 5);
}

// A has its data on the GPU and nothing to run any more, B runs there and was served for more than loading C is worth.
class AFlowThatDidNotRun : public MqfqSetupOnGpus {
 protected:
  void SetUp() override {
    node_.put(kA, kGpu1);
    node_.put(kB, kGpu1);
    use(node_, {kA, kB, kC});
    begun_ = begin(kA);
    policy_.on_completion(Instant(5s), kB, begin(kB), 5s);
    node_.end(kB, kGpu1);
    arrive(kB, 5s);
  }
  InvocationId begin(FlowId flow, Duration at = 0s) {
    if (at == 0s) arrive(flow);
    const auto choice = next(at);
    EXPECT_EQ(choice->flow, flow);
    node_.run(flow, kGpu1);
    return choice->invocation;
  }
  // REQUIRES: A's invocation is over.
  void expect_c_loads_in_its_place() {
    node_.end(kA, kGpu1);
    begin(kB, 6s);
    arrive(kC, 6s);
    const auto choice = next(6s);
    ASSERT_TRUE(choice) << "A is waited for";
    EXPECT_EQ(choice->flow, kC);
  }

  Node node_{1, 3, 2};
  InvocationId begun_;
};

TEST_F(AFlowThatDidNotRun, IsWaitedForWhileItRuns) {
  begin(kB, 6s);
  arrive(kC, 6s);
  EXPECT_FALSE(next(6s));
}

TEST_F(AFlowThatDidNotRun, IsNotWaitedForAfterItsInvocationWasGivenBackAndCancelled) {
  policy_.on_requeue(Instant(5s), kA, begun_);
  ASSERT_TRUE(policy_.cancel(Instant(5s), kA, begun_));
  expect_c_loads_in_its_place();
}

TEST_F(AFlowThatDidNotRun, IsNotWaitedForAfterItsStartFailed) {
  policy_.on_failed_start(Instant(5s), kA, begun_, 1ms);
  expect_c_loads_in_its_place();
}

// A and B have their data on a GPU of two slots, C's would push one of them out. C's load takes 1 s, so four take 4 s.
class ALoadThatEvicts : public MqfqSetupOnGpus {
 protected:
  void SetUp() override {
    use(node_, {kA, kB, kC});
    for (const FlowId flow : {kA, kB}) node_.put(flow, kGpu1);
    tell({kA, kB});
  }
  void begin(FlowId flow, Duration at) {
    arrive(flow, at);
    const auto choice = next(at);
    ASSERT_TRUE(choice);
    ASSERT_EQ(choice->flow, flow);
    node_.run(flow, kGpu1);
    running_[flow] = choice->invocation;
  }
  void end(FlowId flow, Duration at, Duration service) {
    node_.end(flow, kGpu1);
    policy_.on_completion(Instant(at), flow, running_.at(flow), service);
  }

  Node node_{1, 2, 2};
  std::map<FlowId, InvocationId> running_;
};

TEST_F(ALoadThatEvicts, IsMadeAtOnceInThePlaceOfDataThatNobodyIsExpectedToUse) {
  begin(kA, 0s);
  end(kA, 100ms, 100ms);
  begin(kB, 10s);
  arrive(kC, 10s);
  const auto choice = next(10s);
  ASSERT_TRUE(choice) << "A's data idles since 1.1 s";
  EXPECT_EQ(choice->flow, kC);
}

TEST_F(ALoadThatEvicts, WaitsWhileWhoWasServedIsExpectedBack) {
  begin(kA, 9s);
  end(kA, 9100ms, 100ms);
  begin(kB, 9200ms);
  arrive(kC, 9200ms);
  EXPECT_FALSE(next(9200ms));
  EXPECT_TRUE(next(11s)) << "A is not expected back any more";
}

// B waits there and is 9 s ahead, A runs and was served for nothing yet. Patience alone would give C its turn after 4 s.
TEST_F(ALoadThatEvicts, WaitsWhileSomebodyWaitsThere) {
  begin(kB, 0s);
  begin(kA, 0s);
  arrive(kC, 0s);
  end(kB, 100ms, 9s);
  arrive(kB, 100ms);
  const auto choice = next(5s);
  ASSERT_TRUE(choice);
  EXPECT_EQ(choice->flow, kB);
}

TEST_F(ALoadThatEvicts, LosesPatienceWhereNobodyWaits) {
  begin(kB, 0s);
  begin(kA, 0s);
  arrive(kC, 0s);
  end(kB, 4s, 9s);
  const auto choice = next(4500ms);
  ASSERT_TRUE(choice);
  EXPECT_EQ(choice->flow, kC);
}

TEST_F(MqfqSetupOnGpus, AnIdleGpuLoadsAtOnce) {
  Node node(1, 2, 1);
  node.put(kA, kGpu1);
  use(node, {kA, kB});
  arrive(kB);
  EXPECT_EQ(next()->flow, kB);
}

TEST_F(MqfqSetupOnGpus, WhoHasNowhereElseToGoIsFirst) {
  Node node(2, 1, 4);
  node.put(kA, kGpu1);
  node.put(kA, kGpu2);
  node.put(kB, kGpu1);
  node.take(kGpu2);
  use(node, {kA, kB});
  for (const FlowId flow : {kA, kB}) {  // both were served: 1 s each
    arrive(flow);
    const auto choice = next();
    ASSERT_TRUE(choice);
    policy_.on_completion(Instant(1s), choice->flow, choice->invocation, 1s);
  }
  arrive(kA, 1s);
  arrive(kB, 1s);
  EXPECT_EQ(next(1s)->flow, kB);
}

TEST_F(MqfqSetupOnGpus, AFlowThatLosesItsPlacesWaitsAsAnyOther) {
  Node node(1, 1, 4);
  node.put(kA, kGpu1);
  use(node, {kA});
  arrive(kA);
  policy_.set_setup_on(kA, kGpu1, std::nullopt);
  EXPECT_EQ(next()->gpu, GpuId());
}

// However flows, GPUs, room and times are: what is queued is served once each and in order, wherever it is placed it could
// run, and while a GPU with nothing to do could serve somebody by any rule, not for ever nobody is chosen.
RC_GTEST_PROP(MqfqSetupOnGpusProp, EverythingIsServedOnceAndNobodyWaitsForEver, ()) {
  const auto gpus = *rc::gen::inRange<std::size_t>(1, 5), slots = *rc::gen::inRange<std::size_t>(1, 4);
  const auto room = *rc::gen::inRange<std::size_t>(slots, slots + 4), flows = *rc::gen::inRange<std::size_t>(1, 12);
  Node node(gpus, slots, room);
  node.load = std::chrono::milliseconds(*rc::gen::inRange(1, 10'000));
  FlowQueue policy{mqfq_setup_policy, {}};
  const auto tell_all = [&] {
    for (std::size_t i = 1; i <= flows; ++i) {
      for (const auto& place : node.places(FlowId(i))) policy.set_setup_on(FlowId(i), place.gpu, place.setup);
    }
  };
  for (std::size_t i = 1; i <= flows; ++i) policy.add_flow(FlowId(i), {});
  tell_all();

  struct Running {
    FlowQueue::Choice choice;
    Instant ends;
  };
  std::vector<Running> running;
  Instant now{};
  std::uint64_t arrived = 0, served = 0;
  std::map<FlowId, InvocationId> last;
  const int steps = *rc::gen::inRange(1, 120);
  for (int step = 0; step < steps || policy.queued() > 0 || !running.empty(); ++step) {
    RC_ASSERT(step < 100'000);
    if (step < steps)
      policy.on_arrival(now, FlowId(1 + *rc::gen::inRange<std::size_t>(0, flows)), InvocationId(++arrived));
    while (const auto choice = policy.choose(now, node)) {
      RC_ASSERT(choice->gpu);
      RC_ASSERT(node.place(choice->flow, choice->gpu)->free);
      RC_ASSERT(last[choice->flow] < choice->invocation);
      last[choice->flow] = choice->invocation;
      const Duration takes = 10ms + node.place(choice->flow, choice->gpu)->setup;
      node.run(choice->flow, choice->gpu);
      running.push_back({*choice, now + takes});
      tell_all();
    }
    const auto first = std::min_element(running.begin(), running.end(),
                                        [](const Running& a, const Running& b) { return a.ends < b.ends; });
    const auto chance = policy.queued() > 0 ? policy.next_chance() : std::nullopt;
    RC_ASSERT(step < steps || first != running.end() || chance);  // else nothing would ever happen again
    if (first == running.end() || (chance && *chance<first->ends&& * chance> now)) {
      if (chance) now = std::max(now + 1ns, *chance);
      continue;
    }
    now = std::max(now, first->ends);
    node.end(first->choice.flow, first->choice.gpu);
    policy.on_completion(now, first->choice.flow, first->choice.invocation, 10ms);
    running.erase(first);
    ++served;
  }
  RC_ASSERT(served == arrived);
}

// A choice looks at heads of heaps: with a thousand flows that wait on four GPUs it asks about a few of them.
TEST_F(MqfqSetupOnGpus, AChoiceLooksAtFewFlows) {
  Node node(4, 2, 300);
  node_ = &node;
  for (std::size_t i = 1; i <= 1000; ++i) {
    policy_.add_flow(FlowId(i), {});
    node.put(FlowId(i), GpuId(1 + i % 4));
    tell({FlowId(i)});
    arrive(FlowId(i));
  }
  node.looks = 0;
  for (int i = 0; i < 8; ++i) {
    const auto choice = next();
    ASSERT_TRUE(choice);
    node.run(choice->flow, choice->gpu);
  }
  EXPECT_LT(node.looks, 8 * 20);
}

// ---- beyond the window, where instances start ahead

// A's instance runs and A has more to do. A, B and C have data on the GPU, D has none.
class BeyondTheWindow : public ::testing::Test {
 protected:
  void SetUp() override {
    for (const FlowId flow : {kA, kB, kC, kD}) {
      policy_.add_flow(flow, {});
      policy_.set_supply(flow, Supply::kNone);
      policy_.set_supply(flow, Supply::kReady);
      if (flow != kD) policy_.set_setup_on(flow, kGpu1, 0s);
    }
    arrive(kA, 2);
    EXPECT_EQ(next(), kA);
    node_.blocked.insert(kA);
  }
  void arrive(FlowId flow, int count) {
    while (count-- > 0) policy_.on_arrival(Instant(), flow, InvocationId(next_++));
  }
  void pass_window(FlowId flow) {
    arrive(flow, 5);
    run(flow);
    EXPECT_EQ(policy_.view(flow).state, FlowState::kThrottled);
  }
  void run(FlowId flow) {
    const auto choice = policy_.choose(Instant(), node_);
    ASSERT_TRUE(choice);
    ASSERT_EQ(choice->flow, flow);
    policy_.on_completion(Instant(), flow, choice->invocation, 20s);
  }
  FlowId next() {
    const auto choice = policy_.choose(Instant(), node_);
    return choice ? choice->flow : FlowId();
  }

  static constexpr FlowId kD{4};
  FlowQueue policy_{mqfq_setup_policy, {}};
  testing::FakePlaceable node_;
  std::uint64_t next_ = 1;
};

TEST_F(BeyondTheWindow, AFlowTakesASlotThatNobodyElseCanUseWhereItsDataIs) {
  pass_window(kB);
  const auto choice = policy_.choose(Instant(), node_);
  ASSERT_TRUE(choice);
  EXPECT_EQ(choice->flow, kB);
  EXPECT_EQ(choice->gpu, kGpu1);
}

TEST_F(BeyondTheWindow, TheWindowStaysWhereDataIsWaitedWith) {
  pass_window(kB);
  node_.elsewhere.insert(kC);
  arrive(kC, 1);
  const Duration before = policy_.global_virtual_time();
  EXPECT_EQ(next(), kB);
  EXPECT_EQ(policy_.global_virtual_time(), before);
  node_.elsewhere.clear();
  EXPECT_EQ(next(), kC);
}

TEST_F(BeyondTheWindow, NobodyTakesTheMemoryOfACallThatAnotherCallWaitsFor) {
  pass_window(kB);
  pass_window(kD);
  node_.blocked.insert(kD);
  node_.short_of_memory.insert(kC);
  arrive(kC, 1);
  EXPECT_EQ(next(), FlowId()) << "what runs ends, and C has its memory";
  node_.blocked.erase(kD);
  EXPECT_EQ(next(), kD) << "has no call in that memory";
  node_.short_of_memory.clear();
  EXPECT_EQ(next(), kC);
}

TEST_F(BeyondTheWindow, AFlowOfTheIndexThatWaitsForAStartIsSetAsideUntilItRuns) {
  node_.blocked.insert({kB, kD});
  node_.behind_starts.insert(kC);
  arrive(kC, 2);
  EXPECT_TRUE(policy_.view(kC).contends);
  EXPECT_EQ(next(), FlowId());
  EXPECT_FALSE(policy_.view(kC).contends);
  node_.behind_starts.clear();
  EXPECT_EQ(next(), kC);
  EXPECT_TRUE(policy_.view(kC).contends);
}

TEST_F(BeyondTheWindow, AFlowOfTheIndexMayHaveAnotherInstanceWhereASlotIdles) {
  arrive(kB, 1);
  testing::FakePlaceable startable;
  startable.blocked = {kA};
  EXPECT_EQ(policy_.next_start(Instant(), startable), kB);
  startable.slot_is_free = false;
  EXPECT_EQ(policy_.next_start(Instant(), startable), std::nullopt);
}

TEST_F(BeyondTheWindow, WhoHasWaitedLongForMemoryClaimsItFromTheIndexToo) {
  node_.short_of_memory.insert(kC);
  arrive(kC, 1);
  EXPECT_FALSE(policy_.choose(Instant(1s), node_));
  EXPECT_EQ(policy_.claimant(), FlowId());
  EXPECT_FALSE(policy_.choose(Instant(1000s), node_));
  EXPECT_EQ(policy_.claimant(), kC);
}

}  // namespace
}  // namespace fairlead
