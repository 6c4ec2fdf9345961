// One device server for all tenants: who shares what, and what one tenant can do to the others.
#include "runtime/device_servers/device_servers_fixture.h"

namespace fairlead {
namespace {

class SharedServerTest : public DeviceServersTest {
 protected:
  void SetUp() override {
    DeviceServersTest::SetUp();
    words_ = {"trials", "crash=" + home_ + "/crash", "hang=" + home_ + "/hang"};
    use_servers(64 << 20, 64 << 20, "cost", true);
  }
};

TEST_F(SharedServerTest, TenantsShareItAndNoObjectOrModule) {
  objects_.put("w", floats(0, 0));
  const InstanceId a = ready(affine(2), "tenant-a");
  const InstanceId b = ready(affine(2), "tenant-b");
  EXPECT_EQ(output(run(a, with_x(floats(1)))), floats(2, 2));
  EXPECT_EQ(output(run(b, with_x(floats(1)))), floats(2, 2));
  EXPECT_EQ(output(run(a, with_x(floats(2)))), floats(4, 2));
  ASSERT_EQ(servers_->views().size(), 1u);
  EXPECT_EQ(view().tenant, DeviceServers::kAllTenants);
  EXPECT_EQ(view().sessions, 2u);
  EXPECT_EQ(view().counters.misses, 2u);  // w, once for each
  EXPECT_EQ(view().counters.hits, 3u);    // each call found it there
}

TEST_F(SharedServerTest, AKeyThatTwoTenantsWriteIsTwoObjects) {
  objects_.put("w", floats(0, 0));
  const InstanceId a = ready(affine(2), "tenant-a");
  const InstanceId b = ready(affine(3), "tenant-b");
  KernelTaskCall call = with_x(floats(1));
  call.outputs = {{2, "y", ""}};
  ASSERT_FALSE(run(a, call).is_error);
  objects_.erase("y");  // this data layer has one tenant only
  ASSERT_FALSE(run(b, call).is_error);
  EXPECT_EQ(fetched("y"), floats(3, 3));
}

TEST_F(SharedServerTest, WhatCannotBeFencedIsRefusedWithTheReason) {
  std::string textured = kKernels;
  textured.insert(textured.find(".visible"), ".global .texref picture;\n");
  EXPECT_THAT(gone_[ready(only("spin"), "tenant-a", textured)].init_failure.text,
              AllOf(HasSubstr("kernels.ptx"), HasSubstr("cannot be fenced"), HasSubstr("texref")));
  EXPECT_THAT(gone_[ready(only("spin"), "tenant-a",
                          std::string("\x7f"
                                      "ELF") +
                              std::string(100, '\0'))]
                  .init_failure.text,
              HasSubstr("machine code and no PTX"));
}

TEST_F(SharedServerTest, ModuleVariablesAreTheTenantsOwnAndLastFromCallToCall) {
  const std::string counter = R"(.version 6.0
.target sm_70
.address_size 64
.global .align 4 .f32 count = 0f40A00000;
.visible .entry bump(.param .u64 y)
{
  .reg .f32 %f; .reg .b64 %y;
  ld.param.u64 %y, [y]; ld.global.f32 %f, [count]; add.f32 %f, %f, 0f3F800000; st.global.f32 [count], %f;
  st.global.f32 [%y], %f;
  ret;
}
)";
  KernelTask task = only("bump");
  task.buffers[0].zeroed = true;
  const InstanceId a = ready(task, "tenant-a", counter);
  const InstanceId b = ready(task, "tenant-b", counter);
  const auto first = [&](InstanceId instance) { return output(run(instance, {})).substr(0, 4); };
  EXPECT_EQ(first(a), floats(6).substr(0, 4));
  EXPECT_EQ(first(a), floats(7).substr(0, 4));
  EXPECT_EQ(first(b), floats(6).substr(0, 4));
}

// Variables may have 64 MiB: these have 96, one after the other. Where few modules stay they make room for each other, where
// many may, those that nobody uses go when there is no room.
class Variables : public SharedServerTest, public testing::WithParamInterface<int> {};

TEST_P(Variables, OfUnloadedModulesMakeRoomForThoseOfOthersAndBeginAnew) {
  use_servers(128 << 20, 64 << 20, "cost", true, false, GetParam());
  KernelTask task = only("bump");
  task.buffers[0].zeroed = true;
  for (int i = 0; i < 12; ++i) {
    const std::string module = fmt::format(R"(.version 6.0
.target sm_70
.address_size 64
.global .align 4 .f32 count = 0f40A00000;
.global .align 4 .b8 table[{}];
.visible .entry bump(.param .u64 y)
{{
  .reg .f32 %f; .reg .b64 %y;
  ld.param.u64 %y, [y]; ld.global.f32 %f, [count]; add.f32 %f, %f, 0f3F800000; st.global.f32 [count], %f;
  st.global.f32 [table+4096], %f;
  st.global.f32 [%y], %f;
  ret;
}}
)",
                                           (8 << 20) - 4096 * i);
    const InstanceId instance = ready(task, "tenant-a", module);
    ASSERT_FALSE(gone_.contains(instance)) << gone_[instance].reason;
    EXPECT_EQ(output(run(instance, {})).substr(0, 4), floats(6).substr(0, 4));
    servers_->kill(instance);
    run_until([&] { return gone_.contains(instance); });
  }
}
INSTANTIATE_TEST_SUITE_P(ModulesThatStay, Variables, testing::Values(1, 100));

TEST_F(SharedServerTest, AFaultOfOneTenantDoesNotFailAnothersCall) {
  objects_.put("w", floats(0));
  std::string traps = kKernels;
  traps.replace(traps.find("mov.u64 %rd1, 64;"), 17, "trap;");
  const InstanceId good = ready(affine(1), "tenant-a");
  const InstanceId bad = ready(only("wild"), "tenant-b", traps);
  const InvocationId fault = send(bad, {});
  const InvocationId fine = send(good, with_x(floats(1)));
  EXPECT_TRUE(answer(fault).is_error);
  EXPECT_EQ(output(answer(fine)), floats(1, 2));
  EXPECT_EQ(output(run(good, with_x(floats(2)))), floats(2, 2));
  EXPECT_GE(view().restarts, 1u);
}

TEST_F(SharedServerTest, AnEndlessKernelEndsAtItsDeadlineAndOthersRunAgainBesideEachOther) {
  objects_.put("w", floats(0));
  const InstanceId good = ready(affine(1), "tenant-a");
  const InstanceId bad = ready(only("spin"), "tenant-b");
  send(bad, {}, 300ms);
  const InvocationId fine = send(good, with_x(floats(1)));
  servers_->kill(bad);
  run_until([&] { return gone_.contains(bad); });
  run_until([&] { return view().restarts == 1; });
  EXPECT_EQ(output(answer(fine)), floats(1, 2));
}

TEST_F(SharedServerTest, AModuleThatCrashesTheCompilerFailsItsOwnSession) {
  objects_.put("w", floats(0));
  const InstanceId good = ready(affine(1), "tenant-a");
  std::ofstream(home_ + "/crash") << "yes";
  const InstanceId bad = ready(only("wild"), "tenant-b");
  EXPECT_THAT(gone_[bad].reason, testing::AllOf(HasSubstr("module kernels.ptx"), HasSubstr("signal: Aborted")));
  EXPECT_EQ(output(run(good, with_x(floats(1)))), floats(1, 2));
  EXPECT_EQ(output(run(ready(affine(2), "tenant-a"), with_x(floats(1)))), floats(2, 3));  // the module passed
  EXPECT_EQ(view().restarts, 0u);
}

TEST_F(SharedServerTest, CallsRunBesideATrialAndItsSessionMayStopOrMoveToTheNextServer) {
  objects_.put("w", floats(0));
  trial_patience_ = 500ms;
  use_servers(64 << 20, 64 << 20, "cost", true);
  const InstanceId good = ready(affine(1), "tenant-a");
  std::ofstream(home_ + "/hang") << "yes";
  const InstanceId moves = begin(only("wild"), "tenant-b");
  const InstanceId stops = begin(only("wild"), "tenant-b");
  run_until([&] { return fs::exists(home_ + "/hanging"); });
  EXPECT_EQ(output(run(good, with_x(floats(1)))), floats(1, 2));
  servers_->kill(stops);
  run_until([&] { return gone_.contains(stops); });
  fs::remove(home_ + "/hang");
  ::kill(static_cast<pid_t>(view().pid), SIGKILL);
  run_until([&] { return nexts_[moves] == 1; });
  EXPECT_EQ(output(run(good, with_x(floats(1)))), floats(1, 2));
}

TEST_F(SharedServerTest, WhoEndsItGetsOneOfItsOwnAndEndsThatFromThenOn) {
  objects_.put("w", floats(0));
  std::string traps = kKernels;
  traps.replace(traps.find("mov.u64 %rd1, 64;"), 17, "trap;");
  const InstanceId good = ready(affine(1), "tenant-a");
  const InstanceId bad = ready(only("wild"), "tenant-b", traps);
  EXPECT_TRUE(run(bad, {}).is_error);
  EXPECT_EQ(output(run(good, with_x(floats(1)))), floats(1, 2));
  const std::uint64_t restarts = view().restarts;  // of "*", which comes first
  for (int i = 0; i < 3; ++i) {
    const InvocationId fault = send(bad, {});
    EXPECT_EQ(output(run(good, with_x(floats(1)))), floats(1, 2));
    EXPECT_TRUE(answer(fault).is_error);
  }
  ASSERT_EQ(servers_->views().size(), 2u);
  EXPECT_EQ(view().tenant, DeviceServers::kAllTenants);
  EXPECT_EQ(view().restarts, restarts) << "its faults are its own now";
  EXPECT_EQ(servers_->views()[1].tenant, "tenant-b");
  EXPECT_GE(servers_->views()[1].restarts, 3u);
}

TEST_F(SharedServerTest, ARegistrationThatEndsItIsASuspectAsACallIs) {
  objects_.put("w", floats(0));
  const InstanceId good = ready(affine(1), "tenant-a");
  const auto server = static_cast<pid_t>(view().pid);
  ::kill(server, SIGSTOP);  // so that the registration is what it does when it ends
  const InstanceId bad = begin(affine(2), "tenant-b");
  for (int i = 0; i < 100; ++i) {
    io_.restart();
    io_.poll();
  }
  ::kill(server, SIGKILL);
  run_until([&] { return nexts_[bad] == 1; });
  ASSERT_EQ(servers_->views().size(), 2u);
  EXPECT_EQ(servers_->views()[1].tenant, "tenant-b");
  EXPECT_EQ(output(run(bad, with_x(floats(1)))), floats(2, 3));
  EXPECT_EQ(output(run(good, with_x(floats(1)))), floats(1, 2));
}

TEST_F(SharedServerTest, WhatItAnsweredSurvivesIt) {
  objects_.put("w", floats(0));
  const InstanceId instance = ready(affine(2), "default");
  KernelTaskCall call = with_x(floats(1));
  call.outputs = {{2, "y", ""}};
  ASSERT_FALSE(run(instance, call).is_error);
  ::kill(static_cast<pid_t>(view().pid), SIGKILL);
  run_until([&] { return view().restarts == 1; });
  EXPECT_EQ(fetched("y"), floats(2, 3));
}

TEST_F(SharedServerTest, ACallRunsAgainWhoseServerEndsBeforeItsOutputsAreKept) {
  objects_.put("w", floats(0));
  const InstanceId instance = ready(affine(2), "default");
  objects_.before_fetch = [this, ends = 2]() mutable {
    if (ends-- > 0) ::kill(static_cast<pid_t>(view().pid), SIGKILL);
  };
  KernelTaskCall call = with_x(floats(1));
  call.outputs = {{2, "y", ""}};
  EXPECT_FALSE(run(instance, call).is_error);
  EXPECT_EQ(fetched("y"), floats(2, 3));
  EXPECT_EQ(view().restarts, 2u);
}

}  // namespace
}  // namespace fairlead
