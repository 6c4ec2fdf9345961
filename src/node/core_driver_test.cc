#include "node/core_driver.h"

#include <gmock/gmock.h>

#include <string>
#include <vector>

namespace fairlead {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

constexpr FlowId kFlow{1};

class CoreDriverTest : public testing::Test {
 protected:
  CoreDriverTest() { reset({}); }

  void reset(const CoreOptions& options) {
    driver = std::make_unique<CoreDriver>(io, options, make_policy("fcfs", {}).value());
    driver->core().add_gpu({.gpu = GpuId(1)});
    driver->core().add_function({.flow = kFlow});
    driver->connect(
        [this](const Action& action) {
          log.push_back(to_string(action));
          if (then) std::exchange(then, nullptr)();
          log.push_back("-");
        },
        [this] { log.emplace_back("settled"); });
  }
  void arrive(std::uint64_t invocation) {
    driver->tell([&](Core& core, Instant now, Actions& out) {
      ASSERT_TRUE(core.arrive(now, InvocationId(invocation), kFlow, out));
    });
  }

  boost::asio::io_context io;
  std::unique_ptr<CoreDriver> driver;
  std::vector<std::string> log;
  std::function<void()> then;  // while the next action is carried out
};

TEST_F(CoreDriverTest, WhatAnActionCausesWaitsUntilItIsCarriedOut) {
  then = [this] {
    arrive(2);
    log.emplace_back("told");
  };
  arrive(1);
  EXPECT_THAT(log,
              ElementsAre(StartsWith("start instance=1"), "told", "-", StartsWith("start instance=2"), "-", "settled"));
}

TEST_F(CoreDriverTest, ItSettlesAlsoAfterAnEventWithoutActions) {
  driver->tell([](Core&, Instant, Actions&) {});
  EXPECT_THAT(log, ElementsAre("settled"));
}

TEST_F(CoreDriverTest, TheCoreIsWokenAtItsDeadline) {
  reset({.start_deadline = Duration(1)});
  arrive(1);
  log.clear();
  io.run_one();
  ASSERT_GE(log.size(), 2U);
  EXPECT_THAT(log, testing::Contains(HasSubstr("start_failed"))) << "the start's deadline has passed";
}

TEST_F(CoreDriverTest, AnEarlierDeadlineIsNotMissedForALaterOne) {
  reset({.start_deadline = std::chrono::hours(1)});
  arrive(1);
  driver->core().add_function({.flow = FlowId(2), .timeout = Duration(0)});
  driver->tell([](Core& core, Instant now, Actions& out) {
    core.instance_ready(now, InstanceId(1), out);  // delivers, with a deadline in a minute
    ASSERT_TRUE(core.arrive(now, InvocationId(2), FlowId(2), out));
    core.instance_ready(now, InstanceId(2), out);  // with one that is over
  });
  log.clear();
  while (log.empty()) io.run_one();
  EXPECT_THAT(log, testing::Contains(HasSubstr("timeout")));
}

}  // namespace
}  // namespace fairlead
