// Sessions and calls through real device servers on the software GPU.
#include "runtime/device_servers/device_servers_fixture.h"

namespace fairlead {
namespace {

TEST_F(DeviceServersTest, ACallComputesWithItsInputAndItsConstant) {
  objects_.put("w", floats(100));
  const InstanceId instance = ready(affine(3));
  EXPECT_EQ(output(run(instance, with_x(floats(0)))), floats(100, 4));
  EXPECT_EQ(output(run(instance, with_x(floats(1)))), floats(103, 4));
  EXPECT_EQ(nexts_[instance], 3);
  EXPECT_EQ(objects_.opened, 1);  // the constant, once
  EXPECT_EQ(view().counters.misses, 1u);
  EXPECT_EQ(view().counters.hits, 2u);  // came with the session: both calls found it
  EXPECT_GT(servers_->use(instance)->gpu_time, Duration(0));
}

TEST_F(DeviceServersTest, AKeyedOutputStaysOnTheDeviceAndFeedsTheNextCall) {
  objects_.put("w", floats(0, 0));
  const InstanceId instance = ready(affine(2));
  KernelTaskCall first = with_x(floats(1));
  first.outputs = {{2, "a", ""}};
  ASSERT_EQ(decoded(run(instance, first)).outputs.at(0).key, "a");
  EXPECT_TRUE(objects_.is_on_device("a"));
  const KernelTaskCall second{.inputs = {{0, "a", ""}}, .outputs = {}};
  EXPECT_EQ(output(run(instance, second)), floats(4, 4));
  EXPECT_TRUE(objects_.is_on_device("a"));  // never left it
  EXPECT_EQ(fetched("a"), floats(2, 2));
}

TEST_F(DeviceServersTest, BadCallsFailBeforeAnythingRunsAndTheSessionLives) {
  objects_.put("w", floats(0));
  objects_.put("short", "1234");
  const InstanceId instance = ready(affine(1));
  EXPECT_THAT(run(instance, {}).failure.text, HasSubstr("x"));
  EXPECT_THAT(run(instance, {.inputs = {{0, "nowhere", ""}}, .outputs = {}}).failure.text, HasSubstr("nowhere"));
  EXPECT_THAT(run(instance, {.inputs = {{0, "short", ""}}, .outputs = {}}).failure.text, HasSubstr("4 bytes"));
  KernelTaskCall taken = with_x(floats(0));
  taken.outputs = {{2, "short", ""}};
  EXPECT_THAT(run(instance, taken).failure.text, HasSubstr("exists"));
  EXPECT_EQ(output(run(instance, with_x(floats(0)))), floats(0, 2));
}

TEST_F(DeviceServersTest, ATaskThatCannotBeLoadedDoesNotStart) {
  KernelTask unknown = only("spin");
  unknown.kernels[0].kernel = "missing";
  EXPECT_THAT(gone_[ready(unknown)].init_failure.text, HasSubstr("missing"));
  EXPECT_THAT(gone_[ready(affine(1))].init_failure.text, HasSubstr("there is no object w"));
}

// The software GPU has 80 SMs.
TEST_F(DeviceServersTest, SaysOnHowMuchOfTheDeviceItsKernelsAre) {
  objects_.put("w", floats(0, 0));
  KernelTask wide = affine(2);
  wide.kernels[1].grid = {4, 2, 1};
  const InstanceId narrow = ready(affine(2));
  const InstanceId wider = ready(wide, "another");
  EXPECT_EQ(sizes_[narrow].second, 2) << "a block at a time, rounded up";
  EXPECT_EQ(sizes_[wider].second, 10);
  EXPECT_NE(sizes_[narrow].first, sizes_[wider].first) << "each tenant has its server";
  wide.kernels[1].grid = {1, 1, 4000};
  const InstanceId widest = ready(wide);
  EXPECT_EQ(sizes_[widest].second, 100);
  EXPECT_EQ(sizes_[widest].first, sizes_[narrow].first);
}

TEST_F(DeviceServersTest, ATaskThatIsWiderThanItsAuthorSaysDoesNotStart) {
  objects_.put("w", floats(0, 0));
  KernelTask task = affine(2);
  task.kernels[1].grid = {8, 1, 1};
  most_width_percent_ = 9;
  const InstanceId refused = ready(task);
  EXPECT_EQ(
      gone_[refused].init_failure.text,
      "gpu:compute-percent is 9, and its kernels may be on 10 % of the SMs at once: say 10 or more, or leave it out "
      "(they are not kept to fewer: --task-isolation fence keeps kernels to a part of the SMs)");
  EXPECT_FALSE(sizes_.contains(refused));
  most_width_percent_ = 10;
  EXPECT_EQ(output(run(ready(affine(2)), with_x(floats(1)))), floats(2, 2));
  EXPECT_FALSE(gone_.contains(ready(task)));
}

// y = 2 x + w, by more blocks than the software GPU has SMs.
KernelTask a_block_for_each_element() {
  KernelTask task = affine(2);
  for (KernelLaunch& kernel : task.kernels) kernel.grid = {kElements, 1, 1}, kernel.block = {1, 1, 1};
  return task;
}

// Where one server is the device's only one: 25 % of 80 SMs are 10 groups of 2, and 1 % is one of them.
TEST_F(DeviceServersTest, ATaskIsKeptToThePartOfTheSmsThatItsAuthorSays) {
  use_servers(64 << 20, 64 << 20, "lru", true);
  objects_.put("w", floats(0, 0));
  const KernelTask wide = a_block_for_each_element();
  most_width_percent_ = 25;
  const InstanceId kept = ready(wide);
  ASSERT_FALSE(gone_.contains(kept)) << gone_[kept].init_failure.text;
  EXPECT_EQ(sizes_[kept].second, 25);
  EXPECT_EQ(output(run(kept, with_x(floats(1)))), floats(2, 2));
  most_width_percent_ = 2;
  const InstanceId too_narrow = ready(wide);
  EXPECT_THAT(gone_[too_narrow].init_failure.text, HasSubstr("may be on 3 % of the SMs at once: say 3 or more"));
  most_width_percent_ = 3;
  const InstanceId narrowest = ready(wide);
  EXPECT_EQ(sizes_[narrowest].second, 3);
  EXPECT_EQ(output(run(narrowest, with_x(floats(1)))), floats(2, 2));
  KernelTask one_block = affine(2);
  most_width_percent_ = 1;
  EXPECT_THAT(gone_[ready(one_block)].init_failure.text, HasSubstr("may be on 2 % of the SMs at once: say 2 or more"))
      << "a group would be wider than its kernels";
}

TEST_F(DeviceServersTest, BlocksThatWaitForEachOtherAreNotKeptToFewerSms) {
  use_servers(64 << 20, 64 << 20, "lru", true);
  objects_.put("w", floats(0, 0));
  const KernelTask wide = a_block_for_each_element();
  most_width_percent_ = 25;
  whole_kernels_ = true;
  EXPECT_THAT(gone_[ready(wide)].init_failure.text,
              HasSubstr("say 100 or more, or leave it out (they are not kept to fewer: gpu:cut-kernels is false)"));
}

TEST_F(DeviceServersTest, ModulesOfOneNameAreToldApartByContent) {
  objects_.put("w", floats(0, 0));
  std::string other = kKernels;
  other.replace(other.find("mul.f32"), 7, "add.f32");
  const InstanceId a = ready(affine(2), "tenant-a");
  const InstanceId b = ready(affine(2), "tenant-b", other);
  const InstanceId c = ready(affine(2), "tenant-a", other);
  EXPECT_EQ(output(run(a, with_x(floats(1)))), floats(2, 2));
  EXPECT_EQ(output(run(b, with_x(floats(1)))), floats(3));
  EXPECT_EQ(output(run(c, with_x(floats(1)))), floats(3));
  EXPECT_EQ(servers_->views().size(), 2u);
}

TEST_F(DeviceServersTest, AKilledServerIsReplacedAndTheCallAnswersAllTheSame) {
  objects_.put("w", floats(5));
  const InstanceId instance = ready(affine(1));
  const InvocationId call = send(instance, with_x(floats(1)));
  ::kill(static_cast<pid_t>(view().pid), SIGKILL);
  EXPECT_EQ(output(answer(call)), floats(6, 2));
  EXPECT_EQ(output(run(instance, with_x(floats(2)))), floats(7, 2));
  EXPECT_EQ(view().restarts, 1u);
  EXPECT_FALSE(gone_.contains(instance));
}

TEST_F(DeviceServersTest, OutputsThatOnlyTheServerHadAreLostWithItAndSaySo) {
  objects_.put("w", floats(0));
  const InstanceId instance = ready(affine(1));
  KernelTaskCall call = with_x(floats(1));
  call.outputs = {{2, "a", ""}};
  run(instance, call);
  ::kill(static_cast<pid_t>(view().pid), SIGKILL);
  run_until([&] { return objects_.abandoned.contains("a"); });
  EXPECT_THAT(objects_.abandoned["a"], HasSubstr("run the task that makes it again"));
}

TEST_F(DeviceServersTest, AFaultFailsItsOwnCallAndNoOther) {
  objects_.put("w", floats(0));
  const InstanceId good = ready(affine(1));
  const InstanceId bad = ready(only("wild"));
  const InvocationId fault = send(bad, {});
  const InvocationId fine = send(good, with_x(floats(1)));
  EXPECT_THAT(answer(fault).failure.text, HasSubstr("700"));
  EXPECT_FALSE(answer(fault).is_nodes_fault);
  EXPECT_EQ(output(answer(fine)), floats(1, 2));
  EXPECT_EQ(output(run(good, with_x(floats(2)))), floats(2, 2));
}

TEST_F(DeviceServersTest, AKernelThatDoesNotEndIsKilledAtItsDeadline) {
  objects_.put("w", floats(0));
  const InstanceId good = ready(affine(1));
  const InstanceId bad = ready(only("spin"));
  send(bad, {}, 300ms);
  const InvocationId fine = send(good, with_x(floats(1)));
  servers_->kill(bad);  // as the core does when its time is over
  run_until([&] { return gone_.contains(bad); });
  run_until([&] { return view().restarts == 1; });
  EXPECT_EQ(output(answer(fine)), floats(1, 2));
  EXPECT_EQ(output(run(good, with_x(floats(3)))), floats(3, 2));
}

TEST_F(DeviceServersTest, ACallThatRunsAloneIsNotOvertakenForEver) {
  objects_.put("w", floats(0));
  const InstanceId first = ready(affine(1));
  const InstanceId second = ready(affine(1));
  const InstanceId last = ready(affine(1));  // registered again behind the others
  const InvocationId suspect = send(last, with_x(floats(1)));
  ::kill(static_cast<pid_t>(view().pid), SIGKILL);
  run_until([&] { return view().restarts == 1; });
  busy_ = {first, second};
  for (const InstanceId instance : busy_) send(instance, with_x(floats(1)));
  EXPECT_EQ(output(answer(suspect)), floats(1, 2));
}

TEST_F(DeviceServersTest, ADeadlineThatEndsAServerMakesNobodyElseASuspect) {
  objects_.put("w", floats(0));
  const InstanceId endless = ready(only("spin"));
  const InstanceId good = ready(affine(1));
  const InstanceId late = ready(only("spin"));
  send(endless, {});
  const InvocationId fine = send(good, with_x(floats(1)));
  send(late, {}, 0ms);
  servers_->kill(late);
  run_until([&] { return view().restarts == 1; });
  EXPECT_EQ(output(answer(fine)), floats(1, 2));  // beside the one that does not end, not behind it
}

class Evictions : public DeviceServersTest, public testing::WithParamInterface<const char*> {};

// 16 KiB of device memory hold five of the vectors and what a call needs; nine outputs and their inputs go through.
TEST_P(Evictions, ContentsSurviveWhateverMakesRoom) {
  use_servers(8 << 10, 1 << 20, GetParam());
  objects_.put("w", floats(7, 0));
  const InstanceId instance = ready(affine(1));
  for (int i = 0; i < 9; ++i) {
    KernelTaskCall call = with_x(floats(static_cast<float>(i)));
    call.outputs = {{2, "out" + std::to_string(i), ""}};
    ASSERT_FALSE(run(instance, call).is_error);
  }
  for (int i = 0; i < 9; ++i) {  // read back by a kernel
    const KernelTaskCall call{.inputs = {{0, "out" + std::to_string(i), ""}}, .outputs = {}};
    EXPECT_EQ(output(run(instance, call)), floats(14 + static_cast<float>(i)));
  }
  for (int i = 0; i < 9; ++i) EXPECT_EQ(fetched("out" + std::to_string(i)), floats(7 + static_cast<float>(i)));
  EXPECT_GT(view().counters.write_backs, 0u);
  EXPECT_LE(view().counters.device_used, 8u << 10);
}
INSTANTIATE_TEST_SUITE_P(Strategies, Evictions, testing::Values("single-use", "lru", "cost"));

// 3 KiB hold one vector and what a call needs.
TEST_F(DeviceServersTest, SaysWhoseConstantsWouldHaveToBeLoaded) {
  use_servers(3 << 10, 1 << 20, "cost");
  objects_.put("w", floats(7, 0));
  objects_.put("v", floats(9, 0));
  KernelTask with_v = affine(1);
  for (BufferSpec& buffer : with_v.buffers) {
    if (buffer.role == BufferRole::kConstant) buffer.constant = "v";
  }
  const InstanceId first = ready(affine(1)), same = ready(affine(2)), second = ready(with_v);
  for (const InstanceId instance : {first, same, second}) EXPECT_EQ(reloads_.at(instance), 0ns) << "memory was free";
  EXPECT_EQ(resident_, Bytes(2 << 10));
  EXPECT_EQ(memory_.at(first).device, Bytes(3 << 10));
  EXPECT_EQ(memory_.at(first).constants, memory_.at(same).constants) << "the same object";
  EXPECT_NE(memory_.at(first).constants, memory_.at(second).constants);
  EXPECT_EQ(memory_.at(first).constants.at(0).second + memory_.at(first).call, Bytes(3 << 10)) << "x, w and y";
  EXPECT_EQ(output(run(first, with_x(floats(1)))), floats(8));
  EXPECT_EQ(reloads_[first], 0ns);
  EXPECT_EQ(reloads_[same], 0ns) << "the same constant";
  EXPECT_EQ(resident_, Bytes(1 << 10)) << "counted once";
  EXPECT_GT(reloads_[second], 0ns);
  EXPECT_EQ(output(run(second, with_x(floats(1)))), floats(10));
  EXPECT_GT(reloads_[first], 0ns);
  EXPECT_GT(reloads_[same], 0ns);
  EXPECT_EQ(reloads_[second], 0ns);
  EXPECT_EQ(::kill(static_cast<pid_t>(view().pid), SIGKILL), 0);
  run_until([&] { return view().restarts == 1 && reloads_[first] == 0ns; });  // another process loads them again
}

// 3 KiB hold one vector and what a call needs.
TEST_F(DeviceServersTest, SaysWhenTheConstantsOfACallThatLoadsAreThere) {
  use_servers(3 << 10, 1 << 20, "cost");
  objects_.put("w", floats(7, 0));
  objects_.put("v", floats(9, 0));
  KernelTask with_v = affine(1);
  with_v.buffers[1].constant = "v";
  const InstanceId first = ready(affine(1)), second = ready(with_v);
  const auto call = [&](InstanceId instance) {
    const InvocationId sent = send(instance, with_x(floats(1)));
    decoded(answer(sent));
    return sent;
  };
  call(first);
  loaded_.clear();
  call(first);
  EXPECT_THAT(loaded_, testing::IsEmpty()) << "they were there";
  const InvocationId loads = call(second);
  EXPECT_THAT(loaded_, testing::ElementsAre(loads));
  call(second);
  EXPECT_THAT(loaded_, testing::ElementsAre(loads));
}

// More at once than the server has lanes at first, and than it makes.
TEST_F(DeviceServersTest, AsManyCallsAtOnceAsAreSentComputeRight) {
  objects_.put("w", floats(0));
  std::vector<InstanceId> sessions;
  for (int i = 0; i < 24; ++i) sessions.push_back(ready(affine(static_cast<float>(i))));
  std::vector<InvocationId> calls;
  for (const InstanceId session : sessions) calls.push_back(send(session, with_x(floats(1))));
  for (std::size_t i = 0; i < calls.size(); ++i) {
    EXPECT_EQ(output(answer(calls[i])), floats(static_cast<float>(i), static_cast<float>(i) + 1));
  }
}

TEST_F(DeviceServersTest, WhatIsLargerThanTheDeviceIsAnErrorThatNamesBoth) {
  use_servers(2 << 10, 1 << 20, "cost");
  objects_.put("w", floats(0));
  const InstanceId instance = ready(affine(1));
  EXPECT_THAT(run(instance, with_x(floats(1))).failure.text, HasSubstr("3072 bytes of device memory"));
}

// Device and host tier hold a part of the inputs; which, only the server knows. What it says is missing is opened again.
TEST_F(DeviceServersTest, WhatTheServerNoLongerHasIsGivenToItAgain) {
  use_servers(8 << 10, 2 << 10, "lru");
  objects_.put("w", floats(7, 0));
  const InstanceId instance = ready(affine(1));
  const int opened_for_the_session = objects_.opened;
  for (int round = 0; round < 2; ++round) {
    for (int i = 0; i < 12; ++i) {
      const std::string key = "in" + std::to_string(i);
      if (round == 0) objects_.put(key, floats(static_cast<float>(i)));
      const KernelTaskCall call{.inputs = {{0, key, ""}}, .outputs = {}};
      EXPECT_EQ(output(run(instance, call)), floats(7 + static_cast<float>(i))) << round;
    }
  }
  EXPECT_GT(objects_.opened, opened_for_the_session + 12);
  EXPECT_EQ(view().restarts, 0u);
}

TEST_F(DeviceServersTest, SharedMemoryThatOneTaskAskedForStaysAllowedWhenAnotherNeedsLess) {
  objects_.put("w", floats(0, 0));
  KernelTask more = affine(1), less = affine(1);
  more.kernels[0].shared_bytes = 60 << 10;
  less.kernels[0].shared_bytes = 50 << 10;
  const InstanceId first = ready(more), second = ready(less);
  EXPECT_EQ(output(run(second, with_x(floats(1)))), floats(1));
  EXPECT_EQ(output(run(first, with_x(floats(1)))), floats(1));
}

// As many as a model has parameters; a message between processes carries 253 descriptors.
TEST_F(DeviceServersTest, ATaskMayHaveMoreConstantsThanAMessageHasDescriptors) {
  constexpr std::uint32_t kConstants = 600;
  KernelTask task;
  task.buffers = {buffer("y", BufferRole::kOutput)};
  task.buffers[0].zeroed = true;
  for (std::uint32_t i = 1; i <= kConstants; ++i) {
    const std::string key = "w" + std::to_string(i);
    objects_.put(key, floats(static_cast<float>(i), 0));
    task.buffers.push_back(buffer(key.c_str(), BufferRole::kConstant, key.c_str()));
    task.kernels.push_back(launch("accumulate", {BufferArgument{.buffer = i}, BufferArgument{.buffer = 0}}));
  }
  EXPECT_EQ(output(run(ready(task), {})), floats(kConstants * (kConstants + 1) / 2, 0));
}

TEST_F(DeviceServersTest, AServerWithoutSessionsEndsUnlessItHoldsOutputs) {
  idle_limit_ = 10ms;
  use_servers(64 << 20, 64 << 20, "cost");
  objects_.put("w", floats(0, 0));
  const InstanceId instance = ready(affine(1));
  KernelTaskCall call = with_x(floats(1));
  call.outputs = {{2, "kept", ""}};
  ASSERT_FALSE(run(instance, call).is_error);
  servers_->kill(instance);
  EXPECT_EQ(fetched("kept"), floats(1)) << "by the server that had it";
  run_until([&] { return servers_->views().empty(); });
}

TEST_F(DeviceServersTest, AnOutputThatIsDeletedLeavesTheDeviceBeforeTheNextCall) {
  objects_.put("w", floats(0, 0));
  const InstanceId instance = ready(affine(1));
  KernelTaskCall call = with_x(floats(1));
  call.outputs = {{2, "kept", ""}};
  ASSERT_FALSE(run(instance, call).is_error);
  call.outputs = {{2, "deleted", ""}};
  ASSERT_FALSE(run(instance, call).is_error);
  const std::uint64_t used = view().counters.device_used;
  objects_.erase("deleted");
  run(instance, with_x(floats(1)));
  EXPECT_EQ(view().counters.device_used, used - static_cast<std::uint64_t>(kVector.count()));
  EXPECT_EQ(fetched("kept"), floats(1));
}

// Who hears that a session has ended may start the next one at once, for the server that is just given up.
TEST_F(DeviceServersTest, AServerThatCannotBeStartedIsTriedAnewForTheNextSession) {
  program_ = home_ + "/no-such-program";
  use_servers(64 << 20, 64 << 20, "cost");
  objects_.put("w", floats(0));
  InstanceId next;
  after_gone_ = [&] { next = begin(affine(1)); };
  const InstanceId first = begin(affine(1));
  run_until([&] { return gone_.contains(first); });
  EXPECT_THAT(gone_[first].reason, HasSubstr("does not start"));
  EXPECT_TRUE(gone_[first].is_nodes_fault) << "no task can help it";
  run_until([&] { return gone_.contains(next); });
  EXPECT_THAT(gone_[next].reason, HasSubstr("does not start"));
  EXPECT_TRUE(servers_->views().empty());
}

// ---- tasks of many kernels, which are graphs of the driver

// t = x / 2, m += t, t = m / 2, m += t, ... : t is a temporary that begins with zeros, m goes in and out.
KernelTask zigzag(std::size_t kernels, std::uint32_t iterations) {
  KernelTask task;
  task.buffers = {buffer("x", BufferRole::kInput), buffer("w", BufferRole::kConstant, "w"),
                  buffer("m", BufferRole::kInOut), buffer("t", BufferRole::kTemporary)};
  task.buffers[3].zeroed = true;
  task.iterations = iterations;
  const auto add = [](std::uint32_t from, std::uint32_t to) {
    return launch("accumulate", {BufferArgument{.buffer = from}, BufferArgument{.buffer = to}});
  };
  task.kernels = {add(0, 3), add(1, 3)};
  while (task.kernels.size() < kernels) {
    task.kernels.push_back(add(3, 2));
    task.kernels.push_back(launch("scale", {BufferArgument{.buffer = 2}, BufferArgument{.buffer = 3}, literal(0.5F)}));
  }
  return task;
}

class Graphs : public DeviceServersTest, public testing::WithParamInterface<bool> {
 protected:
  // What two sessions that run at the same time make of twelve inputs, in a memory that holds hardly two calls of them:
  // buffers are in another place in nearly every call.
  std::vector<std::string> results(bool plain) {
    use_servers(12 << 10, 1 << 20, "lru", GetParam(), plain);
    const InstanceId one = ready(zigzag(30, 1));
    const InstanceId other = ready(zigzag(6, 30));
    std::vector<InvocationId> sent;
    for (int i = 0; i < 12; ++i) {
      const InstanceId instance = i % 2 == 0 ? one : other;
      const std::string name = fmt::format("{}-{}", plain ? "plain" : "graph", i);
      KernelTaskCall call{.inputs = {{0, "x" + std::to_string(i % 5), ""}, {2, "", floats(2)}}, .outputs = {}};
      if (i >= 2) call.inputs[1] = {2, fmt::format("{}-{}", plain ? "plain" : "graph", i - 2), ""};
      call.outputs = {{2, name, ""}};
      sent.push_back(send(instance, call));
      if (i % 2 == 1) {
        EXPECT_FALSE(answer(sent[sent.size() - 2]).is_error) << answers_[sent[sent.size() - 2]].failure.text;
        EXPECT_FALSE(answer(sent.back()).is_error) << answers_[sent.back()].failure.text;
      }
    }
    EXPECT_GT(view().counters.evictions, 0u);
    std::vector<std::string> made;
    for (int i = 0; i < 12; ++i) made.push_back(fetched(fmt::format("{}-{}", plain ? "plain" : "graph", i)));
    return made;
  }
};

TEST_P(Graphs, ComputeWhatKernelsOneByOneDo) {
  objects_.put("w", floats(3));
  for (int i = 0; i < 5; ++i) objects_.put("x" + std::to_string(i), floats(static_cast<float>(i)));
  const std::vector<std::string> graphs = results(false);
  const std::vector<std::string> plain = results(true);
  EXPECT_TRUE(graphs == plain);  // too long to print
  EXPECT_NE(graphs[0], graphs[2]);
}
INSTANTIATE_TEST_SUITE_P(Isolation, Graphs, testing::Bool());

TEST_F(DeviceServersTest, AFaultInTheMiddleOfAGraphFailsItsOwnCallAndNoOther) {
  objects_.put("w", floats(0));
  objects_.put("x", floats(1));
  KernelTask faulty = zigzag(20, 1);
  faulty.kernels[10] = launch("wild", {BufferArgument{.buffer = 2}});
  const InstanceId bad = ready(faulty);
  const InstanceId good = ready(zigzag(20, 1));
  const KernelTaskCall call{.inputs = {{0, "x", ""}, {2, "", floats(0)}}, .outputs = {}};
  const InvocationId fault = send(bad, call);
  const InvocationId fine = send(good, call);
  EXPECT_THAT(answer(fault).failure.text, HasSubstr("700"));
  EXPECT_FALSE(answer(fault).is_nodes_fault);
  EXPECT_FALSE(answer(fine).is_error);
  EXPECT_EQ(output(run(good, call)), output(answer(fine)));
}

// ---- modules that no session uses

std::string version(int number) {
  return kKernels + "// " + std::to_string(number) + "\n";
}

class Modules : public DeviceServersTest, public testing::WithParamInterface<bool> {
 protected:
  void SetUp() override {
    DeviceServersTest::SetUp();
    use_servers(64 << 20, 64 << 20, "cost", GetParam(), false, 2);
    objects_.put("w", floats(3));
  }
  void end(InstanceId instance) {
    servers_->kill(instance);
    run_until([&] { return gone_.contains(instance); });
  }
};

TEST_P(Modules, AreUnloadedWhenTheyAreManyAndLoadedAgainWhenTheyComeBack) {
  const InstanceId stays = ready(affine(1), "default", version(100));
  std::uint64_t most = 0;
  for (int round = 0; round < 2; ++round) {
    for (int i = 0; i < 6; ++i) {
      const InstanceId instance = ready(affine(2), "default", version(i));
      ASSERT_EQ(output(run(instance, with_x(floats(1)))), floats(5, 3));
      most = std::max(most, view().counters.modules);
      end(instance);
    }
  }
  EXPECT_LE(most, 5u);  // that which stays, the last one's, two that wait, and one that goes with the next frame
  EXPECT_EQ(output(run(stays, with_x(floats(1)))), floats(4, 2));
  EXPECT_EQ(view().restarts, 0u);
}

TEST_P(Modules, AreUnloadedWhileOtherCallsRun) {
  const InstanceId busy = ready(affine(1), "default", version(100));
  busy_ = {busy};
  send(busy, with_x(floats(1)));
  for (int i = 0; i < 12; ++i) end(ready(affine(2), "default", version(i)));
  busy_.clear();
  const InstanceId last = ready(affine(2), "default", version(0));
  EXPECT_EQ(output(run(last, with_x(floats(1)))), floats(5, 3));
  EXPECT_LE(view().counters.modules, 7u);  // two of sessions, twice two, and one that goes with the next frame
}
INSTANTIATE_TEST_SUITE_P(Isolation, Modules, testing::Bool());

TEST_F(DeviceServersTest, AServerThatEndsAgainAndAgainWaitsLongerAndLonger) {
  objects_.put("w", floats(0));
  const InstanceId instance = ready(affine(1));
  const Instant begin = monotonic_now();
  for (std::uint64_t ends = 1; ends <= 4; ++ends) {
    ::kill(static_cast<pid_t>(view().pid), SIGKILL);
    run_until([&] { return view().restarts == ends; });
    EXPECT_EQ(output(run(instance, with_x(floats(1)))), floats(1, 2));
  }
  EXPECT_GE(monotonic_now() - begin, 700ms);  // 0, 100, 200 and 400 ms
}

}  // namespace
}  // namespace fairlead
