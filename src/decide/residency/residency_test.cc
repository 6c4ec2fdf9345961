// What events make of one instance, and what follows. Behaviour of many is in src/decide/core's memory tests.
#include "decide/residency/residency.h"

#include <gmock/gmock.h>

#include <memory>
#include <string>
#include <variant>

namespace fairlead {
namespace {

using namespace std::chrono_literals;

constexpr FlowId kFlow(1), kOther(2);
constexpr GpuId kGpu(1);
constexpr InstanceId kA(1), kB(2);

class Demand final : public ResidencyContext {
 public:
  FlowDemand demand_of(FlowId) const override { return demand; }
  InstanceId cheapest_to_stop(const std::vector<InstanceId>& idle) const override { return idle.front(); }
  FlowDemand demand;
};

class ResidencyTest : public ::testing::Test {
 protected:
  ResidencyTest() {
    residency_.add_gpu(kGpu, gib(8));
    residency_.add_function(kFlow, gib(1));
    residency_.add_function(kOther, gib(1));
  }

  // Idle, and `use` is what it has reported.
  void idles(InstanceId id, FlowId flow, const MemoryUse& use) {
    residency_.add(now_, id, flow, kGpu, gib(1));
    residency_.ready(id);
    residency_.started(now_, id);
    residency_.report(id, use);
  }
  // 4 GiB of A leave for B, which needs 8 and starts.
  void begins_to_leave() {
    idles(kA, kFlow, {.held = gib(4), .resident = gib(4)});
    residency_.add(now_, kB, kOther, kGpu, gib(8));
    EXPECT_EQ(settle(), "out 1");
  }
  // 4 GiB of A return, because it runs.
  void begins_to_return() {
    idles(kA, kFlow, {.held = gib(4), .away = gib(4)});
    EXPECT_FALSE(residency_.run(now_, kA, gib(4)));
    EXPECT_EQ(settle(), "in 1");
  }
  std::string settle() {
    ResidencyDecisions decisions;
    residency_.settle(now_, decisions);
    residency_.check_books();
    std::string text;
    for (const ResidencyDecision& decision : decisions) {
      const auto* move = std::get_if<Move>(&decision);
      if (move == nullptr) return "something else";
      text += (text.empty() ? "" : ", ") + std::string(move->direction == MoveDirection::kIn ? "in " : "out ") +
              std::to_string(move->instance.value());
    }
    return text;
  }
  std::string state(InstanceId id) const { return residency_.state(id)->text(); }

  Instant now_{};
  Demand demand_;
  Residency residency_{{}, std::make_unique<LruSwap>(), demand_};
};

class EndOfAMove : public ResidencyTest, public ::testing::WithParamInterface<std::pair<MoveOutcome, const char*>> {};
class EndOfALeave : public EndOfAMove {};
class EndOfAReturn : public EndOfAMove {};

TEST_P(EndOfALeave, LeavesItsInstanceMovableOrNot) {
  begins_to_leave();
  EXPECT_FALSE(residency_.moved(now_, kA, MoveDirection::kIn, MoveOutcome::kDone)) << "it does not return";
  EXPECT_TRUE(residency_.moved(now_, kA, MoveDirection::kOut, GetParam().first));
  EXPECT_EQ(state(kA), GetParam().second);
  EXPECT_FALSE(residency_.moved(now_, kA, MoveDirection::kOut, MoveOutcome::kDone)) << "told twice";
}
INSTANTIATE_TEST_SUITE_P(Outcomes, EndOfALeave,
                         ::testing::Values(std::pair(MoveOutcome::kDone, "idle, still"),
                                           std::pair(MoveOutcome::kPartly, "idle, still, unmovable"),
                                           std::pair(MoveOutcome::kBusy, "idle, still, unmovable"),
                                           std::pair(MoveOutcome::kNoRoom, "idle, still, unmovable"),
                                           std::pair(MoveOutcome::kNothing, "idle, still, unmovable"),
                                           std::pair(MoveOutcome::kFailed, "idle, still, unmovable")));

TEST_P(EndOfAReturn, LeavesTheWayBackOpenOrNot) {
  begins_to_return();
  EXPECT_TRUE(residency_.moved(now_, kA, MoveDirection::kIn, GetParam().first));
  EXPECT_EQ(state(kA), GetParam().second);
}
INSTANTIATE_TEST_SUITE_P(Outcomes, EndOfAReturn,
                         ::testing::Values(std::pair(MoveOutcome::kDone, "running, still"),
                                           std::pair(MoveOutcome::kPartly, "running, still, full"),
                                           std::pair(MoveOutcome::kBusy, "running, still, failed"),
                                           std::pair(MoveOutcome::kNoRoom, "running, still, full"),
                                           std::pair(MoveOutcome::kNothing, "running, still"),
                                           std::pair(MoveOutcome::kFailed, "running, still, failed")));

TEST_F(ResidencyTest, AReturnThatFindsTheDeviceFullIsCutShortWhereAReportSaidMeanwhileThatAllIsThere) {
  begins_to_return();
  residency_.report(kA, {.held = gib(4), .resident = gib(4)});
  EXPECT_TRUE(residency_.moved(now_, kA, MoveDirection::kIn, MoveOutcome::kNoRoom));
  EXPECT_EQ(state(kA), "running, still");
}

TEST_F(ResidencyTest, AMoveThatIsNotAnsweredCountsAsFailed) {
  begins_to_leave();
  now_ += 1h;
  EXPECT_THAT(residency_.expire(now_), ::testing::ElementsAre(kA));
  EXPECT_EQ(state(kA), "idle, still, unmovable");
  residency_.gone(kB);
  residency_.report(kA, {.held = gib(4), .away = gib(4)});
  residency_.run(now_, kA, gib(4));
  EXPECT_EQ(settle(), "in 1");
  now_ += 1h;
  EXPECT_THAT(residency_.expire(now_), ::testing::ElementsAre(kA));
  EXPECT_EQ(state(kA), "running, still, failed");
  EXPECT_EQ(settle(), "") << "not before it reports or asks";
  residency_.wants_memory(kA);
  EXPECT_EQ(settle(), "in 1");
}

TEST_F(ResidencyTest, WhatFoundTheDeviceFullIsTriedAgainOnceSomethingIsFreed) {
  begins_to_return();
  residency_.moved(now_, kA, MoveDirection::kIn, MoveOutcome::kNoRoom);
  EXPECT_EQ(settle(), "");
  idles(kB, kOther, {.held = gib(1), .resident = gib(1)});
  residency_.report(kB, {});  // it has freed that
  EXPECT_EQ(settle(), "in 1");
}

TEST_F(ResidencyTest, AThreadThatWaitsThoughAllIsThereByTheBooksIsBelieved) {
  idles(kA, kFlow, {.held = gib(4), .resident = gib(4)});
  EXPECT_EQ(settle(), "");
  residency_.wants_memory(kA);
  EXPECT_EQ(state(kA), "idle, still, doubted, waits");
  EXPECT_EQ(settle(), "in 1");
  residency_.moved(now_, kA, MoveDirection::kIn, MoveOutcome::kNothing);
  EXPECT_EQ(state(kA), "idle, still, served");
}

TEST_F(ResidencyTest, AWaiterWhoseMemoryIsThereByAReportIsSatisfied) {
  idles(kA, kFlow, {.held = gib(4), .away = gib(4)});
  residency_.wants_memory(kA);
  EXPECT_EQ(state(kA), "idle, still, waits");
  residency_.report(kA, {.held = gib(4), .resident = gib(4)});
  EXPECT_EQ(settle(), "");
  EXPECT_EQ(state(kA), "idle, still");
}

TEST_F(ResidencyTest, WhatCameBackAheadOfItsInvocationIsCountedWhenThatIsDispatched) {
  demand_.demand = {Claim::kQueued, 1};
  idles(kA, kFlow, {.held = gib(4), .away = gib(4)});
  residency_.called(kFlow, {});
  EXPECT_EQ(settle(), "in 1");
  EXPECT_EQ(state(kA), "idle, returning, prefetched");
  residency_.moved(now_, kA, MoveDirection::kIn, MoveOutcome::kDone);
  EXPECT_TRUE(residency_.run(now_, kA, gib(4)));
  EXPECT_EQ(residency_.counters().prefetches_in_time, 1u);

  idles(kB, kOther, {.held = gib(2), .away = gib(2)});
  residency_.called(kOther, {});
  EXPECT_EQ(settle(), "in 2");
  EXPECT_FALSE(residency_.run(now_, kB, gib(2))) << "on its way";
  EXPECT_EQ(residency_.counters().prefetches_late, 1u);
}

TEST_F(ResidencyTest, WhatIsChosenWhileItLeavesIsNotAllThere) {
  begins_to_leave();
  EXPECT_FALSE(residency_.run(now_, kA, gib(4)));
  EXPECT_EQ(state(kA), "running, leaving");
  residency_.moved(now_, kA, MoveDirection::kOut, MoveOutcome::kDone);
  residency_.gone(kB);
  EXPECT_EQ(settle(), "in 1");
}

// Nobody has called it; it was called before.
TEST_F(ResidencyTest, WhatIsExpectedToBeCalledComesBackAheadToo) {
  idles(kA, kFlow, {.held = gib(4), .away = gib(4)});
  demand_.demand = {Claim::kKept, 0};
  residency_.called(kFlow, {.mean = 1s, .last = now_});
  EXPECT_EQ(settle(), "in 1");
  EXPECT_EQ(state(kA), "idle, returning, prefetched");
}

TEST_F(ResidencyTest, WhatAStartHoldsIsNoSampleOfWhatAnInvocationNeeds) {
  idles(kA, kFlow, {.held = gib(4), .resident = gib(4)});
  EXPECT_EQ(residency_.expected(kFlow), gib(1));
  residency_.run(now_, kA, gib(1));
  residency_.rest(now_, kA);
  EXPECT_EQ(state(kA), "answered, still");
  residency_.report(kA, {.held = gib(5), .resident = gib(5)});
  EXPECT_EQ(state(kA), "idle, still");
  EXPECT_EQ(residency_.expected(kFlow), gib(5));
}

using ResidencyDeathTest = ResidencyTest;
TEST_F(ResidencyDeathTest, OnlyWhatIdlesCanBeChosen) {
  residency_.add(now_, kA, kFlow, kGpu, gib(1));
  EXPECT_DEATH(residency_.run(now_, kA, gib(1)), "instance 1, starting, unreported: chosen");
}

}  // namespace
}  // namespace fairlead
