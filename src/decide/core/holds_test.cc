// Idle instances that are held: for how long, in whose way, and what all of them together may take.
#include <gmock/gmock.h>

#include "base/rng.h"
#include "decide/core/core_test_support.h"
#include "decide/core/hold_desk.h"

namespace fairlead {
namespace {

using namespace std::chrono_literals;
using testing::CoreTest;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr FlowId kA{1}, kB{2}, kC{3};
constexpr GpuId kGpu{1};
constexpr TenantId kRed{1}, kBlue{2};

class HoldsTest : public CoreTest {
 protected:
  // One GPU of so many GiB; `clients` instances at most, D = 1.
  void use_gpu(int gib, std::size_t clients = 4, PinBounds pins = {}) {
    core_ = std::make_unique<Core>(CoreOptions{.slots_per_gpu = 1, .instances_per_gpu = clients},
                                   testing::policy_named("mqfq-sticky"));
    HoldDesk(*core_).set_bounds(pins);
    core_->add_gpu({.gpu = kGpu, .memory = mib(1024 * gib)});
  }
  void add(FlowId flow, int gib, WarmHold hold = {}, TenantId tenant = kRed) {
    core_->add_function({.flow = flow, .expected_memory = mib(1024 * gib), .tenant = tenant});
    hold_as(flow, hold);
  }
  static WarmHold pin(PinKind kind) { return {.pin = kind}; }
  static WarmHold keep(Duration time, PinKind kind = PinKind::kHost) { return {.pin = kind, .keep = time}; }

  // A call of it starts instance `instance`, answers, and leaves it idle.
  void call(FlowId flow, std::uint64_t instance) {
    const std::uint64_t invocation = ++calls_;
    arrive(invocation, flow);
    ready(instance);
    say(instance, 0);
    answered(invocation);
    idle(instance);
  }
  void call_again(FlowId flow, std::uint64_t instance) {
    arrive(++calls_, flow);
    answered(calls_);
    idle(instance);
  }
  void say(std::uint64_t instance, int gib) {
    Actions out;
    core_->memory_report(now_, InstanceId(instance), {.held = mib(1024 * gib), .resident = mib(1024 * gib)}, out);
  }
  std::vector<std::string> held() {
    std::vector<std::string> lines;
    for (const HoldView& view : HoldDesk(*core_).views()) {
      lines.push_back(fmt::format("{}:{}{}", view.instance.value(), pin_name(view.held), view.over_bound ? "!" : ""));
    }
    return lines;
  }
  Lines hold_as(FlowId flow, WarmHold hold) {
    return lines({}, [&](Actions& out) { HoldDesk(*core_).set(now_, flow, hold, out); });
  }
  std::uint64_t calls_ = 0;
};

TEST_F(HoldsTest, WhoIsPinnedIsNotEvictedAndTheOtherGoes) {
  use_gpu(16, 3);
  add(kA, 1, pin(PinKind::kHost));
  add(kB, 1);
  add(kC, 1);
  call(kA, 1);
  now_ += 1s;
  call(kB, 2);
  now_ += 1s;
  call(kC, 3);
  add(FlowId(4), 1);
  EXPECT_THAT(arrive(99, FlowId(4)), ElementsAre("stop instance=2 evicted", "start instance=4 flow=4 gpu=1"))
      << "LRU without the pin: 1";
}

TEST_F(HoldsTest, AnInstanceEndsWhenItWasKeptLongEnough) {
  use_gpu(16);
  add(kA, 1, keep(10s));
  call(kA, 1);
  while (core_->next_wakeup() && *core_->next_wakeup() < Instant(10s)) {  // of its queue
    EXPECT_THAT(wake(*core_->next_wakeup() - Instant()), IsEmpty());
  }
  EXPECT_EQ(core_->next_wakeup(), Instant(10s));
  EXPECT_THAT(wake(10s), ElementsAre("stop instance=1 kept_long_enough"));
  EXPECT_THAT(held(), IsEmpty());
}

TEST_F(HoldsTest, ACallBeginsTheTimeAnew) {
  use_gpu(16);
  add(kA, 1, keep(10s));
  call(kA, 1);
  now_ += 9s;
  call_again(kA, 1);
  now_ += 9s;
  EXPECT_THAT(wake(now_ - Instant()), IsEmpty());
  now_ += 1s;
  EXPECT_THAT(wake(now_ - Instant()), ElementsAre("stop instance=1 kept_long_enough"));
}

TEST_F(HoldsTest, KeptForNoTimeItEndsWhenItHasAskedForTheNext) {
  use_gpu(16);
  add(kA, 1, keep(0s));
  arrive(1, kA);
  ready(1);
  EXPECT_THAT(answered(1), ElementsAre("complete invocation=1 success")) << "its process may still write its log";
  EXPECT_THAT(idle(1), ElementsAre("stop instance=1 kept_long_enough"));
}

TEST_F(HoldsTest, CallsThatWaitHaveTheInstanceHoweverLongItWasKept) {
  use_gpu(16);
  add(kA, 1, keep(1s));
  add(kB, 1);
  call(kA, 1);
  arrive(50, kB);
  ready(2);  // and has the only slot
  arrive(51, kA);
  EXPECT_THAT(wake(5s), IsEmpty());
  EXPECT_THAT(answered(50), ::testing::Contains("deliver invocation=51 instance=1"));
}

TEST_F(HoldsTest, AllTenantsTogetherTakeNoMoreOfADeviceThanIsStated) {
  use_gpu(16, 8, {.percent = 50, .tenant_percent = 100});
  add(kA, 5, pin(PinKind::kDevice), kRed);
  add(kB, 4, pin(PinKind::kDevice), kBlue);
  call(kA, 1);
  call(kB, 2);
  EXPECT_THAT(held(), ElementsAre("1:device", "2:none!"));
}

TEST_F(HoldsTest, PinsTakeNoMoreOfADeviceThanIsStated) {
  use_gpu(16, 8, {.percent = 50});
  add(kA, 5, pin(PinKind::kDevice));
  add(kB, 4, pin(PinKind::kDevice));
  call(kA, 1);
  call(kB, 2);
  EXPECT_THAT(held(), ElementsAre("1:device", "2:none!")) << "9 GiB of 8";
  lines({}, [&](Actions& out) { core_->remove_function(now_, kA, out); });
  EXPECT_THAT(held(), ElementsAre("2:device"));
}

TEST_F(HoldsTest, OneTenantTakesNoMoreThanItsPartWhereThereAreSeveral) {
  use_gpu(16, 8, {.percent = 50, .tenant_percent = 50});
  add(kA, 3, pin(PinKind::kDevice), kRed);
  add(kB, 3, pin(PinKind::kDevice), kRed);
  add(kC, 3, pin(PinKind::kDevice), kBlue);
  call(kA, 1);
  call(kB, 2);
  call(kC, 3);
  EXPECT_THAT(held(), ElementsAre("1:device", "2:none!", "3:device")) << "red has 4 GiB of the 8";
}

TEST_F(HoldsTest, StagingMemoryBoundsWhatIsPinnedOnTheHost) {
  use_gpu(16, 8, {.percent = 50, .staging = mib(1024 * 8)});
  add(kA, 3, pin(PinKind::kHost));
  add(kB, 3, pin(PinKind::kHost));
  call(kA, 1);
  call(kB, 2);
  EXPECT_THAT(held(), ElementsAre("1:host", "2:none!")) << "6 GiB of 4";
}

TEST_F(HoldsTest, APlaceIsLeftForEachSlot) {
  use_gpu(64, 3);
  for (std::uint64_t i = 1; i <= 3; ++i) {
    add(FlowId(i), 1, pin(PinKind::kHost));
    call(FlowId(i), i);
  }
  EXPECT_THAT(held(), ElementsAre("1:host", "2:host", "3:none!"));
  add(FlowId(4), 1);
  EXPECT_THAT(arrive(99, FlowId(4)), ElementsAre("stop instance=3 evicted", "start instance=4 flow=4 gpu=1"));
}

TEST_F(HoldsTest, APinnedFunctionThatIsDeletedOrFreedIsHeldNoMore) {
  use_gpu(16);
  add(kA, 1, pin(PinKind::kDevice));
  call(kA, 1);
  EXPECT_THAT(held(), ElementsAre("1:device"));
  hold_as(kA, {});
  EXPECT_THAT(held(), ElementsAre("1:none"));
  hold_as(kA, pin(PinKind::kDevice));
  EXPECT_THAT(held(), ElementsAre("1:device"));
  EXPECT_THAT(lines({}, [&](Actions& out) { core_->remove_function(now_, kA, out); }),
              ElementsAre("stop instance=1 function_changed"));
}

TEST_F(HoldsTest, ThePinnedInstanceThatIsKilledIsGoneAndTheNextCallStartsOne) {
  use_gpu(16);
  add(kA, 8, pin(PinKind::kDevice));
  call(kA, 1);
  gone(1);
  EXPECT_THAT(held(), IsEmpty());
  add(kB, 16);
  EXPECT_THAT(arrive(98, kB), ElementsAre("start instance=2 flow=2 gpu=1")) << "nothing of it is counted any more";
}

TEST_F(HoldsTest, MemoryThatIsPinnedOnTheDeviceDoesNotLeaveForANeighbourAndOnTheHostItDoes) {
  for (const PinKind kind : {PinKind::kDevice, PinKind::kHost}) {
    use_gpu(16, 8);
    add(kA, 8, pin(kind));
    add(kB, 4);
    call(kA, 1);
    say(1, 8);
    arrive(50, kB);
    ready(2);
    say(2, 8);
    const Lines said = lines({}, [&](Actions& out) { core_->needs_room(now_, InstanceId(2), 1, mib(1024 * 4), out); });
    if (kind == PinKind::kDevice) {
      EXPECT_THAT(said, ElementsAre("room instance=2 request=1 refused"));
    } else {
      EXPECT_THAT(said, ElementsAre("out instance=1 gib=4"));
    }
    calls_ = 0;
  }
}

TEST_F(HoldsTest, ALargeNeighbourGetsWhatIsBesideThePinsRatherThanWaitingForEver) {
  use_gpu(16, 8);
  add(kA, 8, pin(PinKind::kDevice));
  add(kB, 12);
  call(kA, 1);
  EXPECT_THAT(arrive(50, kB), ElementsAre("start instance=2 flow=2 gpu=1"));
}

TEST_F(HoldsTest, ASeatTakesTheRoomOfAHold) {
  use_gpu(16, 8);
  add(kA, 8, pin(PinKind::kDevice));
  call(kA, 1);
  FlowSpec seated{.flow = kB, .expected_memory = mib(1024 * 12), .tenant = kRed, .seats = {kGpu}};
  core_->add_function(seated);
  EXPECT_THAT(wake(now_ - Instant()), ElementsAre("start instance=2 flow=2 gpu=1"));
  EXPECT_THAT(held(), ElementsAre("1:none!", "2:none")) << "it was promised 12 GiB";
}

// Everything at once, in random order: the core's own checks abort where a book is wrong, and nobody waits for ever.
TEST_F(HoldsTest, WhateverIsHeldEveryCallIsAnsweredInTheEnd) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    Rng rng(seed);
    use_gpu(16, 2 + rng.below(4), {.percent = static_cast<int>(rng.below(101)), .staging = mib(1024 * 8)});
    calls_ = 0;
    const std::uint64_t flows = 2 + rng.below(4);
    const auto some_hold = [&] {
      WarmHold hold{.pin = static_cast<PinKind>(rng.below(3))};
      if (rng.below(2) == 0) hold.keep = std::chrono::seconds(rng.below(4));
      return hold;
    };
    for (std::uint64_t i = 1; i <= flows; ++i)
      add(FlowId(i), static_cast<int>(rng.below(18)), some_hold(), TenantId(1 + i % 2));
    std::vector<InvocationId> running;
    std::vector<InstanceId> starting, returning;
    std::size_t open = 0;
    const auto take_in = [&](const Actions& actions) {
      for (const Action& action : actions) {
        if (const auto* start = std::get_if<StartInstance>(&action)) starting.push_back(start->instance);
        if (const auto* stop = std::get_if<StopInstance>(&action)) {
          std::erase(starting, stop->instance);
          std::erase(returning, stop->instance);
        }
        if (const auto* deliver = std::get_if<Deliver>(&action)) {
          running.push_back(deliver->invocation);
          returning.push_back(deliver->instance);
        }
        if (std::holds_alternative<Complete>(action)) --open;
      }
    };
    const auto step = [&](auto event) {
      Actions out;
      event(out);
      take_in(out);
      now_ += std::chrono::milliseconds(rng.below(700));
    };
    for (int i = 0; i < 60 || open > 0; ++i) {
      ASSERT_LT(i, 2000) << "seed " << seed << ": " << open << " calls wait";
      if (i < 60 && rng.below(2) == 0) {
        step([&](Actions& out) {
          if (core_->arrive(now_, InvocationId(++calls_), FlowId(1 + rng.below(flows)), out)) ++open;
        });
      }
      if (i < 60 && rng.below(6) == 0) {
        const FlowId flow(1 + rng.below(flows));
        const WarmHold hold = some_hold();
        step([&](Actions& out) { HoldDesk(*core_).set(now_, flow, hold, out); });
      }
      if (!starting.empty()) {
        const InstanceId id = starting.front();
        starting.erase(starting.begin());
        step([&](Actions& out) {
          rng.below(8) == 0 ? core_->instance_gone(now_, id, out) : core_->instance_ready(now_, id, out);
        });
      }
      if (!running.empty()) {
        const InvocationId id = running.front();
        running.erase(running.begin());
        step([&](Actions& out) { core_->answered(now_, id, false, std::nullopt, out); });
      }
      if (running.empty() && !returning.empty()) {
        const InstanceId id = returning.front();
        returning.erase(returning.begin());
        step([&](Actions& out) { core_->instance_idle(now_, id, out); });
      }
      step([&](Actions& out) { core_->wake(now_, out); });
      for (const GpuView& view : core_->gpus()) ASSERT_LE(view.memory_admitted, mib(1024 * 16)) << "seed " << seed;
    }
  }
}

}  // namespace
}  // namespace fairlead
