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
  ScalingStatus seen(Autoscaler::Options options = {}) {
    scaler.start(options);
    while (!scaler.status("f")) io.run_one();
    return scaler.status("f").value();
  }
  void call(const std::string& name = "f") {
    invoke(name);
    scaler.called(name);
    io.run_one();  // what was posted
  }
  void add_second_gpu() {
    control.shares().add_device({.id = GpuId(2), .name = "V100", .uuid = "GPU-b", .memory = gib(16)}, 32, 2);
    driver.core().add_gpu({.gpu = GpuId(2), .memory = gib(16)});
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
  std::vector<std::string> all_did(const std::string& name = "f") {
    std::vector<std::string> all;
    const ScalingStatus status = scaler.status(name).value();
    for (const ScalingNote& note : status.notes) all.insert(all.end(), note.did.begin(), note.did.end());
    return all;
  }

  FunctionProfile profile;
  std::map<std::string, FunctionProfile> profiles;  // of those that have another
  bool is_measured = true;
  std::size_t served = 0;  // of what was delivered
  Autoscaler scaler{io,
                    driver,
                    control,
                    functions,
                    [this](const FunctionRecord& record) {
                      const auto own = profiles.find(record.name);
                      return !is_measured ? nullptr : own == profiles.end() ? &profile : &own->second;
                    },
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

// Far within its objective on 4 % of the SMs: what is counted on is what was measured beside a copy.
TEST_F(AutoscalerTest, WhoMayHaveANeighbourIsCountedOnWithTheThroughputBesideOne) {
  control.shares().configure({.mode = SharingMode::kMps, .policy = "fcfs", .keeps_instances = true});
  profile.work_ms = 240;
  profile.saturation_percent = 24;
  add({{"gpu:autoscale", "true"}, {"gpu:objective-ms", "1000"}});
  const ScalingStatus alone = seen({.has_widths = true});
  ASSERT_LT(alone.width_percent, 100);
  profile.beside = TrialBeside{.trial = profile.trials[0], .slowdown = 1.5, .error = 0.02};
  scaler.profiled("f");
  until([&] { return scaler.status("f")->execution_ms != alone.execution_ms; });
  const ScalingStatus beside = scaler.status("f").value();
  ASSERT_EQ(beside.width_percent, alone.width_percent);
  EXPECT_NEAR(beside.execution_ms, 1.5 * alone.execution_ms, 1e-3);
  EXPECT_NEAR(beside.rate_per_s / beside.quota_percent * 1.5, alone.rate_per_s / alone.quota_percent, 1e-6);
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
  add_second_gpu();
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

// Load that one instance answers, on two GPUs: with room for twice the usual rate another starts ahead of it, and parks.
TEST_F(AutoscalerTest, ASpareStartsAheadOfNeedAndParks) {
  add_second_gpu();
  profile.work_ms = 3000;  // 30 ms of all SMs
  add({{"gpu:autoscale", "true"}, {"gpu:objective-ms", "400"}});
  seen({.ahead = 10});
  call();
  ready(driver.core().instances().front().instance);
  serve_all();
  until([&] { return driver.core().instances().size() == 2; });
  EXPECT_THAT(all_did(), testing::Contains(HasSubstr("ahead of need")));
  for (const InstanceView& one : driver.core().instances()) {
    if (one.state == InstanceState::kStarting) ready(one.instance);
  }
  until([&] { return seats("f") == 1; });
  EXPECT_EQ(scaler.status("f")->parked, 1u);
}

TEST_F(AutoscalerTest, WhereNothingIsToStartAheadNothingDoes) {
  add_second_gpu();
  profile.work_ms = 3000;
  add({{"gpu:autoscale", "true"}, {"gpu:objective-ms", "400"}});
  seen();
  call();
  ready(driver.core().instances().front().instance);
  serve_all();
  for (int tick = 0; tick < 10; ++tick) io.run_one();
  EXPECT_EQ(driver.core().instances().size(), 1u);
}

TEST_F(AutoscalerTest, SparesLeaveTheirPoolToOthers) {
  add_second_gpu();
  profile.work_ms = 3000;
  add({{"gpu:autoscale", "true"}, {"gpu:objective-ms", "400"}});
  seen({.ahead = 10, .pool = 3});  // a quarter of it is none
  call();
  ready(driver.core().instances().front().instance);
  serve_all();
  until([&] {
    const ScalingStatus status = scaler.status("f").value();
    return std::any_of(status.notes.begin(), status.notes.end(), [](const ScalingNote& note) {
      return std::any_of(note.rejected.begin(), note.rejected.end(),
                         [](const std::string& why) { return why.starts_with("no more spares start: 0 parked"); });
    });
  });
  EXPECT_EQ(driver.core().instances().size(), 1u);
}

TEST_F(AutoscalerTest, ItsBooksSayWhatWasHeldAndWhoWasLate) {
  add_scaled();
  EXPECT_FALSE(scaler.arrived("f", 1));
  EXPECT_EQ(seen().objective_ms, 100);
  call();
  const std::int64_t now_ms = wall_clock_ms();
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(scaler.arrived("f", now_ms));
  scaler.answered("f", now_ms, std::chrono::milliseconds(100), false);
  scaler.answered("f", now_ms, std::chrono::milliseconds(101), false);
  scaler.answered("f", now_ms, std::chrono::milliseconds(1), true);
  until([&] { return scaler.status("f")->totals.held_s > 0; });
  const ScalingStatus status = scaler.status("f").value();
  EXPECT_EQ(status.totals.arrived, 3u);
  EXPECT_EQ(status.totals.late, 2u) << "one came too late, one failed";
  EXPECT_NEAR(status.totals.bound_s, 3 * 0.01, 1e-6) << "10 ms of a device each";
  ASSERT_FALSE(scaler.placements().empty());
  EXPECT_EQ(scaler.placements().back().seats, (std::map<GpuId, std::size_t>{{GpuId(1), 1}}));
}

// Narrow functions under MPS. Both GPUs hold something, and none has room for the whole of one; who is idle goes where it fits beside the other.
class MovesTest : public AutoscalerTest {
 protected:
  MovesTest() {
    add_second_gpu();
    control.shares().configure({.mode = SharingMode::kMps, .policy = "fcfs", .keeps_instances = true});
    FunctionProfile narrow = profile;
    narrow.work_ms = 240;  // 10 ms of 24 % of the SMs, and no faster on more
    narrow.saturation_percent = 24;
    profiles["narrow"] = narrow;
    EXPECT_TRUE(admit("blocker", {{"gpu:quota-request", "97"}}));
    NodeWithShares::add("narrow", {{"gpu:autoscale", "true"}, {"gpu:objective-ms", "42"}});  // 20 % of the SMs
    add({{"gpu:autoscale", "true"}, {"gpu:objective-ms", "42"}});  // 30 ms wait for the quota: 84 % of the SMs at least
    seen({.has_widths = true});
    until([&] { return scaler.status("narrow") && scaler.status("narrow")->width_percent > 0; });
    call("narrow");
    EXPECT_EQ(control.shares().entry("narrow")->seats, ShareBook::Seats{GpuId(2)});
    for (const InstanceView& one : driver.core().instances()) ready(one.instance);
    serve_all();
    control.shares().release("blocker");
    NodeWithShares::add("byhand", {{"gpu:quota-request", "90"}, {"gpu:compute-percent", "50"}});  // on GPU 1
  }
  void ready_on(GpuId gpu) {
    for (const InstanceView& one : driver.core().instances()) {
      if (one.gpu == gpu && one.state == InstanceState::kStarting) ready(one.instance);
    }
  }
};

TEST_F(MovesTest, WhoIsIdleMakesRoomForWhoNeedsIt) {
  call();
  until([&] { return seats("f") > 0; });
  EXPECT_EQ(control.shares().entry("f")->seats, ShareBook::Seats{GpuId(2)});
  EXPECT_EQ(control.shares().entry("narrow")->seats, ShareBook::Seats{GpuId(1)});
  EXPECT_THAT(all_did(),
              testing::Contains("the seat of an idle instance of another function moves from GPU 2 to GPU 1"));
  EXPECT_THAT(all_did("narrow"), testing::Contains("its seat moves from GPU 2 to GPU 1"));
}

// On GPU 1 is one by hand, and on GPU 2 an idle one that has room beside it.
TEST_F(MovesTest, AGpuThatNobodyNeedsIsEmptied) {
  EXPECT_EQ(control.shares().entry("byhand")->seats, ShareBook::Seats{GpuId(1)});
  scaler.start({.has_widths = true, .settled = Duration(0), .empties_every = Duration(0)});
  until([&] { return seats("narrow") == 2; });
  const auto decisions = scaler.status("narrow")->notes;
  EXPECT_TRUE(std::ranges::any_of(
      decisions, [](const ScalingNote& note) { return note.saw == "all on GPU 2 are idle and find room elsewhere"; }));
  ready_on(GpuId(1));  // the one by hand
  for (int tick = 0; tick < 5; ++tick) io.run_one();
  EXPECT_EQ(seats("narrow"), 2u) << "the old seat stays until an instance is ready in the new one";
  ready_on(GpuId(1));
  until([&] { return control.shares().entry("narrow")->seats == ShareBook::Seats{GpuId(1)}; });
  EXPECT_THAT(all_did("narrow"), testing::Contains("its seat moves from GPU 2 to GPU 1"));
  for (int tick = 0; tick < 5; ++tick) io.run_one();
  EXPECT_EQ(control.shares().entry("narrow")->seats, ShareBook::Seats{GpuId(1)}) << "and nobody undoes it";
}

TEST_F(MovesTest, ASeatWhoseInstanceDoesNotGetReadyElsewhereStays) {
  scaler.start({.has_widths = true, .settled = Duration(0), .empties_every = Duration(0), .moves_take = Duration(0)});
  until([&] { return seats("narrow") == 2; });
  until([&] { return seats("narrow") == 1; });
  EXPECT_EQ(control.shares().entry("narrow")->seats, ShareBook::Seats{GpuId(2)});
  EXPECT_THAT(all_did("narrow"), testing::Contains("its seat stays on GPU 2"));
  for (int tick = 0; tick < 5; ++tick) io.run_one();
  EXPECT_EQ(seats("narrow"), 1u) << "and is not tried again at once";
}

TEST_F(MovesTest, AGpuWhoseInstancesWereUsedJustNowIsNot) {
  scaler.start({.has_widths = true, .settled = std::chrono::hours(1), .empties_every = Duration(0)});
  for (int tick = 0; tick < 5; ++tick) io.run_one();
  EXPECT_EQ(control.shares().entry("narrow")->seats, ShareBook::Seats{GpuId(2)});
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
