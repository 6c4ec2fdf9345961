#include "node/function_control.h"

#include <gmock/gmock.h>

#include <boost/asio/executor_work_guard.hpp>
#include <filesystem>

#include "node/testing/fake_store.h"
#include "node/testing/node_without_processes.h"
#include "store/test_folder.h"

namespace fairlead {
namespace {

namespace fs = std::filesystem;
using testing::Contains;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

constexpr InstanceId kFirst{1};

class FunctionControlTest : public NodeWithoutProcesses {
 protected:
  FunctionControlTest() {
    folder.write("one/bootstrap", "#!/bin/sh\n");
    folder.write("two/bootstrap", "#!/bin/sh\nexit 2\n");
  }

  using Made = std::shared_ptr<std::optional<Result<FunctionRecord>>>;
  static FunctionControl::Callback<FunctionRecord> into(const Made& made) {
    return [made](Result<FunctionRecord> record) { *made = std::move(record); };
  }
  static Made nothing_yet() { return std::make_shared<std::optional<Result<FunctionRecord>>>(); }

  Made begin_create(const std::string& name, const std::string& code = "one", FunctionConfig config = {}) {
    const Made made = nothing_yet();
    config.handler = "handler";
    control->create(name, std::move(config), {.folder = folder / code}, into(made));
    return made;
  }
  // Until the code is unpacked and asked to be written, or it was refused.
  void unpack(const Made& made) {
    while (!*made && store.pending_writes() == 0) io.run_one_for(std::chrono::minutes(2));
  }
  Result<FunctionRecord> finish(const Made& made) {
    unpack(made);
    store.tell_all();
    return made->value();
  }
  Result<FunctionRecord> create(const std::string& name, const std::string& code = "one", FunctionConfig config = {}) {
    return finish(begin_create(name, code, std::move(config)));
  }
  Result<FunctionRecord> update_code(const std::string& name, const std::string& code) {
    const Made made = nothing_yet();
    control->update_code(name, {.folder = folder / code}, into(made));
    return finish(made);
  }
  Result<FunctionRecord> update_config(const std::string& name, FunctionConfig config) {
    const Made made = nothing_yet();
    control->update_config(name, std::move(config), into(made));
    return finish(made);
  }
  Result<FunctionRecord> reserve(const std::string& name, std::optional<int> limit) {
    const Made made = nothing_yet();
    control->set_reserved_concurrency(name, limit, into(made));
    return finish(made);
  }
  Status remove(const std::string& name) {
    std::optional<Status> done;
    control->remove(name, [&](Status status) { done = std::move(status); });
    store.tell_all();
    return done.value();
  }
  // An instance that has answered once and is idle.
  void warm_up(const std::string& name) {
    invoke(name);
    ready(kFirst);
    answer("[1]");
    idle(kFirst);
    actions.clear();
  }

  store::TestFolder folder;
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work{io.get_executor()};
  Worker worker{io};
  FakeStore store;
  std::vector<std::string> removed;
  std::unique_ptr<FunctionControl> control = make_control();

  std::unique_ptr<FunctionControl> make_control() {
    return std::make_unique<FunctionControl>(
        io, ImageStoreOptions{.state_dir = folder / "state"}, worker, store, functions, tenants, request_ids, driver,
        [this](const RegisteredFunction& function) { removed.push_back(function.record.name); });
  }
};

// What has no way out says so, instead of taking the tag and doing nothing with it.
TEST_F(FunctionControlTest, AKernelTaskIsGivenNoEgress) {
  folder.write("task/kernels.ptx",
               ".version 7.0\n.target sm_80\n.address_size 64\n.visible .entry f(.param .u64 y) { ret; }\n");
  folder.write("task/task.json",
               R"({"buffers": {"y": {"role": "output", "type": "f32", "shape": [1]}},
                   "kernels": [{"module": "kernels.ptx", "kernel": "f", "grid": [1], "block": [1], "arguments": [{"buffer": "y"}]}]})");
  FunctionConfig config;
  config.tags["gpu:egress"] = "all";
  const auto refused = create("f", "task", config);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Errc::kInvalidArgument);
  EXPECT_THAT(refused.error().message, HasSubstr("tag gpu:egress is 'all', and kernel tasks connect nowhere"));

  ASSERT_TRUE(create("g", "one", config)) << "a program is another matter";
  EXPECT_FALSE(update_code("g", "task")) << "and does not become a kernel task with it";
  config.tags["gpu:egress"] = "none";
  EXPECT_TRUE(create("f", "task", config));
}

TEST_F(FunctionControlTest, SeatsThatAreGivenLaterAreOnDiskToo) {
  control->shares().configure({});
  const auto add_gpu = [&](std::uint64_t id, const std::string& uuid) {
    control->shares().add_device({.id = GpuId(id), .uuid = uuid, .memory = gib(16)}, 32, 2);
  };
  add_gpu(1, "GPU-a");
  FunctionConfig config;
  config.tags["gpu:quota-request"] = "60";
  ASSERT_TRUE(create("f", "one", config));
  ASSERT_EQ(store.functions.at("f").seats, std::vector<std::string>{"GPU-a"});
  control->shares().remove_device(GpuId(1));
  add_gpu(2, "GPU-b");
  control->settle_shares();
  EXPECT_EQ(store.functions.at("f").seats, std::vector<std::string>{"GPU-b"});
  store.tell_all();

  const Made made = nothing_yet();
  config.tags["gpu:quota-request"] = "70";
  config.handler = "handler";
  control->update_config("f", config, into(made));
  control->shares().remove_device(GpuId(2));
  add_gpu(3, "GPU-c");
  control->settle_shares();
  EXPECT_EQ(store.functions.at("f").config.tags["gpu:quota-request"], "70") << "no old record follows the new one";
  store.tell_all();
  ASSERT_TRUE(made->value());
  EXPECT_EQ(store.functions.at("f").seats, std::vector<std::string>{"GPU-c"});
  EXPECT_EQ(store.functions.at("f").config.tags["gpu:quota-request"], "70");
}

TEST_F(FunctionControlTest, WaitersGetWhatAFailedWriteGivesBack) {
  control->shares().configure({});
  control->shares().add_device({.id = GpuId(1), .uuid = "GPU-a", .memory = gib(16)}, 32, 2);
  FunctionConfig config;
  config.tags["gpu:quota-request"] = "60";
  ASSERT_TRUE(create("waits", "one", config));
  control->shares().remove_device(GpuId(1));
  control->settle_shares();
  const Made made = begin_create("other", "two", config);
  control->shares().add_device({.id = GpuId(2), .uuid = "GPU-b", .memory = gib(16)}, 32, 2);
  store.status = fail(Errc::kUnavailable, "the disk is full");
  unpack(made);
  control->settle_shares();
  EXPECT_FALSE(control->shares().status("waits", FlowId(1)).lacking.empty());
  store.tell_all();
  ASSERT_FALSE(made->value());
  EXPECT_TRUE(control->shares().status("waits", FlowId(1)).lacking.empty());
}

TEST_F(FunctionControlTest, IsSeenOnceItIsOnDisk) {
  const Made made = begin_create("f");
  unpack(made);
  EXPECT_TRUE(store.functions.contains("f"));
  EXPECT_FALSE(*made);
  EXPECT_EQ(functions.find("f"), nullptr);
  store.tell_all();
  ASSERT_TRUE(made->value()) << made->value().error().message;
  const FunctionRecord record = made->value().value();
  EXPECT_EQ(record.code_bytes, 10);
  EXPECT_FALSE(record.revision_id.empty());
  EXPECT_GT(record.last_modified_ms, 0);
  EXPECT_TRUE(fs::exists(record.code_path + "/bootstrap"));
  EXPECT_EQ(functions.find("f")->record.revision_id, record.revision_id);
  invoke("f");
  EXPECT_THAT(runner.started, testing::SizeIs(1));
}

TEST_F(FunctionControlTest, ANameIsTakenOnceAndWhileItIsBeingMade) {
  const Made first = begin_create("f");
  const Made second = begin_create("f");
  EXPECT_EQ(finish(second).error().code, Errc::kConflict);
  ASSERT_TRUE(finish(first));
  EXPECT_EQ(create("f").error().code, Errc::kAlreadyExists);
}

TEST_F(FunctionControlTest, WhatIsNotValidIsRefusedBeforeAnythingIsUnpacked) {
  EXPECT_EQ(create("no/name").error().code, Errc::kInvalidArgument);
  FunctionConfig config;
  config.timeout_seconds = 0;
  EXPECT_EQ(create("f", "one", config).error().code, Errc::kInvalidArgument);
  config = {.tags = {{"gpu:weight", "heavy"}}};
  EXPECT_EQ(create("f", "one", config).error().code, Errc::kInvalidArgument);
  EXPECT_FALSE(fs::exists(folder / "state/code"));
}

// Of a device with room for one more, as Node wires it.
class SharesInControlTest : public FunctionControlTest {
 protected:
  SharesInControlTest() {
    control->shares().add_device({.id = GpuId(1), .uuid = "GPU-a", .gpu_uuid = "GPU-a", .memory = gib(16)}, 32, 2);
  }
  static FunctionConfig asks(const std::string& request) { return {.tags = {{"gpu:quota-request", request}}}; }
};

TEST_F(SharesInControlTest, AnInstanceStartsWithItsFunctionAndGoesWithIt) {
  const auto made = create("f", "one", asks("60"));
  ASSERT_TRUE(made) << made.error().message;
  EXPECT_THAT(made->seats, testing::ElementsAre("GPU-a"));
  EXPECT_THAT(actions, Contains("start instance=1 flow=1 gpu=1 entitled"));
  ASSERT_TRUE(remove("f"));
  EXPECT_THAT(actions, Contains("stop instance=1 reason=function_changed"));
  EXPECT_TRUE(create("g", "one", asks("97"))) << "its seat was given back";
}

TEST_F(SharesInControlTest, WhatTheNodeCannotKeepIsRefusedAndChangesNothing) {
  ASSERT_TRUE(create("f", "one", asks("60")));
  const auto refused = create("g", "one", asks("50"));
  EXPECT_EQ(refused.error().code, Errc::kInvalidArgument);
  EXPECT_THAT(refused.error().message, HasSubstr("110.0 % of the device's time at best, 97.0 % is the most"));
  EXPECT_EQ(functions.find("g"), nullptr);
  EXPECT_FALSE(store.functions.contains("g"));
  ASSERT_TRUE(create("g", "one", asks("37"))) << "the name is free";
  EXPECT_FALSE(update_config("g", asks("38")));
  EXPECT_EQ(functions.find("g")->record.config.tags.at("gpu:quota-request"), "37");
  EXPECT_TRUE(update_code("g", "two"));
}

TEST_F(SharesInControlTest, AChangeThatIsNotWrittenGivesItsSeatsBack) {
  ASSERT_TRUE(create("f", "one", asks("20")));
  store.status = fail(Errc::kIo, "disk full");
  EXPECT_EQ(update_config("f", asks("90")).error().code, Errc::kIo);
  EXPECT_EQ(create("g", "one", asks("50")).error().code, Errc::kIo);
  store.status = {};
  EXPECT_TRUE(create("h", "one", asks("77")));
  EXPECT_EQ(functions.find("f")->record.config.tags.at("gpu:quota-request"), "20");
}

TEST_F(SharesInControlTest, ATagThatChangesWhileItRunsTakesEffect) {
  ASSERT_TRUE(create("f"));
  EXPECT_THAT(actions, Not(Contains(HasSubstr("start"))));
  ASSERT_TRUE(update_config("f", asks("60")));
  EXPECT_THAT(actions, Contains("start instance=1 flow=1 gpu=1 entitled"));
  ready(kFirst);
  ASSERT_TRUE(update_config("f", asks("0")));
  EXPECT_THAT(actions, Contains("seat instance=1 flow=1 gpu=1 parked"));
  EXPECT_THAT(actions, Not(Contains(HasSubstr("function_changed")))) << "it stays, without a seat";
  EXPECT_THAT(functions.find("f")->record.seats, testing::IsEmpty());
  ASSERT_TRUE(create("g", "one", asks("97")));
  FunctionConfig other = asks("0");
  other.environment["A"] = "b";
  ASSERT_TRUE(update_config("f", other));
  EXPECT_THAT(actions, Contains("stop instance=1 reason=function_changed")) << "what a process is started with";
}

TEST_F(FunctionControlTest, CodeThatCannotBeUsedLeavesTheNameFree) {
  folder.write("empty/readme", "no program");
  EXPECT_THAT(create("f", "empty").error().message, HasSubstr("bootstrap"));
  EXPECT_TRUE(store.functions.empty());
  EXPECT_TRUE(create("f"));
  EXPECT_FALSE(update_code("f", "empty"));
  EXPECT_TRUE(update_code("f", "two"));
}

TEST_F(FunctionControlTest, WhatCannotBeWrittenChangesNothingAndCanBeTriedAgain) {
  store.status = fail(Errc::kResourceExhausted, "disk full");
  EXPECT_EQ(create("f").error().message, "disk full");
  EXPECT_EQ(functions.find("f"), nullptr);
  store.status = {};
  ASSERT_TRUE(create("f"));
  const std::string path = functions.find("f")->record.code_path;

  store.status = fail(Errc::kResourceExhausted, "disk full");
  EXPECT_FALSE(update_code("f", "two"));
  EXPECT_FALSE(reserve("f", 0));
  EXPECT_EQ(functions.find("f")->record.code_path, path);
  EXPECT_EQ(functions.find("f")->record.reserved_concurrency, std::nullopt);
  const Status kept = remove("f");
  ASSERT_FALSE(kept);
  EXPECT_EQ(kept.error().message, "disk full");
  ASSERT_NE(functions.find("f"), nullptr);
  EXPECT_TRUE(removed.empty());
  store.status = {};
  EXPECT_TRUE(update_code("f", "two"));
}

TEST_F(FunctionControlTest, OtherCodeEndsInstancesOfTheOldOne) {
  ASSERT_TRUE(create("f"));
  const std::string revision = functions.find("f")->record.revision_id;
  warm_up("f");
  ASSERT_TRUE(update_code("f", "two"));
  EXPECT_THAT(runner.killed, testing::ElementsAre(kFirst));
  EXPECT_NE(functions.find("f")->record.revision_id, revision);
}

TEST_F(FunctionControlTest, TheSameCodeOrAnotherLimitLeavesInstancesAlone) {
  ASSERT_TRUE(create("f"));
  warm_up("f");
  ASSERT_TRUE(update_code("f", "one"));
  ASSERT_TRUE(reserve("f", 5));
  EXPECT_TRUE(runner.killed.empty());
  EXPECT_EQ(store.functions.at("f").reserved_concurrency, 5);
  ASSERT_TRUE(reserve("f", std::nullopt));
  EXPECT_EQ(store.functions.at("f").reserved_concurrency, std::nullopt);
}

TEST_F(FunctionControlTest, AReservationReachesTheCore) {
  ASSERT_TRUE(create("f"));
  EXPECT_EQ(reserve("f", -1).error().code, Errc::kInvalidArgument);
  ASSERT_TRUE(reserve("f", 0));
  const Reply reply = invoke("f");
  ASSERT_TRUE(reply->has_value());
  EXPECT_EQ((*reply)->error().code, Errc::kResourceExhausted);
}

TEST_F(FunctionControlTest, AnotherConfigurationKeepsTheCodeAndTheTenant) {
  ASSERT_TRUE(create("f"));
  const FunctionRecord before = functions.find("f")->record;
  FunctionConfig config = before.config;
  config.timeout_seconds = 7;
  ASSERT_TRUE(update_config("f", config));
  EXPECT_EQ(store.functions.at("f").config.timeout_seconds, 7);
  EXPECT_EQ(functions.find("f")->record.code_path, before.code_path);

  config.timeout_seconds = 0;
  EXPECT_EQ(update_config("f", config).error().code, Errc::kInvalidArgument);
  config.timeout_seconds = 7;
  config.tags["gpu:tenant"] = "acme";
  EXPECT_THAT(update_config("f", config).error().message, HasSubstr("'acme', but the function is of tenant 'default'"));
  EXPECT_TRUE(update_code("f", "two")) << "a refusal leaves nothing behind";
}

TEST_F(FunctionControlTest, OfAFunctionThatIsNotThereNothingIsChanged) {
  EXPECT_EQ(update_code("f", "one").error().code, Errc::kNotFound);
  EXPECT_EQ(update_config("f", {}).error().code, Errc::kNotFound);
  EXPECT_EQ(reserve("f", 1).error().code, Errc::kNotFound);
  EXPECT_EQ(remove("f").error().code, Errc::kNotFound);
}

TEST_F(FunctionControlTest, ADeletedFunctionAnswersWhoWaitsAndIsForgotten) {
  ASSERT_TRUE(create("f"));
  ASSERT_TRUE(reserve("f", 1));
  const Reply running = invoke("f"), waiting = invoke("f");
  ready(kFirst);
  ASSERT_TRUE(remove("f"));
  EXPECT_THAT(removed, testing::ElementsAre("f"));
  EXPECT_TRUE(store.functions.empty());
  EXPECT_EQ(functions.find("f"), nullptr);
  ASSERT_TRUE(waiting->has_value());
  EXPECT_EQ((*waiting)->error().code, Errc::kNotFound);
  EXPECT_TRUE(create("f")) << "the name is free";
}

TEST_F(FunctionControlTest, AFunctionWhoseRemovalCannotBeWrittenStays) {
  ASSERT_TRUE(create("f"));
  store.status = fail(Errc::kResourceExhausted, "disk full");
  EXPECT_EQ(remove("f").error().message, "disk full");
  EXPECT_FALSE(functions.find("f")->is_leaving);
  store.status = {};
  control->remove("f", [](const Status&) {});
  EXPECT_TRUE(functions.find("f")->is_leaving);
  store.tell_all();
  EXPECT_EQ(functions.find("f"), nullptr);
}

TEST_F(FunctionControlTest, OneThatIsDeletedWhileItIsBeingChangedIsConflict) {
  ASSERT_TRUE(create("f"));
  const Made made = nothing_yet();
  control->update_code("f", {.folder = folder / "two"}, into(made));
  EXPECT_EQ(remove("f").error().code, Errc::kConflict);
  EXPECT_TRUE(finish(made));
  EXPECT_TRUE(remove("f"));
}

TEST_F(FunctionControlTest, WhatTheStoreHoldsIsThereAfterAStart) {
  ASSERT_TRUE(create("f"));
  ASSERT_TRUE(create("g", "two"));
  const std::string of_f = functions.find("f")->record.code_path, of_g = functions.find("g")->record.code_path;
  for (const char* name : {"f", "g"}) {
    driver.tell(
        [&](Core& core, Instant now, Actions& out) { core.remove_function(now, functions.find(name)->flow, out); });
    functions.remove(name);
  }
  store.functions.erase("g");  // as if its removal had been the last write
  control = make_control();
  ASSERT_TRUE(control->recover());
  EXPECT_TRUE(fs::exists(of_f));
  EXPECT_FALSE(fs::exists(of_g)) << "no function has this code any more";
  invoke("f");
  EXPECT_THAT(actions, Contains(StartsWith("start instance=")));
}

// As when state.db is gone: whoever puts it back finds the code.
TEST_F(FunctionControlTest, AStoreThatMayLackFunctionsLeavesCodeThatNobodyUses) {
  ASSERT_TRUE(create("f"));
  const FunctionRecord record = functions.find("f")->record;
  ASSERT_TRUE(remove("f"));
  folder.write("state/images/old/layer", "bytes");
  store.found.may_lack_changes = true;
  control = make_control();
  ASSERT_TRUE(control->recover());
  EXPECT_TRUE(fs::exists(record.code_path));
  EXPECT_TRUE(fs::exists(folder / "state/images/old"));
  store.found = {};
  control = make_control();
  ASSERT_TRUE(control->recover());
  EXPECT_FALSE(fs::exists(record.code_path)) << "the next start, which found nothing";
  EXPECT_FALSE(fs::exists(folder / "state/images/old"));
}

TEST_F(FunctionControlTest, AStoreThatCannotBeReadIsNoEmptyOne) {
  store.status = fail(Errc::kCorrupt, "damaged");
  EXPECT_EQ(control->recover().error().message, "damaged");
}

}  // namespace
}  // namespace fairlead
