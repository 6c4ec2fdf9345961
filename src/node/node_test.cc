// The node whole, but for its GPUs: what it takes up when it starts, and how it ends. With functions that run it is tried in
// tests/.
#include "node/node.h"

#include <gmock/gmock.h>

#include <filesystem>

#include "base/log.h"
#include "runtime/sandbox_support.h"
#include "store/test_folder.h"

namespace fairlead {
namespace {

using testing::HasSubstr;

class NodeTest : public testing::Test {
 protected:
  void SetUp() override {
    const SandboxSupport support = probe_sandbox_support();
    if (!support.possible()) GTEST_SKIP() << "this machine cannot make sandboxes: " << support.obstacle();
    spdlog::set_level(spdlog::level::err);
    folder.write("code/bootstrap", "#!/bin/sh\n");
    start();
  }
  void TearDown() override { node.reset(); }

  NodeOptions options() const {
    NodeOptions made;
    made.state_dir = folder / "state";
    made.policy = "fcfs";
    made.host.state_dir = folder / "state/instances";
    made.host.log_dir = folder / "state/logs";
    made.objects.memory_dir = folder / "memory";
    made.objects.spill_dir = folder / "state/objects";
    made.failure_words.document = [](const Outcome& outcome) { return outcome.failure.text; };
    return made;
  }
  // A new node over the same folder.
  void start(const NodeOptions& with) {
    node.reset();
    io.restart();
    auto made = Node::create(io, with);
    ASSERT_TRUE(made) << made.error().message;
    node = *std::move(made);
  }
  void start() { start(options()); }

  template <typename T>
  T wait_for(const std::shared_ptr<std::optional<T>>& value) {
    while (!*value) {
      if (io.stopped()) io.restart();
      FL_CHECK(io.run_one_for(std::chrono::minutes(2)) > 0);
    }
    return **value;
  }
  template <typename T>
  static std::shared_ptr<std::optional<T>> later() {
    return std::make_shared<std::optional<T>>();
  }

  Result<FunctionRecord> create(const std::string& name) {
    const auto made = later<Result<FunctionRecord>>();
    FunctionConfig config;
    config.handler = "bootstrap";
    node->create_function(name, std::move(config), {.folder = folder / "code"},
                          [made](Result<FunctionRecord> record) { *made = std::move(record); });
    return wait_for(made);
  }
  static InvokeRequest request(const std::string& function) {
    InvokeRequest one;
    one.invocation.function = function;
    one.invocation.payload = "{}";
    return one;
  }
  Result<std::string> send_event(const std::string& function) {
    const auto accepted = later<Result<std::string>>();
    node->invoke_event(request(function), [accepted](Result<std::string> id) { *accepted = std::move(id); });
    return wait_for(accepted);
  }

  store::TestFolder folder;
  boost::asio::io_context io;
  std::unique_ptr<Node> node;
};

TEST_F(NodeTest, WhatCannotWorkIsRefusedBeforeAnythingIsMade) {
  NodeOptions wrong = options();
  wrong.state_dir = folder / "other";
  wrong.policy = "none";
  EXPECT_EQ(Node::create(io, wrong).error().code, Errc::kInvalidArgument);
  wrong = options();
  wrong.state_dir = folder / "other";
  wrong.core.slots_per_gpu = wrong.core.instances_per_gpu + 1;
  EXPECT_EQ(Node::create(io, wrong).error().code, Errc::kInvalidArgument);
  EXPECT_FALSE(std::filesystem::exists(folder / "other"));
}

TEST_F(NodeTest, ASecondNodeOverOneFolderIsRefused) {
  NodeOptions second = options();
  second.host.state_dir = folder / "second";
  EXPECT_EQ(Node::create(io, second).error().code, Errc::kConflict);
}

TEST_F(NodeTest, FunctionsAndWaitingEventsAreTakenUpAgain) {
  ASSERT_TRUE(create("f"));
  ASSERT_TRUE(send_event("f"));
  start();
  ASSERT_EQ(node->list_functions().size(), 1U);
  EXPECT_EQ(node->get_function("f")->name, "f");
  EXPECT_EQ(node->status().queued, 0U) << "not before there are GPUs";
  // What waits is taken up with the next one.
  ASSERT_TRUE(send_event("f"));
  EXPECT_EQ(node->status().queued, 2U);
}

TEST_F(NodeTest, ADrainedNodeHasWrittenEverythingAndTakesNothingMore) {
  ASSERT_TRUE(create("f"));
  ASSERT_TRUE(create("g"));
  const auto accepted = later<Result<std::string>>();
  node->invoke_event(request("f"), [accepted](Result<std::string> id) { *accepted = std::move(id); });
  bool is_written = false;
  const auto drained = later<bool>();
  node->drain([&, drained] {
    is_written = accepted->has_value();
    *drained = true;
  });
  node->delete_function("g", [](const Status&) {});  // an event of the core after the write, as its monitor's are
  wait_for(drained);
  ASSERT_TRUE(is_written);
  EXPECT_TRUE(node->status().draining);
  EXPECT_EQ(send_event("f").error().code, Errc::kUnavailable);
  const auto reply = later<Result<Outcome>>();
  node->invoke(request("f"), [reply](Result<Outcome> outcome) { *reply = std::move(outcome); });
  EXPECT_EQ(wait_for(reply).error().code, Errc::kUnavailable);

  start();
  ASSERT_TRUE(send_event("f"));
  EXPECT_EQ(node->status().queued, 2U) << "the one that waited was left on disk";
}

TEST_F(NodeTest, WhatNobodyWaitsForAnyMoreLeavesTheQueue) {
  ASSERT_TRUE(create("f"));
  const auto reply = later<Result<Outcome>>();
  const auto cancel = node->invoke(request("f"), [reply](Result<Outcome> outcome) { *reply = std::move(outcome); });
  EXPECT_TRUE(node->busy());
  cancel();
  EXPECT_FALSE(node->busy());
  EXPECT_EQ(node->status().queued, 0U);
  EXPECT_FALSE(reply->has_value()) << "whoever has left is not called";
}

TEST_F(NodeTest, OfAnUnknownFunctionNothingIsKnown) {
  EXPECT_EQ(node->check_invoke("f").error().code, Errc::kNotFound);
  EXPECT_EQ(node->get_function("f").error().code, Errc::kNotFound);
  EXPECT_EQ(node->log("f", 100).error().code, Errc::kNotFound);
  EXPECT_EQ(send_event("f").error().code, Errc::kNotFound);
  const auto reply = later<Result<Outcome>>();
  node->invoke(request("f"), [reply](Result<Outcome> outcome) { *reply = std::move(outcome); });
  EXPECT_EQ(wait_for(reply).error().code, Errc::kNotFound);
}

TEST_F(NodeTest, TheLogOfAFunctionIsTheEndOfItsFiles) {
  ASSERT_TRUE(create("f"));
  EXPECT_EQ(node->log("f", 100).value(), "");
  folder.write("state/logs/f.log.1", "old\n");
  folder.write("state/logs/f.log", "new\n");
  EXPECT_EQ(node->log("f", 100).value(), "old\nnew\n");
  EXPECT_EQ(node->log("f", 6).value(), "d\nnew\n");
}

TEST_F(NodeTest, AHistoryIsKeptWhereItIsAskedFor) {
  const auto page = later<Result<HistoryPage>>();
  node->history(0, [page](Result<HistoryPage> read) { *page = std::move(read); });
  EXPECT_THAT(wait_for(page).error().message, HasSubstr("--history"));
  NodeOptions with = options();
  with.history_bytes = 1 << 20;
  start(with);
  const auto empty = later<Result<HistoryPage>>();
  node->history(0, [empty](Result<HistoryPage> read) { *empty = std::move(read); });
  EXPECT_EQ(wait_for(empty).value().lines, "");
}

TEST_F(NodeTest, ADeletedFunctionTakesItsEventsAlong) {
  ASSERT_TRUE(create("f"));
  ASSERT_TRUE(send_event("f"));
  const auto done = later<Status>();
  node->delete_function("f", [done](Status status) { *done = std::move(status); });
  ASSERT_TRUE(wait_for(done));
  EXPECT_TRUE(node->list_functions().empty());
  ASSERT_TRUE(create("f"));
  start();
  ASSERT_TRUE(send_event("f"));
  EXPECT_EQ(node->status().queued, 1U);
}

}  // namespace
}  // namespace fairlead
