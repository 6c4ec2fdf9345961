#include "node/autoscaler.h"

#include <gmock/gmock.h>

#include "base/clock.h"
#include "node/testing/node_with_shares.h"

namespace fairlead {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class AutoscalerTest : public NodeWithShares {
 protected:
  AutoscalerTest() {
    profile.trials = {{.rate_per_s = 100, .error = 0.01, .memory = mib(100)}};
    profile.work_ms = 1000;  // 10 ms of all SMs
  }

  void add(std::map<std::string, std::string> tags) { NodeWithShares::add("f", std::move(tags)); }
  void add_scaled() { add({{"gpu:autoscale", "true"}, {"gpu:objective-ms", "100"}}); }
  // Once it has looked at the function.
  ScalingStatus seen() {
    scaler.start({});
    while (!scaler.status("f")) io.run_one();
    return scaler.status("f").value();
  }
  void call() {
    invoke("f");
    scaler.called("f");
    io.run_one();  // what was posted
  }
  // Ticks go on until it is so, for half a minute at most.
  template <typename Condition>
  void until(Condition condition) {
    const Instant end = monotonic_now() + std::chrono::seconds(30);
    while (!condition() && monotonic_now() < end) io.run_one();
    ASSERT_TRUE(condition()) << "not within 30 s";
  }
  // And what is delivered meanwhile.
  void serve_all() {
    for (; served < runner.delivered.size(); ++served) {
      const InstanceId instance = runner.delivered[served].first;
      const InvocationId invocation = runner.delivered[served].second.id;
      ASSERT_TRUE(invocations.answered({.invocation = invocation, .payload = "1"}));
      driver.tell(
          [&](Core& core, Instant now, Actions& out) { core.answered(now, invocation, false, std::nullopt, out); });
      idle(instance);
    }
  }
  std::vector<std::string> all_did() {
    std::vector<std::string> all;
    const ScalingStatus status = scaler.status("f").value();
    for (const ScalingNote& note : status.notes) all.insert(all.end(), note.did.begin(), note.did.end());
    return all;
  }

  FunctionProfile profile;
  bool is_measured = true;
  std::size_t served = 0;  // of what was delivered
  Autoscaler scaler{io,
                    driver,
                    control,
                    functions,
                    [this](const FunctionRecord&) { return is_measured ? &profile : nullptr; },
                    [] { return gib(16); }};
};

TEST_F(AutoscalerTest, WithoutTheTagNothingIsScaled) {
  add({});
  const auto status = scaler.status("f");
  ASSERT_FALSE(status);
  EXPECT_THAT(status.error().message, HasSubstr("deploy it with --objective-ms"));
}

TEST_F(AutoscalerTest, WhatWasNotMeasuredIsBestEffortAndSaysSo) {
  is_measured = false;
  add({{"gpu:autoscale", "true"}, {"gpu:objective-ms", "100"}});
  const ScalingStatus status = seen();
  EXPECT_EQ(status.state, "best effort");
  EXPECT_THAT(status.lacking, HasSubstr("fairlead profile f --sample FILE"));
  call();
  EXPECT_THAT(control.shares().entry("f")->seats, IsEmpty());
}

TEST_F(AutoscalerTest, AnObjectiveThatNoSizeMeetsIsBestEffort) {
  add({{"gpu:autoscale", "true"}, {"gpu:objective-ms", "1"}});
  EXPECT_EQ(seen().state, "best effort");
}

// 10 ms within 100 ms on one GPU: a seat when somebody calls, and none before.
TEST_F(AutoscalerTest, TheFirstCallBringsTheFirstSeat) {
  add({{"gpu:autoscale", "true"}, {"gpu:objective-ms", "100"}});
  const ScalingStatus idle = seen();
  EXPECT_EQ(idle.state, "scaled");
  EXPECT_EQ(idle.width_percent, 100) << "no MPS";
  EXPECT_EQ(idle.seats, 0u);
  call();
  const auto share = control.shares().entry("f");
  ASSERT_TRUE(share);
  EXPECT_THAT(share->seats, ElementsAre(GpuId(1)));
  const ScalingStatus status = scaler.status("f").value();
  EXPECT_EQ(status.seats, 1u);
  EXPECT_GT(status.gpus, 0);
  ASSERT_FALSE(status.notes.empty());
  EXPECT_THAT(status.notes.front().did.front(), HasSubstr("an instance starts on GPU 1"));
}

TEST_F(AutoscalerTest, PinnedNothingMoves) {
  add({{"gpu:autoscale", "pinned"}, {"gpu:objective-ms", "100"}});
  EXPECT_EQ(seen().state, "pinned");
  call();
  EXPECT_EQ(scaler.status("f")->seats, 0u);
}

TEST_F(AutoscalerTest, WhereThereIsNoRoomItSaysWhatIsLacking) {
  ASSERT_TRUE(admit("other", {{"gpu:quota-request", "97"}}));
  add_scaled();
  seen();
  call();
  const ScalingStatus status = scaler.status("f").value();
  EXPECT_EQ(status.seats, 0u);
  ASSERT_FALSE(status.notes.empty());
  EXPECT_THAT(status.notes.front().rejected, testing::Contains(HasSubstr("more would start")));
}

TEST_F(AutoscalerTest, TheInstanceThatTheFirstCallBeganTakesTheSeatAndNoOtherStarts) {
  add_scaled();
  seen();
  call();
  EXPECT_EQ(driver.core().instances().size(), 1u);
  EXPECT_TRUE(driver.core().instances().front().entitled);
  EXPECT_THAT(all_did(), testing::Contains(HasSubstr("an instance starts on GPU 1: 1, which a call had begun")));
}

// A burst wants two seats on two GPUs; then nobody calls, and one parks; the next burst has it back.
TEST_F(AutoscalerTest, WhoIsTooManyParksAndIsUnparkedWhenCallsWait) {
  control.shares().add_device({.id = GpuId(2), .name = "V100", .uuid = "GPU-b", .memory = gib(16)}, 32, 2);
  driver.core().add_gpu({.gpu = GpuId(2), .memory = gib(16)});
  profile.work_ms = 10'000;  // 100 ms of all SMs
  add({{"gpu:autoscale", "true"}, {"gpu:objective-ms", "400"}});
  seen();
  for (int i = 0; i < 8; ++i) call();
  until([&] { return seats("f") == 2; });
  const auto there = driver.core().instances();
  for (const InstanceView& one : there) ready(one.instance);
  serve_all();
  until([&] { return seats("f") == 1; });
  EXPECT_THAT(all_did(), testing::Contains(HasSubstr("parks")));
  EXPECT_EQ(driver.core().instances().size(), there.size()) << "the process is kept";
  EXPECT_EQ(scaler.status("f")->parked, there.size() - 1);
  const std::size_t had = actions.size();
  for (int i = 0; i < 8; ++i) call();
  until([&] { return seats("f") == 2; });
  EXPECT_THAT(all_did(), testing::Contains(HasSubstr("is unparked")));
  for (std::size_t i = had; i < actions.size(); ++i)
    EXPECT_THAT(actions[i], testing::Not(testing::StartsWith("start")));
}

TEST_F(AutoscalerTest, WithoutItsProfileItGivesItsSeatsBackAndSaysWhy) {
  add_scaled();
  seen();
  call();
  ASSERT_EQ(seats("f"), 1u);
  is_measured = false;
  scaler.profiled("f");
  until([&] { return seats("f") == 0; });
  const ScalingStatus status = scaler.status("f").value();
  EXPECT_EQ(status.state, "best effort");
  EXPECT_THAT(status.lacking, HasSubstr("nothing was measured"));
  EXPECT_THAT(status.notes.front().did, ElementsAre("1 seats are given back"));
  EXPECT_THAT(status.notes.front().rejected.front(), HasSubstr("nothing was measured"));
  EXPECT_TRUE(admit("other", {{"gpu:quota-request", "97"}})) << "they are others'";
}

TEST_F(AutoscalerTest, AnInstanceThatNeverStartsHoldsNoRectangle) {
  add_scaled();
  seen();
  call();
  for (std::uint64_t id = 1; id <= 3; ++id) {
    until([&] { return !driver.core().instances().empty(); });
    ASSERT_EQ(seats("f"), 1u);
    gone(driver.core().instances().front().instance, "it exits");
  }
  until([&] { return seats("f") == 0; });
  const ScalingStatus status = scaler.status("f").value();
  EXPECT_THAT(status.lacking, HasSubstr("3 starts in a row failed"));
  EXPECT_THAT(status.notes.front().rejected, testing::Contains(HasSubstr("its instances do not start")));
  EXPECT_TRUE(admit("other", {{"gpu:quota-request", "97"}}));
  invoke("f");
  scaler.called("f");
  io.run_one();
  EXPECT_EQ(seats("f"), 0u) << "no seat before the pause is over";
}

TEST_F(AutoscalerTest, AFunctionThatWasRemovedIsForgotten) {
  add({{"gpu:autoscale", "true"}, {"gpu:objective-ms", "100"}});
  seen();
  scaler.forget("f");
  EXPECT_FALSE(scaler.status("f"));
  EXPECT_THAT(scaler.all(), IsEmpty());
}

}  // namespace
}  // namespace fairlead
