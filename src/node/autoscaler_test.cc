#include "node/autoscaler.h"

#include <gmock/gmock.h>

#include "node/testing/fake_store.h"
#include "node/testing/node_without_processes.h"
#include "store/test_folder.h"

namespace fairlead {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class AutoscalerTest : public NodeWithoutProcesses {
 protected:
  AutoscalerTest() {
    control.shares().configure({.mode = SharingMode::kNone, .policy = "fcfs", .keeps_instances = true});
    control.shares().add_device({.id = GpuId(1), .name = "V100", .uuid = "GPU-a", .memory = gib(16)}, 32, 2);
    profile.trials = {{.rate_per_s = 100, .error = 0.01, .memory = mib(100)}};
    profile.work_ms = 1000;  // 10 ms of all SMs
  }

  void add(std::map<std::string, std::string> tags) {
    FunctionRecord record{.name = "f"};
    record.config.tags = std::move(tags);
    record.revision_id = "r1";
    ASSERT_TRUE(control.shares().admit(record, false));
    const RegisteredFunction& function = functions.add(std::move(record), nullptr);
    driver.core().add_function(flow_spec(function, tenants));
  }
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

  store::TestFolder folder;
  Worker worker{io};
  FakeStore store;
  FunctionControl control{io,
                          ImageStoreOptions{.state_dir = folder / "state"},
                          worker,
                          store,
                          functions,
                          tenants,
                          request_ids,
                          driver,
                          [](const RegisteredFunction&) {}};
  FunctionProfile profile;
  bool is_measured = true;
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
  FunctionRecord other{.name = "other"};
  other.config.tags = {{"gpu:quota-request", "97"}};
  ASSERT_TRUE(control.shares().admit(other, false));
  add({{"gpu:autoscale", "true"}, {"gpu:objective-ms", "100"}});
  seen();
  call();
  const ScalingStatus status = scaler.status("f").value();
  EXPECT_EQ(status.seats, 0u);
  ASSERT_FALSE(status.notes.empty());
  EXPECT_THAT(status.notes.front().rejected, testing::Contains(HasSubstr("more would start")));
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
