#include "node/shares.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace fairlead {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr GpuId kGpu1{1}, kGpu2{2};
constexpr std::size_t kInstances = 32, kSlots = 2;

Device device(GpuId id, const std::string& uuid) {
  return {.id = id, .name = "V100", .uuid = uuid, .gpu_uuid = uuid, .memory = gib(16)};
}

FunctionRecord record(const std::string& name, std::map<std::string, std::string> tags) {
  FunctionRecord made{.name = name};
  made.config.tags = std::move(tags);
  return made;
}

class SharesTest : public testing::Test {
 protected:
  void start(Shares& shares, SharingMode mode = SharingMode::kNone, bool keeps_instances = true) {
    shares.configure({.mode = mode, .policy = "mqfq-setup", .keeps_instances = keeps_instances});
    shares.add_device(device(kGpu1, "GPU-a"), kInstances, kSlots);
    shares.add_device(device(kGpu2, "GPU-b"), kInstances, kSlots);
  }
  static Status admit(Shares& shares, FunctionRecord& function, bool is_kernel_task = false) {
    return shares.admit(function, is_kernel_task);
  }
  static std::string refusal(Shares& shares, FunctionRecord function, bool is_kernel_task = false) {
    const Status status = shares.admit(function, is_kernel_task);
    return status ? "admitted" : status.error().message;
  }
  static FlowSpec spec(const Shares& shares, const std::string& function) {
    FlowSpec made{.flow = FlowId(1)};
    shares.describe(function, made);
    return made;
  }
};

TEST_F(SharesTest, WhatIsAdmittedIsInTheRecordAndInTheFlow) {
  Shares shares;
  start(shares);
  FunctionRecord function = record("f", {{"gpu:quota-request", "60"}, {"gpu:replicas", "2:3"}});
  ASSERT_TRUE(admit(shares, function));
  EXPECT_THAT(function.seats, ElementsAre("GPU-a", "GPU-b"));
  const FlowSpec flow = spec(shares, "f");
  EXPECT_THAT(flow.seats, ElementsAre(kGpu1, kGpu2));
  EXPECT_EQ(flow.most_instances, 3u);
  EXPECT_EQ(flow.request_percent, 60);
  EXPECT_EQ(flow.width_percent, 100);
  EXPECT_EQ(shares.status("f", FlowId(1)).lacking, "");
}

TEST_F(SharesTest, AFunctionWithoutAShareIsAsItWas) {
  Shares shares;
  FunctionRecord function = record("f", {{"gpu:weight", "2"}, {"gpu:memory-mib", "1000000"}});
  ASSERT_TRUE(admit(shares, function)) << "also before any device is there";
  start(shares);
  EXPECT_THAT(shares.settle(), IsEmpty());
  EXPECT_THAT(function.seats, IsEmpty());
  const FlowSpec flow = spec(shares, "f");
  EXPECT_THAT(flow.seats, IsEmpty());
  EXPECT_EQ(flow.most_instances, std::nullopt);
  EXPECT_EQ(flow.request_percent, 0);
  EXPECT_EQ(flow.width_percent, 100);
}

TEST_F(SharesTest, ARefusalChangesNothing) {
  Shares shares;
  start(shares);
  FunctionRecord first = record("first", {{"gpu:quota-request", "60"}, {"gpu:replicas", "2"}});
  FunctionRecord second = record("second", {{"gpu:quota-request", "37"}});
  ASSERT_TRUE(admit(shares, first));
  ASSERT_TRUE(admit(shares, second));
  EXPECT_THAT(refusal(shares, record("second", {{"gpu:quota-request", "40"}})), HasSubstr("GPU 1 comes nearest"));
  EXPECT_EQ(spec(shares, "second").request_percent, 37);
  EXPECT_THAT(spec(shares, "second").seats, ElementsAre(kGpu1));
  EXPECT_THAT(refusal(shares, record("third", {{"gpu:quota-request", "38"}})), HasSubstr("98.0 %"));
}

TEST_F(SharesTest, AWeightIsNotRefusedAndARefusalLeavesTheWeight) {
  Shares shares;
  start(shares);
  FunctionRecord function = record("f", {{"gpu:quota-request", "40"}});
  ASSERT_TRUE(shares.admit(function, false));
  const double weight = shares.paced("f", FlowId(7), true).weight;
  FunctionRecord heavier = record("f", {{"gpu:quota-request", "40"}, {"gpu:weight", "3"}, {"gpu:replicas", "900"}});
  EXPECT_FALSE(shares.admit(heavier, false));
  EXPECT_EQ(shares.paced("f", FlowId(7), true).weight, weight);
  heavier = record("f", {{"gpu:quota-request", "40"}, {"gpu:weight", "3"}});
  ASSERT_TRUE(shares.admit(heavier, false));
  EXPECT_EQ(shares.paced("f", FlowId(7), true).weight, 3 * weight);
}

TEST_F(SharesTest, AChangeThatIsNotWrittenIsTakenBack) {
  Shares shares;
  start(shares);
  FunctionRecord function = record("f", {{"gpu:quota-request", "90"}});
  const auto nothing = shares.entry("f");
  ASSERT_TRUE(admit(shares, function));
  const auto before = shares.entry("f");
  FunctionRecord larger = record("f", {{"gpu:quota-request", "95"}, {"gpu:replicas", "2"}});
  ASSERT_TRUE(admit(shares, larger));
  shares.restore("f", before);
  EXPECT_EQ(spec(shares, "f").request_percent, 90);
  EXPECT_EQ(refusal(shares, record("g", {{"gpu:quota-request", "90"}})), "admitted") << "one seat is free again";
  shares.restore("f", nothing);
  EXPECT_EQ(refusal(shares, record("h", {{"gpu:quota-request", "97"}})), "admitted");
}

TEST_F(SharesTest, PartOfTheSmsNeedsMps) {
  Shares shares;
  start(shares);
  const FunctionRecord narrow = record("f", {{"gpu:compute-percent", "24"}});
  EXPECT_EQ(
      refusal(shares, narrow),
      "gpu:compute-percent is 24; with --sharing none it must be 100, as kernels take turns on all SMs: start the node "
      "with --sharing mps, or leave it out. gpu:quota-limit bounds a function's time in every mode");
  EXPECT_EQ(refusal(shares, record("f", {{"gpu:compute-percent", "100"}})), "admitted");
  Shares with_mps;
  start(with_mps, SharingMode::kMps);
  EXPECT_EQ(refusal(with_mps, narrow), "admitted");
  EXPECT_EQ(spec(with_mps, "f").width_percent, 24);
}

// Beyond that instances would have no turns, and launch whenever they like.
TEST_F(SharesTest, AQuotaNeedsAPoolThatCanBePaced) {
  Shares shares;
  shares.configure({.policy = "mqfq", .pool = 65});
  shares.add_device(device(kGpu1, "GPU-a"), 65, kSlots);
  EXPECT_EQ(refusal(shares, record("f", {{"gpu:quota-request", "34"}})),
            "gpu:quota-request is 34 and gpu:quota-limit is 100; the pool (--pool) is 65 instances of a GPU, and 64 is "
            "the most that keep to quotas: start the node with a smaller --pool, or leave both out");
  EXPECT_THAT(refusal(shares, record("f", {{"gpu:quota-limit", "34"}})), HasSubstr("64 is the most"));
  EXPECT_EQ(refusal(shares, record("f", {{"gpu:replicas", "1"}})), "admitted");
  EXPECT_THAT(refusal(shares, record("f", {{"gpu:quota-limit", "34"}}), true), HasSubstr("64 is the most"));
}

TEST_F(SharesTest, NarrowInstancesShareTheSameTime) {
  Shares shares;
  start(shares, SharingMode::kMps);
  FunctionRecord function =
      record("f", {{"gpu:compute-percent", "25"}, {"gpu:quota-request", "97"}, {"gpu:replicas", "8"}});
  EXPECT_TRUE(admit(shares, function));
  EXPECT_THAT(refusal(shares, record("g", {{"gpu:quota-request", "1"}})), HasSubstr("98.0 %"));
  const PacedShare paced = shares.paced("f", FlowId(7), true);
  EXPECT_EQ(paced, (PacedShare{.flow = FlowId(7), .width_percent = 25, .request_percent = 97, .weight = 10}));
  EXPECT_EQ(shares.paced("f", FlowId(7), false).request_percent, 0) << "beyond its seats";
}

TEST_F(SharesTest, APolicyThatKeepsNoInstancesHasNoSeats) {
  Shares shares;
  start(shares, SharingMode::kNone, /*keeps_instances=*/false);
  EXPECT_THAT(refusal(shares, record("f", {{"gpu:quota-request", "10"}})), HasSubstr("policy 'mqfq-setup' keeps none"));
  EXPECT_EQ(refusal(shares, record("f", {{"gpu:quota-limit", "50"}})), "admitted");
}

TEST_F(SharesTest, AfterARestartTheSameSetIsAdmittedInAnyOrder) {
  Shares before;
  start(before);
  FunctionRecord gap = record("gap", {{"gpu:quota-request", "40"}});
  FunctionRecord d = record("d", {{"gpu:quota-request", "57"}}), c = record("c", {{"gpu:quota-request", "60"}});
  FunctionRecord b = record("b", {{"gpu:quota-request", "40"}}), a = record("a", {{"gpu:quota-request", "37"}});
  for (FunctionRecord* function : {&gap, &d, &c}) ASSERT_TRUE(admit(before, *function));
  before.release("gap");
  for (FunctionRecord* function : {&b, &a}) ASSERT_TRUE(admit(before, *function));

  Shares after;
  for (const FunctionRecord* function : {&a, &b, &c, &d}) after.recover(*function, false);
  start(after);
  EXPECT_THAT(after.settle(), ElementsAre("a", "b", "c", "d"));
  for (const FunctionRecord* function : {&a, &b, &c, &d}) {
    EXPECT_EQ(spec(after, function->name).seats, spec(before, function->name).seats) << function->name;
    EXPECT_EQ(after.status(function->name, FlowId(1)).lacking, "");
  }
}

TEST_F(SharesTest, WhatDoesNotFitAfterARestartIsBestEffortAndSaysSo) {
  FunctionRecord function = record("f", {{"gpu:quota-request", "50"}, {"gpu:replicas", "4"}});
  function.seats = {"GPU-a", "GPU-b", "GPU-c", "GPU-d"};
  Shares shares;
  shares.recover(function, false);
  start(shares);
  EXPECT_THAT(shares.settle(), ElementsAre("f"));
  EXPECT_THAT(spec(shares, "f").seats, ElementsAre(kGpu1, kGpu2)) << "those whose devices are there";
  EXPECT_THAT(shares.status("f", FlowId(1)).lacking, HasSubstr("no GPU has room for number 3"));
  EXPECT_EQ(refusal(shares, function), "admitted") << "new code of it is no new wish";
  shares.add_device(device(GpuId(3), "GPU-c"), kInstances, kSlots);
  shares.add_device(device(GpuId(4), "GPU-d"), kInstances, kSlots);
  EXPECT_THAT(shares.settle(), ElementsAre("f"));
  EXPECT_EQ(shares.status("f", FlowId(1)).lacking, "");
}

TEST_F(SharesTest, AfterARestartWhoseDeviceIsThereKeepsItBeforeOthersGetIt) {
  Shares before;
  start(before);
  before.add_device(device(GpuId(3), "GPU-c"), kInstances, kSlots);
  FunctionRecord four = record("a-four", {{"gpu:quota-request", "40"}, {"gpu:replicas", "4"}});
  FunctionRecord one = record("z-one", {{"gpu:quota-request", "90"}});
  ASSERT_TRUE(admit(before, four));
  ASSERT_TRUE(admit(before, one));
  EXPECT_THAT(four.seats, ElementsAre("GPU-a", "GPU-a", "GPU-b", "GPU-b"));
  EXPECT_THAT(one.seats, ElementsAre("GPU-c"));

  Shares after;
  after.recover(four, false);
  after.recover(one, false);
  after.configure({.mode = SharingMode::kNone, .policy = "mqfq-setup"});
  after.add_device(device(kGpu1, "GPU-a"), kInstances, kSlots);
  after.add_device(device(kGpu2, "GPU-c"), kInstances, kSlots);
  EXPECT_THAT(after.settle(), ElementsAre("a-four", "z-one"));
  EXPECT_THAT(spec(after, "a-four").seats, ElementsAre(kGpu1, kGpu1)) << "GPU-c is another's";
  EXPECT_THAT(spec(after, "z-one").seats, ElementsAre(kGpu2));
  EXPECT_THAT(after.status("a-four", FlowId(1)).lacking, HasSubstr("room for number 3"));
  EXPECT_THAT(after.settle(), IsEmpty());
  after.add_device(device(GpuId(3), "GPU-b"), kInstances, kSlots);
  EXPECT_THAT(after.settle(), ElementsAre("a-four"));
  EXPECT_THAT(spec(after, "a-four").seats, ElementsAre(kGpu1, kGpu1, GpuId(3), GpuId(3)));
}

TEST_F(SharesTest, AKernelTaskHasAWidthWhereSessionsRunSideBySide) {
  Shares shares;
  shares.configure({.mode = SharingMode::kNone, .policy = "mqfq-setup", .has_task_widths = true});
  shares.add_device(device(kGpu1, "GPU-a"), kInstances, kSlots);
  FunctionRecord narrow = record("narrow", {{"gpu:compute-percent", "24"}, {"gpu:quota-request", "60"}});
  FunctionRecord beside = record("beside", {{"gpu:compute-percent", "70"}, {"gpu:quota-request", "60"}});
  ASSERT_TRUE(admit(shares, narrow, true));
  EXPECT_EQ(shares.paced("narrow", FlowId(1), true).width_percent, 24);
  EXPECT_EQ(spec(shares, "narrow").width_percent, 24);
  EXPECT_TRUE(admit(shares, beside, true)) << "they run beside each other";
  EXPECT_THAT(refusal(shares, record("program", {{"gpu:compute-percent", "24"}})), HasSubstr("--sharing mps"));
}

TEST_F(SharesTest, WhatHasNoSeatsIsAsWideAsItIsChargedFor) {
  Shares shares;
  shares.configure({.mode = SharingMode::kNone, .policy = "mqfq-setup", .has_task_widths = true});
  const Share said{.width_percent = 24, .request_percent = 60};
  FlowSpec flow{.flow = FlowId(7)};
  for (const bool is_kernel_task : {true, false}) {
    shares.describe_seatless(said, is_kernel_task, flow);
    const PacedShare paced = shares.paced_seatless(said, is_kernel_task, FlowId(7));
    EXPECT_EQ(paced.width_percent, is_kernel_task ? 24 : 100);
    EXPECT_EQ(paced.width_percent, flow.width_percent);
    EXPECT_EQ(paced.request_percent, 0);
    EXPECT_EQ(paced.flow, FlowId(7));
  }
}

TEST_F(SharesTest, AKernelTaskHasAShareOfTimeWhereSessionsTakeTurns) {
  Shares shares;
  start(shares);
  EXPECT_EQ(refusal(shares, record("task", {{"gpu:quota-request", "34"}, {"gpu:quota-limit", "50"}}), true),
            "admitted");
  EXPECT_EQ(spec(shares, "task").seats.size(), 1u);
  EXPECT_EQ(shares.paced("task", FlowId(1), true).request_percent, 34);
  EXPECT_EQ(shares.paced("task", FlowId(1), true).width_percent, 100);
  EXPECT_EQ(
      refusal(shares, record("narrow", {{"gpu:compute-percent", "24"}}), true),
      "gpu:compute-percent is 24; with --sharing none and a process for each tenant's kernel tasks it must be 100, "
      "as these processes take turns on all SMs: start the node with --sharing mps or --task-isolation fence, or "
      "leave it out");
}

TEST_F(SharesTest, WhatIsTakenBackHoldsNoDeviceThatWentMeanwhile) {
  Shares shares;
  start(shares);
  FunctionRecord function = record("f", {{"gpu:quota-request", "60"}});
  ASSERT_TRUE(admit(shares, function));
  const auto before = shares.entry("f");
  FunctionRecord larger = record("f", {{"gpu:quota-request", "70"}});
  ASSERT_TRUE(admit(shares, larger));
  shares.remove_device(kGpu1);
  shares.restore("f", before);
  EXPECT_THAT(spec(shares, "f").seats, IsEmpty());
  EXPECT_THAT(shares.settle(), ElementsAre("f"));
  EXPECT_THAT(spec(shares, "f").seats, ElementsAre(kGpu2));
}

TEST_F(SharesTest, WhatIsTakenBackDoesNotSitOnWhoCameMeanwhile) {
  Shares shares;
  start(shares);
  shares.remove_device(kGpu2);
  FunctionRecord function = record("f", {{"gpu:quota-request", "90"}}),
                 smaller = record("f", {{"gpu:quota-request", "10"}});
  FunctionRecord other = record("g", {{"gpu:quota-request", "80"}});
  ASSERT_TRUE(admit(shares, function));
  const auto before = shares.entry("f");
  ASSERT_TRUE(admit(shares, smaller));
  ASSERT_TRUE(admit(shares, other));
  shares.restore("f", before);
  shares.settle();
  EXPECT_THAT(spec(shares, "g").seats, ElementsAre(kGpu1));
  EXPECT_THAT(spec(shares, "f").seats, IsEmpty());
  EXPECT_THAT(shares.status("f", FlowId(1)).lacking, HasSubstr("170.0 %"));
}

TEST_F(SharesTest, OtherSlotsLeaveOtherPlacesForSeats) {
  Shares shares;
  start(shares);
  FunctionRecord function = record("f", {{"gpu:replicas", "40"}});
  ASSERT_TRUE(admit(shares, function)) << "30 on the first device, 10 on the second";
  EXPECT_TRUE(shares.set_slots({{kGpu1, 2}, {kGpu2, 22}}, kInstances));
  EXPECT_THAT(refusal(shares, record("g", {{"gpu:replicas", "1"}})),
              HasSubstr("GPU 1 comes nearest: gpu:replicas keeps 31"))
      << "22 slots leave 10 on the second";
  const Status refused = shares.set_slots({{kGpu1, 3}, {kGpu2, 2}}, kInstances);
  ASSERT_FALSE(refused);
  EXPECT_EQ(
      refused.error().message,
      "--slots is 3; GPU 1 has 30 seats beside them and 32 instances at most (--pool): 2 slots are the most, until "
      "a function with gpu:replicas or gpu:quota-request is deleted or asks for fewer");
  EXPECT_NE(refusal(shares, record("g", {{"gpu:replicas", "1"}})), "admitted") << "nothing was changed";
  EXPECT_TRUE(shares.set_slots({{kGpu1, 2}, {kGpu2, 21}, {GpuId(9), 31}}, kInstances));
  EXPECT_EQ(refusal(shares, record("g", {{"gpu:replicas", "1"}})), "admitted");
}

TEST_F(SharesTest, SeatsMoveWhenTheirDeviceGoesAndWaitersGetWhatIsGivenBack) {
  Shares shares;
  start(shares);
  FunctionRecord first = record("first", {{"gpu:quota-request", "60"}}), second = record("second", first.config.tags);
  FunctionRecord third = record("third", {{"gpu:quota-request", "30"}});
  for (FunctionRecord* function : {&first, &second, &third}) ASSERT_TRUE(admit(shares, *function));
  EXPECT_THAT(spec(shares, "third").seats, ElementsAre(kGpu1));
  EXPECT_TRUE(shares.remove_device(kGpu1));
  EXPECT_FALSE(shares.remove_device(kGpu1));
  EXPECT_THAT(shares.settle(), ElementsAre("first", "third"));
  EXPECT_THAT(spec(shares, "third").seats, ElementsAre(kGpu2));
  EXPECT_THAT(spec(shares, "first").seats, IsEmpty());
  EXPECT_THAT(shares.status("first", FlowId(1)).lacking, HasSubstr("120.0 %"));
  shares.release("second");
  EXPECT_THAT(shares.settle(), ElementsAre("first"));
  EXPECT_THAT(spec(shares, "first").seats, ElementsAre(kGpu2));
  EXPECT_THAT(shares.settle(), IsEmpty());
}

TEST_F(SharesTest, WhatIsDeliveredIsWhatItsMeterSays) {
  Shares shares;
  start(shares);
  FunctionRecord function = record("f", {{"gpu:quota-request", "60"}});
  ASSERT_TRUE(admit(shares, function));
  EXPECT_FALSE(shares.status("f", FlowId(1)).delivery);
  shares.set_measure([](FlowId flow, ShareStatus& status) {
    if (flow == FlowId(1)) status.delivery = {.window = std::chrono::seconds(1), .delivered_percent = 59.5};
  });
  EXPECT_EQ(shares.status("f", FlowId(1)).delivery->delivered_percent, 59.5);
  EXPECT_FALSE(shares.status("f", FlowId(2)).delivery);
}

FunctionRecord scaled(const std::string& name) {
  return record(name, {{"gpu:autoscale", "true"}, {"gpu:objective-ms", "69"}});
}

Share part(int request) {
  Share share;
  share.request_percent = request;
  return share;
}

TEST_F(SharesTest, WhatTheNodeScalesGetsAsManySeatsAsThereIsRoomFor) {
  Shares shares;
  start(shares);
  FunctionRecord function = scaled("f");
  ASSERT_TRUE(admit(shares, function));
  EXPECT_THAT(spec(shares, "f").seats, IsEmpty());
  const std::vector<GpuId> both{kGpu1, kGpu2};
  const auto placed = shares.scale("f", part(60), {.more = 3, .serving = both});
  EXPECT_THAT(placed.added, ElementsAre(kGpu1, kGpu2));
  EXPECT_THAT(placed.lacking, HasSubstr("97.0 % is the most"));
  EXPECT_EQ(spec(shares, "f").request_percent, 60);
  EXPECT_THAT(refusal(shares, record("other", {{"gpu:quota-request", "50"}})), HasSubstr("110.0 %"));
  shares.scale("f", part(60), {.kept = {kGpu2}, .serving = both});
  EXPECT_THAT(spec(shares, "f").seats, ElementsAre(kGpu2));
  EXPECT_EQ(refusal(shares, record("other", {{"gpu:quota-request", "50"}})), "admitted");
}

TEST_F(SharesTest, SeatsThatAreScaledGoToDevicesThatServe) {
  Shares shares;
  start(shares);
  FunctionRecord function = scaled("f");
  ASSERT_TRUE(admit(shares, function));
  const auto placed = shares.scale("f", part(60), {.more = 2, .serving = {kGpu2}});
  EXPECT_THAT(placed.added, ElementsAre(kGpu2));
  EXPECT_THAT(spec(shares, "f").seats, ElementsAre(kGpu2));
  EXPECT_NE(placed.lacking, "");
}

TEST_F(SharesTest, AChangeOfTagsLeavesWhatTheNodeFound) {
  Shares shares;
  start(shares);
  FunctionRecord function = scaled("f");
  ASSERT_TRUE(admit(shares, function));
  shares.scale("f", part(60), {.more = 1, .serving = {kGpu1}});
  function.config.tags["gpu:autoscale"] = "pinned";
  ASSERT_TRUE(admit(shares, function));
  EXPECT_THAT(spec(shares, "f").seats, ElementsAre(kGpu1));
  function.config.tags.erase("gpu:autoscale");
  ASSERT_TRUE(admit(shares, function));
  EXPECT_THAT(spec(shares, "f").seats, IsEmpty());
}

TEST_F(SharesTest, SeatsAreOnSlicesOfTheProfileThatIsAskedFor) {
  Shares shares;
  shares.configure({.mode = SharingMode::kMig, .policy = "mqfq-setup", .keeps_instances = true});
  Device small = device(kGpu1, "MIG-a"), large = device(kGpu2, "MIG-b");
  small.slice = Slice{.profile = "1g.10gb", .start = 0, .size = 1};
  large.slice = Slice{.profile = "3g.40gb", .start = 4, .size = 4};
  FunctionRecord early = record("early", {{"gpu:mig-profile", "7g"}});
  EXPECT_TRUE(admit(shares, early)) << "no device is known yet";
  shares.add_device(small, kInstances, kSlots);
  shares.add_device(large, kInstances, kSlots);
  EXPECT_THAT(shares.status("early", FlowId(1)).lacking, HasSubstr("gpu:mig-profile is 7g"));
  FunctionRecord wide = record("wide", {{"gpu:mig-profile", "3g"}, {"gpu:quota-request", "40"}, {"gpu:replicas", "2"}});
  ASSERT_TRUE(admit(shares, wide));
  EXPECT_THAT(wide.seats, ElementsAre("MIG-b", "MIG-b"));
  EXPECT_THAT(refusal(shares, record("more", {{"gpu:mig-profile", "3g"}, {"gpu:quota-request", "40"}})),
              HasSubstr("GPU 2 comes nearest"));
  EXPECT_EQ(refusal(shares, record("less", {{"gpu:mig-profile", "1g"}, {"gpu:quota-request", "40"}})), "admitted");
  const std::string none = refusal(shares, record("none", {{"gpu:mig-profile", "2g.20gb"}}));
  EXPECT_THAT(none, HasSubstr("gpu:mig-profile is 2g.20gb; the node has no such slice, but 1g.10gb, 3g.40gb"));
  shares.remove_device(kGpu1);
  shares.settle();
  EXPECT_THAT(shares.status("less", FlowId(1)).lacking, HasSubstr("gpu:mig-profile is 1g"));
}

}  // namespace
}  // namespace fairlead
