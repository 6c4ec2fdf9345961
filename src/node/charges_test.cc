#include "node/charges.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "node/testing/node_without_processes.h"

namespace fairlead {
namespace {

using namespace std::chrono_literals;

constexpr InstanceId kFirst{1};

class ChargesTest : public NodeWithoutProcesses {
 protected:
  ChargesTest() { flow = add_function("f").flow; }

  void run_one() {
    invoke("f");
    runner.started.size() == 1 && runner.delivered.empty() ? ready(kFirst) : idle(kFirst);
  }
  std::optional<Duration> used() { return charges.used(kFirst, runner.use(kFirst)); }

  FlowId flow;
};

TEST_F(ChargesTest, AnInvocationUsesWhatWasReportedSinceItsDelivery) {
  runner.uses[kFirst].gpu_time = 300ms;  // while it started
  run_one();
  runner.uses[kFirst].gpu_time = 340ms;
  EXPECT_EQ(used(), Duration(40ms));
}

TEST_F(ChargesTest, WhoNeverUsedADeviceIsChargedTheTimeHeld) {
  run_one();
  EXPECT_EQ(used(), std::nullopt);
}

TEST_F(ChargesTest, WhereNobodySaysWhichProcessComputesTheTimeHeldCounts) {
  names_processes = false;
  runner.uses[kFirst].gpu_time = 0ms;
  run_one();
  runner.uses[kFirst].gpu_time = 40ms;
  EXPECT_EQ(used(), std::nullopt);
}

TEST_F(ChargesTest, WhatTheNodeItselfMeasuresCountsEverywhere) {
  names_processes = false;
  runner.source = UseSource::kMeasured;
  runner.uses[kFirst].gpu_time = 0ms;
  run_one();
  runner.uses[kFirst].gpu_time = 40ms;
  EXPECT_EQ(used(), Duration(40ms));
}

TEST_F(ChargesTest, WorkThatGoesOnKeepsTheChargeOpenAndItsRecordWaits) {
  runner.uses[kFirst].gpu_time = 0ms;
  run_one();
  const InvocationId invocation = runner.delivered.back().second.id;
  runner.uses[kFirst] = {.gpu_time = 40ms, .is_busy = true};
  ASSERT_TRUE(charges.goes_on(kFirst, runner.use(kFirst)));
  charges.watch(kFirst, invocation);
  invocations.answered({.invocation = invocation});
  driver.tell([&](Core& core, Instant now, Actions& out) { core.answered_early(now, invocation, false, 40ms, out); });
  EXPECT_TRUE(charges.is_open(invocation));
  charges.keep(invocation, {.gpu_time = 40ms});
  EXPECT_TRUE(charged.empty());
  EXPECT_TRUE(records.empty());

  runner.uses[kFirst] = {.gpu_time = 90ms};
  while (charged.empty()) io.run_one();  // the next look
  EXPECT_EQ(charged[0].invocation, invocation);
  EXPECT_FALSE(charges.is_open(invocation));
  ASSERT_EQ(records.size(), 1U);
  EXPECT_EQ(records[0].gpu_time, charged[0].service);
}

// A process of ours stands for the instance's: the device says that it worked for a second, its reports say nothing.
TEST_F(ChargesTest, WhatTheDeviceSaysIsOwedAndTheFunctionNamed) {
  runner.pid = static_cast<int>(::getppid());
  runner.uses[kFirst].gpu_time = 0ms;
  run_one();
  const Instant began = monotonic_now();
  charges.compare_with_devices({{.pid = static_cast<int>(::getpid()), .from = began, .until = began + 1s, .busy = 1s}});
  EXPECT_GT(functions.find("f")->stats.gpu_time_not_reported, 500ms);
  EXPECT_EQ(used(), std::nullopt) << "its word is not asked for again";
}

// A device's samples are rounded: a difference of a fifth of a second is nobody's lie.
TEST_F(ChargesTest, ADifferenceWithinTheMarginIsNotCorrected) {
  runner.pid = static_cast<int>(::getppid());
  runner.uses[kFirst].gpu_time = 0ms;
  run_one();
  const Instant began = monotonic_now();
  charges.compare_with_devices(
      {{.pid = static_cast<int>(::getpid()), .from = began, .until = began + 1s, .busy = 150ms}});
  EXPECT_EQ(functions.find("f")->stats.gpu_time_not_reported, Duration(0));
}

TEST_F(ChargesTest, OfAnInstanceThatIsGoneNothingIsCharged) {
  runner.uses[kFirst].gpu_time = 0ms;
  run_one();
  gone(kFirst, "exit status 0");
  EXPECT_EQ(charges.used(kFirst, DeviceUse{.gpu_time = 40ms}), std::nullopt);
  charges.begin(kFirst);
}

TEST_F(ChargesTest, WhatAnInstanceDidBetweenItsCallsItsFunctionOwesWhenItEnds) {
  runner.uses[kFirst].gpu_time = 0ms;
  run_one();
  runner.uses[kFirst].gpu_time = 40ms;
  answer("{}");
  idle(kFirst);
  runner.uses[kFirst].gpu_time = 1s;
  gone(kFirst, "exit status 0");
  auto reply = invoke("f");
  const InstanceId second = runner.started.back();
  runner.uses[second].gpu_time = 0ms;
  ready(second);
  runner.uses[second].gpu_time = 1us;
  answer("{}");
  EXPECT_GE(functions.find(flow)->stats.service, 960ms);
}

TEST_F(ChargesTest, WhatAKeptInstanceDoesBeforeItsFirstCallIsOwedWithIt) {
  invoke("f");
  runner.uses[kFirst].gpu_time = 500ms;  // while it starts
  charges.ready(kFirst);
  runner.uses[kFirst].gpu_time = 2500ms;
  ready(kFirst);
  answer("{}");
  EXPECT_GE(functions.find(flow)->stats.service, 2s);
  EXPECT_LT(functions.find(flow)->stats.service, 2400ms);
}

}  // namespace
}  // namespace fairlead
