// Runs over a node that answers as it is told and a real data layer in a folder of the test.
#include "node/graph_runs.h"

#include <gmock/gmock.h>

#include "edge/testing/fake_node.h"

namespace fairlead {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

struct GraphRunsTest : testing::Test {
  GraphRunsTest() {
    for (const char* name : {"f", "task"}) node.add(name);
    node.hold = true;
  }

  static GraphNode step(std::string name, std::vector<std::string> reads, std::vector<std::string> writes) {
    GraphNode made;
    made.name = std::move(name);
    made.function = "f";
    made.payload = "{}";
    made.reads = std::move(reads);
    made.writes = std::move(writes);
    return made;
  }
  std::string submit(std::vector<GraphNode> nodes, bool resume = false) {
    Graph graph;
    graph.nodes = std::move(nodes);
    graph.run = "r";
    graph.resume = resume;
    const auto run = runs.submit("default", graph);
    return run ? *run : "error: " + run.error().message;
  }
  GraphRunStatus status() {
    std::optional<GraphRunStatus> found;
    runs.wait("default", "r", std::nullopt, Duration(0),
              [&](const Result<GraphRunStatus>& run) { found = run.value(); });
    return *found;
  }
  GraphNodeState state(std::size_t index) { return status().nodes.at(index).state; }
  void put(const std::string& key) {
    bool is_put = false;
    node.object_store->put({"default", key}, "x", {},
                           [&](const Result<ObjectInfo>& info) { is_put = info.has_value(); });
    while (!is_put) run_io();
    node.io.poll();  // what follows from it
  }
  void run_io() {
    if (node.io.stopped()) node.io.restart();
    node.io.run_one_for(std::chrono::minutes(2));
  }
  void answer(std::size_t call, Result<Outcome> reply = Outcome{.request_id = {}, .payload = "{}"}) {
    const auto done = std::move(node.held.at(call));
    done(std::move(reply));
  }
  std::string read_failure(const std::string& key) {
    const auto info = node.object_store->info({"default", key});
    return info ? info->failure : "none";
  }

  FakeNode node;
  GraphRuns runs{node.io, node, *node.object_store, [](const std::string& function) { return function == "task"; },
                 [](const Outcome& outcome) { return outcome.payload; }};
};

TEST_F(GraphRunsTest, ANodeIsInvokedWhenItsInputIsThereAndItsOutputIsExpectedBefore) {
  ASSERT_EQ(submit({step("a", {"in"}, {"out"}), step("b", {"out"}, {})}), "r");
  EXPECT_EQ(node.object_store->info({"default", "out"})->state, ObjectState::kPending);
  EXPECT_TRUE(node.invoked.empty());
  put("in");
  ASSERT_EQ(node.held.size(), 1U);
  put("out");
  answer(0);
  ASSERT_EQ(node.held.size(), 2U);
  answer(1);
  EXPECT_EQ(status().state, GraphRunState::kDone);
  EXPECT_EQ(status().nodes[0].result, "{}");
  EXPECT_EQ(runs.counters().nodes_done, 2U);
  EXPECT_EQ(runs.counters().active, 0U);
}

// From the node's answer on, while the run goes on and after its end.
TEST_F(GraphRunsTest, ResultsCountInTheMemoryOfAll) {
  const auto memory = std::make_shared<ByteBudget>(100'000);
  runs.count_in(memory);
  ASSERT_EQ(submit({step("a", {}, {}), step("b", {}, {}), step("c", {"in"}, {})}), "r");
  ASSERT_EQ(node.held.size(), 2U);
  answer(0, Outcome{.request_id = {}, .payload = std::string(40'000, 'x')});
  EXPECT_EQ(memory->held_by("default"), 40'000U);
  answer(1, Outcome{.request_id = {}, .payload = std::string(40'000, 'y')});
  EXPECT_EQ(memory->held_by("default"), 40'000U) << "beyond the tenant's part: not kept";
  put("in");
  answer(2, Outcome{.request_id = {}, .payload = "z"});
  EXPECT_EQ(status().state, GraphRunState::kDone);
  EXPECT_EQ(status().nodes[0].result, std::string(40'000, 'x'));
  EXPECT_EQ(status().nodes[1].result_bytes, 40'000U);
  EXPECT_EQ(memory->held_by("default"), 40'001U);
}

TEST_F(GraphRunsTest, AKernelTasksCallSaysWhatIsReadAndWritten) {
  GraphNode task = step("t", {}, {});
  task.function = "task";
  task.call_reads = {"x"};
  task.call_writes = {"y"};
  GraphNode program = step("p", {}, {});
  program.call_reads = {"ignored"};
  Graph graph;
  graph.nodes = {task, program};
  EXPECT_THAT(runs.check("default", graph)->inputs, ElementsAre("x"));
}

TEST_F(GraphRunsTest, WhatAFailedNodeHasWrittenIsRemovedAndReadersHearTheCause) {
  ASSERT_EQ(submit({step("a", {}, {"out", "other"}), step("b", {"out"}, {"late"})}), "r");
  put("out");
  Outcome reply{.request_id = {}, .payload = "E: boom"};
  reply.kind = OutcomeKind::kFunctionError;
  answer(0, reply);
  EXPECT_EQ(status().state, GraphRunState::kFailed);
  EXPECT_THAT(read_failure("out"), HasSubstr("node a failed: E: boom"));
  EXPECT_THAT(read_failure("other"), HasSubstr("node a failed: E: boom"));
  EXPECT_THAT(read_failure("late"), HasSubstr("node b was not run: node a failed: E: boom"));
  EXPECT_EQ(submit({step("a", {}, {"out"})}), "r");  // its keys are free
}

TEST_F(GraphRunsTest, AWrittenObjectThatIsMissingIsAFailure) {
  ASSERT_EQ(submit({step("a", {}, {"out"})}), "r");
  answer(0);
  EXPECT_THAT(status().nodes[0].error, HasSubstr("function 'f' answered, but did not write 'out'"));
}

TEST_F(GraphRunsTest, AnotherAttemptFindsWhatTheFirstFound) {
  GraphNode again = step("a", {}, {"out"});
  again.retries = 1;
  ASSERT_EQ(submit({again}), "r");
  put("out");
  Outcome failed{.request_id = {}, .payload = "boom"};
  failed.kind = OutcomeKind::kFunctionError;
  answer(0, failed);
  while (node.held.size() < 2) run_io();  // after its pause
  EXPECT_EQ(node.object_store->info({"default", "out"})->state, ObjectState::kPending);
  put("out");
  answer(1);
  EXPECT_EQ(state(0), GraphNodeState::kDone);
  EXPECT_EQ(status().nodes[0].attempts, 2U);
}

TEST_F(GraphRunsTest, ACancelledRunTakesBackItsInvocationsAndIgnoresTheirAnswers) {
  ASSERT_EQ(submit({step("a", {}, {"out"}), step("b", {"out"}, {})}), "r");
  EXPECT_EQ(runs.cancel("default", "r")->state, GraphRunState::kCancelled);
  EXPECT_EQ(node.cancelled, 1);
  EXPECT_THAT(read_failure("out"), HasSubstr("node a was given up: the run was cancelled"));
  put("out");  // the function got to its end
  answer(0);
  EXPECT_EQ(status().state, GraphRunState::kCancelled);
  EXPECT_EQ(runs.cancel("acme", "r").error().code, Errc::kNotFound);
}

TEST_F(GraphRunsTest, AResumedRunDoesNotRepeatWhatIsThereAndRepeatsWhatIsHalfThere) {
  for (const char* key : {"one", "half"}) put(key);
  const std::vector<GraphNode> nodes{step("a", {}, {"one"}), step("b", {"one"}, {"half", "other"})};
  EXPECT_THAT(submit(nodes), HasSubstr("nodes.a.writes has 'one', an object that exists (sealed)"));
  ASSERT_EQ(submit(nodes, /*resume=*/true), "r");
  EXPECT_EQ(state(0), GraphNodeState::kDone);
  EXPECT_EQ(state(1), GraphNodeState::kRunning);
  EXPECT_EQ(node.object_store->info({"default", "half"})->state, ObjectState::kPending);
  EXPECT_THAT(submit({step("c", {}, {"else"})}), HasSubstr("a run of this id goes on"));
}

TEST_F(GraphRunsTest, AnotherGraphTakesAnObjectForThereWhenItsWriterIsDone) {
  const auto reading = [&](const char* id, const char* key) {
    Graph graph;
    graph.nodes = {step("reader", {key}, {})};
    graph.run = id;
    return runs.submit("default", graph).value();
  };
  ASSERT_EQ(submit({step("a", {}, {"good"}), step("b", {}, {"bad"})}), "r");
  reading("early", "bad");
  for (const char* key : {"good", "bad"}) put(key);
  reading("late", "good");
  node.io.poll();
  EXPECT_EQ(node.held.size(), 2U);  // a, b
  Outcome failed{.request_id = {}, .payload = "boom"};
  failed.kind = OutcomeKind::kFunctionError;
  answer(1, failed);
  EXPECT_THAT(runs.cancel("default", "early")->nodes[0].error,
              HasSubstr("its input 'bad' failed: node b failed: boom"));
  answer(0);
  EXPECT_EQ(node.held.size(), 3U);
}

TEST_F(GraphRunsTest, AFunctionThatIsRefusedInsideTheCallFailsItsNode) {
  node.hold = false;
  node.reply = fail(Errc::kUnavailable, "the node is shutting down");
  std::vector<GraphNode> nodes;
  for (int i = 0; i < 100; ++i) nodes.push_back(step(fmt::format("n{}", i), {}, {}));
  ASSERT_EQ(submit(nodes), "r");
  EXPECT_EQ(status().failed, 100U);
}

TEST_F(GraphRunsTest, ATenantHasAsManyRunsAsAreLeftFree) {
  node.hold = true;
  Graph graph;
  graph.nodes = {step("a", {}, {})};
  for (std::size_t i = 0; i < GraphRuns::kMaxActive / 2; ++i) ASSERT_TRUE(runs.submit("default", graph));
  const auto refused = runs.submit("default", graph);
  ASSERT_EQ(refused.error().code, Errc::kResourceExhausted);
  EXPECT_THAT(refused.error().message, HasSubstr("128 runs of graphs go on, 128 of them tenant default's"));
  for (std::size_t i = 0; i < GraphRuns::kMaxActive / 4; ++i) ASSERT_TRUE(runs.submit("other", graph));
  EXPECT_EQ(runs.submit("other", graph).error().code, Errc::kResourceExhausted);
  EXPECT_TRUE(runs.submit("third", graph)) << "whoever comes later finds a place";
  const std::string one = runs.list("default").front().run;
  ASSERT_TRUE(runs.cancel("default", one));
  runs.drain();
  EXPECT_EQ(runs.counters().runs_cancelled, GraphRuns::kMaxActive / 4 * 3 + 1);
  EXPECT_EQ(runs.submit("default", graph).error().code, Errc::kUnavailable);
}

TEST_F(GraphRunsTest, AFloodOfRunsMakesTheNodeForgetNobodyElses) {
  node.hold = false;
  Graph graph;
  graph.nodes = {step("a", {}, {})};
  const std::string mine = runs.submit("victim", graph).value();
  for (std::size_t i = 0; i < 2 * GraphRuns::kMaxEnded; ++i) ASSERT_TRUE(runs.submit("flooder", graph));
  ASSERT_EQ(runs.list("victim").size(), 1U);
  EXPECT_EQ(runs.list("victim").front().run, mine);
  EXPECT_EQ(runs.list("flooder").size(), GraphRuns::kMaxEnded - 1);
}

TEST_F(GraphRunsTest, OfTheRunsThatEndedTheLastOnesAreKept) {
  node.hold = false;
  Graph graph;
  graph.nodes = {step("a", {}, {})};
  const std::string first = runs.submit("default", graph).value();
  for (std::size_t i = 0; i < GraphRuns::kMaxEnded; ++i) ASSERT_TRUE(runs.submit("default", graph));
  EXPECT_EQ(runs.list("default").size(), GraphRuns::kMaxEnded);
  EXPECT_EQ(runs.cancel("default", first).error().code, Errc::kNotFound);
}

}  // namespace
}  // namespace fairlead
