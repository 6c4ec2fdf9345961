#include "decide/graph/graph_run.h"

#include <gmock/gmock.h>

#include <map>

namespace fairlead {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using State = GraphNodeState;

Instant at(double s) {
  return Instant(from_seconds(s));
}

// A run whose starts and ends are noted by name.
class Driven {
 public:
  explicit Driven(Graph graph, const std::set<GraphRun::NodeIndex>& done = {})
      : graph_(std::move(graph)), run_(graph_, plan_graph(graph_).value(), at(0)) {
    tell([&](auto& out) { run_.begin(at(0), done, out); });
  }

  void done(const std::string& name, double now = 1) {
    tell([&](auto& out) { run_.succeeded(at(now), index(name), tries_[name], out); });
  }
  void fail(const std::string& name, double now = 1) {
    tell([&](auto& out) { run_.failed(at(now), index(name), tries_[name], "boom", out); });
  }
  void throttle(const std::string& name, double now = 1) {
    tell([&](auto& out) { run_.throttled(at(now), index(name), tries_[name], "queue full", out); });
  }
  void input(const std::string& key) {
    tell([&](auto& out) { run_.input_there(at(1), key, out); });
  }
  void lose(const std::string& key) {
    tell([&](auto& out) { run_.input_lost(at(1), key, "its device died", out); });
  }
  void cancel() {
    tell([&](auto& out) { run_.cancel(at(1), "it was cancelled", out); });
  }
  void wake(double now) {
    tell([&](auto& out) { run_.wake(at(now), out); });
  }

  std::vector<std::string> started() { return std::exchange(started_, {}); }
  std::vector<std::string> dropped() { return std::exchange(dropped_, {}); }
  State state(const std::string& name) { return run_.view(index(name)).state; }
  std::string error(const std::string& name) { return run_.error_of(index(name)); }
  unsigned attempts(const std::string& name) { return run_.view(index(name)).attempts; }
  GraphRun& run() { return run_; }
  int run_ended = 0;

 private:
  GraphRun::NodeIndex index(const std::string& name) {
    for (GraphRun::NodeIndex i = 0; i < graph_.nodes.size(); ++i) {
      if (graph_.nodes[i].name == name) return i;
    }
    ADD_FAILURE() << name;
    return 0;
  }
  template <typename Call>
  void tell(Call call) {
    GraphRun::Actions actions;
    call(actions);
    for (const GraphRun::Action& action : actions) {
      if (const auto* start = std::get_if<GraphRun::StartNode>(&action)) {
        started_.push_back(graph_.nodes[start->node].name);
        tries_[started_.back()] = start->tried;
      }
      if (const auto* drop = std::get_if<GraphRun::DropNode>(&action)) {
        dropped_.push_back(graph_.nodes[drop->node].name);
      }
      if (std::holds_alternative<GraphRun::RunEnded>(action)) ++run_ended;
    }
  }

  Graph graph_;
  GraphRun run_;
  std::map<std::string, GraphRun::Try> tries_;
  std::vector<std::string> started_, dropped_;
};

// "c<a,b" is a node c after a and b; "c<!k" reads the outside input k.
Graph graph_of(const std::vector<std::string>& texts) {
  Graph graph;
  for (const std::string& text : texts) {
    GraphNode node;
    node.name = text.substr(0, 1);
    for (std::size_t i = 2; i < text.size(); i += 2) {
      if (text[i] == '!') {
        node.reads.push_back(text.substr(++i, 1));
      } else {
        node.after.push_back(text.substr(i, 1));
      }
    }
    graph.nodes.push_back(node);
  }
  return graph;
}

TEST(GraphRun, ADiamondRunsInOrder) {
  Driven run(graph_of({"a", "b<a", "c<a", "d<b,c"}));
  EXPECT_THAT(run.started(), ElementsAre("a"));
  run.done("a");
  EXPECT_THAT(run.started(), ElementsAre("b", "c"));
  run.done("c");
  EXPECT_THAT(run.started(), IsEmpty());
  run.done("b");
  EXPECT_THAT(run.started(), ElementsAre("d"));
  EXPECT_EQ(run.run_ended, 0);
  run.done("d");
  EXPECT_EQ(run.run().state(), GraphRunState::kDone);
  EXPECT_EQ(run.run_ended, 1);
  EXPECT_EQ(run.run().next_wakeup(), std::nullopt);
}

TEST(GraphRun, ANodeWaitsForItsOutsideInputs) {
  Driven run(graph_of({"a<!x,!y", "b<!x"}));
  EXPECT_THAT(run.run().awaited_inputs(), ElementsAre("x", "y"));
  run.input("x");
  EXPECT_THAT(run.started(), ElementsAre("b"));
  run.input("x");
  EXPECT_THAT(run.started(), IsEmpty());
  run.input("y");
  EXPECT_THAT(run.started(), ElementsAre("a"));
  EXPECT_THAT(run.run().awaited_inputs(), IsEmpty());
}

TEST(GraphRun, AFailureReachesAllThatNeedItAndNobodyElse) {
  Driven run(graph_of({"a", "b<a", "c<b", "o"}));
  run.fail("a");
  EXPECT_EQ(run.state("a"), State::kFailed);
  EXPECT_EQ(run.error("a"), "node a failed: boom");
  EXPECT_EQ(run.error("b"), "node b was not run: node a failed: boom");
  EXPECT_EQ(run.error("c"), "node c was not run: node a failed: boom");
  EXPECT_EQ(run.run_ended, 0);
  run.done("o");
  EXPECT_EQ(run.run().state(), GraphRunState::kFailed);
  EXPECT_EQ(run.run().ended(), 4U);
}

TEST(GraphRun, ALostInputFailsItsReaders) {
  Driven run(graph_of({"a<!x", "b<a", "c<!x,!y", "o"}));
  run.lose("x");
  EXPECT_EQ(run.error("a"), "node a was not run: its input 'x' failed: its device died");
  EXPECT_THAT(run.error("b"), HasSubstr("node b was not run: node a was not run: its input 'x' failed"));
  EXPECT_EQ(run.state("c"), State::kSkipped);
  EXPECT_THAT(run.run().awaited_inputs(), IsEmpty());
  run.done("o");
  EXPECT_EQ(run.run_ended, 1);
}

TEST(GraphRun, NoMoreRunThanConcurrencySays) {
  Graph graph = graph_of({"a", "b", "c", "d<a"});
  graph.concurrency = 2;
  Driven run(graph);
  EXPECT_THAT(run.started(), ElementsAre("a", "b"));
  run.done("a");
  EXPECT_THAT(run.started(), ElementsAre("c"));  // was ready before d
  run.fail("b");
  EXPECT_THAT(run.started(), ElementsAre("d"));
}

TEST(GraphRun, AFailedNodeRunsAgainAfterGrowingPausesAndKeepsItsTurn) {
  Graph graph = graph_of({"a", "b"});
  graph.concurrency = 1;
  graph.nodes[0].retries = 2;
  Driven run(graph);
  run.started();
  run.fail("a", 1);
  EXPECT_EQ(run.run().next_wakeup(), at(1.1));
  run.wake(1.05);
  EXPECT_THAT(run.started(), IsEmpty());
  run.wake(1.1);
  EXPECT_THAT(run.started(), ElementsAre("a"));
  run.fail("a", 2);
  EXPECT_EQ(run.run().next_wakeup(), at(2.2));
  run.wake(2.2);
  run.started();
  run.fail("a", 3);
  EXPECT_EQ(run.error("a"), "node a failed: boom (3 attempts)");
  EXPECT_THAT(run.started(), ElementsAre("b"));
}

TEST(GraphRun, AThrottledNodeIsTriedAgainWithoutUsingUpRetries) {
  Driven run(graph_of({"a"}));
  double now = 0;
  for (unsigned i = 0; i < kThrottledTries; ++i) {
    run.throttle("a", now);
    ASSERT_EQ(run.state("a"), State::kRunning);
    const Instant wakeup = *run.run().next_wakeup();
    EXPECT_LE(wakeup - at(now), kLongestPause);
    now = to_seconds(wakeup.time_since_epoch());
    run.wake(now);
    EXPECT_EQ(run.attempts("a"), 1U);
  }
  run.throttle("a", now);
  EXPECT_THAT(run.error("a"), HasSubstr("it was throttled 11 times: queue full"));
  EXPECT_EQ(run.run().state(), GraphRunState::kFailed);
}

TEST(GraphRun, AnAnswerToAnEarlierTryIsNoAnswer) {
  Graph graph = graph_of({"a"});
  graph.nodes[0].retries = 1;
  Driven run(graph);
  run.fail("a", 1);
  run.done("a", 1);  // the first try, while pausing
  EXPECT_EQ(run.state("a"), State::kRunning);
  run.wake(2);
  GraphRun::Actions out;
  run.run().succeeded(at(2), 0, 1, out);
  EXPECT_THAT(out, IsEmpty());
  run.done("a", 3);
  EXPECT_EQ(run.state("a"), State::kDone);
}

TEST(GraphRun, CancellingEndsEverythingAtOnce) {
  Driven run(graph_of({"a", "b<a", "c<!x", "d"}));
  run.done("d");
  run.cancel();
  EXPECT_THAT(run.dropped(), ElementsAre("a"));
  EXPECT_EQ(run.error("a"), "node a was given up: it was cancelled");
  EXPECT_EQ(run.error("b"), "node b was not run: it was cancelled");
  EXPECT_EQ(run.state("d"), State::kDone);
  EXPECT_EQ(run.run().state(), GraphRunState::kCancelled);
  run.done("a");
  run.cancel();
  run.input("x");
  EXPECT_EQ(run.run_ended, 1);
  EXPECT_EQ(run.state("a"), State::kFailed);
}

TEST(GraphRun, TheDeadlineEndsItToo) {
  Graph graph = graph_of({"a<!x"});
  graph.deadline = seconds(5);
  Driven run(graph);
  EXPECT_EQ(run.run().next_wakeup(), at(5));
  run.wake(4.9);
  EXPECT_EQ(run.run_ended, 0);
  run.wake(5);
  EXPECT_EQ(run.run().state(), GraphRunState::kFailed);
  EXPECT_EQ(run.error("a"), "node a was not run: the run's deadline of 5 s is over");
}

TEST(GraphRun, WhatAnEarlierRunHasDoneDoesNotRunAgain) {
  Driven run(graph_of({"a<!x", "b<a", "c<b", "d<a"}), {0, 1});
  EXPECT_THAT(run.run().awaited_inputs(), IsEmpty());
  EXPECT_THAT(run.started(), ElementsAre("d", "c"));
  EXPECT_EQ(run.attempts("a"), 0U);
  run.done("c");
  run.done("d");
  EXPECT_EQ(run.run().state(), GraphRunState::kDone);
}

TEST(GraphRun, ADoneNodeStaysDoneWhenWhatItNeededFailsNow) {
  Driven run(graph_of({"a", "b<a", "c<b"}), {1});
  EXPECT_THAT(run.started(), ElementsAre("a", "c"));
  run.fail("a");
  EXPECT_EQ(run.state("b"), State::kDone);
  run.done("c");
  EXPECT_EQ(run.state("c"), State::kDone);
  EXPECT_EQ(run.run().state(), GraphRunState::kFailed);
}

TEST(GraphRun, ARunOfWhichAllIsDoneEndsAtOnce) {
  Driven run(graph_of({"a", "b<a"}), {0, 1});
  EXPECT_EQ(run.run_ended, 1);
  EXPECT_EQ(run.run().state(), GraphRunState::kDone);
}

}  // namespace
}  // namespace fairlead
