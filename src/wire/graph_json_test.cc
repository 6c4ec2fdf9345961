#include "wire/graph_json.h"

#include <gmock/gmock.h>

namespace fairlead::wire {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::string refusal(std::string_view text) {
  const auto graph = graph_from_json(text);
  return graph ? "" : graph.error().message;
}

TEST(GraphJson, EveryFieldIsRead) {
  const auto graph =
      graph_from_json(R"({"name": "sum", "run": "r1", "concurrency": 3, "deadline_seconds": 0.5, "resume": true,
    "nodes": {"make": {"function": "vectors", "payload": {"n": 8}, "writes": ["x"]},
              "add": {"function": "add", "reads": ["x", "w"], "after": ["make"], "retries": 2}}})");
  ASSERT_TRUE(graph) << graph.error().message;
  EXPECT_EQ(graph->name, "sum");
  EXPECT_EQ(graph->run, "r1");
  EXPECT_EQ(graph->concurrency, 3U);
  EXPECT_EQ(graph->deadline, std::chrono::milliseconds(500));
  EXPECT_TRUE(graph->resume);
  ASSERT_EQ(graph->nodes.size(), 2U);
  EXPECT_EQ(graph->nodes[0].name, "add");
  EXPECT_EQ(graph->nodes[0].payload, "{}");
  EXPECT_THAT(graph->nodes[0].reads, ElementsAre("x", "w"));
  EXPECT_THAT(graph->nodes[0].after, ElementsAre("make"));
  EXPECT_EQ(graph->nodes[0].retries, 2U);
  EXPECT_EQ(graph->nodes[1].function, "vectors");
  EXPECT_EQ(graph->nodes[1].payload, R"({"n":8})");
  EXPECT_THAT(graph->nodes[1].writes, ElementsAre("x"));
}

TEST(GraphJson, TheKeysOfAKernelTasksCallAreFound) {
  const auto graph = graph_from_json(R"({"nodes": {"a": {"function": "f", "payload":
    {"inputs": {"x": {"key": "in/x"}, "y": [1, 2], "z": {"base64": ""}}, "outputs": {"s": {"key": "out/s"}, "t": null}}},
    "b": {"function": "f", "payload": [1]}, "c": {"function": "f", "payload": {"inputs": "x"}}}})");
  ASSERT_TRUE(graph) << graph.error().message;
  EXPECT_THAT(graph->nodes[0].call_reads, ElementsAre("in/x"));
  EXPECT_THAT(graph->nodes[0].call_writes, ElementsAre("out/s"));
  EXPECT_THAT(graph->nodes[0].reads, IsEmpty());
  EXPECT_THAT(graph->nodes[2].call_reads, IsEmpty());
}

TEST(GraphJson, RefusalsNameThePlace) {
  EXPECT_THAT(refusal("{"), HasSubstr("the graph"));
  EXPECT_THAT(refusal("{}"), HasSubstr("nodes"));
  EXPECT_THAT(refusal(R"({"nodes": []})"), HasSubstr("nodes must be an object"));
  EXPECT_THAT(refusal(R"({"nodes": {}})"), HasSubstr("nodes has 0 members"));
  EXPECT_THAT(refusal(R"({"nodes": {"a": {}}})"), HasSubstr("nodes.a"));
  EXPECT_THAT(refusal(R"({"nodes": {"a": {"function": "f", "read": []}}})"), HasSubstr("read"));
  EXPECT_THAT(refusal(R"({"nodes": {"a": {"function": "f", "reads": "x"}}})"), HasSubstr("nodes.a.reads"));
  EXPECT_THAT(refusal(R"({"nodes": {"a": {"function": "f", "writes": ["x", 7]}}})"), HasSubstr("nodes.a.writes[1]"));
  EXPECT_THAT(refusal(R"({"nodes": {"a": {"function": "f", "retries": 6}}})"), HasSubstr("nodes.a.retries is 6"));
  EXPECT_THAT(refusal(R"({"nodes": {"a": {"function": "f"}, "a": {"function": "g"}}})"), HasSubstr("a"));
  EXPECT_THAT(refusal(R"({"nodes": {"a": {"function": "f"}}, "deadline_seconds": 1e9})"), HasSubstr("86400"));
  EXPECT_THAT(refusal(R"({"nodes": {"a": {"function": "f"}}, "concurrency": 0})"), HasSubstr("concurrency is 0"));
  EXPECT_THAT(refusal(R"({"nodes": {"a": {"function": "f"}}, "parallel": 0})"), HasSubstr("parallel"));
}

}  // namespace
}  // namespace fairlead::wire
