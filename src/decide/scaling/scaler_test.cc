// Scalers step by step: the paper's, HAS-GPU's rule, ours on a scripted burst, to and from zero.
#include "decide/scaling/scaler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

namespace fairlead {
namespace {

using namespace std::chrono_literals;
using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr ThroughputModel kResnet = {.fixed_ms = 1.06, .work_ms = 310.7, .saturation_percent = 24};

ScalerSettings resnet() {
  ScalerSettings settings;
  settings.terms = {.objective = 69ms, .memory = mib(1525), .device_memory = gib(16)};
  settings.sizes = fine_grid(kResnet);
  return settings;
}

int count(const ScalingDecision& decision, ScalingVerb verb) {
  return static_cast<int>(std::count_if(decision.steps.begin(), decision.steps.end(),
                                        [verb](const ScalingStep& step) { return step.verb == verb; }));
}

// Carries steps out as a cluster would, without devices: starts take 5 s, returns as long as the settings say.
class World {
 public:
  explicit World(const char* name, ScalerSettings settings = resnet())
      : settings_(settings), scaler(std::move(*make_scaler(name, settings))) {}

  ScalingDecision decide(std::uint64_t arrived, std::size_t waiting = 0) {
    now_ += scaler->period();
    settle();
    view.arrived = arrived;
    view.waiting = waiting;
    const ScalingDecision made = scaler->decide(now_, view);
    carry_out(made);
    return made;
  }
  ScalingDecision waits(std::size_t waiting) {
    view.waiting = waiting;
    const ScalingDecision made = scaler->waits(now_, view);
    carry_out(made);
    return made;
  }
  // At so many requests per second, as many busy as that takes.
  void run(Duration length, double rate) {
    double owed = 0;
    for (Duration passed{0}; passed < length; passed += scaler->period()) {
      owed += rate * to_seconds(scaler->period());
      const auto arrived = static_cast<std::uint64_t>(owed);
      owed -= static_cast<double>(arrived);
      keep_busy(rate);
      decide(arrived);
    }
  }
  int of(InstanceStage stage) const {
    return static_cast<int>(std::count_if(view.instances.begin(), view.instances.end(),
                                          [stage](const auto& one) { return one.stage == stage; }));
  }
  void make_all_busy(bool busy) {
    for (ScaledInstance& one : view.instances) one.is_busy = busy && one.stage == InstanceStage::kReady;
  }

 private:
  void keep_busy(double rate) {
    for (ScaledInstance& one : view.instances) {
      const bool busy = one.stage == InstanceStage::kReady && rate > 0;
      if (one.is_busy && !busy) one.idle_since = now_;
      one.is_busy = busy;
      rate -= busy ? one.size.rate_per_s : 0;
    }
  }
  void settle() {
    for (ScaledInstance& one : view.instances) {
      const bool comes = one.stage == InstanceStage::kStarting || one.stage == InstanceStage::kReturning;
      if (!comes || due_.at(one.id) > now_) continue;
      one.stage = parks_[one.id] ? InstanceStage::kParked : InstanceStage::kReady;
      parks_[one.id] = false;
      one.idle_since = now_;
    }
  }
  void carry_out(const ScalingDecision& made) {
    for (const ScalingStep& step : made.steps) {
      const auto one = std::find_if(view.instances.begin(), view.instances.end(),
                                    [&](const auto& candidate) { return candidate.id == step.instance; });
      switch (step.verb) {
        case ScalingVerb::kStart:
        case ScalingVerb::kStartParked:
          view.instances.push_back({.id = InstanceId(++last_), .size = step.size, .stage = InstanceStage::kStarting});
          due_[InstanceId(last_)] = now_ + settings_.cold_start;
          parks_[InstanceId(last_)] = step.verb == ScalingVerb::kStartParked;
          break;
        case ScalingVerb::kReturn:
          ASSERT_EQ(one->stage, InstanceStage::kParked);
          one->stage = InstanceStage::kReturning;
          due_[one->id] = now_ + settings_.return_time;
          break;
        case ScalingVerb::kPark:
          ASSERT_EQ(one->stage, InstanceStage::kReady);
          ASSERT_FALSE(one->is_busy) << "an instance that runs is parked";
          one->stage = InstanceStage::kParked;
          break;
        case ScalingVerb::kStop: view.instances.erase(one); break;
        case ScalingVerb::kResize: one->size = step.size; break;
      }
    }
  }

  const ScalerSettings settings_;
  Instant now_;
  std::uint64_t last_ = 0;
  std::map<InstanceId, Instant> due_;
  std::map<InstanceId, bool> parks_;

 public:
  std::unique_ptr<Scaler> scaler;
  ScalerView view;
};

TEST(Erlang, AsManyInstancesAsKeepWaitsShort) {
  EXPECT_EQ(instances_for(0, 10, 100ms, 0.01), 0);
  EXPECT_EQ(instances_for(0.001, 10, 100ms, 0.01), 1);
  const int tight = instances_for(100, 10, 10ms, 0.01), loose = instances_for(100, 10, 1s, 0.01);
  EXPECT_GT(tight, loose);
  EXPECT_GT(loose, 10);  // more than the load alone, or the queue grows without end
  EXPECT_LE(loose, 12);
}

TEST(Algorithm1, FillsTheGapAndStopsWhereARemovalWouldOpenOne) {
  World world("algorithm1");
  world.decide(0);
  ScalingDecision made = world.decide(100);
  EXPECT_GT(count(made, ScalingVerb::kStart), 0);
  double can = 0;
  for (const ScaledInstance& one : world.view.instances) can += one.size.rate_per_s;
  EXPECT_GE(can, 100);
  made = world.decide(100);
  EXPECT_THAT(made.steps, IsEmpty());  // what starts counts
  EXPECT_THAT(made.saw, HasSubstr("100.0 requests/s expected"));
  made = world.decide(1);
  EXPECT_GT(count(made, ScalingVerb::kStop), 0);
  EXPECT_THAT(made.rejected, Contains(HasSubstr("would be short")));
  can = 0;
  for (const ScaledInstance& one : world.view.instances) can += one.size.rate_per_s;
  EXPECT_GE(can, 1);
}

TEST(Algorithm1, OfAlikeInstancesTheYoungestGoes) {
  World world("algorithm1");
  world.decide(0);
  world.decide(200);
  const InstanceId oldest = world.view.instances.front().id;
  world.decide(400);
  EXPECT_GT(count(world.decide(50), ScalingVerb::kStop), 0);
  EXPECT_EQ(world.view.instances.front().id, oldest);
}

TEST(Has, RaisesQuotasBeforeItAddsInstances) {
  ScalerSettings settings = resnet();
  settings.terms.objective = 500ms;
  World world("has", settings);
  world.decide(0);
  EXPECT_GT(count(world.decide(20), ScalingVerb::kStart), 0);
  world.run(6s, 20);
  double can = 0;
  for (const ScaledInstance& one : world.view.instances) can += one.size.rate_per_s;
  const ScalingDecision made = world.decide(static_cast<std::uint64_t>(can * 0.95));
  EXPECT_GT(count(made, ScalingVerb::kResize), 0);
  EXPECT_EQ(count(made, ScalingVerb::kStart), 0);
}

TEST(Has, ShrinksOnlyAfterTenSeconds) {
  World world("has");
  world.run(10s, 200);
  ScalingDecision made;
  int seconds = 0;
  for (; made.steps.empty() && seconds < 30; ++seconds) made = world.decide(5);
  EXPECT_GE(seconds, 10);
  EXPECT_LE(seconds, 12);
  EXPECT_GT(count(made, ScalingVerb::kStop), 0);
}

class FleetTest : public testing::Test {
 protected:
  FleetTest() : world("fleet") { world.run(90s, 200); }
  World world;
};

TEST_F(FleetTest, HasReadyWhatTheRateNeedsAndSparesParked) {
  const int ready = world.of(InstanceStage::kReady);
  EXPECT_GE(ready, 6);  // 5.4 are busy
  EXPECT_LE(ready, 10);
  EXPECT_GE(world.of(InstanceStage::kParked) + ready, 27);  // 5 times 200
  EXPECT_EQ(world.of(InstanceStage::kStarting), 0);
}

TEST_F(FleetTest, ARequestThatWaitsBringsInstancesBackOnItsEvent) {
  world.make_all_busy(true);
  const ScalingDecision few = world.waits(1);
  EXPECT_THAT(few.steps, IsEmpty());  // the ready ones answer it in time
  const ScalingDecision many = world.waits(30);
  EXPECT_GT(count(many, ScalingVerb::kReturn), 5);
  EXPECT_EQ(count(many, ScalingVerb::kStart), 0);
  EXPECT_THAT(world.waits(30).steps, IsEmpty());  // they are on their way
}

// 200 a second, then 800: no cold start in the way, ready within half a second, parked again when it is over.
TEST_F(FleetTest, AScriptedBurst) {
  std::vector<InstanceId> before;
  for (const ScaledInstance& one : world.view.instances) before.push_back(one.id);
  world.waits(40);
  world.run(600ms, 800);
  int of_before = 0;
  for (const ScaledInstance& one : world.view.instances) {
    of_before += one.stage == InstanceStage::kReady && std::count(before.begin(), before.end(), one.id) > 0 ? 1 : 0;
  }
  EXPECT_GE(of_before, 20);  // 21.5 are busy at 800
  world.run(5s, 200);
  EXPECT_LE(world.of(InstanceStage::kReady), 12);
  EXPECT_GE(world.of(InstanceStage::kParked), 15);
}

// Ten times the usual rate is beyond the spares: what is short starts cold, to be there when it lasts.
TEST_F(FleetTest, ARiseBeyondTheSparesStartsMore) {
  world.run(5s, 2000);
  EXPECT_GE(world.view.instances.size(), 54u);  // 54 are busy at 2,000
}

TEST_F(FleetTest, WhoWasIdleForLessThanTheHoldStays) {
  world.run(1s, 800);
  world.make_all_busy(true);
  world.decide(20);
  for (ScaledInstance& one : world.view.instances) {
    one.is_busy = false;
    if (one.stage == InstanceStage::kReady) one.idle_since = Instant(1h);  // later than now: idle for no time
  }
  const ScalingDecision made = world.decide(20);
  EXPECT_EQ(count(made, ScalingVerb::kPark), 0);
  EXPECT_THAT(made.rejected, Contains(HasSubstr("idle for less than 240 ms")));
}

TEST_F(FleetTest, NobodyIsParkedWhileRequestsWait) {
  world.make_all_busy(false);
  for (ScaledInstance& one : world.view.instances) one.idle_since = Instant();
  EXPECT_EQ(count(world.decide(0, 50), ScalingVerb::kPark), 0);
}

TEST_F(FleetTest, GoesToZeroAndComesBack) {
  world.run(30s, 0);
  EXPECT_EQ(world.of(InstanceStage::kReady), 0);  // parked: no device is held
  EXPECT_GT(world.of(InstanceStage::kParked), 0);
  world.run(11min, 0);
  EXPECT_THAT(world.view.instances, IsEmpty());
  world.decide(1, 1);
  EXPECT_EQ(world.of(InstanceStage::kStarting), static_cast<int>(world.view.instances.size()));
  EXPECT_GE(world.view.instances.size(), 1u);
  world.run(6s, 1);
  EXPECT_GE(world.of(InstanceStage::kReady), 1);
}

TEST(Fleet, ALeastNumberStaysReady) {
  ScalerSettings settings = resnet();
  settings.least = 2;
  World world("fleet", settings);
  world.run(20s, 1);
  world.run(20s, 0);
  EXPECT_EQ(world.of(InstanceStage::kReady), 2);
}

// As a node runs it: nothing is started ahead; one stays, those that were needed are parked for 30 times a start, and then stop.
TEST(Fleet, WithoutSparesWhatWasNeededStaysParkedForTheCostOfAStart) {
  ScalerSettings settings = resnet();
  settings.burst = 0;
  settings.hold_starts = 30;
  settings.keeps_one = true;
  settings.cold_start = 1s;
  World world("fleet", settings);
  world.run(20s, 800);
  const int needed = world.of(InstanceStage::kReady);
  ASSERT_GE(needed, 20);
  world.run(25s, 0);
  EXPECT_EQ(world.of(InstanceStage::kReady), 1);
  EXPECT_GE(world.of(InstanceStage::kParked), needed * 3 / 4) << "a burst has them back";
  world.run(30s, 0);
  EXPECT_EQ(world.of(InstanceStage::kParked), 0);
  EXPECT_EQ(world.of(InstanceStage::kReady), 1) << "until nothing was called for 10 minutes";
  world.run(10min, 0);
  EXPECT_THAT(world.view.instances, IsEmpty());
}

TEST(Fleet, AStartThatIsKnownToTakeLongIsHeldLonger) {
  ScalerSettings settings = resnet();
  settings.burst = 0;
  settings.hold_starts = 30;
  settings.cold_start = 1s;
  World world("fleet", settings);
  world.view.cold_start = 4s;
  world.run(20s, 800);
  world.run(60s, 0);
  EXPECT_GE(world.of(InstanceStage::kParked), 20) << "120 s";
}

// As a node runs it, with starts of 2 s and nothing parked: a rate that rises by 25 a second is met by what is started ahead of it.
double requests_short(const std::string& ahead, double* most_instances) {
  ScalerSettings settings = resnet();
  settings.burst = 0;
  settings.hold_starts = 30;
  settings.keeps_one = true;
  settings.cold_start = 2s;
  settings.ahead_predictor = ahead;
  World world("fleet", settings);
  world.run(20s, 50);
  double sum = 0;
  for (double rate = 50; rate < 500; rate += 10) {
    world.run(400ms, rate);
    double can = 0;
    for (const ScaledInstance& one : world.view.instances)
      can += one.stage == InstanceStage::kReady ? one.size.rate_per_s : 0;
    sum += std::max(0.0, rate - can) * 0.4;
  }
  *most_instances = static_cast<double>(world.view.instances.size());
  return sum;
}

TEST(Fleet, ARiseIsStartedForBeforeItComes) {
  double without_instances = 0, with_instances = 0;
  const double without = requests_short("", &without_instances), with = requests_short("holt", &with_instances);
  EXPECT_GT(without, 50) << "what comes in a start that is too late";
  EXPECT_LT(with, without / 4);
  EXPECT_LE(with_instances, without_instances * 1.4) << "not by having everything";
}

TEST(Fleet, ASteadyRateStartsNothingAheadOfIt) {
  ScalerSettings settings = resnet();
  settings.burst = 0;
  settings.cold_start = 2s;
  World without("fleet", settings);
  settings.ahead_predictor = "holt";
  World with("fleet", settings);
  without.run(60s, 200);
  with.run(60s, 200);
  EXPECT_LE(with.view.instances.size(), without.view.instances.size() + 1);
}

// Twice the first window's rate is the most that a rise is believed: one call after a silence is no reason to fill the GPUs.
TEST(Fleet, AFirstBurstIsNotBelievedToGoOnForEver) {
  ScalerSettings settings = resnet();
  settings.burst = 0;
  settings.cold_start = 10s;
  settings.ahead_predictor = "holt";
  World world("fleet", settings);
  world.run(2s, 0);
  world.run(2s, 400);
  const int enough = instances_for(2 * 400, world.view.instances.front().size.rate_per_s, 69ms - 27ms, 0.02);
  EXPECT_LE(static_cast<int>(world.view.instances.size()), enough + 2);
}

TEST(Fleet, WhatIsNeededIsToldFromSpares) {
  World world("fleet");
  world.run(90s, 200);
  world.make_all_busy(true);
  const ScalingDecision made = world.decide(20);
  EXPECT_GE(made.needed, 6);
  EXPECT_LE(made.needed, 10) << "the others are spares";
  ScalerSettings settings = resnet();
  settings.ahead_predictor = "oracle";
  EXPECT_FALSE(make_scaler("fleet", settings));
}

TEST(Fleet, EveryDecisionSaysWhatItSaw) {
  World world("fleet");
  const ScalingDecision made = world.decide(20);
  EXPECT_THAT(made.saw, HasSubstr("requests/s expected"));
  EXPECT_THAT(made.rejected, Contains(HasSubstr("the objective is 69 ms")));
}

TEST(Scalers, SayWhatIsWrong) {
  EXPECT_EQ(make_scaler("best", resnet()).error().message,
            "scaler is \"best\", it must be one of algorithm1, has, fleet");
  ScalerSettings settings = resnet();
  settings.terms.objective = 5ms;
  EXPECT_THAT(make_scaler("fleet", settings).error().message, HasSubstr("objective is 5 ms and no size"));
  settings = resnet();
  settings.predictor = "oracle";
  EXPECT_FALSE(make_scaler("fleet", settings));
}

}  // namespace
}  // namespace fairlead
