#include "decide/graph/graph_plan.h"

#include <gmock/gmock.h>

namespace fairlead {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

GraphNode node(std::string name, std::vector<std::string> reads, std::vector<std::string> writes) {
  GraphNode made;
  made.name = std::move(name);
  made.function = "f";
  made.reads = std::move(reads);
  made.writes = std::move(writes);
  return made;
}

Graph graph_of(std::vector<GraphNode> nodes) {
  Graph graph;
  graph.nodes = std::move(nodes);
  return graph;
}

std::string refusal(const Graph& graph) {
  const auto plan = plan_graph(graph);
  return plan ? "" : plan.error().message;
}

TEST(GraphPlan, WhoReadsWhatAnotherWritesRunsAfterIt) {
  const auto plan = plan_graph(
      graph_of({node("total", {"sum"}, {}), node("add", {"x", "y"}, {"sum"}), node("make", {"seed"}, {"x"})}));
  ASSERT_TRUE(plan) << plan.error().message;
  EXPECT_THAT(plan->needs[0], ElementsAre(1));
  EXPECT_THAT(plan->needs[1], ElementsAre(2));
  EXPECT_THAT(plan->needs[2], ElementsAre());
  EXPECT_THAT(plan->feeds[2], ElementsAre(1));
  EXPECT_THAT(plan->inputs, ElementsAre(Pair("seed", ElementsAre(2)), Pair("y", ElementsAre(1))));
}

TEST(GraphPlan, SeveralReasonsAreOneEdge) {
  Graph graph = graph_of({node("a", {}, {"x", "y"}), node("b", {"x", "y", "x", "o", "o"}, {})});
  graph.nodes[1].after = {"a"};
  const auto plan = plan_graph(graph);
  ASSERT_TRUE(plan);
  EXPECT_THAT(plan->needs[1], ElementsAre(0));
  EXPECT_THAT(plan->feeds[0], ElementsAre(1));
  EXPECT_THAT(plan->inputs, ElementsAre(Pair("o", ElementsAre(1))));
}

TEST(GraphPlan, ACycleIsNamedWithoutWhatLeadsToIt) {
  const std::string message =
      refusal(graph_of({node("before", {}, {"p"}), node("a", {"p", "z"}, {"x"}), node("b", {"x"}, {"y"}),
                        node("c", {"y"}, {"z"}), node("d", {"z"}, {})}));
  EXPECT_THAT(message, HasSubstr("'a' needs 'c' needs 'b' needs 'a'"));
  EXPECT_THAT(message, testing::Not(HasSubstr("before")));
  EXPECT_THAT(message, testing::Not(HasSubstr("'d'")));
}

TEST(GraphPlan, ALongCycleIsNamedInPart) {
  std::vector<GraphNode> nodes;
  for (int i = 0; i < 100; ++i) {
    nodes.push_back(node(fmt::format("n{}", i), {fmt::format("k{}", i)}, {fmt::format("k{}", (i + 1) % 100)}));
  }
  const std::string message = refusal(graph_of(std::move(nodes)));
  EXPECT_THAT(message, HasSubstr("needs ..."));
  EXPECT_LT(message.size(), 1000U);
}

TEST(GraphPlan, RefusalsNameNodeFieldAndValue) {
  EXPECT_THAT(refusal(graph_of({})), HasSubstr("nodes has 0 members; 1 to 4096"));
  EXPECT_THAT(refusal(graph_of(std::vector<GraphNode>(4097, node("a", {}, {})))), HasSubstr("4097"));
  EXPECT_THAT(refusal(graph_of({node("a b", {}, {})})), HasSubstr("'a b'"));
  EXPECT_THAT(refusal(graph_of({node("a", {}, {}), node("a", {}, {})})), HasSubstr("two nodes are called 'a'"));
  EXPECT_THAT(refusal(graph_of({node("a", {}, {"x"}), node("b", {}, {"y", "x"})})),
              HasSubstr("nodes.b.writes has 'x', which node 'a' writes too"));
  EXPECT_THAT(refusal(graph_of({node("a", {"k", "a//b"}, {})})), HasSubstr("nodes.a.reads[1]"));
  EXPECT_THAT(refusal(graph_of({node("a", {}, {"../x"})})), HasSubstr("nodes.a.writes[0]"));
  EXPECT_THAT(refusal(graph_of({node("a", {"x"}, {"x"})})), HasSubstr("nodes.a.reads has 'x'"));
  std::vector<GraphNode> many;
  for (int i = 0; i < 9; ++i) many.push_back(node(fmt::format("n{}", i), std::vector<std::string>(4096, "k"), {}));
  EXPECT_THAT(refusal(graph_of(many)), HasSubstr("36864 elements in reads, writes and after; at most 32768"));
  Graph graph = graph_of({node("a", {}, {})});
  graph.nodes[0].after = {"z"};
  EXPECT_THAT(refusal(graph), HasSubstr("nodes.a.after has 'z'"));
  graph.nodes[0].after = {};
  graph.nodes[0].retries = 6;
  EXPECT_THAT(refusal(graph), HasSubstr("nodes.a.retries is 6; it must be between 0 and 5"));
  graph.nodes[0].retries = 0;
  graph.concurrency = 0;
  EXPECT_THAT(refusal(graph), HasSubstr("concurrency is 0; it must be between 1 and 1024"));
  graph.concurrency = 1;
  graph.deadline = std::chrono::hours(25);
  EXPECT_THAT(refusal(graph), HasSubstr("deadline_seconds is 90000; it must be between 0.001 and 86400"));
}

TEST(Graph, TheRunsIdComesIntoKeysAndPayloads) {
  Graph graph = graph_of({node("a", {"{run}/{run}"}, {"out/{run}"})});
  graph.nodes[0].payload = R"({"to":"out/{run}"})";
  graph.nodes[0].call_writes = {"{run}/y"};
  name_run(graph, "r-1");
  EXPECT_EQ(graph.run, "r-1");
  EXPECT_THAT(graph.nodes[0].reads, ElementsAre("r-1/r-1"));
  EXPECT_EQ(graph.nodes[0].payload, R"({"to":"out/r-1"})");
  use_call_keys(graph.nodes[0]);
  EXPECT_THAT(graph.nodes[0].writes, ElementsAre("out/r-1", "r-1/y"));
}

TEST(Graph, ARunsIdIsSafeInsideOfKeysAndJson) {
  EXPECT_TRUE(validate_run_id("r-1_A"));
  for (const char* id : {"", "a/b", "a\"b", "{run}", ".."}) EXPECT_FALSE(validate_run_id(id)) << id;
  EXPECT_FALSE(validate_run_id(std::string(65, 'a')));
}

}  // namespace
}  // namespace fairlead
